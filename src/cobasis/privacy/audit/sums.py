"""The audit of masked sums: no attack is run, for what a total tells follows from a few counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cobasis.privacy.aggregate import OFTEN, Light, light_of, rows_asked
from cobasis.privacy.audit.policy import Finding, Grade, formal_guarantee, history_finding
from cobasis.privacy.audit.report import UNTESTED, AuditReport, Verdict
from cobasis.privacy.audit.subject import Facts, Guarantee

Counted = Literal["", "words", "times", "table", "scores"]

_COUNTED: Mapping[Counted, str] = {
    "words": "every two-way table of the words",
    "times": "how many have an event, or are followed, until each agreed time, and every two-way "
    "table of their words",
    "table": "how many people have each word, are in each bin of each number, and leave in each "
    "interval of time, if any is agreed on",
    "scores": "how many held-back rows of each class have a score in each bin",
}


@dataclass(frozen=True, kw_only=True)
class SumsFacts:
    n_rows: int
    n_features: int  # D, of the map that tells most
    common: float = 1.0  # what two own rows have in common under it; 1 where no wave is
    n_parties: int
    least: int  # rows that all parties have at least, by what is agreed
    small_cells: int | None  # of what is counted, the party's own; None where nothing is
    counted: Counted

    @property
    def alone(self) -> bool:
        """Whether nothing of two columns together is summed."""
        return self.counted in {"table", "scores"}

    @property
    def light(self) -> Light:
        rate = self.least / self.n_features
        return light_of(rate, table=self.alone, common=self.common)


def audit_sums(sums: SumsFacts, facts: Facts, *, about: Mapping[str, str]) -> AuditReport:
    least, own, light = sums.least / sums.n_features, sums.n_rows / sums.n_features, sums.light
    kind = "sums" if sums.alone else "features"
    rate = f"{least:.3g} rows or more for each of {sums.n_features:,} {kind}"
    if (asked := rows_asked(sums.common)) > 1:
        rate += f" of a narrow bandwidth, which take {asked} times as many as others"
    words, verdict = _verdict(light, facts.guarantee)
    noised: Grade | None = None if facts.guarantee is None else "told"
    counts = {"n_rows": sums.n_rows, "n_sampled": sums.n_rows, "n_features": sums.n_features}
    return AuditReport(
        about={**about, **counts},
        verdict=verdict,
        verdict_words=words,
        sentences=_sentences(sums, rate, facts, own=own),
        findings=(
            Finding("S1", noised or light, f"{rate}.", {"least": least}),
            Finding("S2", "told", f"{own:.3g} of your own.", {"rows_per_feature": own}),
            _cells(sums),
            # with noise the account of the vault, and no rule, says what another total may cost
            *(() if facts.guarantee else (history_finding(facts),)),
            Finding("H6", "green", "Labels leave in sums alone."),
            formal_guarantee(facts),
        ),
        untested=(
            "A party that sends wrong sums: it shifts the model of all, and nobody can see it.",
            "Totals of nearly these rows from another home: their difference shows people.",
            UNTESTED[2],
            UNTESTED[4],
        ),
    )


def _verdict(light: Light, guarantee: Guarantee | None) -> tuple[str, Verdict]:
    if guarantee is not None:
        return guarantee.verdict("features and labels"), "differentially-private"
    if light == "green":
        words = "Sums over many people's rows: an aggregate, of which no guarantee is proved."
        return words, "aggregate"
    words = "Sums of so few rows that they still tell of people. Treat as personal data."
    return words, "pseudonymised"


def _sentences(
    sums: SumsFacts, rate: str, facts: Facts, *, own: float
) -> tuple[str, str, str, str]:
    what = "table" if sums.counted == "table" else "model"
    leaves = (
        f"No row leaves: sums over {sums.n_rows:,} rows do, under masks. The analyst can read "
        f"them added to those of {sums.n_parties - 1} other parties, and in no other way."
    )
    back = f"The {what} you get back holds no record and no secret; all parties get the same file."
    if facts.guarantee is not None:
        alone = (
            "Whatever the analyst knows, the total with noise is nearly as likely whether a person "
            f"is in it or another: the ratio is at most e^{facts.guarantee.epsilon:g}, but for a "
            f"chance of {facts.guarantee.delta:g}."
        )
        helped = (
            "That holds while no more parties help the analyst than the agreement's 'colluders' "
            "says. Helpers know their own noise, and with more of them too little is left."
        )
        return leaves, alone, helped, back
    alone = (
        f"The analyst, with a person's record at hand, can {OFTEN[sums.light]} tell whether the "
        f"person is in the total: by what is agreed it is of {rate}."
    )
    helped = (
        f"If all other parties help the analyst, it reads your own sums: {own:.3g} rows for each "
        "feature. Of fewer rows than features single records can be rebuilt."
    )
    if sums.alone:
        helped = (
            f"If all other parties help the analyst, it reads your own counts, of {sums.n_rows:,} "
            "rows: whoever is alone in a level or a bin stands there for all to see."
        )
    return leaves, alone, helped, back


def _cells(sums: SumsFacts) -> Finding:
    if not sums.counted or sums.small_cells is None:
        return Finding("S3", "green", "The agreed map publishes no table of words.")
    words = (
        f"The total holds {_COUNTED[sums.counted]}. Of your own, {sums.small_cells:,} cells have "
        "fewer than five people; nothing makes sure that others' people are in them, too."
    )
    grade: Grade = "amber" if sums.small_cells else "green"
    return Finding("S3", grade, words, {"small_cells": sums.small_cells})
