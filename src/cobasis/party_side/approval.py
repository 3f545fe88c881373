"""What an officer approves, and whether it still holds: an audit, as its party signed it.

The party's signature shows an officer that a figure was edited. Were it made by whoever edits,
`send` notices: it audits the file once more, and takes no approval of better figures.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cobasis.bundle.agreement_file import beside, line_in
from cobasis.bundle.transcript import now
from cobasis.disk.whole import make_folder, opened, write_whole
from cobasis.errors import ApprovalError, AuditUnsignedError, CobasisError
from cobasis.keys.identity import Identity
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES
from cobasis.party_side.session import PartySession
from cobasis.privacy.audit.report import POLICY, AuditReport, from_json, seal_of, worst
from cobasis.protocol.agreement import Agreement, moment_text
from cobasis.protocol.enrolment import Approver, officers_of, verify
from cobasis.protocol.exchanges import EXCHANGES, MessageName
from cobasis.protocol.signatures import Approval, signers
from cobasis.protocol.word import WORD
from cobasis.strict_json import canonical_json, json_object

_AUDITED = b"cobasis/audited/1\0"
_BOUND = (
    *("exchange", "data_version", "rows_held_back", "columns", "basis"),
    *("precision", "history", "policy", "tool_version", "mapping"),
)
"""What an approval binds besides the agreement, as a report says what it is about."""

_SHARES, _CHANCE = ("explained", "linked", "gain"), 0.02
"""Figures of which less is better, and how far one draw may lie above another."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Audited(Hidden):
    """A report, with what makes a hash of it that nobody can guess, and what its page says."""

    told: Mapping[str, Any]  # as it is kept: of an older version, other fields than the report's
    salt: bytes = field(default_factory=partial(secrets.token_bytes, KEY_BYTES))
    page: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def report(self) -> AuditReport:
        return from_json(self.told)

    @cached_property
    def seal(self) -> str:
        return seal_of(self.told, salt=self.salt)

    @property
    def record(self) -> dict[str, str]:
        """What travels with an upload."""
        return {"policy": POLICY, "verdict": self.report.verdict, "report": self.seal}

    @property
    def message(self) -> bytes:
        return _AUDITED + bytes.fromhex(self.seal) + canonical_json(self.page)


def keep(session: PartySession, found: Audited, **page: object) -> Path:
    """Write a report into the party's home, with its salt, signed, for its owner only."""
    make_folder(session.audits)
    path = session.audits / f"{found.seal[:16]}.json"
    told = {"salt": found.salt.hex(), "report": found.told, "page": page}
    told["signature"] = session.identity.sign(replace(found, page=page).message).hex()
    write_whole(path, json.dumps(told, sort_keys=True).encode())
    return path


def read_audit(path: Path, agreement: Agreement) -> Audited:
    flaw = "it was edited, or is not what 'cobasis audit' writes beside its page"
    with opened(path) as (file, _), suppress(KeyError, TypeError, ValueError):
        told = json_object(file.readall() or b"")
        salt, signature = bytes.fromhex(told["salt"]), bytes.fromhex(told["signature"])
        found = Audited(told=told["report"], salt=salt, page=told["page"])
        about = found.report.about
        if about["agreement"] != agreement.digest().hex():
            flaw = "it is of another agreement"
        elif verify(signers(agreement)[about["party"]], found.message, signature=signature):
            return found
    raise ApprovalError(
        f"the audit '{path}' cannot be used: {flaw}. Have the file audited under this agreement, "
        "and take what 'cobasis audit' writes as it is."
    )


def approve_audit(
    audit: Audited,
    agreement: Agreement,
    *,
    identity: Identity,
    until: str = "",
    times: int = 1,
    withdrawn: bool = False,
    word: bool = False,
) -> Approval:
    """Sign for an audited file; without another word until the deadline, or for 30 days."""
    about, time = audit.report.about, moment_text(now())
    made = Approval(
        agreement=agreement.digest().hex(),
        party=about["party"],
        report=audit.seal,
        exchange=about["exchange"],
        times=times,
        time=time,
        expires=until or agreement.deadline or moment_text(now() + timedelta(days=30)),
        withdrawn=withdrawn,
        word=word,
        signature="0" * 128,
    )
    if made.expires < time and not withdrawn:
        raise ApprovalError(
            f"this approval would have ended on {made.expires}, and it is {time}: the deadline has "
            "passed, or --deadline names a time that has. Agree on a new round, or name a later."
        )
    return made.model_copy(update={"signature": identity.sign(made.message()).hex()})


