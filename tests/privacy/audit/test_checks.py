"""H1 to H6 and who has to answer: from what is agreed and was uploaded before."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis.privacy.audit import Finding, Guarantee
from cobasis.privacy.audit.checks import checked
from cobasis.privacy.audit.grades import KNOWN_RED, LINKAGE, graded, worst
from privacy.audit.uploads import cancer, facts, subject

ROWS, LABELS = cancer()
UPLOAD = subject(ROWS, LABELS, n_components=5)
GUARANTEE = Guarantee(
    epsilon=8, delta=1e-6, statement="differential privacy, epsilon 8", labels="randomised response"
)


def found(which, upload=UPLOAD, **changes):
    told = replace(facts(upload), **changes)
    [each] = [each for each in checked(upload, told) if each.id == which]
    return each


@pytest.mark.parametrize("anchor", ["isometric", "gaussian"])
def test_h1_is_green_for_an_isometric_or_a_gaussian_anchor(anchor):
    assert found("H1", anchor=anchor).grade == "green"


@pytest.mark.parametrize("anchor", ["uniform", "public", "smote"])
def test_h1_blocks_every_other_anchor(anchor):
    assert found("H1", anchor=anchor).action == "block"


def test_h1_blocks_an_image_without_full_rank():
    image = UPLOAD.release.anchor_image.copy()
    image[:, 0] = image[:, 1]
    upload = replace(UPLOAD, release=replace(UPLOAD.release, anchor_image=image))
    assert found("H1", upload).action == "block"


@pytest.mark.parametrize(
    ("n_rows", "grade"), [(101, "green"), (100, "amber"), (25, "amber"), (24, "red")]
)
def test_h2_counts_rows_per_component(n_rows, grade):
    assert found("H2", n_rows=n_rows).grade == grade


def test_h2_asks_for_a_signature_and_does_not_block():
    assert found("H2", n_rows=20).action == "sign"


@pytest.mark.parametrize("basis", ["haar", "public"])
def test_h2_is_green_where_the_basis_is_not_of_the_rows(basis):
    assert found("H2", n_rows=10, basis=basis).grade == "green"


@pytest.mark.parametrize(
    ("counts", "grade"), [((11, 90), "green"), ((10, 90), "red"), ((), "green")]
)
def test_h3_is_red_below_eleven_people_of_a_class(counts, grade):
    assert found("H3", class_counts=counts).grade == grade


@pytest.mark.parametrize(
    ("added", "gone", "grade"),
    [
        (None, None, "green"),
        (0, 0, "green"),
        (1, 0, "red"),
        (0, 10, "red"),
        (40, 1, "red"),
        (11, 0, "green"),
        (11, 11, "green"),
        (40, 40, "green"),
    ],
)
def test_h4_blocks_one_to_ten_rows_that_came_or_went(added, gone, grade):
    each = found("H4", span="kept", added=added, gone=gone, n_uploads=1)
    assert each.grade == grade
    assert (each.action == "block") == (grade == "red")


def test_h4_wants_a_twentieth_of_large_tables():
    assert found("H4", span="kept", added=49, gone=0, n_rows=1000).grade == "amber"
    assert found("H4", span="kept", added=50, gone=0, n_rows=1000).grade == "green"


def test_h4_blocks_a_second_span():
    assert found("H4", span="forced").action == "block"


@pytest.mark.parametrize(
    ("models", "grade"),
    [
        (("logistic", "mlp"), "green"),
        (("rff",), "green"),
        (("ridge", "boosted_trees"), "amber"),
        (("svm",), "red"),
        ((), "green"),
    ],
)
def test_h5_blocks_models_that_carry_rows(models, grade):
    each = found("H5", models=models)
    assert each.grade == grade
    assert (each.action == "block") == (grade == "red")


def test_h6_tells_how_labels_leave():
    assert found("H6").grade == "amber"
    assert found("H6", sensitive_label=True).action == "sign"
    assert found("H6", guarantee=GUARANTEE).grade == "green"
    silent = replace(UPLOAD, release=replace(UPLOAD.release, labels=None))
    assert found("H6", silent).grade == "green"


def test_only_three_reds_block():
    ids = [f"P{at}" for at in range(1, 7)] + [f"H{at}" for at in range(1, 7)]
    actions = {each: Finding(id=each, title="", grade="red", words="").action for each in ids}
    assert {each for each, action in actions.items() if action == "block"} == {"H1", "H4", "H5"}
    assert set(actions.values()) == {"block", "sign"}
    assert Finding(id="H1", title="", grade="amber", words="").action == "none"


def test_bounds_are_those_of_the_policy():
    assert [graded(share, LINKAGE) for share in (0.09, 0.0901, 1 / 3, 0.34)] == [
        "green",
        "amber",
        "amber",
        "red",
    ]
    assert worst("told", "green", "amber") == "amber"
    assert KNOWN_RED == 20


def test_a_subject_of_tables_that_do_not_go_together_is_refused():
    from cobasis.errors import ShapeError  # noqa: PLC0415

    with pytest.raises(ShapeError, match="Give the tables of one upload"):
        replace(UPLOAD, labels=np.zeros(3))
    with pytest.raises(ShapeError, match="Give the tables of one upload"):
        replace(UPLOAD, basis=UPLOAD.basis[:-1])
