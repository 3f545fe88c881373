"""``remove``: a party that leaves, certified: what is gone and what is not, in words and signed."""

import textwrap
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from cobasis.analyst_side.history import REMOVED, history_of
from cobasis.analyst_side.plan import listed, planned
from cobasis.analyst_side.returns import Conclusion
from cobasis.analyst_side.run import conclude, delete_targets
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import inbox_of, stem_of
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import file_digest, make_folder, remove_tree, write_whole
from cobasis.errors import CobasisError, SignatureError, StepError, UnknownPartyError
from cobasis.protocol.enrolment import PublicIdentity, verify
from cobasis.protocol.refusals import require_known
from cobasis.protocol.terms import others_of
from cobasis.protocol.vertical import complete
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/removal/1"
_SIGNED = b"cobasis/removal/1\0"


@dataclass(frozen=True, kw_only=True)
class Removal:
    round_id: str
    agreement: str
    analyst: str
    party: str
    files: tuple[str, ...]  # digests of all that it sent, as it was sealed
    time: str
    transcript: str  # hash of the transcript's line
    trained_again: bool
    realigned: bool  # whether the target was made again without it, then or later
    trained_on: tuple[str, ...]  # whose rows shaped the model that is in use now
    target_carries: tuple[str, ...]  # from whom the target in use descends; before, a common span
    model_sha256: str  # in use now; empty where there is none

    @property
    def gone(self) -> tuple[str, ...]:
        files = ", ".join(each[:16] for each in self.files)
        gone = f"The rows of '{self.party}' are out: what it sent ({files}) was deleted from the "
        found = [f"{gone}analyst's work folder, sealed and opened."]
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
        found = []
        if self.trained_on and not self.realigned:
            found.append(
                "The changes of basis of the other parties are unchanged: none was computed again. "
                f"That of '{self.party}' stays beside the target, with the analyst."
            )
        if self.target_carries:
            what = "target" if self.trained_on else "common span"
            alone = ", of whose anchor image it is made" * (len(self.target_carries) == 1)
            found.append(f"The {what} still descends from {', '.join(self.target_carries)}{alone}.")
        if self.party in self.target_carries:
            span = "a common span that it helped to shape is only replaced by a new round"
            if self.trained_on and not self.realigned:
                span = f"a target is replaced by --realign; where there is one, {span}"
            found.append(f"That includes '{self.party}': {span}.")
        found.append(
            "Models and returns that were sent before, and copies of sealed files in inboxes and "
            "backups, are not reached by this removal."
        )
        return tuple(found)

    def text(self) -> str:
        fit = textwrap.TextWrapper(width=79, subsequent_indent="  ", break_long_words=False).fill
        lines = [
            f"Certificate of removal: party '{self.party}', round '{self.round_id}'",
            f"{self.time}, certified by '{self.analyst}'\n",
            "Gone:",
            *(fit(f"- {sentence}") for sentence in self.gone),
            "\nNot gone:",
            *(fit(f"- {sentence}") for sentence in self.not_gone),
        ]
        return "\n".join(lines) + "\n"


def removal_of(session: AnalystSession, party: str) -> Removal:
    entries = verify_transcript(session.work.transcript)
    at, line = next(
        (at, each)
        for at, each in enumerate(entries)
        if each.event == REMOVED and each.told["party"] == party
    )
    before, now = history_of(entries[:at]).outcome, session.history.outcome
    last = [each for each in entries[at:] if each is line or "uploads" in each.told][-1]
    return Removal(
        round_id=session.agreement.round_id,
        agreement=session.digest,
        analyst=session.name,
        party=party,
        files=tuple(cast("list[str]", line.told["files"])),
        time=last.time,
        transcript=last.hash,
        trained_again=before is not None and party in before.uploads,
        realigned=bool(before and now and before.alignment != now.alignment),
        trained_on=() if now is None else tuple(now.uploads),
        target_carries=session.history.contributors if now is None else now.target_carries,
        model_sha256="" if now is None else now.model_sha256,
    )


def _write(session: AnalystSession, removal: Removal) -> tuple[Path, Path]:
    """Write the certificate, signed, and its text for people; rounds of a server share outbox/."""
    make_folder(session.outbox)
    told = {**asdict(removal), "gone": list(removal.gone), "not_gone": list(removal.not_gone)}
    signature = session.identity.sign(_SIGNED + canonical_json(told)).hex()
    data = {"format": FORMAT, "removal": told, "signature": signature}
    stem = f"{stem_of(session.path)}.removal-{removal.party}"
    paths = session.outbox / f"{stem}.json", session.outbox / f"{stem}.txt"
    write_whole(paths[0], canonical_json(data) + b"\n")
    write_whole(paths[1], removal.text().encode())
    return paths


