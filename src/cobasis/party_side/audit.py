"""The audit before an upload: of exactly the file that is about to be sealed, before it is."""

import hashlib
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from cobasis.algorithms.bases import BASES
from cobasis.bundle.transcript import Fact, now
from cobasis.bundle.uploads import Payload, open_payload
from cobasis.errors import AuditBlockedError, AuditUnsignedError, OptionError
from cobasis.features.encoder import encoded_columns
from cobasis.features.outcome import part_of
from cobasis.linalg.arrays import Places, gathered
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.approval import Audited, approved, keep
from cobasis.party_side.checks import checked, model_sentence, protected
from cobasis.party_side.preview import Ready, labels_of
from cobasis.party_side.send import Made
from cobasis.party_side.session import PartySession
from cobasis.party_side.sums_audit import audit_sums
from cobasis.party_side.what_if import Setting, effects, settings_of
from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.attackers import findings
from cobasis.privacy.audit.report import POLICY, UNTESTED, AuditReport, Finding, as_json, first_of
from cobasis.privacy.audit.subject import Subject, sample_size
from cobasis.privacy.sensitivity import clip_rows
from cobasis.protocol.agreement import Agreement, moment_text
from cobasis.protocol.messages import MaskedSums, SpanProposal
from cobasis.protocol.projection import Projection
from cobasis.protocol.secrets import check_public_rows
from cobasis.vault.datasets import Forced

_PSEUDONYMISED = "Pseudonymised personal data. Treat as personal data."


def audited(made: Made, *, sensitive: Collection[str] = (), compared: bool = True) -> Audited:
    """Audit an upload that is written and has not left; of a proposal, check what is agreed.

    Other settings are compared, unless it is to be quick. The same rows are drawn, split and
    attacked in the same way each time, by a stream that follows from the vault's key.
    """
    agreement = made.ready.session.agreement
    known = {*agreement.columns, *labels_of(agreement)}
    if unknown := sorted({*sensitive} - known):
        raise OptionError(
            f"{', '.join(unknown)} in --sensitive: round '{agreement.round_id}' has no such "
            f"column. Name some of {', '.join(sorted(known)[:20])}."
        )
    return Audited(told=as_json(_report(made, sensitive=sensitive, compared=compared)))


@one_blas_thread()
def _report(made: Made, *, sensitive: Collection[str], compared: bool) -> AuditReport:
    ready, message, about = made.ready, made.message, _about(made.ready)
    agreement, n_rows = ready.session.agreement, ready.rows.n_sent
    if isinstance(message, MaskedSums):
        return audit_sums(made, about=about)
    if isinstance(message, SpanProposal):
        return _of_proposal(ready, message, about=about)
    # keyed, so whoever has not the vault's key learns nothing of rows; sorted, so one however
    # the table is
    marks = ready.choice.asked.rows
    seed = hashlib.sha256(b"cobasis/audit/1/sample" + marks.astype("<u8").tobytes()).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    places = np.sort(rng.permutation(n_rows)[: sample_size(n_rows, agreement.n_features)])
    payload = open_payload(ready.session.payload)
    subject, own = _subject(ready, message, payload, places, sensitive), Setting.of(agreement)
    checks = checked(
        agreement,
        ready.choice,
        image=payload.anchor_image[:].astype(np.float64),
        sent=None if payload.labels is None else payload.labels[:],
        sensitive=sensitive,
        guarantee=ready.preview.guarantee,
    )
    settings = settings_of(subject, own) if compared else ()
    return audit(subject, agreement, checks=checks, about=about, rng=rng, settings=settings)


