"""Parties that hold some of the columns: blocks of the same people, and columns partly shared."""

import numpy as np
import pytest

from cobasis import (
    Agreement,
    Analyst,
    ConsortiumSecret,
    Holding,
    Party,
    SecretBasis,
    numeric_features,
)
from cobasis.errors import (
    AgreementError,
    FeatureError,
    MessageError,
    OptionError,
    UndeterminedFitError,
)
from cobasis.protocol.secrets import public_rows_digest

NAMES = ("age", "pulse", "pressure", "lactate", "sodium", "urea")
WARD, LAB = NAMES[:3], NAMES[3:]
BLOCKS = ("first", "second", "third")
SECRET = ConsortiumSecret()


def of_block(block, part, columns, **more):
    return Holding(party=f"{block}-{part}", columns=columns, block=block, n_components=2, **more)


def agreement(holdings, *, others=("whole",), **changes):
    fields = {
        "round_id": "icu",
        "parties": (*dict.fromkeys(each.party for each in holdings), *others),
        "holdings": tuple(holdings),
        "features": numeric_features(NAMES),
        "task": "classification",
        "classes": (0, 1),
        "n_components": 4,
        "n_anchor_rows": 6,
        "model": "logistic",
        "id": "person",
        "commitment": SECRET.commitment("icu"),
    }
    return Agreement(**fields | changes)


def blocks(**changes):
    """Three blocks of a ward, which has the label, and a laboratory, which has not."""
    holdings = [
        holding
        for block in BLOCKS
        for holding in (of_block(block, "ward", WARD), of_block(block, "lab", LAB, labels=False))
    ]
    return agreement(holdings, **changes)


def people(rng, n_rows=40):
    table = rng.normal(size=(n_rows, 6)) + 0.5
    return table, (table.sum(axis=1) > 3).astype(int), [f"p{each:03}" for each in range(n_rows)]


class Consortium:
    """Everybody's party and upload; those of a laboratory come in another order of people."""

    def __init__(self, agreed, *, seed=0):
        rng, self.agreement = np.random.default_rng(seed), agreed
        self.parties, self.uploads, self.people = {}, {}, {}
        for block in BLOCKS:
            self.people[block] = table, labels, who = people(rng)
            mixed = rng.permutation(len(who))
            self.add(f"{block}-ward", table[:, :3], labels, people=who)
            self.add(f"{block}-lab", table[mixed, 3:], people=[who[row] for row in mixed])
        self.people["whole"] = table, labels, _ = people(rng)
        self.add("whole", table, labels)

    def add(self, name, *given, **more):
        self.parties[name] = Party(name, agreement=self.agreement, secret=SECRET)
        self.uploads[name] = self.parties[name].prepare(*given, **more)

    def analyst(self, *, without=()):
        analyst = Analyst(self.agreement)
        for name, upload in self.uploads.items():
            if name not in without:
                analyst.receive(upload)
        return analyst

    def predict(self, block, rows):
        ward, lab = (self.parties[f"{block}-{part}"] for part in ("ward", "lab"))
        return ward.predict(rows[:, :3], beside=lab.transform(rows[:, 3:]))


@pytest.fixture(scope="module")
def made():
    return Consortium(blocks())


def test_a_party_of_a_block_needs_its_own_columns_and_signs_for_all(made):
    ward = made.parties["first-ward"].agreement
    assert (ward.columns, ward.n_components) == (WARD, 2)
    assert ward.digest() == made.agreement.digest()
    assert (ward.whole, ward.n_inputs) == (made.agreement, 4)
    assert ward.held_by("first-ward") is ward
    assert made.agreement.held_by("whole") is made.agreement
    again = Agreement.model_validate_json(made.agreement.model_dump_json())
    assert again.digest() == made.agreement.digest()