def check_removal(text: bytes, *, analyst: PublicIdentity) -> dict[str, Any]:
    """Return what a certificate of a removal says; ValueError or LookupError where it is none."""
    found = json_object(text)
    told, signature = found["removal"], bytes.fromhex(found["signature"])
    if not verify(analyst, _SIGNED + canonical_json(told), signature=signature):
        raise SignatureError(
            f"this certificate of a removal is not signed by analyst '{analyst.name}', so it "
            "proves nothing. Ask the analyst for it once more."
        )
    return cast("dict[str, Any]", told)


@dataclass(frozen=True, kw_only=True)
class Removed:
    removals: tuple[Removal, ...]
    files: tuple[Path, ...]  # the certificates, each for programs and for people
    concluded: Conclusion | None  # None where nothing had been trained on who leaves


def remove(session: AnalystSession, parties: Sequence[str], *, realign: bool = False) -> Removed:
    """Take parties' rows out, train once without them, and certify what is and is not gone."""
    with session.at_work() as history:
        session.require_kept()
        session.refuse_revoked(out={*parties, *history.removed, *history.without})
        files = {party: _files_of(session, party) for party in parties}
        before, concluded, staying = history.outcome, None, list[str]()
        if before and not {*files}.isdisjoint({*before.uploads, *before.target_carries * realign}):
            staying = _staying(session, files, before.uploads)

        def note() -> None:
            for party, sent in files.items():
                if party not in history.removed:
                    session.note(REMOVED, {"party": party, "files": sent})

        # The record says who left when all that a training may be refused for is behind, and before
        # the training's own line. A kill between the two leaves them in the model: `run` refuses,
        # and the same command trains without them.
        if before and staying:
            away = {"without": list(history.without), "missing": []}
            made: Any = {"family": before.model, "away": away, "realign": realign}
            concluded = conclude(session, parties=staying, made_all=note, **made)
        else:
            note()
        # Files go after the transcript's line. A kill in between leaves files of somebody who is
        # removed by the record: no command reads them, `receive` refuses the party, and the same
        # command deletes them. Files that go first would be missed by a round that still needs
        # them, and that may have been killed before its new model.
        for party in files:
            _delete(session, party)
        removals = tuple(removal_of(session, party) for party in files)
        for path in sorted(session.work.models.glob("*")):  # all but the one that is in use
            if not path.is_file() or file_digest(path) != removals[-1].model_sha256:
                remove_tree(path)
        if history.outcome is not None:  # a kill after the line leaves older ones
            delete_targets(session, but=history.outcome.alignment)
        paths = tuple(path for each in removals for path in _write(session, each))
        session.tell()
    return Removed(removals=removals, files=paths, concluded=concluded)


def _delete(session: AnalystSession, party: str) -> None:
    remove_tree(session.work.payload(party))
    for exchange in session.exchanges:  # replies, too: whoever sends the outbox sends them
        remove_tree(session.work.sealed(party, exchange))
        for name in (party, *others_of(session.agreement.held_by(party))):  # its block goes
            remove_tree(session.reply(name, exchange))
    remove_tree(inbox_of(session.path) / party)  # a server's


def _files_of(session: AnalystSession, party: str) -> list[str]:
    require_known(party, session.agreement.parties)
    if session.agreement.sums is not None or session.work.table.exists():
        go_on = ""
        with suppress(CobasisError):  # where the agreement does not allow it
            if not planned(session, without=[party]).ended:
                go_on = f", or, before the total is made: cobasis run --without {party}"
        raise StepError(
            f"the sums of party '{party}' cannot be taken out of a total: nobody can read them. "
            f"Agree on a new round{go_on}."
        )
    files = [each.file for each in session.history.files.values() if each.party == party]
    if not files:
        raise UnknownPartyError(
            f"party '{party}' has sent nothing in round '{session.agreement.round_id}', so there "
            f"is nothing to remove. To go on without it: cobasis run --without {party}."
        )
    return files


def _staying(
    session: AnalystSession, parties: Collection[str], uploads: Iterable[str]
) -> list[str]:
    out = {*parties, *session.history.removed}
    stay = complete([name for name in uploads if name not in out], session.agreement)
    least = session.exchanges[-1].fewest
    if len(stay) < least:
        raise StepError(
            f"without {listed(parties)} {len(stay)} would stay ({listed(stay)}), and at least "
            f"{least} have to. Take another party in first, or, if nobody can wait for that, "
            "destroy all that was sent in this round: cobasis forget --early."
        )
    return stay
