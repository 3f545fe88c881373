"""Joined uploads of linked parties are one party's upload; what cannot be joined is refused."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import (
    ODC,
    Analyst,
    Imakura,
    Party,
    PartyKey,
    SecretBasis,
    Whitened,
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
from protocol.consortium import WIDTH, consortium

BLOCKS = ("first", "second", "third")
HELD = {"ward": np.array([1, 1, 1, 0, 0, 0]), "lab": np.array([0, 0, 0, 1, 1, 1])}


def haar(rng, size):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def partitioned(**changes):
    """Three blocks of rows, each held by a ward and a laboratory that share a key."""
    rng, rows, keys = np.random.default_rng(0), {}, {}
    for block in BLOCKS:
        table, key = rng.normal(size=(30, WIDTH)) + 0.5, PartyKey()
        for part, held in HELD.items():
            rows[f"{block}/{part}"] = table * held, (table.sum(axis=1) > 3).astype(int)
            keys[f"{block}/{part}"] = key
    return consortium(rows=rows, keys=keys, parties=tuple(rows), n_components=2, **changes)


def whole(made):
    return made.agreement.model_copy(update={"parties": BLOCKS, "n_components": 4})


def pair(made, block="first", **spans):
    """The uploads of a block's two parties; with these bases, if there are any."""
    bases = {part: SecretBasis(span, party=block) for part, span in spans.items()}
    names = {part: f"{block}/{part}" for part in HELD}
    return [
        made.parties[name].prepare(*made.rows[name], basis=bases.get(part))
        for part, name in names.items()
    ]


def join(made, *uploads, party="first"):
    return join_vertical(uploads, party=party, agreement=whole(made))


def projected(made, block, rows):
    """What the block's two parties see of some rows, side by side."""
    parts = {f"{block}/{part}": rows * held for part, held in HELD.items()}
    return np.hstack([made.parties[name].basis.project(each) for name, each in parts.items()])


@pytest.fixture(scope="module")
def made():
    return partitioned()


def test_a_joined_upload_holds_both_parts_side_by_side_and_the_labels_once(made):
    ward, lab = pair(made)
    joined = join(made, ward, lab)
    assert np.array_equal(joined.rows, np.hstack([ward.rows, lab.rows]))
    assert np.array_equal(joined.anchor_image, np.hstack([ward.anchor_image, lab.anchor_image]))
    gram = joined.anchor_image.T @ joined.anchor_image
    assert np.allclose(gram, np.eye(4), atol=1e-12)  # the joined basis is orthonormal
    assert np.array_equal(joined.labels, ward.labels)
    assert (joined.party, joined.anchor_tag) == ("first", ward.anchor_tag)
    assert joined.agreement_digest == whole(made).digest()
    assert np.array_equal(join(made, replace(ward, labels=None), lab).labels, lab.labels)
    assert not joined.simulated
    assert join(made, ward, replace(lab, simulated=True)).simulated


def test_rows_of_the_joined_upload_are_those_of_one_person(made):
    joined = join(made, *pair(made, "second"), party="second")
    rows, labels = made.rows["second/ward"]
    seen = projected(made, "second", rows + made.rows["second/lab"][0])
    order = [int(np.argmin(np.linalg.norm(seen - row, axis=1))) for row in joined.rows]
    assert sorted(order) == list(range(30))
    assert order != list(range(30))
    assert np.allclose(joined.rows, seen[order])
    assert np.array_equal(joined.labels, labels[order])


def test_an_analyst_takes_joined_uploads_like_any_and_returns_to_each_block(made):
    analyst = Analyst(whole(made))
    for block in BLOCKS:
        analyst.receive(join(made, *pair(made, block), party=block))
    returns = analyst.run()
    assert set(returns) == set(BLOCKS)
    change = returns["second"].change_of_basis
    assert np.allclose(change.T @ change, np.eye(4))
    tests = np.random.default_rng(1).normal(size=(200, WIDTH)) + 0.5
    predicted = returns["second"].model.predict(projected(made, "second", tests) @ change)
    assert np.mean(predicted == (tests.sum(axis=1) > 3)) > 0.75


