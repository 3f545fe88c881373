"""Very many parties without much memory: images made when asked for, uploads, and a sink."""

from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path

import numpy as np

from benchmarks.inputs import SEED, Images, Matrix, different
from cobasis.algorithms.base import Fit
from cobasis.bundle.payload import PayloadHeader, PayloadWriter

BASES = 16
A, L = 1000, 50


class SimulatedImages(Mapping[str, Matrix]):
    """Anchor images that are made anew each time: 16 spans, and each party's own signs.

    Parameters
    ----------
    n_parties : int
        c.
    """

    def __init__(self, n_parties: int) -> None:
        self._made: Images = different("isometric")(a=A, l=L, c=BASES)
        self._bases = list(self._made.values())
        self._n_parties = n_parties

    def __getitem__(self, name: str) -> Matrix:
        """Make one party's image."""
        number = int(name.removeprefix("party-"))
        rng = np.random.default_rng([SEED, number])
        image: Matrix = self._bases[number % BASES] * rng.choice([-1.0, 1.0], L)
        return image

    def __iter__(self) -> Iterator[str]:
        """Iterate over party names."""
        return (f"party-{number:06d}" for number in range(self._n_parties))

    def __len__(self) -> int:
        """Return the number of parties."""
        return self._n_parties

    def __contains__(self, name: object) -> bool:
        """Whether there is a party of that name."""
        return isinstance(name, str) and int(name.removeprefix("party-")) < self._n_parties


class Dropped(MutableMapping[str, Fit]):
    """A sink that keeps names only, and how far the worst G_i was from orthogonal."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self.worst_defect = 0.0

    def __setitem__(self, name: str, fit: Fit) -> None:
        """Look at one fit and forget it."""
        change = fit.change_of_basis
        defect = float(np.abs(change.T @ change - np.eye(change.shape[1])).max())
        self.worst_defect = max(self.worst_defect, defect)
        self._names.add(name)

    def __getitem__(self, name: str) -> Fit:
        """Refuse: nothing was kept."""
        raise KeyError(name)

    def __delitem__(self, name: str) -> None:
        """Forget a name."""
        self._names.remove(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the parties that are in."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many are in."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Whether a party is in."""
        return name in self._names


def write_uploads(folder: Path, n_parties: int) -> int:
    """Write float32 uploads of one row each; return their bytes.

    The first goes through the package's own writer. The others are its bytes with another name
    and another image: this is what makes 20,000 files a matter of seconds.
    """
    images = SimulatedImages(n_parties)
    names = list(images)
    path = folder / f"{names[0]}.safetensors"
    header = PayloadHeader(
        party=names[0],
        agreement_digest=bytes(32),
        anchor_tag=bytes(32),
        simulated=True,
        n_rows=1,
        n_components=L,
        n_anchor_rows=A,
        dtype="float32",
    )
    first = images[names[0]].astype(np.float32)
    with PayloadWriter(path, header=header) as writer:
        writer.write_anchor_image(first)
        writer.write_rows(0, np.zeros((1, L), np.float32))
    whole = path.read_bytes()
    place = whole.index(first.tobytes())
    for name in names[1:]:
        start = whole[:place].replace(names[0].encode(), name.encode())
        image = images[name].astype(np.float32).tobytes()
        rest = whole[place + len(image) :]
        (folder / f"{name}.safetensors").write_bytes(start + image + rest)
    return len(whole) * n_parties
