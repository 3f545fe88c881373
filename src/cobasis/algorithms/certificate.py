"""The certificate of an alignment: exact facts, and evidence that accuses nobody.

*Facts* stop a run (``protocol.refusals``): a fit that leaves a direction undetermined, rows or
images on another scale than everybody else's, a change of basis that is not the fit it should be.

*Evidence* stops nothing. Two parties' second moments, seen through the anchor, are correlated; of
a party that was turned at random nobody's are, and how far chance goes is known in closed form.
Spans cannot tell a wrong column order from unlike patients, so that evidence never says more.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Literal

import numpy as np

from cobasis.algorithms import AnchorKind, BasisName
from cobasis.algorithms.base import Alignment
from cobasis.algorithms.bases import BASES
from cobasis.algorithms.fits import FitKind
from cobasis.algorithms.images import Images, batches, factored
from cobasis.algorithms.readable import MOST_ROWS, Readable, Table
from cobasis.errors import FitCheckError, NotFiniteError
from cobasis.linalg.arrays import Matrix, orthonormality_defect
from cobasis.linalg.threads import in_order, one_blas_thread

Evidence = Literal["not a random turn", "cannot tell"]

CAVEAT = "a wrong column order usually passes too"  # what follows evidence wherever people read it
PEERS = 15  # above so many parties, everybody is compared with this many

SPREADS = 3.0
"""Beyond so many standard deviations of chance a correlation is none of chance: a 2 % tail."""

FIT_TOLERANCE = 1e-10  # by how much a fit may miss its property, relative to what is multiplied

_SLACK = 100.0
"""How many times ``||A|| ||G||`` may exceed ``||A G||``, as it does of an oblique basis, before
rounding, which follows the former, would use up what the tolerance leaves it."""

_LEAST_DIMENSION = 5  # in fewer dimensions chance alone goes nearly as far as a correlation can

_ROUND_MOMENTS = 1e-6
"""Moments whose traceless part is a smaller share than this have no directions to compare."""


def row_moments(blocks: Iterable[Matrix], *, party: str) -> Matrix:
    """Return ``X' X / n`` of a party's rows as they were sent; NotFiniteError where it is none."""
    n_rows, total = 0, np.zeros((1, 1))
    for block in blocks:
        table = block.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + table.T @ table
        n_rows += len(table)
    if not np.isfinite(total).all():
        raise NotFiniteError(
            f"the rows of party '{party}' contain NaN, infinity or numbers that are too large to "
            "be squared, so nothing can be trained on them. Ask the party to prepare its upload "
            "again."
        )
    return total / max(n_rows, 1)


@dataclass(frozen=True, kw_only=True)
class PartyFigures:
    """What the certificate says of one party; scales are relative to the median party's."""

    # between the spans of its image and of the target; near 0 the fit leaves a direction open
    smallest_cosine: float
    fit_error: float  # by how much G_i misses being the fit it should be; rounding at most
    scale: float  # root mean square of X_i F_i over that of A_i
    # root mean square of A_i: orthonormal bases leave one anchor its size, so a party far from 1
    # has scaled its image, and `scale` does not see that
    image_scale: float
    residual: float  # ||A_i G_i - Z||_F / ||Z||_F: large where patients are unlike, too
    correlation: float | None  # the median of r_ij over its peers; None where it is not defined
    evidence: Evidence  # what `correlation` says


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Readable):
    r"""Exact facts of an alignment, and evidence, by party; it accuses nobody.

    Attributes
    ----------
    parties : mapping of str to PartyFigures
        By party name.
    chance : float or None
        Standard deviation of the correlations of a basis that was turned at random. None where
        they are not defined: without an isometric anchor, and in up to four dimensions.

    Notes
    -----
    The evidence of parties i and j is the correlation of their traceless second moments in the
    anchor's frame, with :math:`K = A_i' A_j` and :math:`S_i = \tilde X_i' \tilde X_i / n_i`

    .. math:: r_{ij} = \frac{\mathrm{tr}(S_i K S_j K') - \mathrm{tr} S_i\, \mathrm{tr} S_j / m}
       {\sqrt{(\mathrm{tr} S_i^2 - (\mathrm{tr} S_i)^2 / m)(\mathrm{tr} S_j^2
       - (\mathrm{tr} S_j)^2 / m)}}

    which for a basis turned at random has mean 0 and standard deviation
    :math:`\sqrt{2 / ((m - 1)(m + 2))}`. Where all bases have one span, l stands for m.

    **Who sees what.** The analyst, who makes it of uploads; a return tells its party the evidence.

    **Cost.** A few numbers a party.
    """

    parties: Mapping[str, PartyFigures]
    chance: float | None

    @property
    def headline(self) -> str:
        """How many parties the evidence says something of, in one sentence."""
        told = sum(each.evidence == "not a random turn" for each in self.parties.values())
        count = len(self.parties)
        return f"{told} of {count} parties not a random turn, {count - told} cannot tell; {CAVEAT}"

    def table(self) -> Table:
        note = (
            "No correlation is defined here: that takes an isometric anchor, 5 dimensions, and "
            "two parties that hold every column."
        )
        if self.chance is not None:
            note = (
                f"Chance spreads correlations by {self.chance:.2g}; beyond {SPREADS:g} times that "
                "a basis is not a random turn. Residuals are large where patients are unlike, too; "
                "scale 1 is the median party's."
            )
        return Table(
            title=f"Certificate: {self.headline}.",
            header=("party", "residual", "scale", "cosine", "correlation", "evidence"),
            rows=[
                (
                    name,
                    f"{each.residual:.4f}",
                    f"{each.scale:.2f}",
                    f"{each.smallest_cosine:.3f}",
                    "-" if each.correlation is None else f"{each.correlation:.2f}",
                    each.evidence,
                )
                for name, each in islice(self.parties.items(), MOST_ROWS)
            ],
            n_rows=len(self.parties),
            notes=(note,),
        )


