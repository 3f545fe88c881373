"""Very many parties without much memory: images made when asked for, uploads, and a sink."""

from collections.abc import Iterator, MutableMapping
from pathlib import Path

import numpy as np

from benchmarks.inputs import SEED, Images, Matrix, different, names
from cobasis import Agreement, ConsortiumSecret, numeric_features
from cobasis.algorithms.fits import Fit
from cobasis.algorithms.images import View
from cobasis.bundle.payload import PayloadHeader, PayloadWriter

BASES = 16
A, L = 1000, 50


class SimulatedImages(View[Matrix]):
    """Anchor images that are made anew each time: 16 spans, and each party's own signs."""

    def __init__(self, n_parties: int) -> None:
        super().__init__(dict.fromkeys(names(n_parties)), read=self._drawn)
        self._made: Images = different("isometric")(a=A, l=L, c=BASES)
        self._bases = list(self._made.values())

    def _drawn(self, name: str) -> Matrix:
        """Make one party's image."""
        number = int(name.removeprefix("party-"))
        rng = np.random.default_rng([SEED, number])
        image: Matrix = self._bases[number % BASES] * rng.choice([-1.0, 1.0], L)
        return image


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


def agreement_of(n_parties: int) -> Agreement:
    """Return what the parties agreed on."""
    secret = ConsortiumSecret(bytes(32), simulated=True)
    return Agreement(
        round_id="many",
        parties=tuple(names(n_parties)),
        task="representation",
        features=numeric_features(f"x{column}" for column in range(A)),
        n_components=L,
        n_anchor_rows=A,
        commitment=secret.commitment("many"),
    )


def write_uploads(folder: Path, n_parties: int) -> int:
    """Write float32 uploads of one row each; return their bytes.

    The first goes through the package's own writer. The others are its bytes with another name
    and another image: this is what makes 20,000 files a matter of seconds.
    """
    images = SimulatedImages(n_parties)
    first_name, *others = images
    path = folder / f"{first_name}.safetensors"
    header = PayloadHeader(
        party=first_name,
        agreement_digest=agreement_of(n_parties).digest(),
        anchor_tag=bytes(32),
        simulated=True,
        n_rows=1,
        n_components=L,
        n_anchor_rows=A,
        dtype="float32",
    )
    first = images[first_name].astype(np.float32)
    with PayloadWriter(path, header=header) as writer:
        writer.write_anchor_image(first)
        writer.write_rows(0, np.full((1, L), A**-0.5, np.float32))
    whole = path.read_bytes()
    place = whole.index(first.tobytes())
    for name in others:
        start = whole[:place].replace(first_name.encode(), name.encode())
        image = images[name].astype(np.float32).tobytes()
        rest = whole[place + len(image) :]
        (folder / f"{name}.safetensors").write_bytes(start + image + rest)
    return len(whole) * n_parties
