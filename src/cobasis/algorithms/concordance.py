"""The alignment certificate: does every party's basis align, judged against this round itself.

The verdict has no absolute constant. A party's *residual* is the median, over its peers, of
how badly the best rotation matches their anchor images; *unrelated* is what bases that have
nothing to do with each other would give in a round of these sizes; and a party is flagged
when its residual is nearer to that than to the other parties'.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.base import Alignment
from cobasis.algorithms.images import Images, batches
from cobasis.algorithms.peers import Panel, draw_panel, medians_without
from cobasis.algorithms.unrelated import centred_if, unrelated_residual
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.pool import in_order
from cobasis.linalg.spans import EPS, cosines_to, orthonormality_defect
from cobasis.linalg.threads import one_blas_thread

Verdict = Literal["aligned", "flagged", "not separable", "cannot tell"]

MIN_PARTIES = 4


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
        How many times larger or smaller a party's rows, and its anchor image, may be than the
        median party's.
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
        Median over a panel of peers of ``1 - ||A_i' A_j||_* / (||A_i||_F ||A_j||_F)``.
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
    image_scale : float
        Root mean square of A_i, relative to the median party. Orthonormal bases leave one anchor
        its size, so a party far from 1 has scaled its image, and `scale` does not see that.
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
    image_scale: float
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
    workers: int | None = None,
) -> Certificate:
    """Judge an alignment by the round's own figures."""
    limits = thresholds or Thresholds()
    centred = anchor not in {"isometric", "gaussian"}
    with one_blas_thread():
        panel = draw_panel(images, centred=centred, rng=rng)
        axes = np.linalg.qr(alignment.target.rows)[0]
        look = partial(_look, panel=panel, alignment=alignment, axes=axes, centred=centred)
        seen: dict[str, _Seen] = {}
        for part in in_order(look, batches(images), workers=workers):
            seen.update(part)
        unrelated = unrelated_residual(
            panel.images,
            n_components=int(np.median([len(each.cosines) for each in seen.values()])),
            anchor=anchor,
            n_features=n_features,
            rng=rng,
        )
    others = medians_without({name: each.residual for name, each in seen.items()})
    scales = _relative({name: row_sizes[name] / each.size for name, each in seen.items()})
    sizes = _relative({name: each.size for name, each in seen.items()})
    tellable = len(seen) >= MIN_PARTIES and unrelated > 0
    typical = float(np.median(list(others.values())))
    separable = typical <= limits.separable_fraction * unrelated
    parties: dict[str, PartyFigures] = {}
    for name, each in seen.items():
        limit = others[name] + limits.flag_fraction * (unrelated - others[name])
        flagged = tellable and separable and each.residual > limit
        both = scales[name], sizes[name]
        parties[name] = _figures(each, others=others[name], scales=both, flagged=flagged)
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


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What one look at an image shows of it."""

    residual: float
    conditioning: float
    target_residual: float
    cosines: Matrix
    orthonormality: float
    size: float


def _figures(
    seen: _Seen, *, others: float, scales: tuple[float, float], flagged: bool
) -> PartyFigures:
    """Put what was seen of a party beside what it is compared with."""
    return PartyFigures(
        residual=seen.residual,
        others=others,
        conditioning=seen.conditioning,
        target_residual=seen.target_residual,
        cosines=seen.cosines,
        orthonormality=seen.orthonormality,
        scale=scales[0],
        image_scale=scales[1],
        flagged=flagged,
    )


def _relative(sizes: Mapping[str, float]) -> dict[str, float]:
    """Return each size relative to the median party's."""
    middle = float(np.median(list(sizes.values()))) or 1.0
    return {name: size / middle for name, size in sizes.items()}


def _look(
    batch: Images, *, panel: Panel, alignment: Alignment, axes: Matrix, centred: bool
) -> dict[str, _Seen]:
    """Look at a batch of images once."""
    target = alignment.target.rows
    found: dict[str, _Seen] = {}
    for name, image in batch.items():
        compared = centred_if(centred, image)
        length = float(np.sqrt(np.mean(np.sum(compared**2, axis=0))))
        values = np.linalg.svd(image.T @ target, compute_uv=False)
        rounding = EPS * len(image) * float(np.linalg.norm(image) * np.linalg.norm(target))
        missed = image @ alignment.fits[name].change_of_basis - target
        found[name] = _Seen(
            residual=panel.residual(name, compared),
            conditioning=float(values[-1] / values[0]) if values[-1] > rounding else 0.0,
            target_residual=float(np.linalg.norm(missed) / np.linalg.norm(target)),
            cosines=cosines_to(axes, image),
            orthonormality=orthonormality_defect(compared / length),
            size=length / float(np.sqrt(len(image))),
        )
    return found
