"""Who lets an audited upload leave: nobody has to, somebody signs, or two people override."""

import json
from dataclasses import dataclass
from pathlib import Path

from cobasis.disk.whole import make_folder, write_whole
from cobasis.errors import AuditBlockedError, AuditUnsignedError
from cobasis.party_side.auditing import Audited
from cobasis.party_side.desk import PartyDesk
from cobasis.privacy.audit import as_json
from cobasis.vault import Forced


@dataclass(frozen=True, kw_only=True)
class Approval:
    """Who answers for an upload.

    Attributes
    ----------
    signed_by : tuple of str
        Who signs for figures that are above the policy's bounds.
    override : Forced or None
        Two people and their reason, where something blocks.
    """

    signed_by: tuple[str, ...] = ()
    override: Forced | None = None


def approve(desk: PartyDesk, found: Audited, *, approval: Approval) -> dict[str, str]:
    """Let an upload leave, or refuse; keep the report, and write down who answered for it."""
    report = found.report
    require_approval(desk, found, approval=approval)
    keep(desk, found)
    told: dict[str, str | list[str]] = {
        **found.record,
        "signed_by": [each.strip() for each in approval.signed_by if each.strip()],
        "signed_for": [each.id for each in report.to_sign],
    }
    if report.blocking and approval.override is not None:
        told["overridden"] = [each.id for each in report.blocking]
        told["overridden_by"] = list(approval.override.by)
        told["reason"] = approval.override.reason
    desk.transcript.append("audited", told)
    return found.record


def require_approval(desk: PartyDesk, found: Audited, *, approval: Approval) -> None:
    """Raise where somebody is missing who answers for an upload; nothing is written."""
    report = found.report
    if report.blocking and approval.override is None:
        raise AuditBlockedError(_blocked(desk, found))
    if report.to_sign and not any(each.strip() for each in approval.signed_by):
        raise AuditUnsignedError(_unsigned(desk, found))


def keep(desk: PartyDesk, found: Audited) -> Path:
    """Write a report into the party's home, for its owner only."""
    make_folder(desk.audits)
    path = desk.audits / f"{found.record['report'][:16]}.json"
    text = json.dumps({"salt": found.salt.hex(), "report": as_json(found.report)}, sort_keys=True)
    write_whole(path, text.encode())
    return path


def _blocked(desk: PartyDesk, found: Audited) -> str:
    """Say what blocks, in words that hold no number of a row."""
    told = [_WHY[each.id] for each in found.report.blocking]
    return (
        f"the upload of party '{desk.name}' in round '{desk.agreement.round_id}' is blocked by its "
        f"audit: {'; '.join(told)}. Nothing has left. See 'cobasis party audit'. If it has to "
        "leave all the same, two people answer for it with --override-by NAME --override-by NAME "
        "--override-reason TEXT."
    )


def _unsigned(desk: PartyDesk, found: Audited) -> str:
    ids = [each.id for each in found.report.to_sign]
    return (
        f"the audit of party '{desk.name}' in round '{desk.agreement.round_id}' is above its "
        f"policy in {', '.join(ids)}, so somebody who may decide has to sign. Nothing has left. "
        "Read what 'cobasis party audit' says, then give --signed-by NAME."
    )


_WHY = {
    "H1": "H1, the anchor shows the secret basis. Agree on an isometric or a Gaussian one",
    "H4": (
        "H4, the history of these rows. They would be seen through a second span, or so few came "
        "or went since the last upload that each stands out. Leave those rows out, or wait"
    ),
    "H5": "H5, a model that holds rows may come back. Agree on logistic, ridge, mlp or rff",
}
