"""Whoever has a party's basis, or what gives it away, reads the party's rows off its upload."""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.release import Recovered, Release


@dataclass(frozen=True, kw_only=True, repr=False)
class LeakedBasis(Hidden):
    """Somebody has the secret basis itself: stolen, or worked out by another attack.

    Attributes
    ----------
    basis : ndarray of shape (n_features, n_components)
        ``F_i``, or a guess of it.
    prior_rows : ndarray of shape (n_others, n_features) or None
        Rows of the same kind that the attacker has as well. What the basis does not show is then
        filled in as their mean and covariance say; without them it is taken to be 0.
    """

    basis: Matrix
    prior_rows: Matrix | None = None

    def recover(self, release: Release) -> Recovered:
        """Put released rows back where the basis took them from.

        Parameters
        ----------
        release : Release
            Its rows.

        Returns
        -------
        Recovered
            ``X~ F^+`` without prior rows. With prior rows of mean mu and covariance C the linear
            estimate of least mean squared error, ``mu + (x~ - mu F) (F' C F)^+ F' C``.

        Raises
        ------
        ShapeError
            Basis, rows and prior rows do not fit each other.

        Notes
        -----
        **Who sees what.** As private as the rows themselves.

        **Cost.** A pseudoinverse of the basis and one product; with p prior rows a singular value
        decomposition of p x m numbers more.
        """
        basis = as_matrix(self.basis, name="basis")
        rows = as_matrix(release.rows, name="the release's rows", columns=basis.shape[1])
        if self.prior_rows is None:
            return Recovered(rows=rows @ np.linalg.pinv(basis), basis=basis)
        prior = as_matrix(self.prior_rows, name="prior_rows", columns=len(basis))
        mean = prior.mean(axis=0)
        seen = (prior - mean) @ basis
        back: Matrix = np.linalg.pinv(seen) @ (prior - mean)  # (F' C F)^+ F' C, never squared
        return Recovered(rows=mean + (rows - mean @ basis) @ back, basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class Collusion(Hidden):
    """A party that has the anchor helps the analyst that has the anchor's image.

    A guessed seed of the anchor, and a public anchor whose rows were found, are the same attack.

    Attributes
    ----------
    anchor : ndarray of shape (n_anchor_rows, n_features)
        ``A``.
    """

    anchor: Matrix

    def recover(self, release: Release) -> Recovered:
        """Read the basis off the anchor's image: ``F_i = A^+ A_i``.

        Parameters
        ----------
        release : Release
            Its rows and anchor image.

        Returns
        -------
        Recovered
            ``X~ F_i^+``: each row's projection on the secret span, exactly.

        Raises
        ------
        ShapeError
            The release has no anchor image, or it is not this anchor's.

        Notes
        -----
        **Who sees what.** Exact wherever the anchor has full column rank, at every l: what is
        lost is only what the basis does not span.

        **Cost.** One least-squares solution of ``a x m``, and one product.

        References
        ----------
        ODC paper, section 2.2, remarks on collusion.
        """
        if release.anchor_image is None:
            raise ShapeError(
                "the release has no anchor image, so the anchor is of no use. Give anchor_image, "
                "or use LeakedBasis."
            )
        anchor = as_matrix(self.anchor, name="anchor")
        image = as_matrix(release.anchor_image, name="the release's anchor_image")
        if len(image) != len(anchor):
            raise ShapeError(
                f"the anchor has {len(anchor)} rows and its image {len(image)}, so it is not "
                "this anchor's. Give the anchor that the release was made with."
            )
        basis = np.linalg.lstsq(anchor, image, rcond=None)[0]
        return LeakedBasis(basis=np.asarray(basis, dtype=np.float64)).recover(release)


@dataclass(frozen=True, kw_only=True, repr=False)
class OtherPartysFrame(Hidden):
    """A party that has its own basis helps the analyst; the anchor may be long destroyed.

    Alignment makes ``F_i G_i`` (nearly) equal for all parties, so one party's is everybody's.

    Attributes
    ----------
    basis : ndarray of shape (n_features, n_components)
        ``F_j`` of the party that helps.
    change : ndarray of shape (n_components, n_components)
        ``G_i`` of the party whose release it is, from the analyst.
    own_change : ndarray of shape (n_components, n_components)
        ``G_j`` of the party that helps.
    """

    basis: Matrix
    change: Matrix
    own_change: Matrix

    def recover(self, release: Release) -> Recovered:
        """Take the other party's frame for this one's: ``F_i ~ F_j G_j G_i^+``.

        Parameters
        ----------
        release : Release
            Its rows.

        Returns
        -------
        Recovered
            ``X~ G_i (F_j G_j)^+``. Where the parties share a span it is what `Collusion` gets;
            where they do not, as near as the two spans are.

        Raises
        ------
        ShapeError
            The bases and changes do not fit each other.

        Notes
        -----
        **Who sees what.** No anchor is needed: destroying it after the round stops nobody who
        has a return. One stolen ``F_j G_j`` exposes every party.

        **Cost.** Two pseudoinverses of at most ``m x l``, and one product.
        """
        basis = as_matrix(self.basis, name="basis")
        own = as_matrix(self.own_change, name="own_change")
        change = as_matrix(self.change, name="change", columns=own.shape[1])
        if len(own) != basis.shape[1]:
            raise ShapeError(
                f"own_change has {len(own)} rows and the basis {basis.shape[1]} columns, so they "
                "are not one party's. Give the basis and the change of basis of the same party."
            )
        guess: Matrix = basis @ own @ np.linalg.pinv(change)
        return LeakedBasis(basis=guess).recover(release)
