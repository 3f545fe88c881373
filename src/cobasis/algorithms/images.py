"""Anchor images by party name: read when they are asked for, in batches, and checked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrcon, dtrtri

from cobasis.algorithms.readable import named
from cobasis.errors import AnchorImageError, ConditionError, ShapeError, UnknownPartyError
from cobasis.linalg.arrays import Matrix, as_matrix, as_table, numerical_rank

Value = TypeVar("Value")

Images = Mapping[str, Matrix]
"""The A_i by party name. May be lazy: read when asked, once a pass, and not kept."""

MAX_CONDITION = 1e10  # above this an inverse keeps fewer than six digits

_WELL = 1e-5
"""Reciprocal condition number down to which A'A tells a third of all digits."""

_AT_ONCE = 1e-2
"""The same, down to which one step by A'A is exact to 1e-11."""

BATCH_BYTES = 2**22
"""Read per batch, where a larger image is a batch of its own: enough for stacking to pay, few
enough that threads end together."""


class View(Mapping[str, Value]):
    """A read-only mapping over known names, whose entries a function reads when asked for one."""

    def __init__(self, names: Collection[str], *, read: Callable[[str], Value]) -> None:
        self._names, self._read = names, read

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def batches(
    images: Images, parties: Iterable[str] | None = None, *, n_rows: int | None = None
) -> Iterator[dict[str, Matrix]]:
    """Read images party by party and hand them on a few megabytes of one shape at a time."""
    batch: dict[str, Matrix] = {}
    for party in images if parties is None else parties:
        table = _as_image(party, images[party], n_rows=n_rows)
        n_rows = table.shape[0]
        first = next(iter(batch.values()), table)
        full = (len(batch) + 1) * table.nbytes > BATCH_BYTES
        if batch and (full or first.shape != table.shape):
            yield batch
            batch = {}
        batch[party] = table
    if batch:
        yield batch


def check_image(party: str, image: Matrix, *, n_rows: int | None = None) -> Matrix:
    """Check one anchor image: finite, of full column rank, well enough conditioned."""
    table = _as_image(party, image, n_rows=n_rows)
    factored(party, table)
    return table


def _as_image(party: str, image: Matrix, *, n_rows: int | None) -> Matrix:
    """Check type and shape of one image, and nothing that takes a pass over it."""
    table = as_table(image, name=f"the anchor image of party '{party}'")
    rows, columns = table.shape
    expected = rows if n_rows is None else n_rows
    if rows != expected or rows < columns:
        raise ShapeError(
            f"the anchor image of party '{party}' has shape {table.shape}; the round's anchor has "
            f"{expected} rows, and an image needs at least as many rows as columns. "
            "Send A F_i itself: anchor rows down, components across."
        )
    return table


def factored(party: str, image: Matrix) -> tuple[Matrix, Matrix, float]:
    """Return Q, R and the reciprocal condition number of an image, or say why it is of no use.

    Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, "Roundoff error analysis of the CholeskyQR2
    algorithm", Electron. Trans. Numer. Anal. 44 (2015).
    """
    # By A'A, since a product is several times as fast as reflections. It squares the condition
    # number k: R is off by about 2e-16 k^2, and so is Q'Q - I. Q itself is well conditioned, and a
    # second factorisation takes out what the first left.
    with np.errstate(over="ignore", invalid="ignore"):
        gram = image.T @ image
    # LAPACK may not return from NaN
    triangle, failed = dpotrf(gram) if np.isfinite(np.trace(gram)) else (gram, 1)
    determination = 0.0 if failed else float(dtrcon(triangle)[0])
    if determination <= _WELL:
        return _by_reflections(party, image)
    orthonormal = image @ dtrtri(triangle)[0]
    if determination < _AT_ONCE:
        again = dpotrf(orthonormal.T @ orthonormal)[0]
        orthonormal, triangle = orthonormal @ dtrtri(again)[0], again @ triangle
    return orthonormal, triangle, determination


def _by_reflections(party: str, image: Matrix) -> tuple[Matrix, Matrix, float]:
    table = as_matrix(image, name=f"the anchor image of party '{party}'")
    columns = table.shape[1]
    if not table.any():
        raise AnchorImageError(
            f"the anchor image of party '{party}' is zero, so it shows no basis at all. "
            "Ask the party to prepare its upload again."
        )
    orthonormal, triangle = np.linalg.qr(table)
    values = np.linalg.svd(triangle, compute_uv=False)
    rank = numerical_rank(values, table.shape)
    if rank < columns:
        raise AnchorImageError(
            f"the anchor image of party '{party}' has rank {rank} of {columns} components, so "
            f"{columns - rank} direction(s) of its basis cannot be aligned. Use an anchor with at "
            f"least {columns} independent rows, or n_components={rank} at every party."
        )
    condition = float(values[0] / values[-1])
    if condition > MAX_CONDITION:
        raise ConditionError(
            f"the anchor image of party '{party}' has condition number {condition:.1e}, above "
            f"{MAX_CONDITION:.0e}: its inverse would keep no usable digits. Ask the party for an "
            "orthonormal basis."
        )
    return orthonormal, triangle, 1 / condition


def reference_of(images: Images, reference: str | None) -> tuple[str, Matrix]:
    """Return name and checked image of the reference: the one named, else the first."""
    name = next(iter(images)) if reference is None else reference
    if name not in images:
        raise UnknownPartyError(
            f"reference '{name}' is not among the parties ({named([*images])}), so there "
            "is no image to align to. Name one of them, or leave reference out."
        )
    return name, check_image(name, images[name])
