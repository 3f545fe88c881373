"""Parties that hold some of the columns: blocks of the same people, and columns partly shared."""

from unittest.mock import patch

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, Holding, Party, SecretBasis, numeric_features
from cobasis.errors import (
    AgreementError,
    FeatureError,
    MessageError,
    OptionError,
    ShapeError,
    UndeterminedFitError,
)
from cobasis.features.contract import Interaction
from cobasis.protocol.secrets import public_rows_digest
from models.chains import quicken
from protocol.consortium import agree, receiving

NAMES = ("age", "pulse", "pressure", "lactate", "sodium", "urea")
WARD, LAB = NAMES[:3], NAMES[3:]
BLOCKS = ("first", "second", "third")
SECRET = ConsortiumSecret()


def of_block(block, part, columns, **more):
    return Holding(party=f"{block}-{part}", columns=columns, block=block, n_components=2, **more)


def agreement(holdings, *, others=("whole",), **changes):
    fields = {
        "parties": (*dict.fromkeys(each.party for each in holdings), *others),
        "holdings": tuple(holdings),
        "features": numeric_features(NAMES),
        "n_components": 4,
        "n_anchor_rows": 6,
        "model": "logistic",
        "id": "person",
    }
    return agree(SECRET, **fields | changes)


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

    def __init__(self, **changes):
        rng, self.agreement = np.random.default_rng(0), blocks(**changes)
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
        kept = [upload for name, upload in self.uploads.items() if name not in without]
        return receiving(self.agreement, kept)

    def sides(self, block, rows):
        """The ward and the laboratory, each with its own columns and the other's part."""
        ward, lab = (self.parties[f"{block}-{part}"] for part in ("ward", "lab"))
        own, rest = rows[:, :3], rows[:, 3:]
        return (ward, own, lab.transform(rest)), (lab, rest, ward.transform(own))


@pytest.fixture(scope="module")
def made():
    return Consortium()


def test_an_analyst_sees_a_block_as_one_upload_person_by_person(made):
    ward = made.parties["first-ward"].agreement
    assert (ward.columns, ward.n_components, ward.n_inputs) == (WARD, 2, 4)
    assert ward.digest() == made.agreement.digest()
    joined = made.analyst().uploads["second"]
    image = joined.anchor_image[:]
    assert np.allclose(image.T @ image, np.eye(4), atol=1e-12)  # the joined basis is orthonormal
    assert (joined.rows.shape, joined.anchor_image.shape) == ((40, 4), (6, 4))
    table, labels, _ = made.people["second"]
    parts = {"second-ward": table[:, :3], "second-lab": table[:, 3:]}
    seen = np.hstack([made.parties[name].basis.project(own) for name, own in parts.items()])
    rows = joined.rows[:]
    order = [int(np.argmin(np.linalg.norm(seen - row, axis=1))) for row in rows]
    assert sorted(order) == list(range(40))
    assert order != list(range(40))
    assert np.allclose(rows, seen[order])
    assert np.array_equal(joined.labels[:], labels[order])


def finished(**changes):
    """The consortium, with everybody's return accepted."""
    made = Consortium(**changes)
    for name, each in made.analyst().run().items():
        made.parties[name].accept(each)
    return made


def test_parties_of_a_block_predict_with_the_others_and_give_exact_reasons_for_their_own_columns():
    made, (tests, labels, _) = finished(), people(np.random.default_rng(9), 60)
    for each in (party.returned for party in made.parties.values()):
        assert {*each.target_carries} <= {*each.trained_on} == {*made.agreement.parties}
        assert each.evidence == "cannot tell"
    for block in BLOCKS:
        for party, own, beside in made.sides(block, tests):
            assert np.mean(party.predict(own, beside=beside) == labels) > 0.8
    with pytest.raises(OptionError, match="takes no beside="):
        made.parties["whole"].predict(tests, beside=np.zeros((60, 4)))
    (ward, own, beside), (lab, rest, back) = made.sides("first", tests)
    one, two = ward.attributions(own, beside=beside), lab.attributions(rest, beside=back)
    assert one.names == (*WARD, "part_of_first-lab")
    assert two.names == (*LAB, "part_of_first-ward")
    scores = ward.model.scores(ward.transform(own) + beside, method="predict_proba")
    told = np.log(scores[:, 1] / scores[:, 0])
    for each, other in ((one, two), (two, one)):
        assert np.allclose(each.values.sum(axis=1) + each.base, told)
        assert np.allclose(each.values[:, 3], other.values[:, :3].sum(axis=1))
    other = ward.attributions(own, beside=np.zeros_like(beside))
    assert np.allclose(other.values, one.values * [1, 1, 1, 0], atol=0)
    with pytest.raises(OptionError, match="hold some of them for party 'first-ward'"):
        ward.surrogate(own)
    for asked in (ward.predict, ward.attributions):
        with pytest.raises(OptionError, match="needs beside="):
            asked(own)
        with pytest.raises(ShapeError, match=r"beside has 1 rows for 60 .*\[CB102\]$"):
            asked(own, beside=beside[:1])


