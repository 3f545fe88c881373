"""Secret bases: the table that the agreement enforces, and what some of them are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from cobasis.algorithms import AnchorKind, BasisName, SpanCondition
from cobasis.errors import AgreementError, DimensionError, OptionError
from cobasis.linalg.arrays import Blocks, Matrix, WholeTable
from cobasis.linalg.directions import in_one_sense, leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.linalg.threads import one_blas_thread


@dataclass(frozen=True, kw_only=True)
class BasisRule:
    span: str
    exchanges: int = 1  # of two, the first proposes directions, and the span comes back
    under_dp: bool = False  # whether the span is fixed before the rows are seen
    anchor: AnchorKind | None = None  # the only one that it works with, if any
    min_parties: int = 1  # the fewest among whom it protects anybody
    centred: bool = False  # whether it is of rows about their own mean
    weighted: bool = False  # whether proposed directions count by their singular values


_CONSENSUS = BasisRule(
    span="common, from everybody's directions", exchanges=2, anchor="isometric", min_parties=3
)
BASES: dict[BasisName, BasisRule] = {
    "svd": BasisRule(span="own"),
    "pca": BasisRule(span="own, agreed centre", centred=True),
    "lpp": BasisRule(span="own, agreed centre; orthonormalised", centred=True),
    "haar": BasisRule(span="from the consortium secret", under_dp=True),
    "public": BasisRule(span="agreed public rows", under_dp=True),
    "consensus": _CONSENSUS,
    "weighted_consensus": replace(
        _CONSENSUS, span="common, from everybody's directions by their energy", weighted=True
    ),
}


def check_basis_rule(basis: BasisName, *, anchor: AnchorKind, n_parties: int) -> None:
    rule = BASES[basis]
    if rule.anchor is not None and anchor != rule.anchor:
        raise AgreementError(
            f"basis='{basis}' with anchor='{anchor}' is forbidden: each party takes its basis as "
            f"A' Z, which is orthonormal only if A' A = I. Use anchor='{rule.anchor}'."
        )
    if n_parties < rule.min_parties:
        raise AgreementError(
            f"basis='{basis}' with {n_parties} of at least {rule.min_parties} parties is "
            "forbidden: between two, the common span is the bisector, and each computes the "
            "other's span from it. Find a third party, or use basis='public' or 'svd'."
        )


def require_components(directions: Matrix, *, n_components: int, n_rows: int, party: str) -> None:
    """Refuse a party whose rows have fewer real directions than there are components."""
    if directions.shape[1] < n_components:
        reason = f"{n_rows} row(s)" if n_rows < n_components else "too few independent rows"
        raise DimensionError(
            f"party '{party}' has {reason} for n_components={n_components}: the rest of its basis "
            "would be arbitrary directions. Agree on fewer components, on no column that never "
            "varies, or on a basis that all share (basis='public', 'haar' or 'consensus')."
        )


def bases_under(
    condition: SpanCondition,
    rows: Mapping[str, Matrix],
    *,
    n_components: int,
    streams: Mapping[str, KeyStream],
) -> dict[str, Matrix]:
    """Make every party's basis under one of the four conditions of the ODC paper's eq. (92)."""
    first, size = next(iter(rows)), n_components
    spans: dict[str, Matrix] = {}
    bases: dict[str, Matrix] = {}
    for party, stream in streams.items():
        source = first if condition.startswith("samespan") else party
        if source not in spans:
            found = leading_directions(rows[source], n_wanted=size).directions
            require_components(found, n_components=size, n_rows=len(rows[source]), party=source)
            spans[source] = found
        if condition.endswith("_orth"):
            factor = haar_columns(stream, n_rows=size, n_columns=size)
        else:
            factor = stream.uniform((size, size))
        bases[party] = spans[source] @ factor
    return bases


# ---------------------------------------------------------------- locality preserving projections

NEIGHBOURS = 5  # rows that each row is joined with, and more where several are as near as the last
ENERGY = 0.98  # of the rows about their mean, in the principal directions that are looked at
WIDER = 2  # principal directions that are looked at, at most, in multiples of n_components
LARGEST_GRAPH = 20_000  # rows above which comparing each with all others would take minutes
DISTANCES = 2**22  # how many are held at a time
TIED = 1e-12  # squared distances that differ by less than this, against the longest row, are one


def local_directions(rows: Matrix | Blocks, *, n_components: int, party: str) -> Matrix:
    """Return the directions along which a party's neighbouring rows differ least.

    X. He and P. Niyogi, Locality preserving projections, NIPS 2003.
    """
    table = _in_memory(rows, party)
    n_rows, n_features = table.shape
    wanted = min(WIDER * n_components, n_features, n_rows - 1)
    # The eigenproblem P'(D - W)P b = v P'D P b is singular for wide tables. So rows are first
    # brought to the principal directions that keep 98 % of their energy, from l to 2 l of them.
    axes = leading_directions(table, n_wanted=wanted, centred=True).directions
    if axes.shape[1] <= n_components:  # the caller refuses too few directions
        return axes
    with one_blas_thread():
        centred = table - table.mean(axis=0)
        scores = centred @ axes
        kept = np.cumsum(np.sum(scores**2, axis=0)) / np.sum(centred**2)
        count = max(n_components, int(np.searchsorted(kept, ENERGY)) + 1)
        axes, scores = axes[:, :count], scores[:, :count]
        sizes = np.linalg.norm(scores, axis=0)
        near, degrees = _graph(scores, scores / sizes)
        turn = eigh(degrees - near, degrees, subset_by_index=[0, n_components - 1])[1]
        return in_one_sense(np.linalg.qr(axes @ (turn / sizes[:, None]))[0])


def _in_memory(rows: Matrix | Blocks, party: str) -> Matrix:
    if isinstance(rows, Blocks) and not isinstance(rows, WholeTable):
        raise OptionError(
            f"basis='lpp' of party '{party}' compares every row with all others, so it takes no "
            "table that is read in blocks. Agree on basis='svd' or 'pca', or, in Python, "
            "give the rows as an array."
        )
    if rows.shape[0] > LARGEST_GRAPH:
        raise OptionError(
            f"party '{party}' has {rows.shape[0]} rows, and basis='lpp' compares every row with "
            f"all others: {LARGEST_GRAPH} rows are its limit. Agree on basis='svd' or 'pca'."
        )
    return rows.table if isinstance(rows, WholeTable) else rows


def _graph(scores: Matrix, columns: Matrix) -> tuple[Matrix, Matrix]:
    """Return P'WP and P'DP for the neighbourhood graph W of `scores` and P = `columns`."""
    # W is the mean of "j is near i" and "i is near j": weight 1, or one half where only one of two
    # rows names the other. Neither it nor the distances are ever held whole.
    n_rows = len(scores)
    squares = np.sum(scores**2, axis=1)
    slack = TIED * float(squares.max())
    joined = np.zeros((columns.shape[1], columns.shape[1]))
    degrees = np.zeros(n_rows)
    count = min(NEIGHBOURS, n_rows - 1)
    step = max(1, DISTANCES // n_rows)
    for start in range(0, n_rows, step):
        part = slice(start, min(start + step, n_rows))
        apart = squares[part, None] + squares - 2 * scores[part] @ scores.T
        np.fill_diagonal(apart[:, part], np.inf)
        last = np.partition(apart, count - 1, axis=1)[:, count - 1]
        near = (apart <= last[:, None] + slack).astype(np.float64)
        joined += columns[part].T @ (near @ columns)
        degrees[part] += near.sum(axis=1) / 2
        degrees += near.sum(axis=0) / 2
    return (joined + joined.T) / 2, (columns * degrees[:, None]).T @ columns
