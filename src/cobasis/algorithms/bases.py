"""Secret bases: one set of names, and the table that the agreement enforces."""

from dataclasses import dataclass

from cobasis.algorithms import AnchorKind, BasisName
from cobasis.errors import AgreementError, DimensionError, OptionError
from cobasis.linalg.arrays import Matrix, complete_orthonormal
from cobasis.linalg.rng import KeyStream, haar_columns


@dataclass(frozen=True, kw_only=True)
class BasisRule:
    """One row of the table of bases."""

    span: str
    exchanges: int  # of two, the first proposes directions, and the span comes back
    needs: str
    under_dp: bool  # whether the span is fixed before the rows are seen
    anchor: AnchorKind | None = None  # the only one that it works with, if any
    min_parties: int = 1  # the fewest among whom it protects anybody
    weighted: bool = False  # whether proposed directions count by their singular values


BASES: dict[BasisName, BasisRule] = {
    "svd": BasisRule(span="own", exchanges=1, needs="n_i >= l", under_dp=False),
    "pca": BasisRule(span="own, agreed centre", exchanges=1, needs="n_i > l", under_dp=False),
    "lpp": BasisRule(
        span="own, agreed centre; orthonormalised", exchanges=1, needs="n_i > l", under_dp=False
    ),
    "haar": BasisRule(span="from the consortium secret", exchanges=1, needs="", under_dp=True),
    "public": BasisRule(
        span="agreed public rows", exchanges=1, needs="public rows at every party", under_dp=True
    ),
    "consensus": BasisRule(
        span="common, from everybody's directions",
        exchanges=2,
        needs="isometric anchor, c >= 3",
        under_dp=False,
        anchor="isometric",
        min_parties=3,
    ),
    "weighted_consensus": BasisRule(
        span="common, from everybody's directions by their energy",
        exchanges=2,
        needs="isometric anchor, c >= 3",
        under_dp=False,
        anchor="isometric",
        min_parties=3,
        weighted=True,
    ),
}


def check_basis_rule(basis: BasisName, *, anchor: AnchorKind, n_parties: int) -> None:
    """Refuse a combination of basis, anchor and number of parties that the table forbids."""
    if basis not in BASES:
        raise OptionError(f"basis '{basis}' does not exist. Choose one of {', '.join(BASES)}.")
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
        reason = f"{n_rows} rows" if n_rows < n_components else "too few independent rows"
        raise DimensionError(
            f"party '{party}' has {reason} for n_components={n_components}: the rest of its basis "
            "would be arbitrary directions. Agree on fewer components, or on a basis that all "
            "share (basis='public', 'haar' or 'consensus')."
        )


def filled(directions: Matrix, stream: KeyStream, *, n_components: int) -> Matrix:
    """Complete directions with Haar columns from a party's own stream; simulation only."""
    missing = n_components - directions.shape[1]
    if not missing:
        return directions
    extra = haar_columns(stream, n_rows=directions.shape[0], n_columns=missing)
    return complete_orthonormal(directions, extra)
