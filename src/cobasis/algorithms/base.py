"""What every method of the family is: a target Z and a fit of each party to it.

A new method is one small file with a frozen dataclass that has these two methods;
CONTRIBUTING.md lists where else it is named. From the shape follow a late party (needs the target
and its own anchor image only), a party that leaves (changes nobody else's fit), and that
images are read batch by batch and fits handed on as they are made.
"""

from collections import UserDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import ClassVar, Protocol

from cobasis.algorithms.fits import Fit, FitKind, Target
from cobasis.algorithms.images import Images, View, batches
from cobasis.algorithms.readable import MOST_ROWS, Readable, Table, named
from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import in_order, one_blas_thread


class Aligner(Protocol):
    """A target and a fit; see the five files beside this one."""

    fit_kind: ClassVar[FitKind]

    def target(self, images: Images, *, workers: int | None = None) -> Target:
        """Make Z from all anchor images, in as many passes over them as the method takes."""
        ...

    def fits(self, images: Images, target: Target) -> Mapping[str, Fit]:
        """Fit a batch of images of one shape to a target that may be older than they are."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False)
class Alignment(Readable):
    """A target and the fits made to it so far.

    Attributes
    ----------
    aligner : Aligner
        The method, kept to fit late parties in the same way.
    target : Target
        Frozen: adding and removing parties does not change it.
    fits : mapping of str to Fit
        By party name; read back from the sink that they were put into.

    Notes
    -----
    **Who sees what.** Made of anchor images only: no rows, no anchor, no secret basis. Each
    change of basis is meant for its own party alone.

    **Cost.** Holds Z, and what the sink holds: by default one small matrix per party.
    """

    aligner: Aligner
    target: Target
    fits: View[Fit]

    def table(self) -> Table:
        target, method = self.target, type(self.aligner).__name__
        rows, columns = target.rows.shape
        notes = [f"{named(target.shaped_by)} shaped the target."]
        if self.departed:
            notes.append(f"It still carries {named(self.departed)}, who left.")
        if target.iterations:
            ended = "converged" if target.converged else "stopped without converging"
            notes.append(f"It {ended} after {target.iterations} iterations.")
        return Table(
            title=(
                f"Alignment by {method} of {len(self.fits)} parties to a target of {rows} x "
                f"{columns}."
            ),
            header=("party", "components", "determination"),
            rows=[
                (name, str(len(fit.change_of_basis)), f"{fit.determination:.3g}")
                for name, fit in islice(self.fits.items(), MOST_ROWS)
            ],
            n_rows=len(self.fits),
            notes=(*notes, "Determination is 1 at best; near 0 a direction is arbitrary."),
        )

    @property
    def changes_of_basis(self) -> Mapping[str, Matrix]:
        """G_i by party name, each read when it is asked for."""
        return View(self.fits, read=lambda party: self.fits[party].change_of_basis)

    @property
    def departed(self) -> tuple[str, ...]:
        """Parties that left, but whose trace Z still carries."""
        return tuple(party for party in self.target.shaped_by if party not in self.fits)


class Fits(UserDict[str, Fit]):
    """Fits by party name, and the target that they are made to, once there is one."""

    target: Target | None = None

    def keep(self, target: Target) -> None:
        self.target = target


def align(
    aligner: Aligner,
    images: Images,
    *,
    target: Target | None = None,
    sink: MutableMapping[str, Fit] | None = None,
    workers: int | None = None,
) -> Alignment:
    """Make the target from all anchor images and fit each of them to it.

    Parameters
    ----------
    aligner : Aligner
        ``ODC()``, ``Whitened()``, ``GOPP()``, ``Imakura()`` or ``Kawakami()``.
    images : mapping of str to ndarray of shape (n_anchor_rows, n_components)
        The A_i by party name, of one anchor. The number of columns may differ. May be lazy,
        reading a file that nobody changes when it is asked: then one batch is in memory at a time.
    target : Target, optional
        Made earlier: a party that comes late, or is left out, changes no other fit to it, and Z
        keeps the trace of whoever shaped it. By default it is made.
    sink : mutable mapping of str to Fit, optional
        Where fits go as they are made, and are read back from; parties that it has already
        are not fitted again. By default a dictionary.
    workers : int, optional
        Threads; by default as many as BLAS would have used. BLAS itself uses one in each.

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
    if not images:
        raise ShapeError(
            "there is no anchor image, so there is nothing to align. Collect uploads first."
        )
    kept: MutableMapping[str, Fit] = {} if sink is None else sink
    with one_blas_thread():
        made = target or aligner.target(images, workers=workers)
        waiting = (party for party in images if party not in kept)
        parts = batches(images, waiting, n_rows=made.rows.shape[0])
        for fits in in_order(partial(aligner.fits, target=made), parts, workers=workers):
            kept.update(fits)
    fits = View(dict.fromkeys(images), read=kept.__getitem__)
    return Alignment(aligner=aligner, target=made, fits=fits)
