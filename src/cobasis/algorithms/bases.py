"""Secret bases: one set of names, and the table that the agreement enforces."""

from dataclasses import dataclass
from typing import Literal

from cobasis.algorithms.anchors import AnchorKind
from cobasis.errors import AgreementError, DimensionError, OptionError, OrthonormalityError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks, WholeTable
from cobasis.linalg.leading import Leading, leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.linalg.spans import (
    ORTHONORMAL,
    complete_orthonormal,
    orthonormality_defect,
)

BasisName = Literal["svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"]


@dataclass(frozen=True, kw_only=True)
class BasisRule:
    """One row of the table of bases.

    Attributes
    ----------
    span : str
        Whose directions the basis spans, in words.
    exchanges : int
        How many times files go back and forth before training.
    needs : str
        In words.
    under_dp : bool
        Whether the span is fixed before the rows are seen.
    anchor : str or None
        The one anchor it works with, if there is only one.
    min_parties : int
        The fewest parties it protects anybody among.
    weighted : bool
        Whether a party's directions count by their singular values, where it proposes them.
    """

    span: str
    exchanges: int
    needs: str
    under_dp: bool
    anchor: AnchorKind | None = None
    min_parties: int = 1
    weighted: bool = False

    @property
    def proposes(self) -> bool:
        """Whether parties propose directions first, and take the span that comes back."""
        return self.exchanges > 1


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
    """Refuse a combination of basis, anchor and number of parties that the table forbids.

    Parameters
    ----------
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        The basis.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor.
    n_parties : int
        c.

    Raises
    ------
    OptionError
        No such basis.
    AgreementError
        The table forbids the combination.

    Notes
    -----
    **Who sees what.** Public words of the agreement.

    **Cost.** None.
    """
    if basis not in BASES:
        msg = f"basis '{basis}' does not exist. Choose one of {', '.join(BASES)}."
        raise OptionError(msg)
    rule = BASES[basis]
    if rule.anchor is not None and anchor != rule.anchor:
        msg = (
            f"basis='{basis}' with anchor='{anchor}' is forbidden: each party takes its basis as "
            f"A' Z, which is orthonormal only if A' A = I. Use anchor='{rule.anchor}'."
        )
        raise AgreementError(msg)
    if n_parties < rule.min_parties:
        msg = (
            f"basis='{basis}' with {n_parties} of at least {rule.min_parties} parties is "
            "forbidden: between two, the common span is the bisector, and each computes the "
            "other's span from it. Find a third party, or use basis='public' or 'svd'."
        )
        raise AgreementError(msg)


def own_directions(
    rows: Matrix | Blocks, *, n_components: int, party: str, centred: bool
) -> Leading:
    """Return the top right singular vectors of a party's rows: V_i of eq. (5), and values S_i.

    Parameters
    ----------
    rows : ndarray or Blocks of shape (n_rows, n_features)
        The party's rows, scaled and centred by the agreement's constants.
    n_components : int
        l.
    party : str
        For the message.
    centred : bool
        Take directions about the party's own mean (``pca``). Rows are still projected
        about the agreed centre, so no offset arises.

    Returns
    -------
    Leading
        ``k = min(n_components, rank)`` real directions, of shape (n_features, k), and their
        singular values; never LAPACK's null-space filling.

    Raises
    ------
    DimensionError
        n_components is above the number of features.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** That of `cobasis.linalg.leading.leading_directions`: for tall tables one pass of
    ``n_i m^2`` operations.

    References
    ----------
    ODC paper, eq. (5).
    """
    blocks = rows if isinstance(rows, Blocks) else WholeTable(rows)
    n_features = blocks.shape[1]
    if n_components > n_features:
        msg = (
            f"n_components={n_components} is above the {n_features} features of party '{party}', "
            f"so no basis has that many columns. Use n_components={n_features} or less."
        )
        raise DimensionError(msg)
    return leading_directions(blocks, n_wanted=n_components, centred=centred)


def require_components(directions: Matrix, *, n_components: int, n_rows: int, party: str) -> None:
    """Refuse a party whose rows have fewer real directions than there are components.

    Parameters
    ----------
    directions : ndarray of shape (n_features, k)
        The party's real directions.
    n_components, n_rows : int
        l, and the number of the party's rows.
    party : str
        For the message.

    Raises
    ------
    DimensionError
        ``k < n_components``.

    Notes
    -----
    **Who sees what.** A local error: it shows the party's number of rows, not their rank.

    **Cost.** None.
    """
    if directions.shape[1] < n_components:
        reason = f"{n_rows} rows" if n_rows < n_components else "too few independent rows"
        msg = (
            f"party '{party}' has {reason} for n_components={n_components}: the rest of its basis "
            "would be arbitrary directions. Agree on fewer components, or on a basis that all "
            "share (basis='public', 'haar' or 'consensus')."
        )
        raise DimensionError(msg)


def filled(directions: Matrix, stream: KeyStream, *, n_components: int) -> Matrix:
    """Complete directions with Haar columns from a party's own stream; simulation only.

    Parameters
    ----------
    directions : ndarray of shape (n_features, k)
        Orthonormal, ``k <= n_components``.
    stream : KeyStream
        The party's.
    n_components : int
        l.

    Returns
    -------
    ndarray of shape (n_features, n_components)
        `directions` first, unchanged.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** One QR factorisation.
    """
    missing = n_components - directions.shape[1]
    if not missing:
        return directions
    extra = haar_columns(stream, n_rows=directions.shape[0], n_columns=missing)
    return complete_orthonormal(directions, extra)


def require_orthonormal(basis: Matrix, *, party: str) -> Matrix:
    """Return `basis` if its columns are orthonormal to 1e-10.

    Parameters
    ----------
    basis : ndarray of shape (n_features, n_components)
        F_i.
    party : str
        For the message.

    Returns
    -------
    ndarray of shape (n_features, n_components)
        `basis` itself.

    Raises
    ------
    OrthonormalityError
        ``max |F' F - I|`` is above 1e-10.

    Notes
    -----
    **Who sees what.** The party alone; the message shows no entry of F.

    **Cost.** One product of ``2 m l^2`` operations.
    """
    defect = orthonormality_defect(basis)
    if defect > ORTHONORMAL:
        msg = (
            f"the basis of party '{party}' is not orthonormal (F'F differs from I by more than "
            f"{ORTHONORMAL:.0e}): orthogonal alignment would distort its rows. Orthonormalise it: "
            "take the Q of a QR factorisation."
        )
        raise OrthonormalityError(msg)
    return basis
