"""The round: the papers' Algorithm 1, with the line numbers it has there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy.typing as npt

from cobasis.algorithms.bases import BASES
from cobasis.models.families import Estimator
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.analyst import Analyst
from cobasis.protocol.messages import ConsensusSpan, weight_of
from cobasis.protocol.party import Party
from cobasis.protocol.refusals import require_known
from cobasis.protocol.secrets import SecretBasis

Rows = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike | None]]


@dataclass(kw_only=True)
class Traffic:
    """Bytes of arrays that one party sent and got.

    Attributes
    ----------
    up, down : int
        Bytes.
    """

    up: int = 0
    down: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Round:
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
    **Who sees what.** This object holds both sides and is for simulation and tests; between
    organisations each side runs its own half.

    **Cost.** One pass over everybody's rows, one alignment, one training.

    References
    ----------
    ODC paper, Algorithm 1.
    """

    agreement: Agreement
    parties: Mapping[str, Party]
    analyst: Analyst
    traffic: Mapping[str, Traffic] = field(default_factory=partial(defaultdict, Traffic))

    def __repr__(self) -> str:
        """Name the round and its parties."""
        return f"<Round '{self.agreement.round_id}' of {', '.join(self.parties)}>"

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
            As the steps.

        Notes
        -----
        **Who sees what.** As `Party` and `Analyst` say.

        **Cost.** As the steps.
        """
        kept = dict.fromkeys(rows) if bases is None else bases
        for given in (rows, kept):
            for name in {*given} ^ {*self.parties}:  # whom only one of the two knows
                require_known(name, {*given} & {*self.parties})
        proposes = BASES[self.agreement.basis].exchanges > 1
        consensus = self._agree_on_a_span(rows) if proposes else None
        uploads = [  # lines 1 to 6, at each party
            party.prepare(*rows[name], consensus=consensus, basis=kept[name])  # 3, 4
            for name, party in self.parties.items()
        ]
        for upload in uploads:
            self.traffic[upload.party].up += weight_of(upload)
            self.analyst.receive(upload)  # 5, 9
        returns = self.analyst.run(  # lines 7 to 16, at the analyst
            exclude=exclude, model=model, allow_row_carrying=allow_row_carrying
        )
        for name, returned in returns.items():  # lines 17 to 20, at each party
            self.traffic[name].down += weight_of(returned)
            self.parties[name].accept(returned)  # 18
        return self

    def _agree_on_a_span(self, rows: Rows) -> ConsensusSpan:
        """Make the one small exchange more that a consensus basis takes."""
        proposals = {name: party.propose(rows[name][0]) for name, party in self.parties.items()}
        consensus = self.analyst.consensus(proposals.values())
        for name, proposal in proposals.items():
            self.traffic[name].up += weight_of(proposal)
            self.traffic[name].down += weight_of(consensus)
        return consensus
