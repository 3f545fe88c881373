"""ODC: rotate every party onto one reference party (ODC paper, Algorithm 4)."""

from dataclasses import dataclass

from cobasis.algorithms.fits import Rotates, Target
from cobasis.algorithms.images import Images, reference_of
from cobasis.errors import OrthonormalityError
from cobasis.linalg.arrays import Matrix, as_matrix, is_orthonormal


@dataclass(frozen=True, kw_only=True)
class ODC(Rotates):
    r"""Orthonormal data collaboration: :math:`Z = A_r O`, orthogonal Procrustes.

    Parameters
    ----------
    reference : str, optional
        The party r whose image is the target; by default the first. Where spans differ the
        choice matters.
    rotation : ndarray of shape (n_components, n_components), optional
        O, orthogonal; identity by default. It is a common factor of all G_i.

    Notes
    -----
    **Who sees what.** Z *is* the reference's anchor image, in use also after it leaves.

    **Cost.** ``2 a c l^2`` operations for the products and ``18 c l^3`` for the factors; one
    reading of the images after the reference's.

    References
    ----------
    Nosaka et al., Algorithm 4, Theorem 5.3, eq. (71) (ODC paper; its text prints
    ``A_i' A_i O`` in places, which aligns nothing).
    """

    reference: str | None = None
    rotation: Matrix | None = None

    def target(self, images: Images, **_: object) -> Target:
        """Take the reference's image, turned by the rotation."""
        name, image = reference_of(images, self.reference)
        if self.rotation is None:
            return Target(rows=image, shaped_by=(name,))
        turn = as_matrix(self.rotation, name="rotation", columns=image.shape[1])
        if turn.shape[0] != turn.shape[1] or not is_orthonormal(turn):
            raise OrthonormalityError(
                f"rotation has shape {turn.shape} and is not orthogonal to 1e-10, so the aligned "
                "frame would be distorted. Take the Q of a QR factorisation."
            )
        return Target(rows=image @ turn, shaped_by=(name,))
