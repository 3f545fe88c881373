"""A chain gives what scikit-learn gives, for every family that may travel, and in any blocks."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from cobasis.errors import ModelFileError, NotFiniteError, OptionError, ShapeError
from cobasis.models import chain
from cobasis.models.chain import LEAF, Affine, Chain, Trees
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.models.sources import read_chain
from models.chains import KINDS, WIDTH, agreed, chain_of, file_of, labels_of, rows_of, trained
from models.malformed import Parts


def agree_with(model, read, *, n_classes):
    rows = rows_of(seed=1)
    wanted = model.predict(rows)
    if n_classes == 0:
        size = np.abs(wanted).max()
        np.testing.assert_allclose(read.predict(rows), wanted, rtol=0, atol=1e-12 * size)
        assert np.ptp(wanted) > 10
        return
    scores, found = (each.scores(rows, method="predict_proba") for each in (model, read))
    np.testing.assert_allclose(found, scores, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(read.predict(rows), wanted)
    assert len(np.unique(wanted)) == n_classes


@pytest.mark.parametrize(("name", "task", "n_classes"), KINDS)
def test_the_file_of_every_family_which_another_hand_can_write_gives_what_scikit_learn_gives(
    name, task, n_classes
):
    """What the reference page says is all there is: it is put together here byte by byte."""
    chain, data = chain_of(name, task, n_classes), file_of(name, task, n_classes)
    read = decode_chain(data, **agreed(task, n_classes))
    assert encode_chain(read) == data == Parts(data).together()
    assert (read.family, read.head, read.widths) == (chain.family, chain.head, chain.widths)
    likely = name not in {"ridge", "rff"} and task == "classification"
    assert (read.task, read.likely, read.widths[0]) == (task, likely, WIDTH)
    if name in {"mlp", "boosted_trees"}:  # test_linear.py compares the others
        agree_with(trained(name, task, n_classes), read, n_classes=n_classes)


def test_a_tree_that_is_one_leaf_is_read_too():
    rows = rows_of()[:60]
    numbers = labels_of(rows, "regression", 0)
    stump = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=50).fit(rows, numbers)
    read = read_chain(stump, axes=np.eye(WIDTH), n_classes=0)
    np.testing.assert_allclose(read.predict(rows), numbers.mean(), rtol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "boosted_trees"])
def test_blocks_make_no_difference(name, monkeypatch):
    read, rows = chain_of(name, "classification", 4), rows_of(50)
    whole = read.scores(rows, method="predict_proba")
    monkeypatch.setattr(chain, "_NUMBERS_AT_ONCE", 7 * max(read.widths))
    monkeypatch.setattr(chain, "_PAIRS_AT_ONCE", 30)
    np.testing.assert_allclose(read.scores(rows, method="predict_proba"), whole, atol=1e-14)


def test_scores_have_the_shape_that_scikit_learn_has_and_others_are_an_option_error():
    rows = rows_of(9)
    assert chain_of("ridge").scores(rows, method="decision_function").shape == (9,)
    for read, asked, has in (
        (chain_of("ridge"), "predict_proba", "decision_function"),
        (chain_of("mlp"), "decision_function", "predict_proba"),
        (chain_of("ridge", "regression", 0), "predict", "predict"),
    ):
        with pytest.raises(OptionError, match=f"has no {asked}.*Use {has}"):
            read.scores(rows, method=asked)


def test_rows_that_are_no_aligned_rows_are_refused():
    read, rows = chain_of("boosted_trees"), rows_of(3)
    with pytest.raises(ShapeError, match="4 columns"):
        read.predict(rows[:, 1:])
    rows[1, 2] = np.nan
    with pytest.raises(NotFiniteError, match="NaN or infinity"):
        read.predict(rows)


@pytest.mark.parametrize("name", ["ridge", "boosted_trees"])
def test_weights_that_lead_out_of_range_are_the_files_fault(name):
    read = chain_of(name)
    first, *others = read.layers
    huge = Affine(weights=np.full(first.weights.shape, 1e308), offset=first.offset)
    far = Chain(family=read.family, layers=(huge, *others), head=read.head)
    with pytest.raises(ModelFileError, match="numbers that are not finite"):
        far.predict(np.full((3, WIDTH), 10.0))


def test_of_equal_scores_the_first_class_is_taken_and_of_a_value_on_a_split_the_true_side():
    """Both in float64."""
    level = Affine(weights=np.zeros((2, 3)), offset=np.array([1.0, 2.0, 2.0]))
    read = Chain(family="linear", layers=(level,), head="decision")
    np.testing.assert_array_equal(read.predict(np.ones((4, 2))), 1)
    split = 0.1 + 0.2
    columns, numbers = np.array([0, LEAF, LEAF]), np.array([split, 10.0, 20.0])
    trees = Trees(n_in=1, n_out=1, n_trees=1, columns=columns, numbers=numbers)
    rows = np.array([[0.3], [split], [np.nextafter(split, 1.0)]])
    np.testing.assert_array_equal(trees.apply(rows), [[10.0], [10.0], [20.0]])
