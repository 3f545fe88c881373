"""Aligned rounds on real rows, as the analyst and one party have them."""

from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.base import align
from cobasis.algorithms.odc import ODC
from cobasis.models.trainer import TrainedModel
from models.blocks import principal_axes
from privacy.attacks.constructions import anchor, own_basis, released


@dataclass
class AlignedRound:
    """Rows, labels, bases, releases and changes of basis, one of each per party."""

    rows: list
    labels: list
    bases: list
    releases: list
    changes: list

    @property
    def shared_map(self):
        """F_0 G_0: what the first party has."""
        return self.bases[0] @ self.changes[0]

    @property
    def aligned(self):
        return [each.rows @ turn for each, turn in zip(self.releases, self.changes, strict=True)]

    def fitted(self, estimator, *, parties=None):
        """A model of the first so many parties, in the axes that training would choose."""
        rows = np.vstack(self.aligned[:parties])
        axes = principal_axes(rows)
        return TrainedModel(
            axes=axes, estimator=estimator.fit(rows @ axes, np.concatenate(self.labels[:parties]))
        )


def aligned_round(data, *, parties, n_rows, n_components, shared=False, seed=0):
    """Split data among parties, each with its own span, or with the first one's."""
    everything, classes = data
    order = np.random.default_rng(seed).permutation(len(everything))
    parts = order[: parties * n_rows].reshape(parties, n_rows)
    rows, labels = [everything[part] for part in parts], [classes[part] for part in parts]
    bases = [
        own_basis(rows[0] if shared else table, n_components, number=number)
        for number, table in enumerate(rows)
    ]
    width = everything.shape[1]
    common = anchor("isometric", width, width, number=seed)
    releases = [
        released(table, basis, common, labels=label)
        for table, basis, label in zip(rows, bases, labels, strict=True)
    ]
    images = {str(number): each.anchor_image for number, each in enumerate(releases)}
    fits = align(ODC(), images).fits
    changes = [fits[str(number)].change_of_basis for number in range(parties)]
    return AlignedRound(rows, labels, bases, releases, changes)
