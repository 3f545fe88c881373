"""Sums at the analyst: what parties send, and the model of everybody's rows that the total gives.

Nothing here can import a mask key; a contract checks it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from cobasis.errors import MessageError, StepError
from cobasis.features.contract import NumericFeature
from cobasis.features.encoder import encoded_columns
from cobasis.features.maps import Columns, Turn, turn_of
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.chain import Affine, Chain, Layer, chain_of, folded
from cobasis.models.evidence import Coefficient, Evident, fit_noisy, fit_total, least_squares
from cobasis.privacy.aggregate import OFTEN, light_of
from cobasis.protocol import refusals
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.baseline import BaselineTable, table_of
from cobasis.protocol.messages import MaskedSums, Return
from cobasis.protocol.scores import Worth, worth_of
from cobasis.protocol.sums_terms import (
    SumsTerms,
    layout_of,
    model_layout,
    noise_of,
    roster_of,
    score_layout,
    table_layout,
    terms_of,
)
from cobasis.protocol.totals import Integers, Total, checked, within


@dataclass(frozen=True, kw_only=True)
class SumsResult:
    """What a total gives."""

    model: Chain  # of encoded rows
    chosen: int  # the map's place in the agreement
    found: tuple[Evident, ...] = field(repr=False)  # of each map
    total: Total = field(repr=False)
    # of a linear regression without penalty on the map `columns`, where that was agreed on and its
    # columns do not depend on each other
    coefficients: tuple[Coefficient, ...] = field(default=(), repr=False)

    @property
    def n_features(self) -> int:
        """D of the chosen map."""
        return self.total.layout.n_features[self.chosen]

    @property
    def rows_per_feature(self) -> float:
        """n/D: what decides how far the total is an aggregate."""
        return self.total.n_rows / self.n_features

    @property
    def light(self) -> str:
        """Say by a traffic light how far the total is an aggregate: red, amber or green."""
        return light_of(self.rows_per_feature)

    @property
    def meaning(self) -> str:
        """Say what the light stands for."""
        often = OFTEN[light_of(self.rows_per_feature)]
        return (
            f"With a person's record at hand the analyst can {often} tell whether the person is in "
            "the total."
        )


class SumsAnalyst:
    """The analyst's side of a round of sums; never a row, nor a single party's sums.

    `keys` are every participant's, in the agreement's order; by default whatever the first message
    was masked for. `scoring` is for the second exchange.
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        keys: Mapping[str, str] | None = None,
        attempt: int = 1,
        scoring: bool = False,
    ) -> None:
        self.agreement, self.terms = agreement, terms_of(agreement)
        self.parties = agreement.parties if keys is None else tuple(keys)
        self._masked_for = (None if keys is None else roster_of(keys), attempt)
        layout = score_layout(agreement) if scoring else layout_of(agreement)
        self._words = np.zeros(layout.n_words, dtype=np.uint64)
        self.received: list[str] = []

    def receive(self, message: MaskedSums) -> None:
        """Take one party's masked sums in; MessageError for another width, roster or attempt."""
        refusals.check_origin(message, self.agreement, what=f"the sums of party '{message.party}'")
        refusals.refuse_second(message.party, self.received)
        if message.words.shape != self._words.shape or message.words.dtype != np.uint64:
            raise MessageError(
                f"the sums of party '{message.party}' are {message.words.size} numbers, and this "
                f"exchange has {self._words.size}. Ask the party to make them anew."
            )
        roster, attempt = self._masked_for
        self._masked_for = (roster or message.roster, attempt)
        if (message.roster, message.attempt) != self._masked_for or (
            message.party not in self.parties
        ):
            raise MessageError(
                f"the sums of party '{message.party}' are masked for other participants, keys or "
                f"another attempt than attempt {attempt} of {', '.join(self.parties)}, so their "
                "masks would not cancel. Ask the party to send again with the newest news."
            )
        self._words += message.words  # NumPy's unsigned integers wrap around, so masks cancel
        self.received.append(message.party)

    def run(self) -> SumsResult:
        """Train on the total, by the largest evidence; StepError while a party is missing."""
        self._refuse_missing()
        agreement = self.agreement
        turns = [turn_of(each, agreement.features) for each in self.terms.maps]
        with one_blas_thread():
            total, found = self._fitted([each.n_waves for each in turns])
        chosen = min(range(len(found)), key=lambda at: found[at].surprise)
        model = _chain(turns[chosen], found[chosen], total, terms=self.terms)
        return SumsResult(
            model=model,
            chosen=chosen,
            found=found,
            total=total,
            coefficients=tuple(_coefficients(agreement, total, terms=self.terms)),
        )

    def count(self) -> BaselineTable:
        """Make the baseline table of the total; StepError while a party is missing."""
        self._refuse_missing()
        return table_of(self.total, self.agreement, layout=table_layout(self.agreement))

    def judge(self) -> Worth:
        """Say what the common model is worth by the total of scores; StepError as of `run`."""
        self._refuse_missing()
        return worth_of(self.total, score_layout(self.agreement))

    @property
    def total(self) -> Integers:
        """The sums of what was received."""
        return self._words.view(np.int64)

    def _refuse_missing(self) -> None:
        missing = [name for name in self.parties if name not in self.received]
        if missing:
            raise StepError(
                f"the sums of {', '.join(missing)} are not in, and masks cancel in the sums of all "
                "parties only. Wait for them, or agree on a round without them."
            )

    def _fitted(self, n_waves: list[int]) -> tuple[Total, tuple[Evident, ...]]:
        """Check the total, and fit each map: by evidence, or under noise by a frozen rule."""
        agreement, layout = self.agreement, model_layout(self.agreement)
        n_targets, noise = layout.n_targets, noise_of(agreement)
        if noise is None:
            total = checked(layout, self.total, n_waves=n_waves)
            return total, tuple(fit_total(each, n_targets=n_targets) for each in total.grams)
        # all parties' noise, the colluders' too, which the promise does not count on
        scale = noise.own * len(self.parties) ** 0.5 / 4**layout.bits
        most = 12 * noise.own * len(self.parties) / 4**layout.bits
        total = within(layout, self.total, noise=most)
        return total, (fit_noisy(total.grams[0], n_targets=n_targets, noise=scale),)

    def returns(self, model: Chain | None) -> Iterator[Return]:
        """Yield one return for each party, all with the same model, or total of a table."""
        for party in self.received:
            yield Return(
                party=party,
                agreement_digest=self.agreement.digest(),
                change_of_basis=None,
                model=model,
                evidence="cannot tell",
                trained_on=tuple(self.received),
                target_carries=(),
                simulated=False,
                total=self.total if model is None else None,
            )


