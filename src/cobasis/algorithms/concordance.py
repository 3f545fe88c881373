"""The alignment certificate: does every party's basis align, judged against this round itself.

The verdict has no absolute constant. A party's *residual* is the median, over its peers, of
how badly the best rotation matches their anchor images; *unrelated* is what bases that have
nothing to do with each other would give in a round of these sizes; and a party is flagged
when its residual is nearer to that than to the other parties'.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.base import Alignment
from cobasis.algorithms.images import Images
from cobasis.algorithms.unrelated import pair_residual, unrelated_residual
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.linalg.spans import EPS, orthonormality_defect, principal_cosines

Verdict = Literal["aligned", "flagged", "not separable", "cannot tell"]

MIN_PARTIES = 4
MAX_PEERS = 50


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The numbers of the verdict; fields of the agreement.

    Attributes
    ----------
    flag_fraction : float
        Where between the others' median and *unrelated* a party is flagged.
    separable_fraction : float
        Above this share of *unrelated* the round as a whole is not separable.
    scale_band : float
        How many times larger or smaller a party's rows may be than the median party's.
    """

    flag_fraction: float = 0.5
    separable_fraction: float = 0.7
    scale_band: float = 10.0


@dataclass(frozen=True, kw_only=True)
class PartyFigures:
    """What the certificate says of one party.

    Attributes
    ----------
    residual : float
        Median over peers of ``1 - ||A_i' A_j||_* / (||A_i||_F ||A_j||_F)``.
    others : float
        The median of the other parties' residuals.
    conditioning : float
        Smallest over largest singular value of A_i' Z: near 0, a direction of the party has
        no counterpart in the target.
    target_residual : float
        ``||A_i G_i - Z||_F / ||Z||_F``.
    cosines : ndarray of shape (n_components,)
        Of the principal angles between its image and the target's span.
    orthonormality : float
        ``max |A_i' A_i / g - I|`` with g the mean squared column norm: exact for an
        isometric anchor, blurred by sampling for the others.
    scale : float
        Root mean square of X_i F_i over that of A_i, relative to the median party.
    flagged : bool
        Nearer to unrelated than to the others.
    """

    residual: float
    others: float
    conditioning: float
    target_residual: float
    cosines: Matrix
    orthonormality: float
    scale: float
    flagged: bool


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The verdict of a round and the figures that it rests on.

    Attributes
    ----------
    verdict : {"aligned", "flagged", "not separable", "cannot tell"}
        "cannot tell" below four parties, and where bases span all features, so that none are
        unrelated; "not separable" where the parties differ nearly as much as unrelated ones.
        In both the figures stand, and nobody is flagged.
    unrelated : float
        The residual that unrelated bases would have in a round of these sizes.
    parties : mapping of str to PartyFigures
        By party name.

    Notes
    -----
    **Who sees what.** The analyst, who makes it of uploads; a return tells its party the verdict.

    **Cost.** A few numbers a party.
    """

    verdict: Verdict
    unrelated: float
    parties: Mapping[str, PartyFigures]

    @property
    def flagged(self) -> tuple[str, ...]:
        """The names of the flagged parties."""
        return tuple(name for name, figures in self.parties.items() if figures.flagged)


def certify(
    images: Images,
    alignment: Alignment,
    *,
    row_sizes: Mapping[str, float],
    anchor: AnchorKind,
    n_features: int,
    rng: np.random.Generator,
    thresholds: Thresholds | None = None,
) -> Certificate:
    """Judge an alignment by the round's own figures.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        The A_i by party name.
    alignment : Alignment
        Of the same parties.
    row_sizes : mapping of str to float
        Root mean square of each X_i F_i.
    anchor : {"isometric", "gaussian", "uniform", "public"}
        The anchor's kind; uniform and public ones are centred before they are compared.
    n_features : int
        m.
    rng : numpy.random.Generator
        For the unrelated bases and the sample of peers; nothing secret depends on it.
    thresholds : Thresholds, optional
        The agreement's.

    Returns
    -------
    Certificate
        Verdict and figures.

    Notes
    -----
    **Who sees what.** The analyst, from uploads alone.

    **Cost.** ``min(c, 50)`` small products and SVDs a party.
    """
    limits = thresholds or Thresholds()
    compared = {
        name: image - image.mean(axis=0) if anchor in {"uniform", "public"} else image
        for name, image in images.items()
    }
    residuals = _residuals(compared, rng)
    unrelated = unrelated_residual(compared, anchor=anchor, n_features=n_features, rng=rng)
    others = {name: _median_without(residuals, name) for name in residuals}
    scales = _relative_scales(compared, row_sizes)
    tellable = len(images) >= MIN_PARTIES and unrelated > 0
    typical = float(np.median(list(others.values())))
    separable = typical <= limits.separable_fraction * unrelated
    parties: dict[str, PartyFigures] = {}
    for name, image in images.items():
        limit = others[name] + limits.flag_fraction * (unrelated - others[name])
        parties[name] = PartyFigures(
            residual=residuals[name],
            others=others[name],
            conditioning=_conditioning(image, alignment.target.rows),
            target_residual=_target_residual(image, alignment, name),
            cosines=principal_cosines(image, alignment.target.rows),
            orthonormality=_defect(compared[name]),
            scale=scales[name],
            flagged=tellable and separable and residuals[name] > limit,
        )
    flagged = any(figures.flagged for figures in parties.values())
    verdict = _verdict(tellable=tellable, separable=separable, flagged=flagged)
    return Certificate(verdict=verdict, unrelated=unrelated, parties=parties)


def _verdict(*, tellable: bool, separable: bool, flagged: bool) -> Verdict:
    """Return the first verdict that applies."""
    if not tellable:
        return "cannot tell"
    if not separable:
        return "not separable"
    return "flagged" if flagged else "aligned"


def _residuals(images: Images, rng: np.random.Generator) -> dict[str, float]:
    """Return each party's median residual over its peers, 0 for a party that is alone."""
    names = list(images)
    known: dict[frozenset[str], float] = {}
    medians: dict[str, float] = {}
    for name in names:
        peers = [peer for peer in names if peer != name]
        if len(peers) > MAX_PEERS:
            chosen = rng.choice(len(peers), size=MAX_PEERS, replace=False)
            peers = [peers[index] for index in chosen]
        for peer in peers:
            pair = frozenset((name, peer))
            if pair not in known:
                known[pair] = pair_residual(images[name], images[peer])
        values = [known[frozenset((name, peer))] for peer in peers]
        medians[name] = float(np.median(values)) if values else 0.0
    return medians


