"""What uploads have spent of the guarantee that people were given, and what may still be spent.

A charge stands in the upload history, in one record with the data set that it is about, and is
written before noise is drawn: what was begun is spent, whether it became whole or not. The same
release made again is the same numbers, and costs nothing more.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cobasis.errors import BudgetError
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.dp_terms import epsilon_spent
from cobasis.vault.datasets import Charge, UploadEntry, charge_of, load_datasets
from cobasis.vault.records import Place, Record, Records
from cobasis.vault.spans import Asked

PROPOSED = "proposed"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What was spent on some rows, in all data sets that know one of them."""

    charges: tuple[Charge, ...] = ()  # one of each release
    bare: tuple[str, ...] = ()  # rounds in which something of these rows left without noise
    # digests of those that something of these rows left under
    agreements: frozenset[str] = frozenset()

    def epsilon(self, delta: float) -> float:
        """Return what all releases together spend at a delta; infinity if one had no noise."""
        if self.bare:
            return math.inf
        return epsilon_spent(
            mu=math.hypot(*(each.mu for each in self.charges)),
            labels=sum(each.labels for each in self.charges),
            delta=delta,
        )


class Ledger(Hidden):
    """A vault's account of what was promised to the people behind its rows."""

    def __init__(self, place: Place, *, party: str) -> None:
        self._place, self._records, self._party = place, place.records, party

    def spent(self, asked: Asked) -> Spent:
        """Return what was spent on rows, by every data set that knows one of them."""
        found = load_datasets(self._records)
        known = [each for each in found if each.knows(asked.rows, asked.people).any()]
        lines = [line for each in known for line in each.history]
        bare = [line.round_id for line in lines if line.charge is None]
        bare += _proposed(asked, self._records)
        return Spent(
            charges=_once(lines),
            bare=tuple(dict.fromkeys(bare)),
            agreements=frozenset(line.agreement for line in lines),
        )

    def affordable(self, asked: Asked, agreement: Agreement) -> Spent:
        """Return what was spent on rows, if the round may have more of them."""
        spent = self.spent(asked)
        known = agreement.digest().hex() in spent.agreements
        _refuse(spent, charge_of(agreement, release=""), party=self._party, known=known)
        return spent

    def charge(self, asked: Asked, agreement: Agreement, *, release: str) -> Charge | None:
        """Return what an upload is charged, None without noise; the caller writes it down."""
        made = charge_of(agreement, release)
        _refuse(self.spent(asked), made, party=self._party)
        return made

    def propose(self, asked: Asked, agreement: Agreement) -> None:
        """Write down that directions of rows leave without noise, before they do."""
        with self._place.alone():
            self.affordable(asked, agreement)
            before = self._records.get(PROPOSED) or Record(about={"rounds": []}, arrays={})
            given = {"rows": asked.rows, "people": asked.people}
            arrays = {
                name: np.union1d(before.arrays.get(name, each[:0]), each)
                for name, each in given.items()
            }
            rounds = list(dict.fromkeys([*before.about["rounds"], agreement.round_id]))
            self._records.put(PROPOSED, Record(about={"rounds": rounds}, arrays=arrays))


def _refuse(spent: Spent, charge: Charge | None, *, party: str, known: bool = False) -> None:
    """Refuse an upload that breaks what was promised, or that promises what cannot be kept."""
    if charge is None:
        if spent.charges:
            _refuse_bare(spent, party)
        return
    if spent.bare:
        _refuse_late(spent, party)
    again = any(each.release == charge.release for each in spent.charges)
    if again or known:
        return
    after = Spent(charges=(*spent.charges, charge))
    for promised in after.charges:
        total = after.epsilon(promised.delta)
        if total > promised.lifetime_epsilon:
            _refuse_overspending(total, promised, n_releases=len(after.charges), party=party)


def _proposed(asked: Asked, records: Records) -> list[str]:
    """Return rounds in which directions were proposed, if some of these rows were among them."""
    record = records.get(PROPOSED)
    if record is None:
        return []
    rows, people = record.arrays["rows"], record.arrays["people"]
    seen = np.isin(asked.rows, rows).any() or np.isin(asked.people, people).any()
    return list(record.about["rounds"]) if seen else []


def _once(lines: Iterable[UploadEntry]) -> tuple[Charge, ...]:
    """Return the charges of some uploads, one of each release, in their order."""
    found = [line.charge for line in lines if line.charge is not None]
    return tuple({each.release: each for each in found}.values())


def _refuse_bare(spent: Spent, party: str) -> NoReturn:
    raise BudgetError(
        f"rows of party '{party}' were uploaded with noise under a guarantee before, "
        f"{len(spent.charges)} time(s), and this round has no [dp] section: one upload without "
        "noise would take the guarantee back. Agree on [dp], or leave those rows out."
    )


def _refuse_late(spent: Spent, party: str) -> NoReturn:
    rounds = ", ".join(f"'{each}'" for each in spent.bare)
    raise BudgetError(
        f"something of these rows of party '{party}' was begun to be uploaded without noise, in "
        f"round {rounds}, so no noise can promise anything about them now: epsilon is infinite. "
        "Leave those rows out, or agree on a round without [dp]."
    )


def _refuse_overspending(
    total: float, promised: Charge, *, n_releases: int, party: str
) -> NoReturn:
    raise BudgetError(
        f"this upload of party '{party}' would be release {n_releases} of some of its rows and "
        f"bring what is spent on them to epsilon={total:.4g} at delta={promised.delta:g}; a "
        f"lifetime of {promised.lifetime_epsilon:g} was promised. Nothing has left. Leave those "
        "rows out, or agree on a smaller epsilon."
    )
