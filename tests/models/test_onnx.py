"""The graph of raw columns: what encoding, basis, change of basis and model give in Python."""

import json

import numpy as np
import onnx
import onnxruntime
import polars as pl
import pytest

from cobasis.errors import ModelFileError, OptionError
from cobasis.features.contract import CategoryFeature, Interaction, NumericFeature, width_of
from cobasis.features.encoder import encode
from cobasis.models.chain_file import decode_chain
from cobasis.models.onnx import raw_graph
from models.chains import KINDS, WIDTH, agreed, chain_of

FEATURES = (
    NumericFeature(name="age", centre=60.0, scale=20.0, missing="fill", fill=55.5),
    CategoryFeature(name="ward", values=("icu", "surgery"), unknown="other", missing="level"),
    NumericFeature(name="blood pressure (mmHg)", centre=120.0, scale=15.0),
    CategoryFeature(name="sex", values=("f", "m"), base="m"),
    CategoryFeature(name="risk", values=("high", "low"), unknown="other", base="high"),
    CategoryFeature(name="smoker", values=("yes",), missing="level"),
)
MAP_IN = np.linalg.qr(np.random.default_rng(5).normal(size=(width_of(FEATURES), WIDTH)))[0]
"""Some ``F_i G_i``."""


def table(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)

    def drawn(*cells):
        return list(rng.choice(np.array(cells, dtype=object), n_rows))

    return pl.DataFrame(
        {
            "age": drawn(None, *map(float, range(20, 99, 13))),
            "ward": drawn("icu", "surgery", "cardiology", "éé", None),
            "blood pressure (mmHg)": rng.integers(80, 200, n_rows).astype(float),
            "sex": drawn("f", "m"),
            "risk": drawn("high", "low", "High", "low "),
            "smoker": drawn("yes", None),
        }
    )


def fed(frame):
    given = {}
    for name, column in frame.to_dict().items():
        if column.dtype.is_numeric():
            values = column.to_numpy().astype(np.float64)
        else:
            values = np.array([word or "" for word in column], dtype=object)
        given[name] = values[:, None]
    return given


def run(data, given):
    onnx.checker.check_model(data, full_check=True)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


@pytest.mark.parametrize(("name", "task", "n_classes"), KINDS)
def test_raw_columns_give_what_python_gives(name, task, n_classes):
    model, frame = chain_of(name, task, n_classes), table()
    aligned = encode(frame, FEATURES, party="north") @ MAP_IN
    agree(run(graph(model), fed(frame)), model, aligned)


def agree(found, model, aligned):
    """Compare what a graph gives of raw rows with what its model gives of aligned ones."""
    told = model.predict(aligned)
    if model.task == "classification":
        np.testing.assert_array_equal(found["label"], told)
        told = model.scores(aligned, method=model.method)
        told = np.stack([-told, told], axis=1) if told.ndim == 1 else told
    given = found["scores" if model.task == "classification" else "prediction"]
    size = max(1.0, np.abs(told).max())
    np.testing.assert_allclose(given, told, rtol=0, atol=1e-12 * size)


def graph(model=None, features=FEATURES, *, weights=None, **options):
    return raw_graph(
        features,
        model or chain_of("mlp"),
        map_in=MAP_IN if weights is None else weights,
        **{"classes": ("ill", "well"), **options},
    )


REFUSED = [
    ("blood pressure (mmHg)", np.nan),
    ("sex", "x"),
    ("sex", ""),
    ("risk", ""),
    ("smoker", "no"),
]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_that_the_agreement_refuses_get_no_prediction_and_the_others_keep_theirs(task):
    """Another cell that has no place in each of the first rows; and a number beyond measure."""
    model = chain_of("mlp", task, 2 if task == "classification" else 0)
    data, given = graph(model), fed(table())
    good = run(data, given)
    cells = [*REFUSED, ("age", 1e60)]
    for row, (column, cell) in enumerate(cells):
        given[column] = given[column].copy()
        given[column][row] = cell
    found = run(data, given)
    for name, values in found.items():
        refused, wanted = values[: len(cells)], good[name][len(cells) :]
        assert np.all(refused == -1 if name == "label" else np.isnan(refused))
        np.testing.assert_array_equal(values[len(cells) :], wanted)
        assert np.isfinite(wanted).all()


AGE = NumericFeature(name="age")
NO_PLACE = {
    "label": (AGE, NumericFeature(name="label")),
    "cobasis.step_0": (CategoryFeature(name="cobasis.step_0", values=("yes",)),),
    "age": (AGE.model_copy(update={"knots": (1.0, 2.0, 3.0)}),),
    "age:crp": (AGE, NumericFeature(name="crp"), Interaction(of=("age", "crp"))),
}


@pytest.mark.parametrize("name", NO_PLACE)
def test_splines_interactions_and_names_of_the_graphs_own_are_refused(name):
    features = NO_PLACE[name]
    with pytest.raises(OptionError, match=rf"no place for '{name}'.*\[CB107\]"):
        graph(features=features, weights=np.ones((width_of(features), WIDTH)))


def test_the_file_says_that_it_is_a_secret_and_no_party_takes_it_for_a_model_that_came_back():
    model = onnx.ModelProto.FromString(graph())
    told = {each.key: each.value for each in model.metadata_props}
    assert "rows of every party can be read" in told["cobasis.secret"]
    assert told["cobasis.format"] == "cobasis/raw-model/1"
    assert json.loads(told["cobasis.classes"]) == ["ill", "well"]
    with pytest.raises(ModelFileError, match="no file of the model format"):
        decode_chain(graph(), **agreed())
