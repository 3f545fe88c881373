"""Sums at the analyst: what parties send, and the model of everybody's rows that the total gives.

Nothing here can import a mask key; a contract checks it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cobasis.errors import MessageError, StepError
from cobasis.features.maps import Turn, turn_of
from cobasis.linalg.arrays import Integers
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.chain import Affine, Chain, chain_of, folded, layers_of
from cobasis.models.evidence import Evident, fit_noisy, fit_total
from cobasis.privacy.aggregate import OFTEN, light_of, rows_asked, tells_most
from cobasis.protocol import refusals, sums_terms
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.baseline import BaselineTable, table_of
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.messages import MaskedSums, Return
from cobasis.protocol.newton import NewtonLayout, newton_chain
from cobasis.protocol.scores import Worth, worth_of
from cobasis.protocol.totals import Layout, Total, checked, within


@dataclass(frozen=True, kw_only=True)
class SumsResult:
    model: Chain  # of encoded rows
    chosen: int  # the map's place in the agreement
    found: tuple[Evident, ...] = field(repr=False)  # of each map; none of a regression's steps
    total: Total = field(repr=False)
    layout: Layout | NewtonLayout = field(repr=False)

    @property
    def shown(self) -> int:
        """The place of the map that tells most of who is in the total."""
        return tells_most(self.layout.n_features, self.total.common)

    @property
    def rows_per_feature(self) -> float:
        """n/D of that map: what decides how far the total is an aggregate."""
        return self.total.n_rows / self.layout.n_features[self.shown]

    @property
    def aggregate(self) -> str:
        total, share, at = self.total, self.rows_per_feature, self.shown
        light = light_of(share, common=total.common[at])
        of = f"map {at + 1} of {len(self.found)}" if self.found else "all steps"
        of += ", whose bandwidth is narrow" * (rows_asked(total.common[at]) > 1)
        return (
            f"{total.n_rows:,} rows, {share:.3g} for each of the {self.layout.n_features[at]:,} "
            f"features of {of}: {light}. With a person's record at hand the analyst can "
            f"{OFTEN[light]} tell whether the person is in the total."
        )


class SumsAnalyst:
    """The analyst's side of an exchange of sums; never a row, nor a single party's sums.

    `keys` are every participant's, in the agreement's order. The `exchange` is by default the one
    behind the totals of steps `before`.
    """

    def __init__(
        self,
        agreement: Agreement,
        *,
        keys: Mapping[str, str],
        attempt: int = 1,
        exchange: Exchange | None = None,
        before: Sequence[Integers] = (),
    ) -> None:
        self.agreement, self.terms = agreement, sums_terms.terms_of(agreement)
        self.before, self.parties = before, tuple(keys)
        this = exchange or exchanges(agreement)[len(before)]
        self._masked_for = (sums_terms.roster_of(keys), attempt, this.number)
        layout_of = sums_terms.score_layout if this.held else sums_terms.layout_of
        self._words = np.zeros(layout_of(agreement).n_words, dtype=np.uint64)
        self.received: list[str] = []
        self._simulated = False

    def receive(self, message: MaskedSums) -> None:
        """Take one party's masked sums in; MessageError for another width, roster or attempt."""
        refusals.check_origin(message, self.agreement, what=f"the sums of party '{message.party}'")
        refusals.refuse_second(message.party, self.received)
        if message.words.shape != self._words.shape or message.words.dtype != np.uint64:
            raise MessageError(
                f"the sums of party '{message.party}' are {message.words.size} numbers, and this "
                f"exchange has {self._words.size}. Ask the party to make them anew."
            )
        attempt = self._masked_for[1]
        if message.party not in self.parties:
            raise MessageError(
                f"party '{message.party}' was left out of attempt {attempt}, so nothing of it is "
                f"added up. Begin another one with it: cobasis run --with {message.party}."
            )
        if (message.roster, message.attempt, message.exchange) != self._masked_for:
            raise MessageError(
                f"the sums of party '{message.party}' are masked for other participants or keys, "
                f"another step or attempt than {attempt}, so masks would not cancel. Ask the party "
                "to send again with the newest news."
            )
        self._simulated = self._simulated or message.simulated
        self._words += message.words  # NumPy's unsigned integers wrap around, so masks cancel
        self.received.append(message.party)

    def run(self) -> SumsResult:
        """Train on the total, by the largest evidence, or take a regression's next step.

        StepError while a party is missing.
        """
        if self.agreement.tabular:
            steps = sums_terms.newton_layout(self.agreement)
            model = newton_chain(steps, [*self.before, self.total], agreement=self.agreement)
            n_rows = 0 if model.fit is None else model.fit.n_rows
            total = Total(n_rows=n_rows, grams=())
            return SumsResult(model=model, chosen=0, found=(), total=total, layout=steps)
        turns = [turn_of(each, self.agreement.features) for each in self.terms.maps]
        layout, noise = sums_terms.model_layout(self.agreement), sums_terms.noise_of(self.agreement)
        width, many, unit = layout.n_targets, len(self.parties), 4**layout.bits
        with one_blas_thread():
            if noise is None:
                total = checked(layout, self.total, n_waves=[each.n_waves for each in turns])
                found = tuple(fit_total(each, n_targets=width) for each in total.grams)
            else:  # all parties' noise, the colluders' too, which the promise does not count on
                total = within(layout, self.total, noise=12 * noise.own * many / unit)
                scale = noise.own * many**0.5 / unit
                found = (fit_noisy(total.grams[0], n_targets=width, noise=scale),)
        chosen = min(range(len(found)), key=lambda at: found[at].surprise)
        model = _chain(turns[chosen], found[chosen], total, terms=self.terms, layout=layout)
        return SumsResult(model=model, chosen=chosen, found=found, total=total, layout=layout)

    def count(self) -> BaselineTable:
        return table_of(self.total, self.agreement, layout=sums_terms.table_layout(self.agreement))

    def judge(self) -> Worth:
        return worth_of(self.total, sums_terms.score_layout(self.agreement))

    @property
    def total(self) -> Integers:
        """Everybody's sums; StepError while a party is missing."""
        if missing := [name for name in self.parties if name not in self.received]:
            raise StepError(
                f"the sums of {', '.join(missing)} are not in, and masks cancel in the sums of all "
                "parties only. Wait for them, or agree on a round without them."
            )
        return self._words.view(np.int64)

    def returns(self, model: Chain | None) -> Iterator[Return]:
        for party in self.received:
            yield Return(
                party=party,
                agreement_digest=self.agreement.digest(),
                model=model,
                trained_on=tuple(self.received),
                simulated=self._simulated,
                total=self.total if model is None else None,
            )