@pytest.mark.parametrize("aligner", [ODC(), Whitened(), Imakura()], ids=repr)
def test_blocks_whose_parts_share_spans_are_concordant_in_any_order_of_parts(aligner):
    made, rng = partitioned(), np.random.default_rng(2)
    spans = {part: np.zeros((WIDTH, 2)) for part in HELD}
    for part, held in HELD.items():
        spans[part][held == 1] = np.linalg.qr(rng.normal(size=(3, 2)))[0]
    analyst, orders = (
        Analyst(whole(made), aligner=aligner),
        dict(zip(BLOCKS, (1, -1, 1), strict=True)),
    )
    for block, order in orders.items():
        turned = pair(made, block, **{part: span @ haar(rng, 2) for part, span in spans.items()})
        analyst.receive(join(made, *turned[::order], party=block))
    changes = analyst.align().changes_of_basis
    tests = rng.normal(size=(10, WIDTH))
    seen = []
    for block, order in orders.items():
        columns = [0, 1, 2, 3] if order == 1 else [2, 3, 0, 1]
        seen.append(projected(made, block, tests)[:, columns] @ changes[block])
    assert np.linalg.norm(seen[0]) > 1
    assert np.allclose(seen[0], seen[1])
    assert np.allclose(seen[0], seen[2])


def unseen(ward, lab):
    """Two columns orthogonal to both images, as of features that nobody has."""
    return np.linalg.svd(np.hstack([ward.anchor_image, lab.anchor_image]))[0][:, 4:6]


REFUSED = {
    "one upload only": (lambda _, w, __: [w], ShapeError, "takes two"),
    "none": (lambda *_: [], ShapeError, "0 upload"),
    "twice the same party": (lambda _, w, __: [w, w], DuplicatePartyError, "first/ward"),
    "different anchors": (
        lambda _, w, lab: [w, replace(lab, anchor_tag=bytes(32))],
        AnchorTagError,
        "2 different anchors",
    ),
}
CHANGED = {
    "different agreements": (lambda *_: {"agreement_digest": bytes(32)}, "different agreements"),
    "a row less": (
        lambda _, lab: {"rows": lab.rows[1:], "labels": lab.labels[1:]},
        "30 of 'first/ward', 29 of 'first/lab'",
    ),
    "an anchor row less": (
        lambda _, lab: {"anchor_image": lab.anchor_image[1:]},
        "numbers of anchor rows",
    ),
    "one label": (
        lambda _, lab: {"labels": np.r_[1 - lab.labels[:1], lab.labels[1:]]},
        "not the same row by row",
    ),
    "NaN": (lambda _, lab: {"rows": lab.rows * np.nan}, "upload of party 'first' cannot be used"),
    "an image of too many columns": (
        lambda w, lab: {"anchor_image": np.hstack([lab.anchor_image, unseen(w, lab)])},
        "columns",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parts_that_are_not_one_block_are_refused(made, case):
    change, error, words = REFUSED[case]
    with pytest.raises(error, match=rf"{words}.*\[{error.code}\]$"):
        join(made, *change(made, *pair(made)))


@pytest.mark.parametrize("case", CHANGED)
def test_a_part_that_does_not_go_with_the_other_is_refused(made, case):
    change, words = CHANGED[case]
    ward, lab = pair(made)
    with pytest.raises(MessageError, match=rf"{words}.*\[CB306\]$"):
        join(made, ward, replace(lab, **change(ward, lab)))


def test_features_of_both_rows_in_another_order_and_labels_of_nobody_are_refused(made):
    ward, lab = pair(made)
    rows, labels = made.rows["first/lab"]
    overlapping = rows + made.rows["first/ward"][0] * [0, 0, 1, 0, 0, 0]
    with pytest.raises(MessageError, match="overlap"):
        join(made, ward, made.parties["first/lab"].prepare(overlapping, labels))
    alone = Party("first/lab", agreement=made.agreement, secret=made.secret)  # with another key
    with pytest.raises(MessageError, match="share one PartyKey"):
        join(made, ward, alone.prepare(rows, labels))
    with pytest.raises(MessageError, match="None labels"):
        join(made, replace(ward, labels=None), replace(lab, labels=None))
    with pytest.raises(UnknownPartyError, match="ghost"):
        join(made, ward, lab, party="ghost")


def test_a_basis_that_mixes_all_features_is_refused():
    made = partitioned(basis="haar")
    with pytest.raises(AgreementError, match="mixes all features"):
        join(made, *pair(made))


def test_disjoint_features_of_other_rows_are_refused_not_aligned():
    rng = np.random.default_rng(3)
    rows = {
        part: (rng.normal(size=(40, WIDTH)) * held, rng.integers(0, 2, size=40))
        for part, held in HELD.items()
    }
    with pytest.raises(UndeterminedFitError, match="undetermined"):
        simulate(rows, rng=rng, n_components=2)
