"""Somebody has a list of candidates, or a second release, and finds who is who."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks.release import Recovered, Release
from cobasis.privacy.attacks.scores import Share, nearest

_QUANTILES = np.linspace(0, 1, 65)[1:]
_REFERENCES = 1000
_BLOCK = 1024


@dataclass(frozen=True, kw_only=True, repr=False)
class CandidateList(Hidden):
    """Raw rows of people who may be in the release, and the basis, stolen or guessed."""

    candidates: Matrix
    basis: Matrix

    def recover(self, release: Release) -> Recovered:
        """Take each released person for the candidate whose projection is nearest."""
        basis = as_matrix(self.basis, name="basis")
        listed = as_matrix(self.candidates, name="candidates", columns=len(basis))
        rows = as_matrix(release.rows, name="the release's rows", columns=basis.shape[1])
        return Recovered(rows=listed[nearest(rows, among=listed @ basis)], basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class CandidatesAlone(Hidden):
    """Raw rows of people of whom many are in the release, and nothing else: no basis, no labels."""

    candidates: Matrix
    rounds: int = 50

    def recover(self, release: Release) -> Recovered:
        """Match people by their distances to everybody else, then improve matches and basis."""
        rows = as_matrix(release.rows, name="the release's rows")
        listed = as_matrix(self.candidates, name="candidates")
        if min(listed.shape) < rows.shape[1]:
            raise ShapeError(
                f"candidates of shape {listed.shape} have fewer rows or columns than the release "
                f"has components, {rows.shape[1]}. Give a longer list."
            )
        leading = np.linalg.svd(listed, full_matrices=False)[2][: rows.shape[1]].T
        places = nearest(_fingerprints(rows), among=_fingerprints(listed @ leading))
        basis = _fitted(listed[places], rows)
        for _ in range(self.rounds):
            again = nearest(rows, among=listed @ basis)
            if np.array_equal(again, places):
                break
            places, basis = again, _fitted(listed[again], rows)
        return Recovered(rows=listed[places], basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class Links(Hidden):
    """Who was taken for whom."""

    places: npt.NDArray[np.intp]
    distances: Matrix
    n_others: int


@dataclass(frozen=True, kw_only=True, repr=False)
class SamePerson(Hidden):
    """Two aligned releases in one hand: somebody who was in both hospitals is found."""

    other: Release
    other_change: Matrix
    change: Matrix

    def link(self, release: Release) -> Links:
        """Find each person's nearest aligned row in the other release."""
        change = as_matrix(self.change, name="change")
        theirs = as_matrix(self.other_change, name="other_change", columns=change.shape[1])
        ours = as_matrix(release.rows, name="the release's rows", columns=len(change)) @ change
        others = as_matrix(self.other.rows, name="the other's rows", columns=len(theirs)) @ theirs
        places = nearest(ours, among=others)
        distances: Matrix = np.linalg.norm(ours - others[places], axis=1)
        return Links(places=places, distances=distances, n_others=len(others))


def score_links(links: Links, places: npt.ArrayLike) -> Share:
    """Count the people in both releases who were linked with themselves."""
    truth = np.asarray(places)
    both = truth >= 0
    if truth.shape != links.places.shape or not both.any():
        raise ShapeError(
            f"places of shape {truth.shape} for {len(links.places)} people, {int(both.sum())} of "
            "them in both releases, cannot be scored. Give one place per person, and some in both."
        )
    found = links.places[both] == truth[both]
    return Share(value=float(np.mean(found)), chance=1 / links.n_others)


def _fingerprints(rows: Matrix) -> Matrix:
    """Return the quantiles of each row's distances to all, in units of the mean distance."""
    some = np.linspace(0, len(rows) - 1, min(len(rows), _REFERENCES)).astype(int)
    others = rows[some]
    squares = np.einsum("ij,ij->i", others, others)
    made = []
    for at in range(0, len(rows), _BLOCK):
        block = rows[at : at + _BLOCK]
        apart = np.einsum("ij,ij->i", block, block)[:, np.newaxis] + squares - 2 * block @ others.T
        made.append(np.quantile(np.sqrt(np.maximum(apart, 0)), _QUANTILES, axis=1).T)
    marks = np.concatenate(made)
    return marks / max(float(marks.mean()), np.finfo(float).tiny)


def _fitted(records: Matrix, rows: Matrix) -> Matrix:
    """Return the orthonormal basis that takes records nearest to rows."""
    rotation: Matrix = polar(records.T @ rows).rotation
    return rotation
