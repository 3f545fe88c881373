"""An upload that fits in memory, written to a file and read from one."""

from pathlib import Path

from cobasis.bundle.payload import open_payload
from cobasis.bundle.writing import PayloadHeader, PayloadWriter
from cobasis.protocol.messages import Upload


def write_upload(upload: Upload, path: Path) -> None:
    """Write an upload to a file, as the streamed way does."""
    labels = upload.labels
    header = PayloadHeader(
        party=upload.party,
        agreement_digest=upload.agreement_digest,
        anchor_tag=upload.anchor_tag,
        simulated=upload.simulated,
        n_rows=upload.rows.shape[0],
        n_components=upload.rows.shape[1],
        n_anchor_rows=upload.anchor_image.shape[0],
        dtype=upload.rows.dtype.name,
        labels=None if labels is None else labels.dtype.name,
    )
    with PayloadWriter(path, header=header) as writer:
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
