"""Where the analyst's files of one round lie: a folder beside the agreement."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_left, remove_tree

SUFFIX = ".round"


class WorkFolder:
    """The analyst's folder of one round: ``icu.round`` beside ``icu.toml``.

    Attributes
    ----------
    transcript, uploads, payloads, receipts, incoming, alignments, models, certificates : Path
        Inside it: uploads as they came, and opened; what was signed; what was made of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.transcript = path / "transcript.jsonl"
        self.uploads = path / "uploads"
        self.payloads = path / "payloads"
        self.receipts = path / "receipts"
        self.incoming = path / "incoming"
        self.alignments = path / "alignment"
        self.models = path / "models"
        self.certificates = path / "certificates"

    def sealed(self, party: str) -> Path:
        """Return where a party's upload stands as it came."""
        return self.uploads / f"{party}.upload"

    def payload(self, party: str) -> Path:
        """Return where a party's upload stands when it is opened."""
        return self.payloads / f"{party}.safetensors"

    def receipt(self, party: str) -> Path:
        """Return where a party's receipt stands."""
        return self.receipts / f"{party}.receipt"

    @property
    def consensus(self) -> Path:
        """Where the common span stands, when there is one."""
        return self.path / "consensus.safetensors"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and clear what a crash left half done."""
        for folder in (self.path, self.uploads, self.payloads, self.receipts):
            make_folder(folder)
        busy = (
            f"another process is at work in '{self.path}'. Two at a time would mix their "
            "results. Wait for it, then start again."
        )
        with Lock(self.path / "lock", what=f"'{self.path}'", busy=busy):
            remove_tree(self.incoming)
            remove_left(self.path)
            yield
