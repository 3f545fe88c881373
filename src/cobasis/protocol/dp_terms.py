"""What an agreement says where rows leave with noise and a guarantee: its ``[dp]`` section."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.bases import BASES
from cobasis.models import UNLABELLED
from cobasis.privacy.mechanism import MAX_LABEL_EPSILON, SAMPLER, Calibration, calibrated
from cobasis.privacy.sensitivity import Adjacency, sensitivity_of
from cobasis.strict_json import IF_ANY, Strict

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

Epsilon = Annotated[float, Field(gt=0, le=64)]

PEOPLE_PER_FAILURE = 10
"""delta is at most one over this many times the rows: 1/n alone allows one whole row to leave."""

_FAR = 16.2
"""How many times its scale a number of the noise is at most away."""

_HALF = 65504.0
"""The largest number of float16."""


class DPTerms(Strict):
    """Under which differential privacy every party's upload leaves.

    Attributes
    ----------
    epsilon : float
        Of one person's features in one upload; for their label, `label_epsilon` is added.
    delta : float
        At most 1 / (10 `most_rows`).
    radius : float
        Of the L2 ball that encoded rows are clipped to: from public rows or a code book.
    centre : tuple of float
        Of that ball, a number for each encoded feature; empty for the origin.
    adjacency : {"replace-one", "add-remove"}
        Which two tables have to look alike: one record is another, or one is a row of the centre.
    rows_per_person : int
        The most rows that one person has in an upload.
    most_rows : int
        The most rows that any party may upload.
    labels : {"public", "randomised_response"} or None
        What is done to labels; None for a representation, which has none.
    label_epsilon : float or None
        Of one person's labels, with randomised response only, at most 16.
    lifetime_epsilon : float
        What all uploads of a data set may spend, labels included; no later agreement raises it.
    colluders : int
        Of sums only: how many parties may help the analyst, 1 or more.

    Notes
    -----
    **Who sees what.** Public. Radius and centre must not come from private rows. **Cost.** None.
    """

    epsilon: Epsilon
    delta: Annotated[float, Field(ge=1e-12, lt=1)] = 1e-6
    radius: Annotated[float, Field(ge=1e-9, le=1e9)]
    centre: tuple[Annotated[float, Field(ge=-1e9, le=1e9)], ...] = ()
    adjacency: Adjacency = "replace-one"
    rows_per_person: Annotated[int, Field(ge=1)] = 1
    most_rows: Annotated[int, Field(ge=1)]
    labels: Literal["public", "randomised_response"] | None = None
    label_epsilon: Annotated[float, Field(gt=0, le=MAX_LABEL_EPSILON)] | None = None
    lifetime_epsilon: Epsilon
    colluders: Annotated[int, Field(ge=0), IF_ANY] = 0

    @cached_property
    def sensitivity(self) -> float:
        """D: how far one person can move a party's released rows."""
        return sensitivity_of(
            radius=self.radius, adjacency=self.adjacency, rows_per_person=self.rows_per_person
        )

    @cached_property
    def calibration(self) -> Calibration:
        """The noise, its grid, and mu."""
        return calibrated(epsilon=self.epsilon, delta=self.delta, sensitivity=self.sensitivity)

    @property
    def spent_on_labels(self) -> float:
        """What one upload spends on the labels of a person."""
        return self.label_epsilon or 0.0

    def record(self, *, basis: str) -> dict[str, Any]:
        """Return what an upload's manifest says of its noise: the same for every party."""
        terms = self.model_dump(mode="json")
        terms["centre"] = "as agreed" if self.centre else "origin"
        return {
            "terms": terms,
            "sensitivity": self.sensitivity,
            "noise": self.calibration.noise,
            "grid": self.calibration.grid,
            "sampler": SAMPLER,
            "statement": self.statement(basis=basis),
        }

    def statement(self, *, basis: str) -> str:
        """Return the guarantee in one sentence, without full stop."""
        share = "row" if self.rows_per_person == 1 else f"{self.rows_per_person} rows"
        other = "another" if self.adjacency == "replace-one" else "the centre"
        randomised = f"labels by randomised response, epsilon {self.spent_on_labels:g} more"
        covered, labels = {
            None: ("features", "no labels"),
            "public": ("features only", "labels public by declaration"),
            "randomised_response": ("features and labels", randomised),
        }[self.labels]
        centre = "the agreed centre" if self.centre else "the origin"
        return (
            f"differential privacy, epsilon {self.epsilon:g}, delta {self.delta:g}, {covered}, "
            f"one person ({share}) replaced by {other} among as many rows; "
            f"D = {self.sensitivity:g}, radius {self.radius:g} about {centre}, "
            f"basis {basis}, {labels}; noise of scale {self.calibration.noise:.6g} in "
            f"steps of {self.calibration.grid:g} ({SAMPLER})"
        )


def noise_problems(agreement: "Agreement", terms: DPTerms) -> Iterator[str]:
    if not BASES[agreement.basis].under_dp:
        others = ", ".join(name for name, rule in BASES.items() if rule.under_dp)
        yield f"[dp] with basis='{agreement.basis}': rows shape that basis; others are {others}"
    if agreement.fewest_rows > terms.most_rows:
        yield f"fewest_rows={agreement.fewest_rows} is above dp.most_rows={terms.most_rows}"
    if terms.colluders:
        yield "dp.colluders is of sums, which parties put noise on together"
    if agreement.anchor in FROM_PUBLIC_ROWS or agreement.anchor == "uniform":
        yield f"[dp] with anchor='{agreement.anchor}': use 'isometric' or 'gaussian'"
    given, needed = len(terms.centre), agreement.n_features
    if given not in {0, needed}:
        yield f"dp.centre has {given} numbers for {needed} encoded features"
    if (agreement.task in UNLABELLED) != (terms.labels is None):
        yield "dp.labels says 'public' or 'randomised_response' where a task has labels, else none"
    if terms.labels == "randomised_response" and agreement.task == "regression":
        yield "dp.labels='randomised_response' is for classes; a regression's can only be 'public'"
    yield from problems_among(terms, most_rows=terms.most_rows)
    # a number that does not fit would be refused, or clipped, because of what a row holds
    far = terms.radius + math.hypot(*terms.centre) + _FAR * terms.calibration.noise
    bound = {"int8": agreement.int8_range, "fp16": _HALF}.get(agreement.precision)
    if bound is not None and bound < far:
        yield (
            f"precision='{agreement.precision}' holds numbers up to {bound:g}, and rows with the "
            f"noise of [dp] may reach {far:.3g}; whether they fit must not depend on the rows"
        )


def problems_among(terms: DPTerms, **rows: int) -> Iterator[str]:
    """Yield what the terms say against each other, and against the rows that one noise is on."""
    [(word, most_rows)] = rows.items()
    if terms.radius < 1e-6 * math.hypot(*terms.centre):
        yield f"dp.radius={terms.radius:g} is lost in the rounding of dp.centre"
    most = 1 / (PEOPLE_PER_FAILURE * most_rows)
    if terms.delta > most:
        yield (
            f"dp.delta={terms.delta:g} is above 1/({PEOPLE_PER_FAILURE} {word}) = {most:g}, and "
            f"with 1/{word} somebody's whole row could be released; lower one of the two"
        )
    once = terms.epsilon + terms.spent_on_labels
    if terms.lifetime_epsilon < once:
        yield f"dp.lifetime_epsilon={terms.lifetime_epsilon:g} is below the {once:g} of one upload"
    if (terms.labels == "randomised_response") != (terms.label_epsilon is not None):
        yield "dp.label_epsilon goes with labels='randomised_response', and only with it"