def audit(
    subject: Subject,
    agreement: Agreement,
    *,
    checks: tuple[Finding, ...],
    about: Mapping[str, Any],
    rng: np.random.Generator,
    settings: tuple[Setting, ...],
) -> AuditReport:
    # Chen and Liu, "Privacy preserving data classification with rotation perturbation", ICDM 2005;
    # Imakura et al., arXiv:2208.14611.
    seed, terms, n_rows = int(rng.integers(2**32)), agreement.dp, about["n_rows"]
    found = findings(subject, seed=seed, rng=rng)
    helped, alone, _, known = (each.words for each in found[:4])  # of P3 the basis leaked
    measured = effects(subject, settings=settings, task=agreement.task, seed=seed)
    untested = list(UNTESTED)
    if not subject.sensitive:
        untested.insert(0, "What is inferred of a sensitive column: name one with --sensitive.")
    if subject.unmapped is not None:
        untested.insert(
            0, "What solving for the columns behind the map gives: P1 only draws a line."
        )
    if left := n_rows - subject.n_rows:
        untested.insert(0, f"{left:,} of {n_rows:,} rows: the others were drawn at random.")
    return AuditReport(
        about={**about, "n_sampled": subject.n_rows, "n_components": subject.n_components},
        verdict="pseudonymised" if terms is None else "differentially-private",
        verdict_words=_PSEUDONYMISED if terms is None else protected(terms, "features only"),
        sentences=(helped, alone, known, model_sentence(agreement)),
        findings=(*found, *checks),
        effects=measured,
        first=first_of(measured, task=agreement.task),
        untested=tuple(untested),
    )


def _of_proposal(ready: Ready, made: SpanProposal, *, about: Mapping[str, Any]) -> AuditReport:
    """Check a proposal before it leaves; no row does."""
    agreement, n_directions = ready.session.agreement, made.image.shape[1]
    image, n_rows = np.eye(agreement.n_features, n_directions), about["n_rows"]
    weights = ", and how much each weighs" if BASES[agreement.basis].weighted else ""
    helped = (
        "If one partner helps the analyst, your directions are known exactly; beside another "
        "proposal of nearly the same people they show who came or went."
    )
    return AuditReport(
        about={**about, "n_components": n_directions},
        verdict="pseudonymised",
        verdict_words=_PSEUDONYMISED,
        sentences=(
            f"No row leaves: {n_directions:,} directions of {n_rows:,} rows do.",
            f"The analyst, acting alone, learns their angles to the other parties'{weights}.",
            helped,
            model_sentence(agreement),
        ),
        findings=checked(agreement, ready.choice, image=image, sent=None),
        untested=("What rows give away: the upload, in which they leave, is audited.", *UNTESTED),
    )


def _about(ready: Ready) -> dict[str, str | int]:
    agreement, rows = ready.session.agreement, ready.rows
    mapping, vault = ready.session.round.mapping(), ready.session.vault
    # of other rounds: a send that was killed goes on with its approval
    entries, own = zip(vault.history(), vault.heads(), strict=True), agreement.digest().hex()
    heads = ["", *(head for entry, head in entries if entry.agreement != own)]
    projected = {"basis": agreement.basis, "anchor": agreement.anchor}
    n_rows = len(ready.choice.asked.rows)
    return {
        **({} if agreement.sums else projected),
        "n_rows": n_rows,
        "n_sampled": n_rows,
        "n_features": agreement.n_features,
        "party": ready.session.name,
        "round_id": agreement.round_id,
        "agreement": agreement.digest().hex(),
        "exchange": ready.exchange.message,
        "data_version": rows.version(~rows.held),  # tells equal rows only
        "rows_held_back": rows.version(rows.held),
        "columns": ready.choice.asked.columns,
        "mapping": mapping.digest(),
        "mapped": "; ".join(mapping.in_words()),
        "span": ready.choice.span,
        "precision": agreement.precision,
        "history": heads[-1],
        "policy": POLICY,
        "tool_version": f"cobasis {version('cobasis')}",
        "time": moment_text(now()),
    }


