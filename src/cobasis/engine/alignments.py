"""An alignment of more than fits in memory: read from files, written to files, resumed."""

from pathlib import Path

from cobasis.algorithms.base import Aligner, Alignment, align
from cobasis.algorithms.images import Images, require_some
from cobasis.algorithms.views import View
from cobasis.engine import iterates
from cobasis.engine.fit_folder import FitFolder
from cobasis.engine.iterates import made_target
from cobasis.engine.progress import AGAIN, Report, silent
from cobasis.engine.run_mark import claim, is_claimed
from cobasis.errors import AnotherRunError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.store.anchor_images import AnchorImageFiles
from cobasis.store.folder import UploadFolder


def align_folder(
    uploads: UploadFolder | AnchorImageFiles,
    *,
    aligner: Aligner,
    to: Path,
    report: Report = silent,
    workers: int | None = None,
) -> Alignment:
    """Align uploads that stay on disk, and leave the changes of basis on disk.

    Run it again after Ctrl-C, a kill or a full disk: the target is not made again, a target that
    iterates goes on from its last ten seconds, and parties that have their fit are not read again.

    Parameters
    ----------
    uploads : UploadFolder or AnchorImageFiles
        Where the anchor images are.
    aligner : Aligner
        ``ODC()``, ``Whitened()``, ``GOPP()``, ``Imakura()`` or ``Kawakami()``.
    to : Path
        A folder for this run's results and no other's; made when it is not there.
    report : callable
        Told how far it is; see ``cobasis.engine.progress.shown``.
    workers : int, optional
        Threads; by default as many as BLAS would have used.

    Returns
    -------
    Alignment
        Its fits are read from `to` one at a time.

    Raises
    ------
    AnotherRunError
        `to` holds a run of another method, of other parties, or of images that changed since.
    MessageError, AnchorTagError
        The uploads are not of one agreement and one anchor.
    FileChangedError
        An image changes while the run goes on.
    ShapeError
        There is no upload.
    DiskError
        A file cannot be read, or the disk is full. What is in `to` already stays.
    AnchorImageError, ConditionError, UndeterminedFitError
        An image determines no change of basis.

    Notes
    -----
    **Who sees what.** Anchor images are read, rows and labels are not. `to` holds every party's
    change of basis and Z: it is for the analyst alone.

    **Cost.** The aligner's; memory for Z, one batch of images, 8 MB of fits and about a
    kilobyte per party.
    """
    images = uploads.anchor_images() if isinstance(uploads, UploadFolder) else uploads
    require_some(images)
    with FitFolder(to) as fits:
        begun = len(fits) > 0 or fits.target is not None or (to / iterates.NAME).exists()
        targetless = len(fits) > 0 and fits.target is None
        if targetless or (begun and not is_claimed(to)):
            missing = "the target that they were made to" if targetless else "whose"
            msg = (
                f"'{to}' holds results, but not {missing}, so that going on could mix two runs. "
                "Choose another folder, or delete this one to start anew."
            )
            raise AnotherRunError(msg)
        claim(to, method=aligner, states=images.states())
        if fits.target is None:
            read = Watched(images, step="making the target", report=report)
            with one_blas_thread():
                fits.keep_target(made_target(aligner, read, folder=to, workers=workers))
        (to / iterates.NAME).unlink(missing_ok=True)
        read = Watched(images, step="fitting", report=report, done=len(fits))
        return align(aligner, read, target=fits.target, sink=fits, workers=workers)


class Watched(View[Matrix]):
    """Images that report every reading of one of them.

    Parameters
    ----------
    images : mapping of str to ndarray
        By party name; read as they are.
    step : str
        What to call the work.
    report : callable
        Told after each image. A method that passes over all of them again begins anew, and the
        step's name then ends in ", pass 2" and so on: GOPP makes one for each iteration.
    done : int
        How many were done before.

    Notes
    -----
    **Who sees what.** The report gets counts.

    **Cost.** One call per image.
    """

    def __init__(self, images: Images, *, step: str, report: Report, done: int = 0) -> None:
        super().__init__(images)
        self._images = images
        self._step = step
        self._report = report
        self._read = done
        report(step, done, len(images))

    def __getitem__(self, party: str) -> Matrix:
        """Read one image, and say so."""
        image = self._images[party]
        before, done = divmod(self._read, len(self))
        self._read += 1
        again = f"{AGAIN}{before + 1}" if before else ""
        self._report(f"{self._step}{again}", done + 1, len(self))
        return image
