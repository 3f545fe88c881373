"""``analyst add`` and ``analyst remove``: a party that comes late, and one that leaves.

A removal is certified: what is gone, and what is not, in words and for programs.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from cobasis.analyst_side.forget import require_enough
from cobasis.analyst_side.history import ADDED, REMOVED, History, Outcome, history_of
from cobasis.analyst_side.receive import file_digest, take_in
from cobasis.analyst_side.run import RETURN, Concluded, conclude, delete_targets, family_of
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import make_folder, remove_tree, write_whole
from cobasis.errors import BundleError, SignatureError, StepError
from cobasis.models import ModelName
from cobasis.progress import Report, silent
from cobasis.protocol.enrolment import PublicIdentity, verify
from cobasis.protocol.refusals import require_known

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
        Whether the target was made again without it, then or when another party left.
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


def removal_of(session: AnalystSession, party: str) -> Removal:
    """Read a removal back from the transcript."""
    entries = verify_transcript(session.work.transcript).entries
    removals = [each for each in entries if each.event == REMOVED]
    lines = [each for each in removals if each.told["party"] == party]
    entry, since = lines[-1], removals[removals.index(lines[0]) :]
    outcome = history_of(entries).outcome
    upload = cast("str", entry.told["upload"])
    return Removal(
        round_id=session.agreement.round_id,
        agreement=session.digest,
        analyst=session.name,
        party=party,
        upload=upload,
        time=entry.time,
        transcript=entry.hash,
        trained_again=any("uploads" in each.told for each in lines),
        realigned=any(bool(each.told["realigned"]) for each in since),
        trained_on=() if outcome is None else tuple(outcome.uploads),
        target_carries=() if outcome is None else outcome.target_carries,
        model_sha256="" if outcome is None else outcome.model_sha256 or "",
    )


def write_removal(session: AnalystSession, removal: Removal, *, to: Path) -> tuple[Path, Path]:
    """Write the certificate, signed, and its text for people."""
    make_folder(to)
    told = removal.told()
    signature = session.identity.sign(_SIGNED + _canonical(told)).hex()
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


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a removal has made.

    Attributes
    ----------
    removal : Removal
        What is gone, and what is not; as the certificate says it.
    files : tuple of Path
        The certificate, for programs and for people.
    concluded : Concluded or None
        The returns of those who stay; None where nothing had been trained on the party.
    """

    removal: Removal
    files: tuple[Path, ...]
    concluded: Concluded | None


def add(
    session: AnalystSession,
    upload: Path,
    *,
    to: Path,
    model: ModelName | None = None,
    cluster: str | None = None,
    report: Report = silent,
) -> Concluded:
    """Fit a party that comes late to the frozen target, and train again with it."""
    with session.at_work() as before:
        refuse_forgotten(session, before)
        outcome = _ran(session, before, "add a party")
        received, new = take_in(session, upload, history=before)
        history = before
        if new:
            history = replace(before, received={**before.received, received.party: received})
        return conclude(
            session,
            history,
            parties={*outcome.uploads, received.party},
            family=family_of(session.agreement, model or outcome.family),
            event=ADDED,
            told={"party": received.party},
            to=to,
            cluster=cluster,
            report=report,
        )


def remove(
    session: AnalystSession,
    party: str,
    *,
    to: Path,
    realign: bool = False,
    cluster: str | None = None,
    report: Report = silent,
) -> Removed:
    """Take a party's rows out, train again without them, and certify what is and is not gone.

    The party's upload is deleted after the returns of the others are written and recorded, and an
    older return to it in the same folder as well.
    """
    with session.at_work() as history:
        refuse_forgotten(session, history)
        require_known(party, {**history.received, **history.removed})
        before, concluded = history.outcome, None
        if before is not None and _has_part(party, before, realign=realign):
            concluded = _without(
                session, party, history, realign=realign, to=to, cluster=cluster, report=report
            )
        elif party in history.received:
            upload = history.received[party].upload
            session.transcript.append(
                REMOVED, {"party": party, "upload": upload, "realigned": False}
            )
        stale = to / f"{party}{RETURN}"  # of a run before; whoever sends the folder would send it
        for path in (session.work.payload(party), session.work.sealed(party), stale):
            remove_tree(path)
        removal = removal_of(session, party)
        _delete_models(session, removal)
        after = session.history().outcome
        if after is not None:  # a kill after the line, and before it was done, leaves older ones
            delete_targets(session, but=after.alignment)
        write_removal(session, removal, to=session.work.certificates)
        files = write_removal(session, removal, to=to)
    return Removed(removal=removal, files=files, concluded=concluded)


def _ran(session: AnalystSession, history: History, what: str) -> Outcome:
    """Return what was trained last; StepError when nothing was."""
    if history.outcome is not None:
        return history.outcome
    raise StepError(
        f"nothing has run in round '{session.agreement.round_id}', so there is no target to {what} "
        "with. Use 'cobasis analyst receive', then 'cobasis analyst run'."
    )


def _has_part(party: str, outcome: Outcome, *, realign: bool) -> bool:
    """Whether something has to be made again: the model, or the target."""
    return party in outcome.uploads or (realign and party in outcome.target_carries)


def _without(
    session: AnalystSession,
    party: str,
    history: History,
    *,
    realign: bool,
    to: Path,
    cluster: str | None,
    report: Report,
) -> Concluded:
    """Align, if it is asked for, and train, without a party."""
    outcome = _ran(session, history, "remove a party")
    stay = tuple(name for name in outcome.uploads if name != party)
    _require_enough(session, party, stay)
    upload = {**history.removed, **history.received}[party].upload
    return conclude(
        session,
        history,
        parties=stay,
        family=outcome.family,
        event=REMOVED,
        told={"party": party, "upload": upload, "realigned": realign},
        to=to,
        realign=realign,
        cluster=cluster,
        report=report,
    )


def _require_enough(session: AnalystSession, party: str, stay: Collection[str]) -> None:
    try:
        require_enough(session, stay, missing=[party])
    except StepError as error:
        raise StepError(
            f"without party '{party}' too few would stay: {error.args[0]} If the party has to "
            "leave at once, destroy the round's uploads: 'cobasis analyst forget --early'."
        ) from None


def _delete_models(session: AnalystSession, removal: Removal) -> None:
    """Delete models that the party's rows shaped from the work folder; one is in use."""
    if session.work.models.is_dir():
        used = removal.model_sha256
        for path in sorted(session.work.models.iterdir()):
            if not _is(path, used):
                remove_tree(path)


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and file_digest(path) == digest