def _subject(
    ready: Ready, made: Projection, payload: Payload, places: Places, sensitive: Collection[str]
) -> Subject:
    """Return the sampled people: their rows, and what stands of them in the upload's file."""
    session, rows = ready.session, ready.rows
    agreement, terms = session.agreement, session.agreement.dp
    sent = np.argsort(made.order)[places]  # where each of them stands in the upload
    released = np.vstack([payload.rows[at : at + 1] for at in sent]).astype(np.float64)
    raw = gathered(rows.sent.unmapped(), places)
    mapped = agreement.mapped(raw)
    labels = part_of(rows.sent.labels())
    told, clipped = None if payload.labels is None else part_of(payload.labels[:]), None
    if terms is not None:
        clipped = clip_rows(mapped, radius=terms.radius, centre=terms.centre or None)
    return Subject(
        rows=mapped,
        release=Release(rows=released, labels=None if told is None else told[sent]),
        basis=made.basis.project(np.eye(agreement.n_features)),
        labels=None if labels is None else labels[places],
        features=agreement.features,
        precision=agreement.precision,
        noisy=terms is not None,
        sensitive={
            each.name: raw[:, at]
            for at, each in enumerate(encoded_columns(agreement.features))
            if each.feature.name in sensitive
        },
        public_rows=check_public_rows(ready.public_rows, agreement, party=session.name),
        unmapped=None if mapped is raw else raw,
        clipped=clipped,
    )


def approve(
    session: PartySession,
    found: Audited,
    *,
    signed_by: Iterable[str],
    override: Forced | None = None,
    ask: Callable[[bool], object] = lambda _: None,
) -> dict[str, object]:
    """Let an upload leave; keep the report, and write down who answers for it.

    Raises AuditBlockedError, AuditUnsignedError or ApprovalError where nobody does, or no officer
    where the agreement names some; only then it asks, and tells whether an officer approved.
    """
    report, round_id = found.report, session.agreement.round_id
    good = approved(session, found)
    people = [*good] or [each.strip() for each in signed_by if each.strip()]
    unmatched = good and override and len({*good}.intersection(override.by)) < len(override.by)
    if report.blocking and (override is None or unmatched):
        told = "; ".join(_WHY[each.id] for each in report.blocking)  # no number of a row
        who = "whose keys approved it" if good else "who answer for it"
        raise AuditBlockedError(
            f"the file of party '{session.name}' in round '{round_id}' is blocked by its audit: "
            f"{told}. Nothing has left. See 'cobasis audit'. It takes two people {who}: "
            "--override-by NAME --override-by NAME --override-reason TEXT."
        )
    if report.to_sign and not people:
        what = "; ".join(f"{each.title} ({each.id})" for each in report.to_sign)
        raise AuditUnsignedError(
            f"the audit of party '{session.name}' in round '{round_id}' is above its policy: "
            f"{what}. Somebody who may decide has to sign. Nothing has left. Read what 'cobasis "
            "audit' says, then give --signed-by NAME."
        )
    ask(bool(good))
    keep(session, found)
    signed_for = [each.id for each in report.to_sign]
    line: dict[str, Fact] = {**found.record, "signed_by": people, "signed_for": signed_for}
    line["signed_with"] = "an officer's key" if good else typed_by(session.name)
    if report.blocking and override is not None:
        line["overridden"] = [each.id for each in report.blocking]
        line |= {"overridden_by": list(override.by), "reason": override.reason}
    session.transcript.append("audited", line)
    travel = {"approvals": [each.model_dump() for each in good.values()]} if good else {}
    return {**found.record, **travel}


def typed_by(party: str) -> str:
    return f"typed by the holder of {party}'s key, proves no person"


OWN = {
    "necessity": "Necessity and proportion, in the party's words (art. 35)",
    "risks": "Risks to the people",
    "measures": "Measures against them",
    "advice": "Advice of the officer, and of the people",
}
"""What a party files itself, by its name in record.toml, and its title on the page."""


def own_record(session: PartySession) -> dict[str, str]:
    """Return what a party files itself, from its home folder; empty where nothing is there."""
    file = session.audits.parents[2] / "record.toml"
    if not file.exists():
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OptionError(f"'{file}' cannot be read as TOML: {error}. Correct it.") from error
    wrong = [name for name, text in found.items() if name not in OWN or not isinstance(text, str)]
    if wrong:
        raise OptionError(
            f"'{file}' has an entry '{wrong[0]}' that is not one of {', '.join(OWN)} with a text. "
            "What all parties state belongs into the agreement's [record]. Correct it."
        )
    return found


_WHY = {
    "H1": "H1, the anchor shows the secret basis. Agree on an isometric or a Gaussian one",
    "H4": (
        "H4, the history of these rows. They would be seen through a second span, or so few came "
        "or went since an earlier file that each stands out. Leave those rows out, or wait"
    ),
}
