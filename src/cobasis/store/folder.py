"""A folder of uploads, one file per party."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cobasis.algorithms.views import View
from cobasis.bundle.payload import Payload, open_payload
from cobasis.disk.files import refuse_changed
from cobasis.errors import AnchorTagError, DiskError, DuplicatePartyError, MessageError
from cobasis.protocol.refusals import check_envelope, refuse_sizes, require_known
from cobasis.store.anchor_images import AnchorImageFiles, ImageFile

if TYPE_CHECKING:
    from cobasis.disk.tensors import Place
    from cobasis.protocol.agreement import Agreement

SUFFIX = ".safetensors"
_LISTED = 5


class UploadFolder(View[Payload]):
    """The uploads in a folder, by party name, in the names' order.

    What is in the folder is looked at once, here; a file that is changed later is refused when
    it is read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     list(UploadFolder(Path(folder)))
    []
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._files: dict[str, ImageFile] = {}
        self._anchors: dict[tuple[bytes, bytes], list[str]] = {}
        places: dict[tuple[object, ...], Place] = {}  # one object for all that are alike
        for name in _file_names(self.path):
            payload = open_payload(self.path / name)
            party, place = payload.party, payload.image_place
            if party in self._files:
                raise DuplicatePartyError(
                    f"'{self._files[party].path}' and '{payload.path}' are both uploads of party "
                    f"'{party}': one is a duplicate or an impostor's. Remove it from the folder."
                )
            place = places.setdefault((place.dtype.str, place.shape, place.offset), place)
            self._files[party] = ImageFile(str(payload.path), payload.stamp, place)
            key = (payload.agreement_digest, payload.anchor_tag)
            self._anchors.setdefault(key, []).append(party)
        self._files = dict(sorted(self._files.items()))
        super().__init__(self._files)

    def __getitem__(self, party: str) -> Payload:
        """Open one party's upload; its numbers stay on disk."""
        path, stamp, _ = self._files[party]
        payload = open_payload(Path(path))
        refuse_changed(payload.stamp, stamp, what=f"the upload of party '{party}' in '{path}'")
        return payload

    def __repr__(self) -> str:
        """Say where, and how many."""
        return f"<UploadFolder '{self.path}' of {len(self)} parties>"

    def check(self, agreement: "Agreement", *, parties: Collection[str] | None = None) -> None:
        """Refuse uploads that are not of this agreement, by what their headers say."""
        for party in self if parties is None else parties:
            require_known(party, self)
            payload = self[party]
            check_envelope(payload, agreement)
            labels = payload.labels_place
            refuse_sizes(
                party,
                agreement,
                rows=payload.rows_place.shape,
                image=payload.image_place.shape,
                n_labels=None if labels is None else labels.shape[0],
            )

    def anchor_images(self, *, excluded: Collection[str] = ()) -> AnchorImageFiles:
        """Return the anchor images, each of which is read when it is asked for."""
        images = AnchorImageFiles(self._files).without(excluded)
        groups = {
            key: [party for party in parties if party in images]
            for key, parties in self._anchors.items()
        }
        groups = {key: parties for key, parties in groups.items() if parties}
        if len({agreement for agreement, _ in groups}) > 1:
            raise MessageError(
                f"the uploads are of more than one agreement: {_grouped(groups)}. They do not "
                "belong to one round. Put each round's into a folder of its own."
            )
        if len(groups) > 1:
            raise AnchorTagError(
                f"the parties used {len(groups)} different anchors: {_grouped(groups)}. Their "
                "images cannot be compared. Have those in the minority check the consortium "
                "secret and prepare again, or leave them out: excluded=[...]."
            )
        return images


def _file_names(folder: Path) -> list[str]:
    """Return the names of a folder's files that are whole, hidden ones not counted."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise DiskError(
            f"the folder '{folder}' cannot be read: {error.strerror}. Check the path."
        ) from error
    return sorted(name for name in names if name.endswith(SUFFIX) and not name.startswith("."))


def _grouped(groups: Mapping[tuple[bytes, bytes], list[str]]) -> str:
    """Return "north, south | east and 7 more"."""
    words = []
    for parties in groups.values():
        more = len(parties) - _LISTED
        words.append(", ".join(parties[:_LISTED]) + (f" and {more:,} more" if more > 0 else ""))
    return " | ".join(words)