def test_reasons_of_a_bent_model_would_show_the_others_basis_and_are_refused(monkeypatch):
    quicken("rff", monkeypatch)
    made, tests = finished(model="rff"), people(np.random.default_rng(9), 30)[0]
    (ward, own, beside), _ = made.sides("first", tests)
    with pytest.raises(OptionError, match=r"could read their basis.*\[CB107\]$"):
        ward.attributions(own, beside=beside)


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


WARD_1, LAB_1 = of_block("first", "ward", WARD), of_block("first", "lab", LAB)
UNLINKED = {
    "a person less": (lambda y, who: (y[1:], who[1:]), "40 of 'first-ward', 39 of 'first-lab'"),
    "another": (lambda y, who: (y, [*who[1:], "somebody"]), "not of the same people"),
    "other labels": (lambda y, who: (1 - y, who), "or not with the same labels"),
}


@pytest.mark.parametrize("case", UNLINKED)
def test_parts_of_other_people_or_with_other_labels_are_refused(case):
    change, words = UNLINKED[case]
    agreed, (rows, labels, who) = agreement([WARD_1, LAB_1]), people(np.random.default_rng(0))
    told, kept = change(labels, who)

    def sent(name, own, y, ids=None):
        return Party(name, agreement=agreed, secret=SECRET).prepare(own, y, people=ids)

    ward, whole = sent("first-ward", rows[:, :3], labels, who), sent("whole", rows, labels)
    lab = sent("first-lab", rows[: len(kept), 3:], told, kept)
    with pytest.raises(MessageError, match=rf"{words}.*\[CB306\]$"):
        receiving(agreed, [ward, lab]).align()
    (analyst := receiving(agreed, [ward, whole])).run()
    interrupted = patch.object(analyst, "align", side_effect=KeyboardInterrupt)
    with interrupted, pytest.raises(KeyboardInterrupt):
        analyst.receive(lab)
    with pytest.raises(MessageError, match=words):
        analyst.receive(lab)  # late, and nothing of it is kept, nor is the model lost
    assert [*analyst.uploads] == [each.party for each in analyst.returns()] == ["whole"]


def test_orders_and_tags_follow_from_secret_round_block_and_people_alone(made):
    table, labels, who = made.people["first"]
    for given in (None, who[1:], [*who[1:], who[1]]):
        with pytest.raises(FeatureError, match="identifiers for 40 rows"):
            made.parties["first-ward"].prepare(table[:, :3], labels, people=given)
    agreed, who = blocks(), ["b", "a", "c"]
    ward, lab = agreed.held_by("first-ward"), agreed.held_by("first-lab")
    order, tag = SECRET.order(ward, who)
    again, same = SECRET.order(lab, sorted(who))
    assert [who[at] for at in order] == [sorted(who)[at] for at in again]
    assert (tag, SECRET.order(ward, np.array([7]))[1]) == (same, SECRET.order(lab, ["7"])[1])
    others = [
        SECRET.order(agreed.held_by("second-ward"), who)[1],
        SECRET.order(ward, ["a", "b"])[1],
        SECRET.order(blocks(round_id="x").held_by("first-ward"), who)[1],
        ConsortiumSecret().order(ward, who)[1],
    ]
    assert len({tag, *others}) == 5


def partly(held, *, others=(), n_components=3, **changes):
    """An agreement of parties that hold some columns each."""
    holdings = [Holding(party=name, columns=columns) for name, columns in held.items()]
    return agreement(holdings, others=others, n_components=n_components, **changes)


def uploaded(agreed, held, *, draw=lambda rng: rng.normal(size=(60, 6)), bases=None, **options):
    """The analyst who has everybody's upload, and by party itself and where its columns stand."""
    rng, analyst, sides = np.random.default_rng(0), Analyst(agreed), {}
    for name, columns in held.items():
        at, rows = [NAMES.index(column) for column in columns], draw(rng)
        party = Party(name, agreement=agreed, secret=SECRET, **options)
        basis = bases and SecretBasis(bases(rng)[at], party=name)
        labels, people = np.arange(len(rows)) % 2, [f"p{each}" for each in range(len(rows))]
        analyst.receive(party.prepare(rows[:, at], labels, people=people, basis=basis))
        sides[name] = party, at
    return analyst, sides


def seen_by(analyst, sides, tests):
    """What each party sees of people of whom it knows its own columns."""
    for name, returned in analyst.run().items():
        party, at = sides[name]
        party.accept(returned)
        yield party.transform(tests[:, at])


