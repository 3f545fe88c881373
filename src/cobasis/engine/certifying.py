"""The certificate of an alignment whose uploads stay on disk."""

import numpy as np

from cobasis.algorithms.base import Alignment
from cobasis.algorithms.concordance import Certificate, certify
from cobasis.bundle.payload import Payload
from cobasis.engine.alignments import Watched
from cobasis.errors import NotFiniteError
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
    """Judge an alignment of a folder of uploads by the round's own figures."""
    parties = list(alignment.fits)
    uploads.check(agreement, parties=parties)
    sizes: dict[str, float] = {}
    for done, party in enumerate(parties):
        report("measuring rows", done, len(parties))
        upload = uploads[party]
        labels = upload.labels()
        if labels is not None:
            refuse_labels(labels, agreement, party=party)
        sizes[party] = _root_mean_square(upload)
    report("measuring rows", len(parties), len(parties))
    images = uploads.anchor_images(excluded=[name for name in uploads if name not in sizes])
    certificate = certify(
        Watched(images, step="certifying", report=report),
        alignment,
        row_sizes=sizes,
        anchor=agreement.anchor,
        n_features=agreement.n_features,
        rng=np.random.default_rng(list(agreement.digest())),
        thresholds=agreement.thresholds,
        workers=workers,
    )
    refuse_certificate(certificate, agreement)
    return certificate


def _root_mean_square(upload: Payload) -> float:
    """Return the root mean square of a party's rows, block by block."""
    n_rows = max(1, BLOCK_CELLS // upload.n_components)
    squares = sum(
        float(np.vdot(block, block))
        for block in (each.astype(np.float64) for each in upload.row_blocks(n_rows))
    )
    if not np.isfinite(squares):
        raise NotFiniteError(
            f"the rows of party '{upload.party}' contain NaN or infinity, so nothing can be "
            "trained on them. Ask the party to prepare its upload again."
        )
    return float(np.sqrt(squares / (upload.n_rows * upload.n_components)))
