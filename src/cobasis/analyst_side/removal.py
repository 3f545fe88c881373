"""The certificate of a removal: what is gone, and what is not, in words and for programs."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import REMOVED, history_of
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import make_folder, write_whole
from cobasis.errors import BundleError, SignatureError
from cobasis.protocol.enrolment import PublicIdentity, verify

FORMAT = "cobasis/removal/1"
_SIGNED = b"cobasis/removal/1\0"
_MAX_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A removal, as the transcript has it.

    Attributes
    ----------
    round_id, agreement, analyst : str
        The round, the agreement's digest, and who certifies.
    party : str
        Who left.
    upload : str
        Digest of its sealed upload.
    time, transcript : str
        When, and the hash of the transcript's line.
    trained_again : bool
        Whether a model had been trained on its rows, and was replaced.
    realigned : bool
        Whether the target was made again without it.
    trained_on : tuple of str
        Whose rows shaped the model that is in use now.
    target_carries : tuple of str
        From whom the target that is in use now descends.
    model_sha256 : str
        The model that is in use now; empty where there is none.
    """

    round_id: str
    agreement: str
    analyst: str
    party: str
    upload: str
    time: str
    transcript: str
    trained_again: bool
    realigned: bool
    trained_on: tuple[str, ...]
    target_carries: tuple[str, ...]
    model_sha256: str

    @property
    def gone(self) -> tuple[str, ...]:
        """What is gone, in sentences."""
        rows = (
            f"The rows of '{self.party}' are out: its upload ({self.upload[:16]}) was deleted from "
            "the analyst's work folder, sealed and opened."
        )
        found = [rows]
        if not self.trained_again:
            found.append(f"No model of this round was trained on the rows of '{self.party}'.")
        elif self.model_sha256:
            found.append(
                f"The model was trained again, on {', '.join(self.trained_on)} alone "
                f"({self.model_sha256[:16]}). The model before is to be deleted by everybody."
            )
        if self.realigned:
            found.append(
                "Target and changes of basis were made again without its anchor image, and "
                "everybody got new ones."
            )
        return tuple(found)

    @property
    def not_gone(self) -> tuple[str, ...]:
        """What is not gone, in sentences."""
        found = []
        if self.trained_on and not self.realigned:
            found.append(
                "The changes of basis of the other parties are unchanged: none was computed again. "
                f"That of '{self.party}' stays beside the target, with the analyst."
            )
        if self.target_carries:
            found.append(f"The target still descends from {', '.join(self.target_carries)}.")
        if self.party in self.target_carries:
            found.append(
                f"That includes '{self.party}'. A common span that it helped to shape is only "
                "replaced by a new round; a target by --realign."
            )
        found.append(
            "Models and returns that were sent before, and copies of the sealed upload in inboxes "
            "and backups, are not reached by this removal."
        )
        return tuple(found)

    def text(self) -> str:
        """Return the certificate for people."""
        lines = [
            f"Certificate of removal: party '{self.party}', round '{self.round_id}'",
            f"{self.time}, certified by '{self.analyst}'",
            "",
            "Gone:",
            *(f"- {sentence}" for sentence in self.gone),
            "",
            "Not gone:",
            *(f"- {sentence}" for sentence in self.not_gone),
        ]
        return "\n".join(lines) + "\n"

    def told(self) -> dict[str, Any]:
        """Return what is signed."""
        return {**asdict(self), "gone": list(self.gone), "not_gone": list(self.not_gone)}


def removal_of(desk: AnalystDesk, party: str) -> Removal:
    """Read a removal back from the transcript."""
    entries = verify_transcript(desk.work.transcript).entries
    lines = [each for each in entries if each.event == REMOVED and each.told["party"] == party]
    entry = lines[-1]
    outcome = history_of(entries).outcome
    upload = cast("str", entry.told["upload"])
    return Removal(
        round_id=desk.agreement.round_id,
        agreement=desk.digest,
        analyst=desk.name,
        party=party,
        upload=upload,
        time=entry.time,
        transcript=entry.hash,
        trained_again=any("uploads" in each.told for each in lines),
        realigned=any(bool(each.told["realigned"]) for each in lines),
        trained_on=() if outcome is None else tuple(outcome.uploads),
        target_carries=() if outcome is None else outcome.target_carries,
        model_sha256="" if outcome is None else outcome.model_sha256 or "",
    )


def write_removal(desk: AnalystDesk, removal: Removal, *, to: Path) -> tuple[Path, Path]:
    """Write the certificate, signed, and its text for people."""
    make_folder(to)
    told = removal.told()
    signature = desk.identity.sign(_SIGNED + _canonical(told)).hex()
    data = {"format": FORMAT, "removal": told, "signature": signature}
    paths = to / f"removal-{removal.party}.json", to / f"removal-{removal.party}.txt"
    write_whole(paths[0], _canonical(data) + b"\n")
    write_whole(paths[1], removal.text().encode())
    return paths


def check_removal(text: bytes, *, analyst: PublicIdentity) -> dict[str, Any]:
    """Check that a certificate is the analyst's."""
    try:
        found: Any = json.loads(text) if len(text) <= _MAX_BYTES else None
        told, signature = found["removal"], bytes.fromhex(found["signature"])
        good = found["format"] == FORMAT and isinstance(told, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise BundleError(
            "this is no certificate of a removal. Ask the analyst for the .json file once more."
        )
    if not verify(analyst, _SIGNED + _canonical(told), signature=signature):
        raise SignatureError(
            f"this certificate of a removal is not signed by analyst '{analyst.name}', so it "
            "proves nothing. Ask the analyst for it once more."
        )
    return cast("dict[str, Any]", told)


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