def test_columns_that_are_partly_shared_are_aligned_by_those_that_are():
    held = {"north": NAMES[:5], "south": NAMES[1:]}
    span = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 3)))[0]  # of the shared four

    def inside(rng):
        turned = span @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        return np.vstack([np.zeros(3), turned, np.zeros(3)])

    agreed = partly(held, others=("whole",))
    analyst, sides = uploaded(agreed, {**held, "whole": NAMES}, bases=inside)
    first, *others = seen_by(analyst, sides, np.random.default_rng(2).normal(size=(20, 6)))
    assert np.allclose(first, others)


@pytest.mark.filterwarnings("ignore:anchor='public'")
def test_public_rows_align_parties_that_share_no_column():
    mixing = np.random.default_rng(0).normal(size=(2, 6))

    def drawn(rng, n_rows=100):
        return rng.normal(size=(n_rows, 2)) @ mixing + 0.05 * rng.normal(size=(n_rows, 6))

    rng, held = np.random.default_rng(1), {"n": WARD, "s": LAB}
    public, new = drawn(rng, 60), drawn(rng, 200)
    by = {"anchor": "public", "aligner": "imakura", "n_anchor_rows": 60}
    agreed = partly(held, n_components=2, **by, public_rows_sha256=public_rows_digest(public))
    analyst, sides = uploaded(agreed, held, draw=drawn, public_rows=public)
    one, two = seen_by(analyst, sides, new)
    assert np.linalg.norm(one - two) < 0.2 * np.linalg.norm(one)
    for party, at in sides.values():
        assert party.attributions(new[:5, at]).values.shape == (5, 3)


def test_evidence_is_of_parties_with_every_column_by_each_other_alone():
    """A laboratory's own turn is none of all columns, so nothing is compared with a block."""
    spread = np.array([5, 4, 3, 0.3, 0.2, 0.1])
    held = {"first-ward": WARD, "first-lab": LAB, "n": NAMES, "s": NAMES}
    agreed = agreement([WARD_1, LAB_1], others=("n", "s"))
    analyst, _ = uploaded(agreed, held, draw=lambda rng: rng.normal(size=(300, 6)) * spread)
    analyst.align()
    found = analyst.certify().parties
    told = {name: (each.evidence, each.correlation is None) for name, each in found.items()}
    seen = dict.fromkeys("ns", ("not a random turn", False))
    assert told == {"first": ("cannot tell", True), **seen}
    analyst.remove("s")
    assert "two parties that hold every column" in analyst.certify().summary()


def test_too_few_shared_columns_leave_directions_undetermined():
    held = {"north": NAMES[:4], "south": NAMES[3:]}  # lactate alone, for three components
    analyst, _ = uploaded(partly(held), held)
    with pytest.raises(UndeterminedFitError, match=r"undetermined.* an anchor of public rows"):
        analyst.run()


def changed(holding, **fields):
    return Holding(**{**dict(holding), **fields})


PAIRED = (*numeric_features(NAMES), Interaction(of=NAMES[:2]))
REFUSED = {
    "a basis of all columns": ([WARD_1, LAB_1], {"basis": "haar"}, "is of all columns"),
    "an interaction": ([WARD_1, LAB_1], {"features": PAIRED}, "columns that not every party holds"),
    "coefficients": ([WARD_1, LAB_1], {"model": "logit"}, "need every column"),
    "a stranger": ([changed(WARD_1, party="ghost")], {"parties": ("a", "b")}, "of no party"),
    "twice": ([WARD_1, WARD_1], {}, "there are two"),
    "an unknown column": ([changed(WARD_1, columns=("iron",)), LAB_1], {}, "names iron"),
    "a column twice": ([changed(WARD_1, columns=("age", "age")), LAB_1], {}, "a column twice"),
    "a size without a block": ([changed(WARD_1, block="")], {}, "go with a block"),
    "a block by a party's name": ([changed(WARD_1, block="first-ward"), LAB_1], {}, "party's name"),
    "no identifier": ([WARD_1, LAB_1], {"id": ""}, "by the column id"),
    "a block of one": ([WARD_1], {}, "is of one party"),
    "a shared column": ([WARD_1, changed(LAB_1, columns=WARD)], {}, "two of its parties hold"),
    "unlike sizes": ([WARD_1, changed(LAB_1, n_components=1)], {}, "2, 1: each has"),
    "no label": ([changed(x, labels=False) for x in (WARD_1, LAB_1)], {}, "holds the label"),
    "too many components": (
        [changed(WARD_1, columns=("age",)), LAB_1],
        {},
        "of 'first-ward': n_components=2 is above the 1 features",
    ),
    "a column of nobody": ([WARD_1, changed(LAB_1, columns=LAB[:2])], {"others": ()}, "holds urea"),
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
