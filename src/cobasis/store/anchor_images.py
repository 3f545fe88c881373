"""Anchor images that stay on disk: each is read when it is asked for, and forgotten."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cobasis.algorithms.views import View
from cobasis.bundle.payload import MAX_IMAGE_BYTES
from cobasis.disk.files import Stamp, read_array
from cobasis.disk.tensors import Place, read_header, refuse, widened
from cobasis.errors import UnknownPartyError
from cobasis.linalg.arrays import Matrix

_MAX_HEADER = 2**20  # a file of one's own may hold more tables than an upload


class ImageFile(NamedTuple):
    """One party's anchor image on disk: in which file, of which state, and where in it."""

    path: str
    stamp: Stamp
    place: Place


class AnchorImageFiles(View[Matrix]):
    """Anchor images by party name, as every aligner takes them, without holding one of them.

    Asking for an image reads it into a fresh array, float32 or float64 as it is in the file;
    float16 becomes float32.
    A file that is no longer the one that was opened is refused, whichever pass finds it.
    """

    def __init__(self, files: Mapping[str, ImageFile]) -> None:
        super().__init__(files)
        self._files = files

    def __getitem__(self, party: str) -> Matrix:
        """Read one party's image."""
        path, stamp, place = self._files[party]
        image: Matrix = np.empty(place.shape, place.dtype)
        what = f"the anchor image of party '{party}' in '{path}'"
        read_array(path, image, offset=place.offset, stamp=stamp, what=what)
        return widened(image)

    def __repr__(self) -> str:
        """Say how many, and not whose."""
        return f"<AnchorImageFiles of {len(self)} parties>"

    def states(self) -> dict[str, str]:
        """Return for each party what changes whenever its file does: size and time of writing."""
        return {
            party: f"{each.stamp.size} bytes, {each.stamp.modified_ns}"
            for party, each in self._files.items()
        }

    def without(self, parties: Collection[str]) -> "AnchorImageFiles":
        """Return the images of all parties but some."""
        gone = frozenset([parties] if isinstance(parties, str) else parties)
        for party in sorted(gone - self._files.keys()):
            raise UnknownPartyError(
                f"party '{party}' is to be left out, and there is no upload of that name, so that "
                "somebody else may be meant. Correct the name."
            )
        return AnchorImageFiles({p: each for p, each in self._files.items() if p not in gone})


def images_in_files(paths: Mapping[str, Path], *, tensor: str = "anchor_image") -> AnchorImageFiles:
    """Take anchor images from safetensors files of one's own, one table of each.

    Examples
    --------
    >>> import tempfile
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"seen": np.eye(3, 2)}, Path(folder, "a.safetensors"))
    ...     images = images_in_files({"north": Path(folder, "a.safetensors")}, tensor="seen")
    ...     images["north"].shape
    (3, 2)
    """
    files: dict[str, ImageFile] = {}
    for party, path in paths.items():
        header = read_header(path, max_bytes=_MAX_HEADER)
        place = header.places.get(tensor)
        if place is None:
            refuse(header.what, f"it has no table {tensor!r}")
        if len(place.shape) != 2 or place.dtype.kind != "f":  # noqa: PLR2004 -- rows and columns
            refuse(header.what, f"its {tensor!r} is {place.dtype} of shape {place.shape}")
        if place.n_bytes > MAX_IMAGE_BYTES:
            refuse(header.what, f"its {tensor!r} has {place.n_bytes:,} bytes")
        files[party] = ImageFile(str(path), header.stamp, place)
    return AnchorImageFiles(files)
