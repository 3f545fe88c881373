"""What every method of the family is: a target Z and a fit of each party to it.

A new method is one small file with a frozen dataclass that has these two methods, and one
row in the tests' table of aligners. From the shape follow a late party (needs the target
and its own anchor image only) and a party that leaves (changes nobody else's fit).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from cobasis.algorithms.images import Images, check_image, check_images
from cobasis.errors import DuplicatePartyError, OptionError, UnknownPartyError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread

Scale = Literal["measured", "paper"] | float


@dataclass(frozen=True, kw_only=True)
class Target:
    """What every anchor image is aligned to.

    Attributes
    ----------
    rows : ndarray of shape (n_anchor_rows, n_components)
        Z.
    shaped_by : tuple of str
        The parties whose trace Z carries, for as long as it is used.
    iterations : int
        How many a method that iterates has taken; 0 for the others.
    converged : bool
        False where a method stopped at its cap.
    """

    rows: Matrix = field(repr=False)
    shaped_by: tuple[str, ...]
    iterations: int = 0
    converged: bool = True


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One party's fit to the target.

    Attributes
    ----------
    change_of_basis : ndarray of shape (n_components of the party, n_components)
        G_i.
    determination : float
        Smallest over largest singular value of what was inverted or factored: 1 is best,
        0 leaves a direction arbitrary.
    """

    change_of_basis: Matrix = field(repr=False)
    determination: float


class Aligner(Protocol):
    """A target and a fit; see the five files beside this one."""

    def target(self, images: Images) -> Target:
        """Make Z from all anchor images."""
        ...

    def fit(self, image: Matrix, target: Target, *, party: str) -> Fit:
        """Fit one anchor image to a target that may be older than the image."""
        ...


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """A target and the fits made to it so far.

    Attributes
    ----------
    aligner : Aligner
        The method, kept to fit late parties in the same way.
    target : Target
        Frozen: adding and removing parties does not change it.
    fits : mapping of str to Fit
        By party name.

    Notes
    -----
    **Who sees what.** Made of anchor images only: no rows, no anchor, no secret basis. Each
    change of basis is meant for its own party alone.

    **Cost.** Holds Z and one small matrix per party.
    """

    aligner: Aligner
    target: Target
    fits: Mapping[str, Fit]

    @property
    def changes_of_basis(self) -> Mapping[str, Matrix]:
        """G_i by party name."""
        return {party: fit.change_of_basis for party, fit in self.fits.items()}

    @property
    def departed(self) -> tuple[str, ...]:
        """Parties that left, but whose trace Z still carries."""
        return tuple(party for party in self.target.shaped_by if party not in self.fits)

    def add(self, party: str, image: Matrix) -> "Alignment":
        """Fit a late party to the frozen target; no other fit is touched.

        Parameters
        ----------
        party : str
            Its name.
        image : ndarray of shape (n_anchor_rows, n_components)
            Its A_i, of the same anchor.

        Returns
        -------
        Alignment
            With one fit more.

        Raises
        ------
        DuplicatePartyError
            The party has a fit already.
        AnchorImageError, ConditionError, UndeterminedFitError
            The image fits no target.

        Notes
        -----
        **Who sees what.** Needs Z and the newcomer's image, nobody else's.

        **Cost.** One fit.
        """
        if party in self.fits:
            msg = (
                f"party '{party}' is aligned already, so a second image of that name is either "
                "a duplicate or an impostor's. Remove the first, or enrol another name."
            )
            raise DuplicatePartyError(msg)
        with one_blas_thread():
            checked = check_image(party, image, n_rows=self.target.rows.shape[0])
            fit = self.aligner.fit(checked, self.target, party=party)
        return replace(self, fits=MappingProxyType({**self.fits, party: fit}))

    def remove(self, party: str) -> "Alignment":
        """Drop a party; nothing is computed again, and Z keeps its trace (`departed`).

        Parameters
        ----------
        party : str
            Its name; it may have been the reference.

        Returns
        -------
        Alignment
            With one fit less.

        Raises
        ------
        UnknownPartyError
            The party has no fit.

        Notes
        -----
        **Who sees what.** Nothing new is shown. This is not exact removal: only a new target
        and new returns (``Analyst.realign``) are.

        **Cost.** None.
        """
        if party not in self.fits:
            known = ", ".join(sorted(self.fits))
            msg = f"party '{party}' is not in this alignment ({known}). Name one that is."
            raise UnknownPartyError(msg)
        kept = {name: fit for name, fit in self.fits.items() if name != party}
        return replace(self, fits=MappingProxyType(kept))


def align(aligner: Aligner, images: Images) -> Alignment:
    """Make the target from all anchor images and fit each of them to it.

    Parameters
    ----------
    aligner : Aligner
        ``ODC()``, ``Whitened()``, ``GOPP()``, ``Imakura()`` or ``Kawakami()``.
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        The A_i by party name, of one anchor. The number of columns may differ.

    Returns
    -------
    Alignment
        Target and changes of basis.

    Raises
    ------
    NotFiniteError, DtypeError, ShapeError
        An image is no finite table, or its rows are not as many as the others'.
    AnchorImageError, ConditionError, UndeterminedFitError
        The image determines no change of basis.

    Notes
    -----
    **Who sees what.** Reads only what parties have already sent, and of that only the
    anchor images: neither rows nor secret bases.

    **Cost.** See the aligner; ODC's is ``O(a c l^2)``.

    Examples
    --------
    Two hospitals hide one subspace behind different bases; the anchor finds the rotation.

    >>> import numpy as np
    >>> from cobasis import ODC
    >>> rng = np.random.default_rng(0)
    >>> anchor = rng.normal(size=(50, 8))
    >>> basis, _ = np.linalg.qr(rng.normal(size=(8, 3)))
    >>> twist, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    >>> found = align(ODC(), {"north": anchor @ basis, "south": anchor @ basis @ twist})
    >>> bool(np.allclose(found.changes_of_basis["south"], twist.T))
    True
    """
    with one_blas_thread():
        checked = check_images(images)
        target = aligner.target(checked)
        fits = {name: aligner.fit(image, target, party=name) for name, image in checked.items()}
    return Alignment(aligner=aligner, target=target, fits=MappingProxyType(fits))


def with_scale(rows: Matrix, images: Images, *, scale: Scale) -> Matrix:
    """Give a target its one global scalar, so that methods differ in shape and not in size.

    ``||Z||_F`` becomes ``gain sqrt(l)``, where the gain is what the anchor makes of a unit
    vector: a number given, or the root mean square over the images. ``"paper"`` changes
    nothing. Under an isometric anchor and orthonormal bases the gain is exactly one.
    """
    if scale == "paper":
        return rows
    if scale == "measured":
        gain = float(np.sqrt(np.mean([np.mean(np.sum(i**2, axis=0)) for i in images.values()])))
    elif isinstance(scale, (int, float)) and 0 < scale < np.inf:
        gain = float(scale)
    else:
        msg = f"scale={scale!r} is no scale. Give 'measured', 'paper' or a positive number."
        raise OptionError(msg)
    return rows * float(gain * np.sqrt(rows.shape[1]) / np.linalg.norm(rows))


def require_word(word: object, known: tuple[str, ...], *, option: str) -> None:
    """Refuse a word that an aligner's option does not take."""
    if word not in known:
        msg = f"{option}={word!r} is not known. Choose one of {', '.join(known)}."
        raise OptionError(msg)
