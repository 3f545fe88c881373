"""The audit of masked sums: no attack is run, for what a total tells follows from a few counts."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from cobasis.party_side.checks import formal_guarantee, history, protected
from cobasis.party_side.preview import Ready
from cobasis.party_side.send import Made
from cobasis.privacy.aggregate import OFTEN, Light, light_of, rows_asked, tells_most
from cobasis.privacy.audit.report import UNTESTED, AuditReport, Finding, Verdict
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.sums_party import SumsParty
from cobasis.protocol.sums_terms import layout_of, score_layout, terms_of

Counted = Literal["", "words", "times", "table", "scores"]

_COUNTED: Mapping[Counted, str] = {
    "words": "every two-way table of the words",
    "times": "how many have an event, or are followed, until each agreed time, and every two-way "
    "table of their words",
    "table": "how many people have each word, are in each bin of each number, and leave in each "
    "interval of time, if any is agreed on",
    "scores": "how many held-back rows of each class have a score in each bin",
}


def audit_sums(made: Made, *, about: Mapping[str, Any]) -> AuditReport:
    ready, party = made.ready, cast("SumsParty", made.party)
    counted = _counted(ready, party)
    terms, n_rows = ready.session.agreement.dp, len(ready.choice.asked.rows)
    n_features, common, least = _tells_most(ready, party, counted)
    alone, others = counted in {"table", "scores"}, len(party.keys) - 1
    if empty := counted == "scores" and party.small_cells is None:
        n_rows = 0
    rate, own = (n_rows + others * least) / n_features, n_rows / n_features
    light = "green" if empty else light_of(rate, table=alone, common=common)
    of = f"{rate:.3g} rows or more for each of {n_features:,} {'sums' if alone else 'features'}"
    if (asked := rows_asked(common)) > 1:
        of += f" of a narrow bandwidth, which take {asked} times as many as others"
    words, verdict = _verdict(light, terms)
    leaves = (
        f"No row leaves: sums over {n_rows:,} rows do, under masks. The analyst can read them "
        f"added to those of {others} other parties, and in no other way."
    )
    if empty:
        words = "Zeros, which tell of nobody: too few rows are held back for scores."
        leaves = "No row leaves, and no sum of rows: zeros do, under masks."
    what = "table" if counted == "table" else "model"
    back = f"The {what} you get back holds no record and no secret; all parties get the same file."
    return AuditReport(
        about={**about, "n_sampled": n_rows, "n_features": n_features},
        verdict=verdict,
        verdict_words=words,
        sentences=(leaves, *_learnt(terms, light, of, alone=alone, own=own, n_rows=n_rows), back),
        findings=(
            Finding("S1", "told" if terms else light, f"{of}.", {"least": rate}),
            Finding("S2", "told", f"{own:.3g} of your own.", {"rows_per_feature": own}),
            cells(counted, party.small_cells),
            # with noise the account of the vault, and no rule, says what another total may cost
            *(() if terms else (history(ready.choice),)),
            Finding("H6", "green", "Labels leave in sums alone."),
            formal_guarantee(ready.preview.guarantee),
        ),
        untested=(
            "A party that sends wrong sums: it shifts the model of all, and nobody can see it.",
            "Totals of nearly these rows from another home: their difference shows people.",
            UNTESTED[2],
            UNTESTED[4],
        ),
    )


def _counted(ready: Ready, party: SumsParty) -> Counted:
    agreement = ready.session.agreement
    if ready.exchange.held:
        return "scores"
    if agreement.task == "table":
        return "table"
    if party.small_cells is None:
        return ""
    return "times" if agreement.outcome and agreement.outcome.grid else "words"


def _tells_most(ready: Ready, party: SumsParty, counted: Counted) -> tuple[int, float, int]:
    """Return D of the map that tells most, what two own rows share there, others' least rows."""
    agreement = ready.session.agreement
    if counted == "scores":  # of which the others' may be zeros
        return score_layout(agreement).n_words, 1.0, 0
    layout = layout_of(agreement)
    # each group of a table has sums of its own
    widths = (layout.n_words,) if counted == "table" else layout.n_features
    common = party.common or (1.0,) * len(widths)
    at = tells_most(widths, common)
    return widths[at], common[at], terms_of(agreement).least_rows


def _verdict(light: Light, terms: DPTerms | None) -> tuple[str, Verdict]:
    if terms is not None:
        return protected(terms, "features and labels"), "differentially-private"
    if light == "green":
        words = "Sums over many people's rows: an aggregate, of which no guarantee is proved."
        return words, "aggregate"
    words = "Sums of so few rows that they still tell of people. Treat as personal data."
    return words, "pseudonymised"


def _learnt(
    terms: DPTerms | None, light: Light, of: str, *, alone: bool, own: float, n_rows: int
) -> tuple[str, str]:
    """Say what the analyst learns, and what with others' help."""
    if not n_rows:
        return "The analyst learns nothing of your rows.", "Nor does it if all others help it."
    if terms is not None:
        known = (
            "Whatever the analyst knows, the total with noise is nearly as likely whether a person "
            f"is in it or another: the ratio is at most e^{terms.epsilon:g}, but for a "
            f"chance of {terms.delta:g}."
        )
        helped = (
            f"That epsilon {terms.epsilon:g} and delta {terms.delta:g}, of one person replaced by "
            f"another, hold while at most {terms.colluders} of the parties help the analyst. "
            "Helpers know their own noise, and with more of them too little is left."
        )
        return known, helped
    known = (
        f"The analyst, with a person's record at hand, can {OFTEN[light]} tell whether the "
        f"person is in the total: by what is agreed it is of {of}."
    )
    helped = (
        f"If all other parties help the analyst, it reads your own sums: {own:.3g} rows for each "
        "feature. Of fewer rows than features single records can be rebuilt."
    )
    if alone:
        helped = (
            f"If all other parties help the analyst, it reads your own counts, of {n_rows:,} "
            "rows: whoever is alone in a level or a bin stands there for all to see."
        )
    return known, helped


def cells(counted: Counted, small: int | None) -> Finding:
    """S3: cells of few people, in which nobody of another party need be."""
    if small is None:
        return Finding("S3", "green", "The agreed map publishes no table of words.")
    words = (
        f"The total holds {_COUNTED[counted]}. Of your own, {small:,} cells have "
        "fewer than five people; nothing makes sure that others' people are in them, too."
    )
    return Finding("S3", "amber" if small else "green", words, {"small_cells": small})
