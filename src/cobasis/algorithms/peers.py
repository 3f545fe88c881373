"""How badly each party's anchor image matches those of a panel of its peers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.images import Images
from cobasis.algorithms.unrelated import SideBySide, centred_if
from cobasis.linalg.arrays import Matrix

PANEL = 50
"""Up to here every party is compared with every other."""

MANY_PARTIES = 500
SMALL_PANEL = 15
"""The panel of more parties than that: a certificate then takes some five alignments' time."""

PANEL_BYTES = 128 * 2**20


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The parties that everybody is compared with, in memory.

    Attributes
    ----------
    names : tuple of str
        Who they are.
    together : SideBySide
        Their images, without their column means where the anchor has some.
    among : mapping of frozenset of str to float
        Residuals of the panel's own pairs.
    """

    names: tuple[str, ...]
    together: SideBySide
    among: Mapping[frozenset[str], float]

    @property
    def images(self) -> Images:
        """The images by party name."""
        return dict(zip(self.names, self.together.images(), strict=True))

    def residual(self, party: str, image: Matrix) -> float:
        """Return the median residual of a party's image, 0 for a party alone."""
        if party in self.names:
            peers = [peer for peer in self.names if peer != party]
            values = [self.among[frozenset((party, peer))] for peer in peers]
        else:
            values = self.together.residuals(image)
        return float(np.median(values)) if values else 0.0


def draw_panel(images: Images, *, centred: bool, rng: np.random.Generator) -> Panel:
    """Choose the panel, read it and compare it with itself."""
    names = list(images)
    first = np.asarray(images[names[0]])
    fitting = PANEL_BYTES // (first.size * 8)
    size = SMALL_PANEL if len(names) > MANY_PARTIES else max(SMALL_PANEL, min(PANEL, fitting))
    if len(names) > size:
        names = [names[index] for index in sorted(rng.choice(len(names), size, replace=False))]
    together = SideBySide.of(
        centred_if(centred, np.asarray(images[name], dtype=np.float64)) for name in names
    )
    return Panel(names=tuple(names), together=together, among=_among(names, together))


def _among(names: Sequence[str], together: SideBySide) -> dict[frozenset[str], float]:
    """Compare all pairs."""
    found: dict[frozenset[str], float] = {}
    for number, (name, image) in enumerate(zip(names, together.images(), strict=True)):
        peers = names[number + 1 :]
        values = together.after(number).residuals(image) if peers else []
        pairs = (frozenset((name, peer)) for peer in peers)
        found.update(zip(pairs, values, strict=True))
    return found


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