def certify(
    images: Images,
    alignment: Alignment,
    *,
    moments: Mapping[str, Matrix],
    order: Sequence[str],
    anchor: AnchorKind,
    basis: BasisName,
    n_features: int,
) -> Certificate:
    """State the facts of an alignment, and the evidence; read each image once, and peers' twice.

    Evidence is of parties in `order`, beside each other: those that hold every column.
    """
    # Spans of their own lie in all m dimensions. A common span leaves l of them, and of the chance
    # of so few, or of moments through an anchor that is no isometry, nothing is known.
    size = n_features if BASES[basis].span.startswith("own") else alignment.target.rows.shape[1]
    dimension = size if anchor == "isometric" and size >= _LEAST_DIMENSION else None
    peers: dict[str, _Moments] = {}
    with one_blas_thread():
        if dimension is not None:
            names = [name for name in order if name in images]
            few = min(PEERS, len(names))  # evenly spaced of many
            for batch in batches(images, (names[n * len(names) // few] for n in range(few))):
                for name, image in batch.items():
                    peers[name] = _Moments.of(image, moments[name], dimension=dimension)
        look = partial(
            _look,
            alignment=alignment,
            axes=np.linalg.qr(alignment.target.rows)[0],
            moments=moments,
            peers=peers,
            order=frozenset(order),
            dimension=dimension,
            centred=anchor not in {"isometric", "gaussian"},
        )
        seen: dict[str, PartyFigures] = {}
        for part in in_order(look, batches(images)):
            seen.update(part)
    scale, image_scale = (
        float(np.median([getattr(each, name) for each in seen.values()])) or 1.0
        for name in ("scale", "image_scale")
    )
    parties = {
        name: replace(each, scale=each.scale / scale, image_scale=each.image_scale / image_scale)
        for name, each in seen.items()
    }
    return Certificate(parties=parties, chance=None if dimension is None else _chance(dimension))


def _chance(dimension: int) -> float:
    """Return how far correlations of random turns spread."""
    return float(np.sqrt(2 / ((dimension - 1) * (dimension + 2))))


@dataclass(frozen=True, kw_only=True)
class _Moments:
    """A party's second moments in the anchor's frame, as ``B B'`` of trace 1."""

    # With B = A_i S_i^(1/2) / sqrt(tr) all that a correlation takes are sums of squares of
    # B_i' B_j: one product a pair, and what is subtracted is always 1 / m. Images that are not
    # orthonormal to the last digit (half precision) cannot carry a correlation above 1 either.

    rows: Matrix
    factor: Matrix
    traceless: float
    dimension: int

    @classmethod
    def of(cls, image: Matrix, rows: Matrix, *, dimension: int) -> "_Moments":
        values, vectors = np.linalg.eigh(rows)
        factor = image.astype(np.float64, copy=False) @ (vectors * np.sqrt(np.maximum(values, 0)))
        factor /= np.linalg.norm(factor) or 1.0
        # Moments that are nearly a multiple of I have no direction of their own: what is left of
        # them is rounding, and would correlate with anything.
        square = float(np.sum((factor.T @ factor) ** 2))
        left = square - 1 / dimension
        traceless = left if left > _ROUND_MOMENTS**2 * square else 0.0
        return cls(rows=rows, factor=factor, traceless=traceless, dimension=dimension)

    def correlation(self, others: Iterable["_Moments"]) -> float | None:
        """Return the median r_ij; None where nobody has a traceless part to compare."""
        found = []
        for other in others:
            norms = self.traceless * other.traceless
            if norms:
                together = float(np.sum((self.factor.T @ other.factor) ** 2))
                found.append((together - 1 / self.dimension) / float(np.sqrt(norms)))
        return float(np.median(found)) if found else None


def _look(
    batch: Images,
    *,
    alignment: Alignment,
    axes: Matrix,
    moments: Mapping[str, Matrix],
    peers: Mapping[str, _Moments],
    order: Container[str],
    dimension: int | None,
    centred: bool,
) -> dict[str, PartyFigures]:
    """Look at a batch of images once; scales are not relative yet."""
    target, kind = alignment.target.rows, alignment.aligner.fit_kind
    found: dict[str, PartyFigures] = {}
    for name, image in batch.items():
        compared = image - image.mean(axis=0) if centred else image
        size = float(np.sqrt(np.mean(compared**2)))
        change = alignment.fits[name].change_of_basis
        cosines = np.linalg.svd(axes.T @ factored(name, image)[0], compute_uv=False)
        error = fit_error(image, change, target=target, kind=kind)
        missed = np.linalg.norm(image @ change - target) if error < np.inf else np.inf
        mine, correlation = peers.get(name), None
        rows = moments[name] if mine is None else mine.rows
        evidence: Evidence = "cannot tell"
        if dimension is not None and name in order:
            mine = mine or _Moments.of(image, rows, dimension=dimension)
            correlation = mine.correlation(each for peer, each in peers.items() if peer != name)
            if correlation is not None and correlation > SPREADS * _chance(dimension):
                evidence = "not a random turn"
        found[name] = PartyFigures(
            smallest_cosine=min(1.0, float(cosines[-1])),
            fit_error=error,
            scale=float(np.sqrt(np.trace(rows) / len(rows))) / size,
            image_scale=size,
            residual=float(missed / np.linalg.norm(target)),
            correlation=correlation,
            evidence=evidence,
        )
    return found


def fit_error(image: Matrix, change: Matrix, *, target: Matrix, kind: FitKind) -> float:
    """Return by how much a change of basis misses what the right one fulfils."""
    # Two computers never agree on a singular value decomposition to the last bit. What they agree
    # on, to rounding, is the property that makes a fit the right one. A rotation is that exactly
    # where G'G = I and G'(A'Z) is symmetric without a negative eigenvalue; a whitened one where
    # that holds of the orthonormalised image; least squares where what is left over is orthogonal
    # to the image. Of an oblique image a product as large as ||A|| ||G|| is rounded, hence _SLACK.
    table, goal = image.astype(np.float64, copy=False), target.astype(np.float64, copy=False)
    if change.shape != (table.shape[1], goal.shape[1]) or not np.isfinite(change).all():
        return float("inf")
    if kind == "least squares":
        fitted = table @ change
        grown = np.linalg.norm(table) * np.linalg.norm(change) / np.sqrt(len(change))
        size = np.linalg.norm(table) * (np.linalg.norm(fitted) + np.linalg.norm(goal))
        left = np.linalg.norm(table.T @ (fitted - goal))
        rounding = max(1.0, float(grown / (np.linalg.norm(fitted) or 1.0)) / _SLACK)
        return float(left / size) / rounding if size else float("inf")
    rotation, cross, slack = change, table.T @ goal, 1.0
    if kind != "rotation":
        orthonormal, triangle = np.linalg.qr(table)
        size = np.linalg.norm(goal) / np.sqrt(goal.shape[1])
        grown = np.linalg.norm(triangle) * np.linalg.norm(change) / (size * len(triangle))
        rotation, cross = triangle @ change / size, orthonormal.T @ goal
        slack = max(1.0, float(grown) / _SLACK)
    if rotation.shape[0] < rotation.shape[1]:  # the shorter side is the one that is orthonormal
        rotation, cross = rotation.T, cross.T
    product = rotation.T @ cross
    total = float(np.linalg.norm(product))
    if not total or not np.isfinite(total):
        return float("inf")
    smallest = float(np.linalg.eigvalsh((product + product.T) / 2)[0])
    skew = float(np.linalg.norm(product - product.T))
    return max(orthonormality_defect(rotation), skew / total, -smallest / total) / slack


def refuse_wrong_fit(error: float, *, party: str) -> None:
    if not error <= FIT_TOLERANCE:
        raise FitCheckError(
            f"the change of basis of party '{party}' is not the fit of its anchor image to the "
            f"target: it is off by {error:.1e}, and rounding explains {FIT_TOLERANCE:.0e}. The "
            "file was changed, or is of another run. Ask the analyst to run again."
        )
