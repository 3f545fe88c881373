"""The round: the papers' Algorithm 1, with the line numbers it has there."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import cast

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.bases import BASES
from cobasis.algorithms.readable import MOST_ROWS, Readable, Table
from cobasis.errors import LabelError, StepError
from cobasis.features.outcome import part_of
from cobasis.models import Estimator
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.messages import ConsensusSpan, Labels, decode_labels, encode_labels, figure_of
from cobasis.protocol.party import Party
from cobasis.protocol.refusals import require_known
from cobasis.protocol.secrets import SecretBasis
from cobasis.protocol.sums import SumsAnalyst, SumsResult
from cobasis.protocol.sums_party import SumsParty

Rows = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike | None]]


@dataclass(kw_only=True)
class Traffic:
    """Bytes of arrays that one party sent and got."""

    up: int = 0
    down: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulated(Readable):
    """What all rounds in one process share: parties that predict."""

    agreement: Agreement
    parties: Mapping[str, Party | SumsParty]
    traffic: Mapping[str, Traffic] = field(default_factory=partial(defaultdict, Traffic))

    def predict(
        self, rows: npt.ArrayLike | Mapping[str, npt.ArrayLike]
    ) -> dict[str, npt.NDArray[np.generic]]:
        """Let every party predict with its own basis and the common model, eq. (9).

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features), or mapping of str to such
            Rows that every party predicts; or each party's own, by its name.

        Returns
        -------
        dict of str to ndarray of shape (n_rows,)
            Classes or numbers, by party name; UnknownPartyError for one that was excluded.
        """
        ready = [name for name, party in self.parties.items() if party.finished]
        if not ready:
            raise StepError("this round has not run yet. Call run(rows) first, or simulate(rows).")
        whose = rows if isinstance(rows, Mapping) else dict.fromkeys(ready, rows)
        for name in whose:
            require_known(name, ready)
        return {name: self.parties[name].predict(own) for name, own in whose.items()}

    @abstractmethod
    def _told(self) -> tuple[str, list[str]]: ...

    def table(self) -> Table:
        """Show what everybody sent and got, and what was made of it."""
        title, notes = self._told()
        shown = {
            name: self.traffic.get(name, Traffic()) for name in islice(self.parties, MOST_ROWS)
        }
        return Table(
            title=f"Round {self.agreement.round_id}: {self.agreement.task}, {title}.",
            header=("party", "bytes up", "bytes down"),
            rows=[(name, f"{each.up:,}", f"{each.down:,}") for name, each in shown.items()],
            n_rows=len(self.parties),
            notes=tuple(notes),
        )

    def score(
        self,
        rows: npt.ArrayLike | Mapping[str, npt.ArrayLike],
        labels: npt.ArrayLike | Mapping[str, npt.ArrayLike],
    ) -> dict[str, float]:
        """Compare every party's predictions with labels: accuracy, or R2 of a regression.

        Parameters
        ----------
        rows : array-like or data frame of shape (n_rows, n_features), or mapping of str to such
            As in `predict`.
        labels : array-like of shape (n_rows,), or mapping of str to such
            The true labels, for all parties or by the names that `rows` has.

        Returns
        -------
        dict of str to float
            By party name; 1 is perfect. LabelError where labels are not one for each row, and
            StepError where the task has none, or several columns of them, as of survival.

        Examples
        --------
        >>> from cobasis import simulate
        >>> table = np.random.default_rng(0).normal(size=(60, 3))
        >>> rows = {name: (table[i::3], table[i::3].sum(1)) for i, name in enumerate("abc")}
        >>> done = simulate(
        ...     rows, rng=np.random.default_rng(0), n_components=3, task="regression")
        >>> {name: round(score, 2) for name, score in done.score(table, table.sum(1)).items()}
        {'a': 1.0, 'b': 1.0, 'c': 1.0}
        """
        found = self.predict(rows)
        if isinstance(rows, Mapping) != isinstance(labels, Mapping) or (
            isinstance(labels, Mapping) and {*labels} != {*found}
        ):
            raise LabelError(
                "rows and labels do not go together: either both are mappings with the same "
                "parties, or neither is one. Give both by party, or one table and its labels."
            )
        truth = labels if isinstance(labels, Mapping) else dict.fromkeys(found, labels)
        scores: dict[str, float] = {}
        for name, predicted in found.items():
            told = encode_labels(truth[name], self.agreement, n_rows=len(predicted), party=name)
            agreed = self.agreement
            if told is None or (agreed.outcome and agreed.outcome.columns):
                raise StepError(f"task='{agreed.task}' has no one label to score by. Call predict.")
            known = decode_labels(cast("Labels", part_of(told)), agreed)
            scores[name] = figure_of(known, predicted, task=self.agreement.task)
        return scores


@dataclass(frozen=True, kw_only=True, repr=False)
class Round(Simulated):
    """Parties and an analyst, all in one process, exchanging the real messages.

    Attributes
    ----------
    agreement : Agreement
        What they agreed on.
    parties : mapping of str to Party
        By name. They joined with the consortium secret, and can draw the anchor (line 2).
    analyst : Analyst
        Without a path to a secret.
    traffic : mapping of str to Traffic
        Bytes up and down, by party name.

    Notes
    -----
    **Who sees what.** This object holds both sides, for simulation and tests alone.
    **Cost.** One pass over everybody's rows, one alignment, one training.

    References
    ----------
    ODC paper, Algorithm 1.
    """

    parties: Mapping[str, Party]
    analyst: Analyst

    def run(
        self,
        rows: Rows,
        *,
        bases: Mapping[str, SecretBasis] | None = None,
        exclude: Iterable[str] = (),
        model: Estimator | None = None,
        allow_row_carrying: bool = False,
    ) -> "Round":
        """Run Algorithm 1: one upload a party, one alignment, one model, one return.

        Parameters
        ----------
        rows : mapping of str to (X, y)
            Every party's rows of shape (n_rows, n_features) and labels.
        bases : mapping of str to SecretBasis, optional
            Kept from an earlier round, or made under a span condition.
        exclude : iterable of str
            Parties that the analyst leaves out by name.
        model : scikit-learn estimator, optional
            Instead of the agreement's family.
        allow_row_carrying : bool
            Accept a model that stores rows; with simulated parties only.

        Returns
        -------
        Round
            Itself, ready to predict.

        Raises
        ------
        CobasisError
            StepError for a second call, which changes nothing; as the steps.
        """
        if any(each.up for each in self.traffic.values()):
            raise StepError(
                "this round has run, or failed behind its uploads, and a party makes one in a "
                "round. Call simulate again, or make a new Round of new parties and analyst."
            )
        kept = dict.fromkeys(rows) if bases is None else bases
        for given in (rows, kept):
            for name in {*given} ^ {*self.parties}:  # whom only one of the two knows
                require_known(name, {*given} & {*self.parties})
        proposes = BASES[self.agreement.basis].exchanges > 1
        consensus = self._agree_on_a_span(rows) if proposes else None
        uploads = [  # at each party; line 2, the anchor, is drawn where a party opens its secret
            party.prepare(*rows[name], consensus=consensus, basis=kept[name])  # lines 3 to 5
            for name, party in self.parties.items()
        ]
        for upload in uploads:
            self.traffic[upload.party].up += upload.n_bytes
            self.analyst.receive(upload)  # line 9
        for name in dict.fromkeys(exclude):
            self.analyst.remove(name)
        # lines 10 to 15: align, train, return
        returns = self.analyst.run(model=model, allow_row_carrying=allow_row_carrying)
        for name, returned in returns.items():
            self.traffic[name].down += returned.n_bytes
            self.parties[name].accept(returned)  # line 18; `predict` is line 19
        return self

    def _told(self) -> tuple[str, list[str]]:
        agreed, notes = self.agreement, ["It has not run yet: call run(rows)."]
        if any(party.finished for party in self.parties.values()):
            aligner = type(self.analyst.alignment.aligner).__name__
            used = f"{agreed.anchor} anchor, basis {agreed.basis}, aligned by {aligner}"
            fitted = next(each.returned.model for each in self.parties.values() if each.finished)
            own = getattr(fitted, "estimator", None)  # the caller's, of which nothing was agreed
            trained = agreed.model if own is None else type(own).__name__
            model = f"model {trained}" if agreed.model else "no model"
            notes = [f"{used}, {model}.", f"Evidence: {self.analyst.certificate.headline}."]
        sizes = f"{agreed.n_features} features as {agreed.n_components} components"
        return f"{len(self.parties)} parties, {sizes}", notes

    def _agree_on_a_span(self, rows: Rows) -> ConsensusSpan:
        proposals = {name: party.propose(rows[name][0]) for name, party in self.parties.items()}
        consensus = self.analyst.consensus(proposals.values())
        for name, proposal in proposals.items():
            self.traffic[name].up += proposal.n_bytes
            self.traffic[name].down += consensus.n_bytes
        return consensus


@dataclass(frozen=True, kw_only=True, repr=False)
class SumsRound(Simulated):
    """Parties that send masked sums, and an analyst that reads their total, all in one process.

    Attributes
    ----------
    agreement, parties, analyst, traffic
        As of a `Round`; each party has its mask key, and the analyst no path to one.
    result : SumsResult
        The model, the map that evidence chose, and the total.

    Notes
    -----
    **Who sees what.** As `Round`. **Cost.** One pass over everybody's rows and one
    eigendecomposition for each map.
    """

    parties: Mapping[str, SumsParty]
    analyst: SumsAnalyst
    result: SumsResult

    def _told(self) -> tuple[str, list[str]]:
        result, terms = self.result, self.analyst.terms
        chosen = f"Model {self.agreement.model} in {len(self.analyst.before) + 1} step(s)."
        if result.found:
            number, one = result.chosen + 1, terms.maps[result.chosen]
            chosen = f"Map {number} of {len(terms.maps)} by evidence: {one!r}."
        return f"masked sums of {len(self.parties)} parties", [chosen, result.aggregate]


def run_sums(rows: Rows, *, agreement: Agreement, keys: Mapping[str, MaskKey]) -> SumsRound:
    """Run an exchange, or as many as steps take: sums from every party, one model back."""
    public = {name: key.public for name, key in keys.items()}
    parties = {
        name: SumsParty(name, agreement=agreement, key=key, keys=public)
        for name, key in keys.items()
    }
    analyst, traffic = SumsAnalyst(agreement, keys=public), defaultdict[str, Traffic](Traffic)
    while True:
        for name, party in parties.items():
            table, labels = rows[name]
            number, told = len(analyst.before) + 1, cast("npt.ArrayLike", labels)
            message = party.prepare(table, told, exchange=number)
            traffic[name].up += message.n_bytes
            analyst.receive(message)
        result = analyst.run()
        for returned in analyst.returns(result.model):
            traffic[returned.party].down += returned.n_bytes
            parties[returned.party].accept(returned)
        if result.model.fit is None or result.model.fit.finished:
            break
        analyst = SumsAnalyst(agreement, keys=public, before=(*analyst.before, analyst.total))
    return SumsRound(
        agreement=agreement, parties=parties, analyst=analyst, result=result, traffic=traffic
    )
