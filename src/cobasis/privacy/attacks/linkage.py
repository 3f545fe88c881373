"""Somebody has a list of candidates, or a second release, and finds who is who."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks.release import Recovered, Release
from cobasis.privacy.attacks.scoring import Share, nearest

_QUANTILES = np.linspace(0, 1, 65)[1:]
_REFERENCES = 1000
_BLOCK = 1024


@dataclass(frozen=True, kw_only=True, repr=False)
class CandidateList(Hidden):
    """Raw rows of people who may be in the release, and the basis, stolen or guessed.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates, n_features)
        Their raw rows.
    basis : ndarray of shape (n_features, n_components)
        ``F_i``, or what another attack takes for it.
    """

    candidates: Matrix
    basis: Matrix

    def recover(self, release: Release) -> Recovered:
        """Take each released person for the candidate whose projection is nearest.

        Parameters
        ----------
        release : Release
            Its rows.

        Returns
        -------
        Recovered
            The rows of the candidates that were chosen, and the basis; ``score_linkage`` counts
            the right ones.

        Raises
        ------
        ShapeError
            Candidates, basis and rows do not fit each other.

        Notes
        -----
        **Who sees what.** With the true basis and no noise everybody on the list is found, at
        every l: two people would need equal projections to be mixed up.

        **Cost.** One product of ``n_rows x n_components x n_candidates``, in blocks.
        """
        basis = as_matrix(self.basis, name="basis")
        listed = as_matrix(self.candidates, name="candidates", columns=len(basis))
        rows = as_matrix(release.rows, name="the release's rows", columns=basis.shape[1])
        return Recovered(rows=listed[nearest(rows, among=listed @ basis)], basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class CandidatesAlone(Hidden):
    """Raw rows of people of whom many are in the release, and nothing else: no basis, no labels.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates, n_features)
        Their raw rows; at least as many as the release has components.
    rounds : int
        How often matches and basis are improved in turn, at most.
    """

    candidates: Matrix
    rounds: int = 50

    def recover(self, release: Release) -> Recovered:
        """Match people by their distances to everybody else, then improve matches and basis.

        Parameters
        ----------
        release : Release
            Its rows.

        Returns
        -------
        Recovered
            The rows of the candidates that were chosen, and the basis that fits the matches.

        Raises
        ------
        ShapeError
            Fewer candidates or features than components.

        Notes
        -----
        **Who sees what.** The release keeps distances in its span, and a list of the same kind of
        people has nearly the same leading directions as the party (`svd` bases). So a person's
        distances to all others are a fingerprint that both sides show. A Haar basis shows
        other distances, and this attack finds nobody.

        **Cost.** ``n_candidates`` times 1,000 distances, and a singular value decomposition of
        the candidates; then for each round a product of ``n_rows x l x n_candidates``.
        """
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
    """Who was taken for whom.

    Attributes
    ----------
    places : ndarray of int of shape (n_rows,)
        For each person of the release, who of the other release is nearest.
    distances : ndarray of shape (n_rows,)
        How far that one is: small for people who are in both.
    n_others : int
        How many there were to choose from.
    """

    places: npt.NDArray[np.intp]
    distances: Matrix
    n_others: int


@dataclass(frozen=True, kw_only=True, repr=False)
class SamePerson(Hidden):
    """Two aligned releases in one hand: somebody who was in both hospitals is found.

    Attributes
    ----------
    other : Release
        Another party's release.
    other_change : ndarray of shape (n_components, n_components)
        Its ``G_j``.
    change : ndarray of shape (n_components, n_components)
        ``G_i`` of the release that is attacked.
    """

    other: Release
    other_change: Matrix
    change: Matrix

    def link(self, release: Release) -> Links:
        """Find each person's nearest aligned row in the other release.

        Parameters
        ----------
        release : Release
            Its rows.

        Returns
        -------
        Links
            For `score_links`; ``-distances`` says who is in both, for ``score_decision``.

        Raises
        ------
        ShapeError
            Releases and changes of basis do not fit each other.

        Notes
        -----
        **Who sees what.** The analyst has all of it. It learns that two rows are one person, not
        who that is; with either hospital's list it knows that as well.

        **Cost.** One product of ``n_rows x n_components x n_others``, in blocks.
        """
        change = as_matrix(self.change, name="change")
        theirs = as_matrix(self.other_change, name="other_change", columns=change.shape[1])
        ours = as_matrix(release.rows, name="the release's rows", columns=len(change)) @ change
        others = as_matrix(self.other.rows, name="the other's rows", columns=len(theirs)) @ theirs
        places = nearest(ours, among=others)
        distances: Matrix = np.linalg.norm(ours - others[places], axis=1)
        return Links(places=places, distances=distances, n_others=len(others))


def score_links(links: Links, places: npt.ArrayLike) -> Share:
    """Count the people in both releases who were linked with themselves.

    Parameters
    ----------
    links : Links
        From `SamePerson`.
    places : array-like of int of shape (n_rows,)
        Where each person of the release stands in the other one; -1 for who is not there.

    Returns
    -------
    Share
        Of those who are in both; chance is one of all others.

    Raises
    ------
    ShapeError
        The lengths differ, or nobody is in both.

    Notes
    -----
    **Who sees what.** Computed from the truth: for whoever has both tables.

    **Cost.** None.
    """
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
