"""An audit as an HTML page, which an officer files, and the price of each defence as a table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cobasis.algorithms.readable import Table
from cobasis.features.contract import CategoryFeature, NumericFeature, columns_in
from cobasis.party_side.approval import Audited, newest
from cobasis.party_side.audit import OWN
from cobasis.privacy.audit.report import COLLUSION, Effect, per_cent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import Record
from cobasis.protocol.signatures import Approval
from cobasis.report.pages import template

_LISTED = 60


MARKS: Final[Mapping[str, str]] = {
    "green": "within policy",
    "amber": "look at it",
    "red": "above policy",
    "told": "for information",
}
"""How a grade is written: in words, since there is no picture of safety."""

WORTH = {"classification": "right answers", "regression": "R2"}


def render_audit(
    audit: Audited,
    agreement: Agreement,
    *,
    given: Iterable[Approval] = (),  # of which the last ones of this audit are shown, if by a key
    approve: str = "",  # the address where one can
) -> str:
    report, party = audit.report, audit.report.about["party"]
    agreement = agreement.held_by(party)  # nothing of other columns leaves
    last = [each for each in newest(given, agreement) if each.report == audit.seal]
    return template("audit.html").render(
        report=report,
        filed=filed(agreement, audit.page.get("own", {})),
        asked=audit.page.get("asked", ()),
        collusion=COLLUSION[agreement.basis],
        officers=[each for each in agreement.approvers if each.party == party],
        approvals=[(each, who) for each in last if (who := each.officer(agreement))],
        table=table_of(report.effects, task=agreement.task) if report.effects else None,
        counted=agreement.task == "table",
        marks=MARKS,
        seal=audit.seal,
        approve=approve,
        unit="numbers of the map" if agreement.turn else "columns",
    )


def _label(agreement: Agreement) -> str:
    if not agreement.label:
        return ""
    dp, beside = agreement.dp, {} if agreement.outcome is None else agreement.outcome.columns
    what = f"{agreement.label}: {' or '.join(map(str, agreement.classes)) or 'a number'}"
    what += "".join(f"; {role} '{name}'" for role, name in beside.items())
    how = ", with some changed at random" if dp and dp.label_epsilon else ", in the clear"
    return what + (how if agreement.sums is None else ", in sums alone")


def filed(agreement: Agreement, own: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what officers file of a round, as titles and words; empty where nothing is stated."""
    record, analyst, basis = agreement.record or Record(), agreement.analyst, agreement.basis
    keep, dp, size = agreement.retention_days, agreement.dp, agreement.n_components
    reader = f"analyst {analyst.name}, {analyst.fingerprint}" if analyst else ""
    names = "; ".join(f"{each.name}, {each.fingerprint}" for each in agreement.enrolled)
    words = {
        each.name: f"{each.name} ({' or '.join(each.values)})"
        for each in agreement.features
        if isinstance(each, CategoryFeature)
    }
    numbers = [
        f"{each.name} ({each.unit})" if each.unit else each.name
        for each in agreement.features
        if isinstance(each, NumericFeature)
    ]
    sources = sorted({each.source for each in columns_in(agreement.features)} - {""})
    alone = agreement.outcome is not None and agreement.outcome.compare_parties
    noise = "none, so no guarantee" if dp is None else f"eps={dp.epsilon:g}"
    turned = f"the map '{agreement.map.kind}' and " if agreement.turn else ""
    leaves = f"{size:,} numbers through {turned}the secret basis '{basis}'"
    if agreement.sums is not None:
        leaves = "nothing: sums over all rows do, which can be read added to the other parties'"
    return [
        ("Purpose", agreement.purpose),
        ("Controllers and their arrangement (art. 26)", record.controllers),
        ("Contacts", record.contacts),
        ("Legal basis (art. 6 and 9)", record.legal_basis),
        ("People and data", record.people),
        (f"Columns of numbers ({len(numbers):,})", _some(numbers) or "none"),
        (f"Columns of words ({len(words):,})", _some(list(words.values())) or "none"),
        ("Their constants and words are from", _some(sources)),
        ("Label, what is predicted", _label(agreement) or "none"),
        ("Leaves of each person", leaves),
        ("Noise", noise),
        ("Who gets the file", reader),
        ("Contract with the processor (art. 28)", record.processor),
        ("Who gets the model" + (", and each party's own estimates" if alone else ""), names),
        ("Who may use it", record.users),
        ("Transfers", record.transfers),
        ("Retention", f"{keep:,} days at the analyst" if keep else ""),
        ("Security", record.security),
        *((title, own.get(name, "")) for name, title in OWN.items()),
    ]


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def table_of(effects: Sequence[Effect], *, task: str) -> Table:
    """Return settings beside the first one as a table, noting what its columns mean."""
    now = effects[0]
    titles = ["setting", "rebuilt", "whole", "alone", "leaked"]
    few = now.alone is None
    tried = "not tried, on so few rows" if few else f"from a list of {now.n_rows // 2:,}"
    about = (
        "'rebuilt': share of the variance that is rebuilt, if one partner helps the analyst; "
        "'whole': whether enough leaves to give records back whole, counted by the values that "
        "columns may have; 'alone': right person picked out by an analyst with similar records, "
        f"{tried}; 'leaked': the same from {now.n_rows:,}, if the secret basis leaks."
    )
    if task in WORTH and now.accuracy is not None:
        titles.append(WORTH[task])
        about += (
            f" '{WORTH[task]}': of a simple model of your own rows, tried on {now.n_scored:,} "
            "that it was not fitted on, which get no noise: mean of three splits, least and most."
        )
    rows = [tuple(_cells(each)[: len(titles)]) for each in effects]
    return Table(header=tuple(titles), rows=rows, notes=(about,))


def _cells(effect: Effect) -> list[str]:
    alone = "-" if effect.alone is None else per_cent(effect.alone)
    worth = effect.accuracy, effect.accuracy_least, effect.accuracy_most
    told = [f"{100 * each:.0f}" for each in worth if each is not None]
    said = "{} % ({} to {})".format(*told) if told else "-"
    whole = {"red": "yes", "amber": "some", "green": "no"}[effect.whole]
    return [effect.name, per_cent(effect.content), whole, alone, per_cent(effect.leaked), said]
