"""An upload that fits in memory, written to a file and read from one."""

from pathlib import Path

from cobasis.bundle.payload import open_payload
from cobasis.bundle.precision import STORED, UploadFile
from cobasis.protocol.agreement_fields import Precision
from cobasis.protocol.messages import Upload, UploadHeader


def write_upload(
    upload: Upload,
    path: Path,
    *,
    precision: Precision | None = None,
    int8_range: float | None = None,
) -> None:
    """Write an upload to a file; in the precision that its rows have, if none is named."""
    as_they_are = {dtype: each for each, dtype in STORED.items()}[upload.rows.dtype.name]
    labels = upload.labels
    header = UploadHeader(
        party=upload.party,
        agreement_digest=upload.agreement_digest,
        anchor_tag=upload.anchor_tag,
        simulated=upload.simulated,
        n_rows=upload.rows.shape[0],
        n_components=upload.rows.shape[1],
        n_anchor_rows=upload.anchor_image.shape[0],
        labels=None if labels is None else labels.dtype.name,
    )
    file = UploadFile(path, precision=precision or as_they_are, int8_range=int8_range)  # type: ignore[arg-type]
    with file(header) as writer:
        writer.write_anchor_image(upload.anchor_image)
        if labels is not None:
            writer.write_labels(labels)
        writer.write_rows(0, upload.rows)


def read_upload(path: Path) -> Upload:
    """Read a whole upload, for ``Analyst.receive``."""
    payload = open_payload(path)
    return Upload(
        party=payload.party,
        agreement_digest=payload.agreement_digest,
        anchor_tag=payload.anchor_tag,
        rows=payload.row_block(0, payload.n_rows),
        labels=payload.labels(),
        anchor_image=payload.anchor_image(),
        simulated=payload.simulated,
    )
