"""Is what is inside an upload usable? Looked at block by block, before anything is acknowledged."""

import hashlib
from pathlib import Path
from typing import cast

from cobasis.algorithms.images import check_image
from cobasis.bundle.payload import Payload
from cobasis.disk.files import opened
from cobasis.features.reading import refuse_huge
from cobasis.linalg.arrays import as_matrix
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.refusals import (
    as_message_error,
    check_envelope,
    refuse_labels,
    refuse_sizes,
)

BLOCK_CELLS = 2**21
_PIECE = 2**20


def check_payload(payload: Payload, agreement: Agreement) -> None:
    """Refuse an upload whose tables no run could use."""
    check_envelope(payload, agreement)
    place = payload.labels_place
    refuse_sizes(
        payload.party,
        agreement,
        rows=payload.rows_place.shape,
        image=payload.image_place.shape,
        n_labels=None if place is None else place.shape[0],
    )
    labels = payload.labels()  # as many as rows, by now
    if labels is not None:
        refuse_labels(labels, agreement, party=payload.party)
    name = "its table of rows"
    with as_message_error(f"the upload of party '{payload.party}'"):
        check_image(payload.party, payload.anchor_image(), n_rows=agreement.n_anchor_rows)
        for block in payload.row_blocks(max(1, BLOCK_CELLS // payload.n_components)):
            refuse_huge(as_matrix(block, name=name), name=name)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with opened(path) as (file, _):
        while piece := cast("bytes", file.read(_PIECE)):
            digest.update(piece)
    return digest.hexdigest()
