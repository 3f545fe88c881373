import sys

import numpy as np
import pytest

from cobasis.errors import EstimateError, MissingExtraError
from cobasis.features.contract import CategoryFeature, NumericFeature
from cobasis.models.chain import regression_chain
from regressions.cohort import FEATURES, fitted, people, table

RAW, LABELS = people()
AGE = NumericFeature(name="age", centre=60, scale=15)
COX = {"model": "cox", "event": "event"}
NOT_SURGERY = RAW.ward != "surgery"
ODD = LABELS.assign(
    even=1.0 + np.arange(len(LABELS)) % 2,
    old=(RAW.age > 58).astype(float),
    ill=LABELS["class"] * NOT_SURGERY,
    few=LABELS["count"] * NOT_SURGERY,
    died=LABELS.event * NOT_SURGERY,
    died_in_two=LABELS.event * (LABELS.stratum != 2),
    died_in_eleven=LABELS.event * (LABELS.owner != "party-03"),
)
NEGATIVE = {"model": "negative_binomial"}
IN_TWO, IN_ELEVEN = (COX | {"event": f"died_in_{each}"} for each in ("two", "eleven"))
REFUSED = {  # the column, what is agreed on; what is said
    "no events": ("time", {**COX, "event": "zero"}, "no row has an event"),
    "one class": ("zero", {"model": "logit"}, "all rows are of one class"),
    "no counts": ("zero", {"model": "poisson"}, "all counts are 0"),
    "one number": ("zero", {"model": "ols"}, "all labels are one number"),
    "weights of 0": ("number", {"model": "ols", "weight": "zero"}, "weights in column"),
    "a stratum": ("time", {**IN_TWO, "stratum": "stratum"}, r"1 of 3 \(2\)"),
    "a party": ("time", {**IN_ELEVEN, "strata_by_party": True}, "0 of party 'party-03'"),
    "late": ("time", {**COX, "horizons": (900.0,)}, "900 lies beyond"),
    "even counts": ("even", NEGATIVE, "model='poisson'"),
    "separated": ("old", {"model": "logit"}, r"\(separation\).*firth"),
    "separated in part": ("ill", {"model": "logit"}, r"\(separation\).*firth"),
    "no counts of a level": ("few", {"model": "poisson"}, "did not converge on 600 rows"),
    "no events of a level": ("time", {**COX, "event": "died"}, "did not converge on 600 rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_determines_no_estimate_is_refused(case):
    value, told, reason = REFUSED[case]
    with pytest.raises(EstimateError, match=rf"(?s){reason}.*\[CB109\]"):
        fitted(RAW, ODD, value, **told)


def test_centres_that_lie_too_far_from_all_rows_to_tell_shares_are_named():
    features = (AGE.model_copy(update={"centre": 2e5}),)
    told = COX | {"horizons": (10.0,), "features": features}
    fit, _ = fitted(RAW[["age"]], LABELS, "time", **told)
    with pytest.raises(EstimateError, match="Agree on centres"):
        regression_chain(fit, n_classes=0)


@pytest.mark.parametrize("model", ["logit", "poisson"])
@pytest.mark.parametrize("n_rows", [1, 2, 5, 20])
def test_a_rare_level_without_events_is_no_estimate_with_small_errors(n_rows, model):
    """Its direction tells so little that statsmodels drops it, and takes that for rest."""
    rare = np.arange(len(RAW)) < n_rows
    others = np.where(RAW.ward == "surgery", "icu", RAW.ward)
    raw = RAW.assign(ward=np.where(rare, "surgery", others))
    labels = LABELS.assign(some=LABELS["class" if model == "logit" else "count"] * ~rare)
    with pytest.raises(EstimateError, match=r"\(separation\)"):
        fitted(raw, labels, "some", model=model)


def test_there_are_more_rows_than_columns_and_parties_enough():
    assert fitted(RAW[:7], LABELS[:7], "number", model="ols")[0].free == 1
    with pytest.raises(EstimateError, match="6 rows for 6 columns"):
        fitted(RAW[:6], LABELS[:6], "number", model="ols")
    two = LABELS.assign(owner=LABELS.owner.str[:7])
    with pytest.raises(EstimateError, match=r"needs 10 parties, and there are 2.*\[CB109\]"):
        fitted(RAW, two, "time", errors="party", **COX)


def test_firths_estimate_is_finite_where_rows_are_separated_and_the_same_in_every_frame():
    kinds = ("orthogonal", "invertible")
    one, two = (table(RAW, ODD, "ill", model="firth", kind=kind) for kind in kinds)
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
BEDS = NumericFeature(name="beds")
MORE = RAW.assign(twice=2 * RAW.age, fixed=7.0, beds=LABELS.stratum * 10)
DEPENDENT = {  # features; the columns that are named, and how many of them follow
    "all levels": ((AGE, WARD), ["ward=icu", "ward=surgery", "ward=other"], 1),
    "a multiple": ((AGE, TWICE), ["age", "twice"], 1),
    "a constant": ((AGE, FIXED), ["fixed"], 1),
    "both": ((*FEATURES, TWICE, FIXED), ["age", "twice", "fixed"], 2),
}


@pytest.mark.parametrize("digits", ["float64", "float32"])
@pytest.mark.parametrize(("model", "value"), [("ols", "number"), ("cox", "time")])
@pytest.mark.parametrize("case", DEPENDENT)
def test_columns_that_depend_on_each_other_are_named(case, model, value, digits):
    features, named, count = DEPENDENT[case]
    told = (COX if model == "cox" else {"model": model}) | {"digits": digits}
    with pytest.raises(EstimateError, match=rf"{count} follow from the others") as error:
        table(MORE[[x.name for x in features]], LABELS, value, features=features, **told)
    assert f"of the columns {', '.join(map(repr, named))}, {count} follow" in str(error.value)


def test_a_column_that_varies_between_strata_alone_is_named_in_a_cox_model():
    told = {"features": (AGE, BEDS), "stratum": "stratum", **COX}
    with pytest.raises(EstimateError, match="of the columns 'beds', 1 follow"):
        table(MORE[["age", "beds"]], LABELS, "time", **told)


@pytest.mark.parametrize(
    ("package", "value", "told"),
    [("statsmodels", "number", {"model": "ols"}), ("lifelines", "time", COX)],
)
def test_an_extra_that_is_missing_is_named(package, value, told, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"{package}.*'cobasis\[statistics\]'"):
        fitted(RAW, LABELS, value, **told)