def approvals(agreement: Path, party: str) -> tuple[Approval, ...]:
    return tuple(line_in(each, Approval) for each in beside(agreement, f"{party}.*.approval"))


def newest(given: Iterable[Approval], agreement: Agreement) -> tuple[Approval, ...]:
    """Return each officer's last word on an audit and a kind of file.

    A withdrawal ends what was given for that kind of file before, by whichever audit.
    """
    found: dict[tuple[Approver | None, str, MessageName], Approval] = {}
    for each in sorted(given, key=lambda each: (each.time, each.withdrawn)):
        who, kind = each.officer(agreement), each.exchange
        if each.withdrawn:
            found = {key: told for key, told in found.items() if (key[0], key[2]) != (who, kind)}
        found[who, each.report, kind] = each
    return tuple(found.values())


def word_approved(session: PartySession) -> str:
    """Return an approval that covers a word on the model, as text; none where none is needed."""
    agreement, at = session.agreement, moment_text(now())
    if not officers_of(agreement, session.name):
        return ""
    used = {each.told["approval"] for each in session.history(WORD)}
    for each in newest(approvals(session.path, session.name), agreement):
        if each.text() not in used and each.covers_word(agreement, party=session.name, at=at):
            return each.text()
    raise AuditUnsignedError(
        f"a word of party '{session.name}' on the model needs the approval of an officer, and none "
        f"that lies beside '{session.path.name}' covers one, or it was used. Have the upload's "
        f"audit approved with --word: cobasis approve {session.path.name} audit.json --word."
    )


def approved(session: PartySession, found: Audited) -> dict[str, Approval]:
    """Return the approvals that hold by their officers' names; none where none is needed."""
    agreement, party = session.agreement, session.name
    officers = officers_of(agreement, party)
    if not officers:
        return {}
    last = newest(approvals(session.path, party), agreement)
    flaws = {each: _flaw(session, found.report, each) for each in last}
    sound = (each for each in last if not flaws[each])
    good = {who.name: each for each in sound if (who := each.officer(agreement))}
    if good:
        return good
    then = (
        "Nothing has left. Make an audit with -o audit.html, and have it approved: cobasis approve "
        f"{session.path.name} audit.json."
    )
    if flaws:
        why = "; ".join(dict.fromkeys(flaws.values()))
        raise ApprovalError(f"no approval for this file of party '{party}' holds: {why}. {then}")
    raise AuditUnsignedError(
        f"each file of party '{party}' needs the approval of an officer whom the agreement names "
        f"({', '.join(officers)}), and there is none. {then}"
    )


def _flaw(session: PartySession, report: AuditReport, approval: Approval) -> str:
    """Say why an approval does not let the file leave that a report is of; nothing if it does."""
    agreement, exchange, at = session.agreement, report.about["exchange"], moment_text(now())
    if flaw := approval.flaw(agreement, party=session.name, exchange=exchange, at=at):
        return flaw
    sent = session.history(EXCHANGES[exchange].sent_as)
    left = sum(approval.signature in str(each.told.get("approvals")) for each in sent)
    if left >= approval.times:
        return "one was used up"
    kept = None
    with suppress(CobasisError):
        kept = read_audit(session.audits / f"{approval.report[:16]}.json", agreement)
    if kept is None or kept.seal != approval.report:
        return "one is of an audit that this home does not keep as it was"
    before, about = kept.report.about, report.about
    changed = [each for each in _BOUND if before.get(each) != about.get(each)]
    if changed:
        words = ", ".join(changed).replace("_", " ")
        return f"what one was given for is not as it was then: {words}"
    worse = "; ".join(_worse(kept.report, report))
    return f"the audit is worse than the approved one: {worse}" if worse else ""


def _worse(before: AuditReport, after: AuditReport) -> Iterator[str]:
    for each in after.findings:
        then = before[each.id]
        # worse than guessing is as good as guessing
        most = {name: max(0, then.figures.get(name, 1)) + _CHANCE for name in _SHARES}
        larger = any(each.figures.get(name, 0) > most[name] for name in _SHARES)
        if larger or worst(then.grade, each.grade) != then.grade:
            yield f"{each.title} ({each.id})"
