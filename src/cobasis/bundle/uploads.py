"""Uploads as files: one that is in memory written, a folder of them opened and read lazily."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cobasis.algorithms.images import View
from cobasis.bundle.payload import Payload, open_payload
from cobasis.bundle.precision import STORED, UploadFile
from cobasis.errors import DiskError, DuplicatePartyError
from cobasis.protocol.agreement_fields import Precision
from cobasis.protocol.messages import Upload, UploadHeader

SUFFIX = ".safetensors"
_SHARED = ("agreement_digest", "anchor_tag", "image_place", "labels_place", "rows_place")


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


class UploadFolder(View[Payload]):
    """The uploads in a folder, by party name, in the names' order.

    What is in the folder is looked at once, here; a file that is changed later is refused when
    it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        found: dict[str, Payload] = {}
        alike: dict[object, Any] = {}  # of 20,000 headers most say the same: it is kept once
        for name in _file_names(self.path):
            payload = open_payload(self.path / name)
            if payload.party in found:
                raise DuplicatePartyError(
                    f"'{found[payload.party].path}' and '{payload.path}' are both uploads of party "
                    f"'{payload.party}': one is a duplicate or an impostor's. Remove it from the "
                    "folder."
                )
            said = {word: getattr(payload, word) for word in _SHARED}
            once = {word: alike.setdefault(each, each) for word, each in said.items()}
            found[payload.party] = replace(payload, **once)
        payloads = dict(sorted(found.items()))
        super().__init__(payloads, read=payloads.__getitem__)  # their numbers stay on disk

    def __repr__(self) -> str:
        """Say where, and how many."""
        return f"<UploadFolder '{self.path}' of {len(self)} parties>"


def _file_names(folder: Path) -> list[str]:
    """Return the names of a folder's files that are whole, hidden ones not counted."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise DiskError(
            f"the folder '{folder}' cannot be read: {error.strerror}. Check the path."
        ) from error
    return sorted(name for name in names if name.endswith(SUFFIX) and not name.startswith("."))
