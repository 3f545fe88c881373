"""How badly each party's anchor image matches those of a panel of its peers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.images import Images
from cobasis.algorithms.unrelated import centred_if, pair_residual, pair_residuals
from cobasis.linalg.arrays import Matrix

PANEL = 50
"""Up to here every party is compared with every other."""

MANY_PARTIES = 500
SMALL_PANEL = 15
"""The panel of more parties than that: a certificate then takes some ten alignments' time."""

PANEL_BYTES = 128 * 2**20


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The parties that everybody is compared with, in memory.

    Attributes
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        Without their column means where the anchor has some.
    among : mapping of frozenset of str to float
        Residuals of the panel's own pairs.
    """

    images: Images
    among: Mapping[frozenset[str], float]

    def residual(self, party: str, image: Matrix) -> float:
        """Return the median residual of a party's image, 0 for a party alone."""
        peers = [peer for peer in self.images if peer != party]
        if party in self.images:
            values = [self.among[frozenset((party, peer))] for peer in peers]
        else:
            values = pair_residuals(image, [self.images[peer] for peer in peers])
        return float(np.median(values)) if values else 0.0


def draw_panel(images: Images, *, centred: bool, rng: np.random.Generator) -> Panel:
    """Choose the panel, read it and compare it with itself.

    Parameters
    ----------
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        The A_i by party name; may be lazy.
    centred : bool
        Whether column means are taken off before images are compared.
    rng : numpy.random.Generator
        For the choice.

    Returns
    -------
    Panel
        All parties up to 50 of them; of more, 50 at random, of more than 500, 15 (and of
        images so large that 50 are above 128 MiB, as many as fit, but 15).

    Notes
    -----
    **Who sees what.** Anchor images only.

    **Cost.** One small product and SVD a pair.
    """
    names = list(images)
    first = np.asarray(images[names[0]])
    fitting = PANEL_BYTES // (first.size * 8)
    size = SMALL_PANEL if len(names) > MANY_PARTIES else max(SMALL_PANEL, min(PANEL, fitting))
    if len(names) > size:
        names = [names[index] for index in sorted(rng.choice(len(names), size, replace=False))]
    chosen = {
        name: centred_if(centred, np.asarray(images[name], dtype=np.float64)) for name in names
    }
    return Panel(images=chosen, among=_among(chosen))


def _among(images: Images) -> dict[frozenset[str], float]:
    """Compare all pairs."""
    names = list(images)
    pairs: Iterable[tuple[str, str]] = (
        (one, two) for index, one in enumerate(names) for two in names[index + 1 :]
    )
    return {frozenset(pair): pair_residual(images[pair[0]], images[pair[1]]) for pair in pairs}


def medians_without(residuals: Mapping[str, float]) -> dict[str, float]:
    """Return, for each party, the median residual of the others: 0 for a party alone."""
    if len(residuals) == 1:
        return dict.fromkeys(residuals, 0.0)
    values = np.array(list(residuals.values()))
    ordered = np.sort(values)
    places = np.searchsorted(ordered, values)
    middle = [(len(values) - 2) // 2, (len(values) - 1) // 2]
    medians = np.mean([ordered[each + (places <= each)] for each in middle], axis=0)
    return dict(zip(residuals, medians.tolist(), strict=True))