def test_an_analyst_sees_a_block_as_one_upload_person_by_person(made):
    joined = made.analyst().uploads["second"]
    image = joined.read_image()
    assert np.allclose(image.T @ image, np.eye(4), atol=1e-12)  # the joined basis is orthonormal
    assert (joined.rows_shape, joined.image_shape) == ((40, 4), (6, 4))
    table, labels, _ = made.people["second"]
    seen = np.hstack(
        [
            made.parties["second-ward"].basis.project(table[:, :3]),
            made.parties["second-lab"].basis.project(table[:, 3:]),
        ]
    )
    rows = joined.row_block(0, 40)
    order = [int(np.argmin(np.linalg.norm(seen - row, axis=1))) for row in rows]
    assert sorted(order) == list(range(40))
    assert order != list(range(40))
    assert np.allclose(rows, seen[order])
    assert np.array_equal(joined.label_block(0, 40), labels[order])


def test_every_party_of_a_block_gets_its_own_part_of_the_change_of_basis(made):
    analyst = made.analyst()
    returns = analyst.run()
    assert set(returns) == set(made.agreement.parties)
    assert returns["first-lab"].change_of_basis.shape == (2, 4)
    for name, each in returns.items():
        made.parties[name].accept(each)
        assert set(each.trained_on) == set(made.agreement.parties)
        assert set(each.target_carries) <= set(made.agreement.parties)
        assert each.evidence == "cannot tell"
    tests, labels, _ = people(np.random.default_rng(9), 400)
    for block in BLOCKS:
        assert np.mean(made.predict(block, tests) == labels) > 0.8
    assert np.mean(made.parties["whole"].predict(tests) == labels) > 0.8
    with pytest.raises(OptionError, match="needs beside="):
        made.parties["first-ward"].predict(tests[:, :3])
    with pytest.raises(OptionError, match="takes no beside="):
        made.parties["whole"].predict(tests, beside=np.zeros((400, 4)))


def test_blocks_whose_parts_share_spans_see_a_person_alike():
    made, rng = Consortium(blocks()), np.random.default_rng(2)
    spans = [np.linalg.qr(rng.normal(size=(3, 2)))[0] for _ in range(2)]
    for block in BLOCKS:
        table, labels, who = made.people[block]
        for part, span, at in zip(("ward", "lab"), spans, (slice(3), slice(3, 6)), strict=True):
            turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
            basis = SecretBasis(span @ turn, party=f"{block}-{part}")
            given = labels if part == "ward" else None
            made.add(f"{block}-{part}", table[:, at], given, people=who, basis=basis)
    returns = made.analyst(without=["whole"]).run()
    tests, seen = rng.normal(size=(10, 6)), []
    for block in BLOCKS:
        halves = zip(("ward", "lab"), (tests[:, :3], tests[:, 3:]), strict=True)
        both = [
            made.parties[f"{block}-{part}"].basis.project(rows)
            @ returns[f"{block}-{part}"].change_of_basis
            for part, rows in halves
        ]
        seen.append(sum(both))
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(seen[0], seen[2])
    assert np.linalg.norm(seen[0]) > 1


def test_a_block_that_lacks_a_party_takes_no_part_and_others_stay_as_they_are(made):
    analyst = made.analyst(without=["third-lab"])
    returns = analyst.run()
    assert set(returns) == {*made.agreement.parties} - {"third-ward", "third-lab"}
    before = analyst.alignment.fits["first"].change_of_basis
    analyst.receive(made.uploads["third-lab"])  # late
    assert set(analyst.uploads) == {*BLOCKS, "whole"}
    analyst.remove("second-lab")
    assert set(analyst.uploads) == {"first", "third", "whole"}
    analyst.remove("second-ward")
    assert np.array_equal(analyst.alignment.fits["first"].change_of_basis, before)


UNLINKED = {
    "a person less": (lambda who: who[1:], "40 of 'first-ward', 39 of 'first-lab'"),
    "another person": (lambda who: [*who[1:], "somebody"], "not of the same people"),
}