def _coefficients(agreement: Agreement, total: Total, *, terms: SumsTerms) -> Iterator[Coefficient]:
    """Yield a regression's table, intercept first, in units of the columns as parties have them."""
    places = [at for at, each in enumerate(terms.maps) if isinstance(each, Columns)]
    found = least_squares(total.grams[places[0]]) if places and terms.target_range else None
    if found is None or terms.target_range is None:
        return
    low, high = terms.target_range
    names, middles, halves = ["intercept"], [], []
    for column in encoded_columns(agreement.features):
        each, ends = column.feature, (-1.0, 1.0)  # a level is 0 or 1 as it is
        if isinstance(each, NumericFeature) and each.low is not None and each.high is not None:
            ends = each.low, each.high
        names.append(column.name)
        middles.append((ends[0] + ends[1]) / 2)
        halves.append((ends[1] - ends[0]) / 2)
    turned = np.diag([1.0, *(1 / np.array(halves))])  # from ranges of -1 to 1 to raw units
    turned[0, 1:] = -np.array(middles) / halves
    turned *= (high - low) / 2
    weights, covariance = turned @ found[0], turned @ found[1] @ turned.T
    weights[0] += (high + low) / 2
    for name, weight, square in zip(names, weights, np.diag(covariance), strict=True):
        yield Coefficient(name=name, estimate=float(weight), standard_error=float(square**0.5))


def _chain(turn: Turn, found: Evident, total: Total, *, terms: SumsTerms) -> Chain:
    """Return the model of encoded rows: the map, then the weights in the labels' own units."""
    layout, weights, offset = total.layout, found.fitted.weights, found.fitted.offset
    present = np.arange(layout.n_targets)
    if layout.one_hot and layout.bare:  # nothing is counted, so every class may occur
        weights, offset = 2 * weights, 2 * offset - 1
        if layout.n_targets == 2:  # noqa: PLR2004 -- without an intercept they add up to nothing
            weights, offset = (weights - weights[:, ::-1]) / 2, np.zeros(2)
    elif layout.one_hot:  # scores from -1 to 1, as of ridge on rows; a class without rows gets none
        counts = np.diag(total.grams[0])[-layout.n_targets :]
        present = np.flatnonzero(counts)
        if len(present) == 1:
            raise StepError(
                "all rows of all parties are of one class, so there is nothing to tell apart. "
                "Check the label column."
            )
        weights, offset = 2 * weights[:, present], 2 * offset[present] - 1
    elif terms.target_range is not None:
        low, high = terms.target_range
        half = (high - low) / 2
        weights, offset = half * weights, half * offset + (low + half)
    layers: list[Layer] = [Affine(weights=turn.weights, offset=turn.offset)]
    if turn.bends is not None:
        layers[:0] = [Affine(weights=turn.bends[0], offset=turn.bends[1]), "Relu"]
    layers += ["Cos"] * bool(turn.n_waves)
    return chain_of(
        "rff" if turn.n_waves else "linear",
        folded([*layers, Affine(weights=turn.factor[:, None] * weights, offset=offset)]),
        present=present,
        n_classes=layout.n_targets if layout.one_hot else 0,
        head="decision",
    )
