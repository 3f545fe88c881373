"""The audit before an upload: of exactly the file that is about to be sealed, before it is."""

import hashlib
import tomllib
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import version

import numpy as np
import numpy.typing as npt

from cobasis.bundle.transcript import Fact, now
from cobasis.bundle.uploads import Payload, open_payload
from cobasis.errors import AuditBlockedError, AuditUnsignedError, OptionError
from cobasis.features.encoder import encoded_columns
from cobasis.features.outcome import VALUE, part_of
from cobasis.linalg.arrays import gathered
from cobasis.party_side.approval import Audited, approved, keep
from cobasis.party_side.preview import Ready, budget_of, labels_of, own_setting
from cobasis.party_side.send import Made, Projected, Proposed, Summed
from cobasis.party_side.session import PartySession
from cobasis.privacy.aggregate import tells_most
from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.policy import POLICY
from cobasis.privacy.audit.report import as_json, audit, audit_proposal
from cobasis.privacy.audit.subject import Facts, Guarantee, Subject, sample_size
from cobasis.privacy.audit.sums import Counted, SumsFacts, audit_sums
from cobasis.privacy.audit.what_if import settings_of
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.messages import Labels
from cobasis.protocol.refusals import row_blocks
from cobasis.protocol.secrets import check_public_rows
from cobasis.protocol.sums_terms import layout_of, score_layout, terms_of
from cobasis.vault.datasets import Forced

Places = npt.NDArray[np.intp]


def audited(made: Made, *, sensitive: Collection[str] = (), compared: bool = True) -> Audited:
    """Audit an upload that is written and has not left; of a proposal, check what is agreed.

    Other settings are compared, unless it is to be quick. The same rows are drawn, split and
    attacked in the same way each time, by a stream that follows from the vault's key.
    """
    ready = made.ready
    agreement, rows = ready.session.agreement, ready.rows
    known = {*agreement.columns, *labels_of(agreement)}
    if unknown := sorted({*sensitive} - known):
        raise OptionError(
            f"{', '.join(unknown)} in --sensitive: round '{agreement.round_id}' has no such "
            f"column. Name some of {', '.join(sorted(known)[:20])}."
        )
    about, told = _about(ready), None
    if isinstance(made, Projected):
        payload = open_payload(made.payload)
        told = None if payload.labels is None else payload.labels[:]
    facts = _facts(ready, told, sensitive)
    if isinstance(made, Summed):
        return Audited(told=as_json(audit_sums(_sums_facts(made), facts, about=about)))
    if isinstance(made, Proposed):
        shape = agreement.n_features, made.proposal.image.shape[1]
        return Audited(told=as_json(audit_proposal(facts, about=about, shape=shape)))
    # keyed, so whoever has not the vault's key learns nothing of rows; sorted, so one however
    # the table is
    marks = ready.choice.asked.rows
    seed = hashlib.sha256(b"cobasis/audit/1/sample" + marks.astype("<u8").tobytes()).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    size = sample_size(rows.n_sent, agreement.n_features)
    places = np.sort(rng.permutation(rows.n_sent)[:size])
    subject, own = _subject(made, payload, places, sensitive), own_setting(agreement)
    sizes = (own.n_components,) * agreement.tabular  # takes all columns
    settings = settings_of(subject, own, sizes=sizes) if compared else ()
    found = audit(subject, facts=facts, about=about, rng=rng, settings=settings)
    return Audited(told=as_json(found))