@pytest.mark.parametrize("case", UNLINKED)
def test_parts_of_other_people_are_refused(case):
    change, words = UNLINKED[case]
    made = Consortium(blocks())
    table, _, who = made.people["first"]
    kept = change(who)
    made.add("first-lab", table[: len(kept), 3:], people=kept)
    with pytest.raises(MessageError, match=rf"{words}.*\[CB306\]$"):
        made.analyst().align()


def test_labels_that_differ_between_a_blocks_parties_are_refused():
    holdings = [of_block("first", "ward", WARD), of_block("first", "lab", LAB)]
    agreed = agreement(holdings)
    rows, labels, who = people(np.random.default_rng(0))
    analyst = Analyst(agreed)
    for part, at, told in (("ward", slice(3), labels), ("lab", slice(3, 6), 1 - labels)):
        party = Party(f"first-{part}", agreement=agreed, secret=SECRET)
        analyst.receive(party.prepare(rows[:, at], told, people=who))
    with pytest.raises(MessageError, match="not the same person by person"):
        analyst.align()


def test_rows_without_one_identifier_each_are_refused(made):
    party = made.parties["first-ward"]
    table, labels, who = made.people["first"]
    for given in (None, who[1:], [*who[1:], who[1]]):
        with pytest.raises(FeatureError, match="identifiers for 40 rows"):
            party.prepare(table[:, :3], labels, people=given)


def test_orders_and_tags_follow_from_secret_round_block_and_people_alone():
    agreed, who = blocks(), ["b", "a", "c"]
    ward, lab = agreed.held_by("first-ward"), agreed.held_by("first-lab")
    order, tag = SECRET.order(ward, who)
    again, same = SECRET.order(lab, sorted(who))
    assert [who[at] for at in order] == [sorted(who)[at] for at in again]
    assert tag == same
    others = [
        SECRET.order(agreed.held_by("second-ward"), who)[1],
        SECRET.order(ward, ["a", "b"])[1],
        SECRET.order(blocks(round_id="x").held_by("first-ward"), who)[1],
        ConsortiumSecret().order(ward, who)[1],
    ]
    assert len({tag, *others}) == 5


def test_columns_that_are_partly_shared_are_aligned_by_those_that_are():
    held = {"north": NAMES[:5], "south": NAMES[1:]}
    agreed = agreement(
        [Holding(party=name, columns=columns) for name, columns in held.items()],
        n_components=3,
    )
    rng, sides, analyst = np.random.default_rng(0), {}, Analyst(agreed)
    span = np.linalg.qr(rng.normal(size=(4, 3)))[0]  # of the four columns that all three hold
    for name, columns in {**held, "whole": NAMES}.items():
        at = [NAMES.index(column) for column in columns]
        rows, labels, _ = people(rng, 60)
        inside = np.zeros((6, 3))
        inside[1:5] = span @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        party = Party(name, agreement=agreed, secret=SECRET)
        basis = SecretBasis(inside[at], party=name)
        analyst.receive(party.prepare(rows[:, at], labels, basis=basis))
        sides[name] = party, at
    returns, tests, seen = analyst.run(), rng.normal(size=(20, 6)), []
    for name, (party, at) in sides.items():
        party.accept(returns[name])
        seen.append(party.transform(tests[:, at]))
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(seen[0], seen[2])


