"""The price of each defence on a party's own table, while the agreement is still a draft."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Matrix
from cobasis.party_side.audit import budget_of
from cobasis.party_side.rows import picked, public_rows_in
from cobasis.privacy.audit import Budget, Offer, Plan, Setting, plan, sample_size
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.dp_terms import PEOPLE_PER_FAILURE
from cobasis.protocol.secrets import check_public_rows
from cobasis.tables.table import open_table

WHO = "you"
"""What the party is called in messages: nobody has to be enrolled to plan."""

_DELTA = 1e-6


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to compare, where somebody asks for other values than the usual."""

    n_components: tuple[int, ...] = ()
    noise: tuple[float, ...] = ()
    epsilon: tuple[float, ...] = ()


def priced(
    agreement: Agreement,
    table: Path,
    *,
    public: Path | None = None,
    asked: Asked | None = None,
    report: Report = silent,
) -> Plan:
    """Measure what each defence would cost and win; nothing is written, and no key is needed.

    All rows of the table are looked at, also those that a round would hold back: which they are
    follows from a key of the vault, which is not opened here.
    """
    labels = agreement.label or None
    rows = open_table(table, agreement=agreement, party=WHO, labels=labels, report=report)
    n_rows, n_features = rows.shape
    shown = None if public is None else _public(agreement, public)
    if shown is None and agreement.basis == "public":
        check_public_rows(None, agreement, party=WHO)  # says which are missing
    drawn = np.random.default_rng([n_rows, n_features])
    places = np.sort(drawn.permutation(n_rows)[: sample_size(n_rows, n_features)])
    some = picked(rows, places)
    told = rows.labels()
    own = Setting(
        n_components=agreement.n_components, basis=agreement.basis, budget=budget_of(agreement)
    )
    seed = hashlib.sha256(np.ascontiguousarray(some, dtype="<f8").tobytes()).digest()
    return plan(
        some,
        told,
        places=places,
        own=own,
        offer=_offer(asked or Asked(), agreement, shown=shown, n_rows=n_rows),
        task=agreement.task,
        rng=np.random.default_rng(int.from_bytes(seed, "big")),
        classes=agreement.classes,
        public_rows=shown,
    )


def _public(agreement: Agreement, path: Path) -> Matrix | None:
    """Return public rows on the agreed scale; where the agreement names some, exactly those."""
    rows = public_rows_in(path, agreement=agreement, party=WHO)
    if agreement.public_rows_sha256 is None:
        return encode(rows, agreement.features, party=WHO)
    return check_public_rows(rows, agreement, party=WHO)


def _offer(asked: Asked, agreement: Agreement, *, shown: Matrix | None, n_rows: int) -> Offer:
    """Return what to tabulate, and with which ball rows are clipped for a guarantee."""
    usual = Offer()
    agreed = budget_of(agreement)
    budget, ball = agreed, "about the agreed centre" if agreed and agreed.centre else "as agreed"
    if shown is not None:
        least = Budget(
            epsilon=1.0, delta=min(_DELTA, 1 / (PEOPLE_PER_FAILURE * n_rows)), radius=1.0
        )
        budget, ball = _around(shown, agreed or least), "about the mean of the public rows"
    return replace(
        usual,
        n_components=asked.n_components,
        noise=asked.noise or usual.noise,
        epsilon=asked.epsilon or usual.epsilon,
        budget=budget,
        ball=ball,
    )


def _around(rows: Matrix, budget: Budget) -> Budget | None:
    """Return a budget with the ball that half of the public rows lie in; None where all are one."""
    centre = rows.mean(axis=0)
    radius = float(np.median(np.linalg.norm(rows - centre, axis=1)))
    if not radius > 0:
        return None
    return replace(budget, radius=radius, centre=tuple(map(float, centre)))
