"""An alignment of more than fits in memory: read from files, written to files, resumed."""

from pathlib import Path

from cobasis.algorithms.base import Aligner, Alignment, align
from cobasis.algorithms.images import Images, require_some
from cobasis.algorithms.views import View
from cobasis.disk.whole import remove_tree
from cobasis.engine import iterates
from cobasis.engine.fit_folder import FitFolder
from cobasis.engine.iterates import made_target
from cobasis.engine.run_mark import claim, is_claimed
from cobasis.errors import AnotherRunError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import AGAIN, Report, silent
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
    """
    images = uploads.anchor_images() if isinstance(uploads, UploadFolder) else uploads
    require_some(images)
    with FitFolder(to) as fits:
        begun = len(fits) > 0 or fits.target is not None or (to / iterates.NAME).exists()
        targetless = len(fits) > 0 and fits.target is None
        if targetless or (begun and not is_claimed(to)):
            missing = "the target that they were made to" if targetless else "whose"
            raise AnotherRunError(
                f"'{to}' holds results, but not {missing}, so that going on could mix two runs. "
                "Choose another folder, or delete this one to start anew."
            )
        claim(to, method=aligner, states=images.states())
        if fits.target is None:
            read = Watched(images, step="making the target", report=report)
            with one_blas_thread():
                fits.keep_target(made_target(aligner, read, folder=to, workers=workers))
        remove_tree(to / iterates.NAME)
        read = Watched(images, step="fitting", report=report, done=len(fits))
        return align(aligner, read, target=fits.target, sink=fits, workers=workers)


class Watched(View[Matrix]):
    """Images that report every reading of one of them."""

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