@pytest.mark.filterwarnings("ignore:anchor='public'")
def test_public_rows_align_parties_that_share_no_column():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(2, 6))

    def drawn(n_rows):
        return rng.normal(size=(n_rows, 2)) @ mixing + 0.05 * rng.normal(size=(n_rows, 6))

    public = drawn(60)
    agreed = agreement(
        [Holding(party="n", columns=WARD), Holding(party="s", columns=LAB)],
        others=(),
        n_components=2,
        anchor="public",
        aligner="imakura",
        n_anchor_rows=60,
        public_rows_sha256=public_rows_digest(public),
    )
    new, seen, parties, analyst = drawn(200), [], {}, Analyst(agreed)
    for name, at in (("n", slice(3)), ("s", slice(3, 6))):
        party = Party(name, agreement=agreed, secret=SECRET, public_rows=public)
        rows = drawn(100)
        analyst.receive(party.prepare(rows[:, at], (rows[:, 0] > 0).astype(int)))
        parties[name] = party, at
    for name, returned in analyst.run().items():
        party, at = parties[name]
        party.accept(returned)
        seen.append(party.transform(new[:, at]))
        assert party.attributions(new[:5, at]).values.shape == (5, 3)
    assert np.linalg.norm(seen[0] - seen[1]) < 0.2 * np.linalg.norm(seen[0])


def test_too_few_shared_columns_leave_directions_undetermined():
    held = {"north": NAMES[:4], "south": NAMES[3:]}  # lactate alone, for three components
    agreed = agreement(
        [Holding(party=name, columns=columns) for name, columns in held.items()],
        others=(),
        n_components=3,
    )
    analyst, rng = Analyst(agreed), np.random.default_rng(0)
    for name, columns in held.items():
        rows, labels, _ = people(rng, 60)
        party = Party(name, agreement=agreed, secret=SECRET)
        at = [NAMES.index(column) for column in columns]
        analyst.receive(party.prepare(rows[:, at], labels))
    with pytest.raises(UndeterminedFitError, match="undetermined"):
        analyst.run()


WARD_1, LAB_1 = of_block("first", "ward", WARD), of_block("first", "lab", LAB)


def changed(holding, **fields):
    return Holding(**{**dict(holding), **fields})


REFUSED = {
    "a basis of all columns": ([WARD_1, LAB_1], {"basis": "haar"}, "is of all columns"),
    "coefficients": ([WARD_1, LAB_1], {"model": "logit"}, "need every column"),
    "a stranger": ([changed(WARD_1, party="ghost")], {"parties": ("a", "b")}, "of no party"),
    "twice": ([WARD_1, WARD_1], {}, "there are two"),
    "an unknown column": ([changed(WARD_1, columns=("iron",)), LAB_1], {}, "names iron"),
    "a column twice": ([changed(WARD_1, columns=("age", "age")), LAB_1], {}, "a column twice"),
    "a size without a block": ([changed(WARD_1, block="")], {}, "go with a block"),
    "a block by a party's name": ([changed(WARD_1, block="first-ward"), LAB_1], {}, "party's name"),
    "no identifier": ([WARD_1, LAB_1], {"id": ""}, "by the column id"),
    "rows held back": ([WARD_1, LAB_1], {"holdout": 0.2}, "would take one person's parts apart"),
    "a block of one": ([WARD_1], {}, "is of one party"),
    "a shared column": ([WARD_1, changed(LAB_1, columns=WARD)], {}, "two of its parties hold"),
    "sizes that do not add up": ([WARD_1, changed(LAB_1, n_components=1)], {}, "2, 1 and have to"),
    "no label": ([changed(x, labels=False) for x in (WARD_1, LAB_1)], {}, "holds the label"),
    "too many components": (
        [changed(WARD_1, columns=("age",)), LAB_1],
        {},
        "of 'first-ward': n_components=2 is above the 1 features",
    ),
    "a column of nobody": (
        [WARD_1, changed(LAB_1, columns=LAB[:2])],
        {"others": ()},
        "nobody holds urea",
    ),
    "nothing in common": (
        [Holding(party="n", columns=WARD), Holding(party="s", columns=LAB)],
        {"n_components": 2, "others": ()},
        "'n' holds no column that anybody else holds",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_holdings_that_cannot_be_aligned_are_refused_before_anybody_signs(case):
    holdings, changes, words = REFUSED[case]
    with pytest.raises(AgreementError, match=rf"{words}.*\[CB303\]"):
        agreement(holdings, **changes)
