"""Epsilon-DR as the papers mean it: how far records stay from what a colluding partner rebuilds."""

from collections.abc import Sequence

import numpy as np

from cobasis.errors import ConsensusError
from cobasis.privacy.audit.report import Distance
from cobasis.privacy.audit.settings import Setting
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.reconstruction import Lost, lost
from cobasis.privacy.reconstruction import swept as lost_over

THIS = "this upload"

_ROWS = 800
"""So many people are enough to compare bases."""


def distances(
    subject: Subject, *, sizes: Sequence[int], rng: np.random.Generator
) -> tuple[Distance, ...]:
    """Measure ``|x - x F F'|`` of the upload, and over l for each kind of basis.

    It is an average over people, and relative to an attacker who knows nothing else: the papers'
    figure, and the weakest of this report.
    """
    own = _share(THIS, subject.n_components, lost(subject.rows, subject.basis))
    some = subject.some(_ROWS, seed=int(rng.integers(2**32))).rows
    try:
        found = lost_over(some, sizes=sizes, rng=rng, public_rows=subject.public_rows)
    except ConsensusError:  # of rows that are nearly all alike
        return (own,)
    others = [
        _share(kind, size, each)
        for kind, by_size in found.items()
        for size, each in by_size.items()
    ]
    return (own, *others)


def swept(subject: Subject, settings: Sequence[Setting]) -> tuple[int, ...]:
    """Return the numbers of components to sweep: a quarter to twice the own, and those asked."""
    own, most = subject.n_components, subject.rows.shape[1]
    sizes = {own // 4, own // 2, own, 2 * own, *(each.n_components for each in settings)}
    return tuple(sorted(each for each in sizes if 0 < each <= most))


def _share(kind: str, size: int, found: Lost) -> Distance:
    """Return distances as shares of that to the average person."""
    whole = found.average_person or 1.0
    return Distance(
        basis=kind, n_components=size, mean=found.mean / whole, worst=found.worst / whole
    )
