"""What an agreement's ``[dp]`` section contradicts: a guarantee stands whole, or is not given."""

import math
from collections.abc import Iterator

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.bases import BASES
from cobasis.protocol.agreement_fields import AgreementFields
from cobasis.protocol.dp_terms import PEOPLE_PER_FAILURE, DPTerms

_FAR = 16.2
"""How many times its scale a number of the noise is at most away."""

_HALF = 65504.0
"""The largest number of float16."""


def dp_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what an agreement says against its own guarantee; nothing where it gives none."""
    terms = agreement.dp
    if terms is None:
        return
    if not BASES[agreement.basis].under_dp:
        allowed = ", ".join(name for name, rule in BASES.items() if rule.under_dp)
        yield (
            f"[dp] with basis='{agreement.basis}': rows shape that basis, so one of them can move "
            f"all, whatever the noise; the bases that no row shapes are {allowed}"
        )
    if agreement.anchor in FROM_PUBLIC_ROWS or agreement.anchor == "uniform":
        yield (
            f"[dp] with anchor='{agreement.anchor}', which is for reproducing papers; use "
            "'isometric' or 'gaussian'"
        )
    yield from _ball_problems(terms, agreement.n_features)
    yield from _budget_problems(terms)
    yield from _label_problems(agreement, terms)
    yield from _precision_problems(agreement, terms)


def _ball_problems(terms: DPTerms, n_features: int) -> Iterator[str]:
    """Yield what is wrong with the ball."""
    if terms.centre and len(terms.centre) != n_features:
        yield f"dp.centre has {len(terms.centre)} numbers for {n_features} encoded features"
    if terms.radius < 1e-6 * math.hypot(*terms.centre):
        yield f"dp.radius={terms.radius:g} is lost in the rounding of dp.centre"


def _budget_problems(terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong with delta and the lifetime."""
    most = 1 / (PEOPLE_PER_FAILURE * terms.most_rows)
    if terms.delta > most:
        yield (
            f"dp.delta={terms.delta:g} is above 1/({PEOPLE_PER_FAILURE} most_rows) = {most:g}, and "
            "with 1/most_rows a party could release somebody's whole row; lower one of the two"
        )
    once = terms.epsilon + terms.spent_on_labels
    if terms.lifetime_epsilon < once:
        yield f"dp.lifetime_epsilon={terms.lifetime_epsilon:g} is below the {once:g} of one upload"


def _label_problems(agreement: AgreementFields, terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong with the treatment of labels."""
    if (agreement.task == "representation") != (terms.labels is None):
        yield (
            "dp.labels says 'public' or 'randomised_response', and nothing only for a "
            "representation, which has no labels"
        )
    randomised = terms.labels == "randomised_response"
    if randomised and agreement.task == "regression":
        yield "dp.labels='randomised_response' is for classes; a regression's can only be 'public'"
    if randomised != (terms.label_epsilon is not None):
        yield "dp.label_epsilon goes with labels='randomised_response', and only with it"


def _precision_problems(agreement: AgreementFields, terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong where numbers with noise might not fit into the agreed precision."""
    far = terms.radius + math.hypot(*terms.centre) + _FAR * terms.calibration.noise
    bounds = {"int8": agreement.int8_range, "fp16": _HALF}
    bound = bounds.get(agreement.precision)
    if bound is not None and bound < far:
        yield (
            f"precision='{agreement.precision}' holds numbers up to {bound:g}, and rows with the "
            f"noise of [dp] may reach {far:.3g}; whether they fit must not depend on the rows"
        )
