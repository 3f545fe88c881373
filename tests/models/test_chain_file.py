"""A chain gives what scikit-learn gives, and its file is what we write for it and nothing else."""

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from cobasis.errors import ModelFileError, NotFiniteError, OptionError, ShapeError
from cobasis.models import chain, chain_file
from cobasis.models.chain import LEAF, Affine, Chain, Trees, regression_chain
from cobasis.models.chain_file import LARGEST_FILE, MOST_WORK, decode_chain, encode_chain
from cobasis.models.regressions import RegressionFit
from cobasis.models.sources import boosted_layers
from models.chains import KINDS, WIDTH, agreed, chain_of, file_of, labels_of, rows_of, trained
from models.malformed import MALFORMED, Parts, a_long_way, malformed, refused, wider


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused(name):
    family, change, words = MALFORMED[name]
    refused(malformed(family, change), words)


@pytest.mark.parametrize(
    ("round_", "told"),
    [
        ({"n_components": WIDTH + 1}, "takes 5 columns and gives 2, where this round has 6 and 2"),
        ({"n_classes": 3}, "where this round has 5 and 3"),
        ({"n_classes": 1}, "where this round has 5 and 1"),
        ({"task": "regression", "n_classes": 0}, "for 'classification', the agreement is for"),
        ({"task": "representation", "n_classes": 0}, "the agreement is for 'representation'"),
    ],
)
def test_a_good_file_of_another_round_is_refused(round_, told):
    refused(file_of("mlp"), told, **round_)


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("LARGEST_FILE", "bytes, and 2 are accepted"),
        ("LARGEST_DEPTH", "deeper than 2"),
        ("LARGEST_WIDTH", "columns, and 2 are accepted"),
        ("MOST_LAYERS", "3 layers, and 1 to 2"),
        ("MOST_WORK", "multiplications, and 2 are accepted"),
    ],
)
def test_a_model_that_every_party_would_refuse_is_not_written(limit, told, monkeypatch):
    monkeypatch.setattr(chain_file, limit, 2)
    with pytest.raises(OptionError, match=rf"every party would refuse.*{told}"):
        encode_chain(chain_of("boosted_trees"))


@pytest.mark.parametrize("family", ["ridge", "boosted_trees"])
def test_a_file_that_breaks_off_is_refused_wherever_it_does(family):
    data = file_of(family)
    for end in [*range(0, len(data), max(1, len(data) // 400)), len(data) - 1]:
        with pytest.raises(ModelFileError):
            decode_chain(data[:end], **agreed())


def test_other_files_and_what_goes_on_are_refused_and_one_above_the_limit_unread():
    for data in (b"", b"PK\3\4", bytes(1000), b"\2" * 99):
        refused(data, "truncated or damaged")
    for tail in (b"\0", bytes(8)):
        refused(file_of("ridge") + tail, "longer than it says")
    refused(bytes(LARGEST_FILE + 1), f"has {LARGEST_FILE + 1} bytes, and {LARGEST_FILE}")


@pytest.mark.parametrize(
    ("family", "change"),
    [("mlp", wider(65_536, ["Tanh"] * 5)), ("boosted_trees", a_long_way(64, MOST_WORK // 6_500))],
)
def test_the_heaviest_file_that_is_accepted_predicts_200_rows_in_seconds(family, change):
    """The two ways to the most work: functions as wide, and trees as deep, as the limits."""
    parts = Parts(file_of(family))
    change(parts)
    if family == "boosted_trees":  # each row goes all the way
        is_leaf = parts.numbers["1.columns"] < 0
        parts.numbers["1.numbers"] = np.where(is_leaf, 1.0, -1e9)
    read, begin = decode_chain(parts.together(), **agreed()), time.process_time()
    read.predict(rows_of(200))
    assert time.process_time() - begin < 5


def mutated(data, rng):
    changed = bytearray(data)
    for kind in rng.integers(3, size=rng.integers(1, 4)):
        at = int(rng.integers(min(len(changed), 900) if rng.random() < 0.5 else len(changed)))
        few = int(rng.integers(1, 9))
        if kind == 0:
            changed[at] ^= 1 << (few - 1)
        elif kind == 1:
            del changed[at : at + few]
        else:
            changed[at:at] = rng.bytes(few)
    return bytes(changed)


def edited(data, rng):
    parts = Parts(data)
    values = parts.numbers[str(rng.choice(list(parts.numbers)))]
    drawn = rng.choice([-1, 0, 1, 2, len(values), values.flat[0], values.max(), 255 * rng.random()])
    values.flat[rng.integers(values.size)] = drawn.astype(values.dtype)
    return parts.together()


@pytest.mark.parametrize("name", ["ridge", "logistic", "mlp", "rff", "boosted_trees"])
def test_of_2000_mutated_files_each_is_refused_or_is_exactly_what_it_says(name):
    """400 of each family. A file that is accepted is, byte for byte, the file of the chain that
    was read from it, and that chain gives a class for every row, or is refused as it runs."""
    rng, rows = np.random.default_rng(7), rows_of(20)
    counts = {"refused": 0, "as it says": 0}
    for number in range(400):
        data = (mutated if number % 2 else edited)(file_of(name), rng)
        begin = time.perf_counter()
        try:
            read = decode_chain(data, **agreed())
            assert encode_chain(read) == data
            assert set(read.predict(rows)) <= {0, 1}
            counts["as it says"] += 1
        except ModelFileError:
            counts["refused"] += 1
        assert time.perf_counter() - begin < 2
    assert counts["refused"] > 150
    assert counts["as it says"] > 20


def fitted():
    rng = np.random.default_rng(0)
    spread = np.cov(rng.normal(size=(4, 9)))
    fit = RegressionFit.unfitted(
        "logit", errors="model", n_rows=50, n_events=20, dependent=np.zeros((4, 0))
    )
    own = {name: (rng.normal(size=4), spread) for name in ("north", "south")}
    return encode_chain(regression_chain(replace(fit, covariance=spread, parties=own), n_classes=2))


CHANGED = {  # words of its fit, or a table of another shape
    "a model that is none": {"model": "ridge"},
    "errors that are none": {"errors": "x"},
    "a number of rows that is none": {"n_rows": 5.0},
    "less than no rows": {"n_rows": -1},
    "a likelihood that is a whole number": {"log_likelihood": 1},
    "a word more": {"rows": []},
    "a party twice": {"parties": ["north", "north"]},
    "a party less": {"parties": ["north"]},
    "a party that is a number": {"parties": [1, "south"]},
    "parties left out that are none": {"left_out": [{}]},
    "an end that is told": {"finished": True},
    "effects of a table that has none": {"effects": {}},
    **{each: each for each in ("covariance", "party_weights", "other", "effects.spread")},
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_what_a_regressions_file_has_beside_its_weights_is_read_strictly(change):
    parts = Parts(fitted())
    if isinstance(change, str):
        parts.numbers[f"fit.{change}"] = np.ones((2, 2))
    else:
        parts.told["fit"].update(change)
    refused(parts.together(), "its fit|not written", n_components=3)
    assert decode_chain(fitted(), n_components=3, task="classification", n_classes=2).fit


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
    if name not in {"mlp", "boosted_trees"}:  # test_linear.py compares these
        return
    model, rows = trained(name, task, n_classes), rows_of(seed=1)
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


def test_a_tree_that_is_one_leaf_is_read_too():
    rows = rows_of()[:60]
    numbers = labels_of(rows, "regression", 0)
    stump = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=50).fit(rows, numbers)
    layers = tuple(boosted_layers(stump))
    read = Chain(family="boosted_trees", layers=layers, head="prediction")
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