def _about(ready: Ready) -> dict[str, str]:
    agreement, rows = ready.session.agreement, ready.rows
    mapping, vault = ready.session.round.mapping(), ready.session.vault
    # of other rounds: a send that was killed goes on with its approval
    entries, own = zip(vault.history(), vault.heads(), strict=True), agreement.digest().hex()
    heads = ["", *(head for entry, head in entries if entry.agreement != own)]
    return {
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


def _sums_facts(made: Summed) -> SumsFacts:
    agreement, rows = made.ready.session.agreement, made.ready.rows
    terms, others = terms_of(agreement), len(made.party.participants) - 1
    n_rows, layout = rows.n_sent, layout_of(agreement)
    counted: Counted = ""
    if made.ready.exchange.held:
        counted = "scores"
    elif agreement.task == "table":
        counted = "table"
    elif made.party.small_cells is not None:
        counted = "times" if agreement.outcome and agreement.outcome.grid else "words"
    # each group of a table has sums of its own
    widths = (layout.n_words,) if counted == "table" else layout.n_features
    common = made.party.common or (1.0,) * len(widths)
    least = terms.least_rows
    if made.ready.exchange.held:  # the others' may be zeros
        n_rows, widths, least = rows.n_held, (score_layout(agreement).n_words,), 0
        common = (1.0,)
    most_told = tells_most(widths, common)
    return SumsFacts(
        n_rows=n_rows,
        n_features=widths[most_told],
        common=common[most_told],
        n_parties=others + 1,
        least=n_rows + others * least,
        small_cells=made.party.small_cells,
        counted=counted,
    )


def _subject(
    made: Projected, payload: Payload, places: Places, sensitive: Collection[str]
) -> Subject:
    """Return the sampled people: their rows, and what stands of them in the upload's file."""
    session, rows = made.ready.session, made.ready.rows
    agreement, budget = session.agreement, budget_of(session.agreement)
    sent = np.argsort(made.projection.order)[places]  # where each of them stands in the upload
    released, first = np.empty((len(sent), payload.rows.shape[1])), 0
    for block in row_blocks(payload):
        here = (sent >= first) & (sent < first + len(block))
        released[here] = block[sent[here] - first]
        first += len(block)
    raw = gathered(rows.sent, places)
    labels = part_of(rows.sent.labels())
    told = None if payload.labels is None else part_of(payload.labels[:])
    return Subject(
        rows=raw,
        release=Release(
            rows=released,
            anchor_image=payload.anchor_image[:].astype(np.float64),
            labels=None if told is None else told[sent],
        ),
        basis=made.projection.basis.project(np.eye(agreement.n_features)),
        labels=None if labels is None else labels[places],
        features=agreement.features,
        precision=agreement.precision,
        noisy=budget is not None,
        sensitive={
            each.name: raw[:, at]
            for at, each in enumerate(encoded_columns(agreement.features))
            if each.feature.name in sensitive
        },
        public_rows=check_public_rows(made.ready.public_rows, agreement, party=session.name),
        clipped=None if budget is None else budget.clipped(raw),
    )


def _facts(ready: Ready, told: Labels | None, sensitive: Collection[str]) -> Facts:
    agreement, choice, guarantee = ready.session.agreement, ready.choice, None
    terms, classified = agreement.dp, agreement.task == "classification"
    value, event, treatment = (
        () if part is None else tuple(map(int, np.unique(np.asarray(part), return_counts=True)[1]))
        for part in (part_of(told, role) for role in (VALUE, "event", "treatment"))
    )
    if terms is not None:
        guarantee = Guarantee(
            epsilon=terms.epsilon,
            delta=terms.delta,
            statement=ready.preview.guarantee,
            labels="public by declaration" if terms.labels == "public" else "randomised response",
        )
    return Facts(
        n_rows=ready.rows.n_sent,
        anchor=agreement.anchor,
        basis=agreement.basis,
        task=agreement.task,
        models=agreement.allowed_models,
        class_counts=value if classified else (),
        marked_counts=(*event, *treatment),
        times_alone=value.count(1) / sum(value) if event else None,
        sensitive_label=not {*labels_of(agreement)}.isdisjoint(sensitive),
        span=choice.span,
        added=None if choice.changes is None else choice.changes.added,
        gone=None if choice.changes is None else choice.changes.gone,
        renamed=choice.renamed,
        n_uploads=0 if choice.dataset is None else len(choice.dataset.history),
        guarantee=guarantee,
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