def _median_without(residuals: Mapping[str, float], name: str) -> float:
    """Return the median residual of the other parties."""
    rest = [value for party, value in residuals.items() if party != name]
    return float(np.median(rest)) if rest else 0.0


def _relative_scales(images: Images, row_sizes: Mapping[str, float]) -> dict[str, float]:
    """Return size of rows over size of image, relative to the median party."""
    sizes = {
        name: row_sizes[name] / float(np.sqrt(np.mean(image**2))) for name, image in images.items()
    }
    middle = float(np.median(list(sizes.values()))) or 1.0
    return {name: size / middle for name, size in sizes.items()}


def _conditioning(image: Matrix, target: Matrix) -> float:
    """Return smallest over largest singular value of ``A_i' Z``, 0 where it is rounding."""
    values = polar(image.T @ target).singular_values
    rounding = EPS * len(image) * float(np.linalg.norm(image) * np.linalg.norm(target))
    return float(values[-1] / values[0]) if values[-1] > rounding else 0.0


def _target_residual(image: Matrix, alignment: Alignment, name: str) -> float:
    """Return ``||A_i G_i - Z||_F / ||Z||_F``."""
    rows = alignment.target.rows
    missed = image @ alignment.fits[name].change_of_basis - rows
    return float(np.linalg.norm(missed) / np.linalg.norm(rows))


def _defect(image: Matrix) -> float:
    """Return how far the image's columns are from orthogonal and of one length."""
    size = float(np.sqrt(np.mean(np.sum(image**2, axis=0))))
    return orthonormality_defect(image / size)
