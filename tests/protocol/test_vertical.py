"""Joined uploads of linked parties are one party's upload; what cannot be joined is refused."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import (
    ODC,
    Analyst,
    ConsortiumSecret,
    Imakura,
    Party,
    PartyKey,
    SecretBasis,
    Whitened,
    align,
    join_vertical,
    simulate,
)
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    DuplicatePartyError,
    MessageError,
    ShapeError,
    UndeterminedFitError,
    UnknownPartyError,
)
from protocol.consortium import WIDTH, agree

BLOCKS = ("first", "second", "third")
HELD = {"ward": np.array([1, 1, 1, 0, 0, 0]), "lab": np.array([0, 0, 0, 1, 1, 1])}
PARTS = tuple(f"{block}/{part}" for block in BLOCKS for part in HELD)


def haar(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


class Partitioned:
    """Three blocks of rows, each held by a ward and a laboratory."""

    def __init__(self, *, n_rows=30, **changes):
        rng = np.random.default_rng(0)
        self.secret = ConsortiumSecret()
        self.parts = agree(self.secret, parties=PARTS, n_components=2, **changes)
        self.whole = self.parts.model_copy(update={"parties": BLOCKS, "n_components": 4})
        self.rows = {block: rng.normal(size=(n_rows, WIDTH)) + 0.5 for block in BLOCKS}
        self.labels = {
            block: (each.sum(axis=1) > 3).astype(int) for block, each in self.rows.items()
        }
        self.keys = {block: PartyKey() for block in BLOCKS}
        self.parties = {name: self.party(name) for name in PARTS}

    def party(self, name):
        key = self.keys[name.split("/")[0]]
        return Party(name, agreement=self.parts, secret=self.secret, key=key)

    def upload(self, name, *, held=None, columns=None):
        block, part = name.split("/")
        held = HELD[part] if held is None else held
        basis = None if columns is None else SecretBasis(columns, party=name)
        return self.parties[name].prepare(self.rows[block] * held, self.labels[block], basis=basis)

    def pair(self, block="first"):
        return [self.upload(f"{block}/{part}") for part in HELD]

    def joined(self):
        return {
            block: join_vertical(self.pair(block), party=block, agreement=self.whole)
            for block in BLOCKS
        }

    def projected(self, block, rows):
        """What the block's two parties see of some rows, side by side."""
        return np.hstack(
            [
                self.parties[f"{block}/{part}"].basis.project(rows * held)
                for part, held in HELD.items()
            ]
        )


@pytest.fixture(scope="module")
def made():
    return Partitioned()


def test_a_joined_upload_holds_both_parts_side_by_side_and_the_labels_once(made):
    ward, lab = made.pair()
    joined = join_vertical([ward, lab], party="first", agreement=made.whole)
    assert np.array_equal(joined.rows, np.hstack([ward.rows, lab.rows]))
    assert np.array_equal(joined.anchor_image, np.hstack([ward.anchor_image, lab.anchor_image]))
    assert np.array_equal(joined.labels, ward.labels)
    assert (joined.party, joined.anchor_tag) == ("first", ward.anchor_tag)
    assert joined.agreement_digest == made.whole.digest()


def test_rows_of_the_joined_upload_are_those_of_one_person(made):
    joined = made.joined()["second"]
    gram = joined.rows @ joined.rows.T
    seen = made.projected("second", made.rows["second"])
    expected = seen @ seen.T
    order = [int(np.argmin(np.linalg.norm(seen - row, axis=1))) for row in joined.rows]
    assert sorted(order) == list(range(30))
    assert order != list(range(30))
    assert np.allclose(gram, expected[np.ix_(order, order)])
    assert np.array_equal(joined.labels, made.labels["second"][order])


def test_the_joined_basis_is_orthonormal_so_that_its_image_is_isometric(made):
    for joined in made.joined().values():
        gram = joined.anchor_image.T @ joined.anchor_image
        assert np.allclose(gram, np.eye(4), atol=1e-12)


def test_an_analyst_takes_joined_uploads_like_any_and_returns_to_each_block(made):
    analyst = Analyst(made.whole)
    joined = made.joined()
    for upload in joined.values():
        analyst.receive(upload)
    returns = analyst.run()
    assert set(returns) == set(BLOCKS)
    first = returns["first"].change_of_basis
    assert first.shape == (4, 4)
    assert np.allclose(first.T @ first, np.eye(4))
    tests = np.random.default_rng(1).normal(size=(200, WIDTH)) + 0.5
    predicted = returns["second"].model.predict(
        made.projected("second", tests) @ returns["second"].change_of_basis
    )
    assert np.mean(predicted == (tests.sum(axis=1) > 3)) > 0.75


