"""The certificate of an alignment whose uploads stay on disk."""

from cobasis.algorithms.base import Alignment
from cobasis.algorithms.certificate import Certificate, RowMoments, certify, row_moments
from cobasis.algorithms.views import View
from cobasis.engine.alignments import Watched
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.refusals import refuse_certificate, refuse_labels
from cobasis.store.folder import UploadFolder

BLOCK_CELLS = 2**21
"""How many numbers of a party's rows are read at a time: 16 MB as float64."""


def certify_folder(
    uploads: UploadFolder,
    alignment: Alignment,
    *,
    agreement: Agreement,
    report: Report = silent,
    workers: int | None = None,
) -> Certificate:
    """State the facts of an alignment of a folder of uploads, and the evidence."""
    parties = list(alignment.fits)
    uploads.check(agreement, parties=parties)
    for party in parties:
        labels = uploads[party].labels()
        if labels is not None:
            refuse_labels(labels, agreement, party=party)
    images = uploads.anchor_images(excluded=[name for name in uploads if name not in parties])
    certificate = certify(
        Watched(images, step="certifying", report=report),
        alignment,
        moments=_Moments(uploads),
        order=agreement.parties,
        anchor=agreement.anchor,
        basis=agreement.basis,
        n_features=agreement.n_features,
        workers=workers,
    )
    refuse_certificate(certificate, agreement)
    return certificate


class _Moments(View[RowMoments]):
    """Moments of uploads on disk, added up when they are asked for."""

    def __init__(self, uploads: UploadFolder) -> None:
        super().__init__(uploads)
        self._uploads = uploads

    def __getitem__(self, party: str) -> RowMoments:
        """Read a party's rows, block by block."""
        upload = self._uploads[party]
        n_rows = max(1, BLOCK_CELLS // upload.n_components)
        return row_moments(upload.row_blocks(n_rows), party=party)
