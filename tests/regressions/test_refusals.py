"""Rows that determine no estimate are refused, with what to agree on instead."""

import sys

import numpy as np
import pytest

from cobasis.errors import EstimateError, MissingExtraError
from cobasis.features.contract import CategoryFeature, NumericFeature
from cobasis.features.encoder import encode
from regressions.cohort import FEATURES, fitted, people, table

RAW, LABELS = people()
OLD = (RAW.age > 58).astype(float)
AGE = NumericFeature(name="age", centre=60, scale=15)
MANY = tuple(NumericFeature(name=f"x{at}") for at in range(20))
COX = {"model": "cox", "event": "event"}
NONE = LABELS.assign(event=0.0)
ONE_STRATUM = LABELS.assign(event=LABELS.event * (LABELS.stratum != 2))
QUIET = LABELS.assign(event=LABELS.event * (LABELS.owner != "party-03"))
REFUSED = {  # labels, the column, what is agreed on; what is said
    "no events": (NONE, "time", COX, "no row has an event"),
    "one class": (LABELS, "zero", {"model": "logit"}, "all rows are of one class"),
    "the other": (LABELS.assign(one=1.0), "one", {"model": "logit"}, "all rows are of one class"),
    "no counts": (LABELS, "zero", {"model": "poisson"}, "all counts are 0"),
    "one number": (LABELS, "zero", {"model": "ols"}, "all labels are one number"),
    "three classes": (LABELS, "stratum", {"model": "logit"}, "labels have more"),
    "weights of 0": (LABELS, "number", {"model": "ols", "weight": "zero"}, "weights in column"),
    "a stratum": (ONE_STRATUM, "time", {**COX, "stratum": "stratum"}, r"1 of 3 .*\('stratum' 2\)"),
    "a party": (QUIET, "time", {**COX, "strata_by_party": True}, "party 'party-03'"),
    "late": (LABELS, "time", {**COX, "horizons": (900.0,)}, "900 lies beyond"),
    "few parties": (
        LABELS.assign(owner=LABELS.owner.str[:7]),
        "time",
        {**COX, "errors": "party"},
        "needs 10 parties, and there are 2",
    ),
    "weighted counts": (
        LABELS,
        "counts",
        {"model": "negative_binomial", "weight": "weight"},
        "takes no weights",
    ),
    "robust firth": (LABELS, "class", {"model": "firth", "errors": "robust"}, "errors='robust'"),
    "even counts": (
        LABELS.assign(even=1.0 + np.arange(len(LABELS)) % 2),
        "even",
        {"model": "negative_binomial"},
        "model='poisson'",
    ),
    "separated": (LABELS.assign(old=OLD), "old", {"model": "logit"}, r"\(separation\).*firth"),
    "separated in part": (
        LABELS.assign(some=LABELS["class"] * (RAW.ward != "surgery")),
        "some",
        {"model": "logit"},
        r"\(separation\).*firth",
    ),
    "no counts of a level": (
        LABELS.assign(some=LABELS["count"] * (RAW.ward != "surgery")),
        "some",
        {"model": "poisson"},
        "which rows have a count of 0",
    ),
    "no events of a level": (
        LABELS.assign(event=LABELS.event * (RAW.ward != "surgery")),
        "time",
        COX,
        "did not converge on 600 rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_determines_no_estimate_is_refused(case):
    labels, value, told, reason = REFUSED[case]
    with pytest.raises(EstimateError, match=rf"(?s){reason}.*\[CB109\]"):
        fitted(RAW, labels, value, **told)


@pytest.mark.parametrize(
    ("value", "told"),
    [("class", {"model": "logit"}), ("count", {"model": "poisson"}), ("time", COX)],
)
def test_a_fit_that_moves_on_at_the_last_step_is_no_estimate_and_not_called_separated(
    value, told, monkeypatch
):
    monkeypatch.setattr("cobasis.statistics.regression._STEPS", 4)
    with pytest.raises(EstimateError, match="did not converge on 600 rows"):
        fitted(RAW, LABELS, value, **told)


@pytest.mark.parametrize(("n_rows", "fine"), [(6, False), (7, True)])
def test_there_are_more_rows_than_columns(n_rows, fine):
    few = RAW[:n_rows], LABELS[:n_rows]
    if fine:
        assert fitted(*few, "number", model="ols")[0].free == 1
    else:
        with pytest.raises(EstimateError, match="6 rows for 6 columns"):
            fitted(*few, "number", model="ols")


def test_firths_estimate_is_finite_where_rows_are_separated_and_the_same_in_every_frame():
    labels = LABELS.assign(some=LABELS["class"] * (RAW.ward != "surgery"))
    kinds = ("orthogonal", "invertible")
    one, two = (table(RAW, labels, "some", model="firth", kind=kind) for kind in kinds)
    found = [[line.estimate for line in each.lines] for each in (one, two)]
    assert found[0] == pytest.approx(found[1], rel=1e-8)
    assert -9 < found[0][4] < -3
    assert one.covariance == pytest.approx(two.covariance, rel=1e-8)


def test_firths_estimate_of_a_table_of_four_adds_half_a_row_to_each_cell():
    """The saturated model's known form: log((a + .5)(d + .5) / ((b + .5)(c + .5)))."""
    cells = {(0, 0): 9, (0, 1): 4, (1, 0): 7, (1, 1): 0}
    told = np.array([each for each, count in cells.items() for _ in range(count)], dtype=float)
    raw, labels = RAW[:20][["age"]].assign(age=told[:, 0]), LABELS[:20].assign(told=told[:, 1])
    feature = NumericFeature(name="age", centre=0.3, scale=2)
    made = table(raw, labels, "told", model="firth", features=(feature,))
    assert made.lines[0].estimate == pytest.approx(np.log(4.5 / 9.5), rel=1e-8)
    assert made.lines[1].estimate == pytest.approx(np.log(9.5 * 0.5 / (4.5 * 7.5)), rel=1e-8)


WARD = CategoryFeature(name="ward", values=("icu", "surgery", "other"))
TWICE = NumericFeature(name="twice", centre=100, scale=20)
FIXED = NumericFeature(name="fixed", scale=3)
DEPENDENT = {  # raw columns, features; the columns that are named, and how many of them follow
    "all levels": (RAW, (AGE, WARD), ["ward=icu", "ward=surgery", "ward=other"], 1),
    "a multiple": (RAW.assign(twice=2 * RAW.age), (AGE, WARD, TWICE)[::2], ["age", "twice"], 1),
    "a constant": (RAW.assign(fixed=7.0), (AGE, FIXED), ["fixed"], 1),
    "both": (
        RAW.assign(twice=2 * RAW.age, fixed=7.0),
        (*FEATURES, TWICE, FIXED),
        ["age", "twice", "fixed"],
        2,
    ),
}


@pytest.mark.parametrize("digits", ["float64", "float32"])
@pytest.mark.parametrize(("model", "value"), [("ols", "number"), ("cox", "time")])
@pytest.mark.parametrize("case", DEPENDENT)
def test_columns_that_depend_on_each_other_are_named(case, model, value, digits, monkeypatch):
    raw, features, named, count = DEPENDENT[case]
    if digits == "float32":
        monkeypatch.setattr(
            "regressions.cohort.encode",
            lambda *given, **told: encode(*given, **told).astype(np.float32) * 1.0,
        )
    told = {"model": model, "features": [each for each in features if each.name in raw]}
    with pytest.raises(EstimateError, match=rf"{count} follow from the others") as error:
        table(raw[[each.name for each in told["features"]]], LABELS, value, **told,
              **{"event": "event"} if model == "cox" else {})  # fmt: skip
    found = str(error.value).split(f", {count} follow")[0]
    assert found == "of the columns " + ", ".join(f"'{each}'" for each in named)


def test_a_column_that_varies_between_strata_alone_is_named_in_a_cox_model():
    raw = RAW.assign(beds=LABELS.stratum * 10)
    told = {"features": (AGE, NumericFeature(name="beds")), "stratum": "stratum", **COX}
    with pytest.raises(EstimateError, match="of the columns 'beds', 1 follow"):
        table(raw[["age", "beds"]], LABELS, "time", **told)


@pytest.mark.parametrize(
    ("package", "value", "told"),
    [("statsmodels", "number", {"model": "ols"}), ("lifelines", "time", COX)],
)
def test_an_extra_that_is_missing_is_named(package, value, told, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*'cobasis\[statistics\]'"):
        fitted(RAW, LABELS, value, **told)