@pytest.mark.parametrize("aligner", [ODC(), Whitened(), Imakura()], ids=repr)
def test_blocks_whose_parts_share_spans_are_concordant_after_the_join(aligner):
    made, rng = Partitioned(), np.random.default_rng(2)
    spans = {part: np.zeros((WIDTH, 2)) for part in HELD}
    for part, held in HELD.items():
        spans[part][held == 1] = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    analyst = Analyst(made.whole, aligner=aligner)
    for block in BLOCKS:
        turned = {part: span @ haar(rng, 2) for part, span in spans.items()}
        pair = [made.upload(f"{block}/{part}", columns=turned[part]) for part in HELD]
        analyst.receive(join_vertical(pair, party=block, agreement=made.whole))
    changes = analyst.align().changes_of_basis
    tests = rng.normal(size=(10, WIDTH))
    seen = [made.projected(block, tests) @ changes[block] for block in BLOCKS]
    assert np.linalg.norm(seen[0]) > 1
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(seen[0], seen[2])


def test_the_order_of_the_parts_does_not_matter_after_alignment(made):
    ward, lab = made.pair()
    one = join_vertical([ward, lab], party="first", agreement=made.whole)
    other = join_vertical([lab, ward], party="second", agreement=made.whole)
    images = {each.party: each.anchor_image for each in (one, other)}
    changes = align(ODC(), images).changes_of_basis
    assert np.allclose(one.rows @ changes["first"], other.rows @ changes["second"])


REFUSED = {
    "one upload only": (lambda _, w, __: [w], ShapeError, "takes two"),
    "none": (lambda *_: [], ShapeError, "0 upload"),
    "twice the same party": (lambda _, w, __: [w, w], DuplicatePartyError, "first/ward"),
    "different agreements": (
        lambda _, w, other: [w, replace(other, agreement_digest=bytes(32))],
        MessageError,
        "different agreements",
    ),
    "different anchors": (
        lambda _, w, other: [w, replace(other, anchor_tag=bytes(32))],
        AnchorTagError,
        "2 different anchors",
    ),
    "a row less": (
        lambda _, w, other: [w, replace(other, rows=other.rows[1:], labels=other.labels[1:])],
        MessageError,
        "30 of 'first/ward', 29 of 'first/lab'",
    ),
    "an anchor row less": (
        lambda _, w, other: [w, replace(other, anchor_image=other.anchor_image[1:])],
        MessageError,
        "numbers of anchor rows",
    ),
    "one label differs": (
        lambda _, w, other: [
            w,
            replace(other, labels=np.r_[1 - other.labels[:1], other.labels[1:]]),
        ],
        MessageError,
        "not the same row by row",
    ),
    "NaN in a part": (
        lambda _, w, other: [w, replace(other, rows=other.rows * np.nan)],
        MessageError,
        "upload of party 'first' cannot be used",
    ),
    "a feature held by both": (
        lambda m, w, _: [w, m.upload("first/lab", held=np.array([0, 0, 1, 1, 1, 1]))],
        MessageError,
        "overlap",
    ),
    "labels of nobody": (
        lambda _, w, other: [replace(w, labels=None), replace(other, labels=None)],
        MessageError,
        "None labels",
    ),
    "a third part, too wide": (
        lambda _, w, other: [w, other, replace(w, party="third", anchor_image=_unseen(w, other))],
        MessageError,
        "columns",
    ),
}


def _unseen(ward, lab):
    """Two columns orthogonal to both images, as of features that nobody has."""
    both = np.hstack([ward.anchor_image, lab.anchor_image])
    return np.linalg.svd(both)[0][:, 4:6]


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_are_not_one_block_are_refused(made, case):
    change, error, words = REFUSED[case]
    with pytest.raises(error, match=words) as caught:
        join_vertical(change(made, *made.pair()), party="first", agreement=made.whole)
    assert str(caught.value).endswith(f"[{error.code}]")


def test_a_block_that_the_agreement_does_not_name_is_refused(made):
    with pytest.raises(UnknownPartyError, match="ghost"):
        join_vertical(made.pair(), party="ghost", agreement=made.whole)


def test_rows_in_another_order_show_in_the_labels(made):
    own = Party("first/lab", agreement=made.parts, secret=made.secret, key=PartyKey())
    lab = own.prepare(made.rows["first"] * HELD["lab"], made.labels["first"])
    with pytest.raises(MessageError, match="share one PartyKey"):
        join_vertical([made.upload("first/ward"), lab], party="first", agreement=made.whole)


def test_labels_of_one_part_are_enough(made):
    ward, lab = made.pair()
    joined = join_vertical([replace(ward, labels=None), lab], party="first", agreement=made.whole)
    assert np.array_equal(joined.labels, lab.labels)


def test_a_basis_that_mixes_all_features_is_refused():
    made = Partitioned(basis="haar")
    with pytest.raises(AgreementError, match="mixes all features"):
        join_vertical(made.pair(), party="first", agreement=made.whole)


def test_what_was_simulated_stays_marked(made):
    ward, lab = made.pair()
    marked = [ward, replace(lab, simulated=True)]
    assert join_vertical(marked, party="first", agreement=made.whole).simulated
    assert not join_vertical([ward, lab], party="first", agreement=made.whole).simulated


def test_disjoint_features_of_other_rows_are_refused_not_aligned():
    rng = np.random.default_rng(3)
    rows = {
        part: (rng.normal(size=(40, WIDTH)) * held, rng.integers(0, 2, size=40))
        for part, held in HELD.items()
    }
    with pytest.raises(UndeterminedFitError, match="undetermined"):
        simulate(rows, rng=rng, n_components=2)