def _chain(
    turn: Turn, found: Evident, total: Total, *, terms: sums_terms.SumsTerms, layout: Layout
) -> Chain:
    """Return the model of encoded rows: the map, then the weights in the labels' own units."""
    present = np.arange(layout.n_targets)
    if layout.one_hot and not layout.bare:  # a class without rows gets no score
        present = np.flatnonzero(np.diag(total.grams[0])[-layout.n_targets :])
        if len(present) == 1:
            raise StepError(
                "all rows of all parties are of one class, so there is nothing to tell apart. "
                "Check the label column."
            )
    half, middle = 2.0, -1.0  # of ones and zeros: scores from -1 to 1, as of ridge on rows
    if terms.target_range is not None:
        low, high = terms.target_range
        half, middle = (high - low) / 2, low + (high - low) / 2
    weights = half * found.fitted.weights[:, present]
    offset = half * found.fitted.offset[present] + middle
    if layout.bare and len(present) == 2:  # noqa: PLR2004 -- without an intercept they add up to 0
        weights, offset = (weights - weights[:, ::-1]) / 2, np.zeros(2)
    last = Affine(weights=turn.factor[:, None] * weights, offset=offset)
    return chain_of(
        "rff" if turn.n_waves else "linear",
        folded([*layers_of(turn), last]),
        present=present,
        n_classes=layout.n_targets if layout.one_hot else 0,
        head="decision",
    )
