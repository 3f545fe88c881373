"""What an agreement on a regression table by sums may say."""

import pytest

from cobasis import Agreement, NumericFeature
from cobasis.errors import AgreementError
from cobasis.features.maps import Columns
from cobasis.features.outcome import Outcome
from cobasis.protocol.dp_terms import DPTerms
from protocol.test_newton import CLASSES, COUNTS, FEATURES, SURVIVAL, terms

NOISE = DPTerms(epsilon=1.0, delta=1e-7, radius=1.0, most_rows=900, lifetime_epsilon=1.0)


def survival(**changes):
    return {"outcome": SURVIVAL["outcome"].model_copy(update=changes)}


def counts(high, low=0.0):
    return {"sums": COUNTS["sums"].model_copy(update={"target_range": (low, high)})}


REFUSED = {
    "no steps": (CLASSES, terms(steps=None), "steps goes with a model"),
    "maps": (CLASSES, terms(maps=(Columns(),)), "maps with all that is no table"),
    "scores": (CLASSES, {**terms(scores=True), "holdout": 0.2}, "nor coefficients"),
    "another model": (CLASSES, {"model": "firth"}, "model='firth' takes release='rows'"),
    "three classes": (CLASSES, {"classes": (0, 1, 2)}, "takes two classes"),
    "weights": (CLASSES, {"outcome": Outcome(weight="w")}, "sums take event, exposure"),
    "robust errors": (SURVIVAL, survival(errors="robust"), "sums take event, exposure"),
    "no grid": (SURVIVAL, survival(grid=()), "takes outcome.grid"),
    "a falling grid": (SURVIVAL, survival(grid=(2.0, 1.0)), "do not rise"),
    "a horizon beyond": (SURVIVAL, survival(horizons=(999.0,)), "beyond the grid"),
    "counts from one": (COUNTS, counts(9.0, low=1.0), "of counts from 0"),
    "large counts": (COUNTS, counts(1e12), "too large for 64 bits"),
    "no largest exposure": (COUNTS, {"outcome": Outcome(exposure="t")}, "most_exposure goes with"),
    "noise": (CLASSES, {"dp": NOISE}, "takes no .dp."),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_agreement_says_what_sums_cannot_make(kind):
    fields, changes, match = REFUSED[kind]
    with pytest.raises(AgreementError, match=match):
        Agreement(**{**fields, **changes})


def test_a_column_without_a_range_is_refused():
    features = (NumericFeature(name="age"), *FEATURES[1:])
    with pytest.raises(AgreementError, match="no range from low to high"):
        Agreement(**{**CLASSES, "features": features})
