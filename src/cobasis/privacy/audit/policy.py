"""What an audit holds its figures against: bounds, grades, and the checks that need no attack.

9 % is the re-identification threshold of EMA Policy 0070 and Health Canada (about one in eleven),
33 % the usual most under controlled access; neither is legal advice. A bound of this file is a
policy, and a policy has a name: changing one changes `POLICY`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cobasis.algorithms import BasisName
from cobasis.algorithms.bases import BASES
from cobasis.models import FAMILIES
from cobasis.privacy.audit.subject import Facts, Subject

POLICY = "cobasis/audit/1"  # names the metrics and the bounds below; it travels with an upload

TITLES = {
    "P1": "Rebuilt, if one party helps the analyst",
    "P2": "Picked out of a list by an analyst with similar records, alone",
    "P3": "Picked out of a list, if the secret basis leaks",
    "P4": "People whose records have to be known, to rebuild others or pick them out",
    "P5": "Sensitive columns told, if 20 people are known",
    "P6": "What distances show, to anybody who opens the file",
    "S1": "Rows for each feature of the total",
    "S2": "Your own rows for each feature",
    "S3": "Cells of few people in tables of words",
    "H1": "Anchor",
    "H2": "Rows for each component",
    "H3": "Smallest class",
    "H4": "Earlier uploads and proposals of these rows",
    "H5": "The model that comes back",
    "H6": "Labels",
    "D1": "Formal guarantee",
}

_OWN = (
    "It reads your basis, whose directions are your rows' own. So it also tells who is in the "
    "table: surely with as many rows as components, well at three times, hardly at twenty."
)
_PROPOSED = (
    "It reads the common span, and from your proposal your own directions (of a weighted one also "
    "how strong each is), exactly. So a consensus hides no more from it than a basis of your own."
)
COLLUSION: Mapping[BasisName, str] = {
    "svd": _OWN,
    "pca": _OWN,
    "lpp": _OWN,
    "haar": "It has the span already, which is drawn from the secret and is of nobody's rows: your "
    "projected rows are all that it sees of them.",
    "public": "It has the span already, which is of the public rows: your projected rows are all "
    "that it sees of yours.",
    "consensus": _PROPOSED,
    "weighted_consensus": _PROPOSED,
}
"""What a party that helps the analyst sees under each basis, besides what it rebuilds of rows."""

Grade = Literal["green", "amber", "red", "told"]  # told is a figure without a bound

Action = Literal["none", "sign", "block"]
"""What has to happen before rows leave: nothing, a signature, or two names and a reason."""

BLOCKING = ("H1", "H4")  # whose red blocks; any other red needs a signature

CONTENT, LINKAGE, ATTRIBUTE = (0.10, 0.50), (0.09, 1 / 3), (0.05, 0.15)
"""Up to the first a figure is green, the bound itself included; above the second it is red."""

KNOWN_GREEN, KNOWN_RED = 100, 20
"""People who have to be known: green above the first, red below the second."""

ROWS_PER_COMPONENT_GREEN, ROWS_PER_COMPONENT_RED = 20, 5
SMALLEST_CLASS = 11
SMALLEST_CHANGE, SMALLEST_CHANGED_SHARE = 11, 0.05
RENAMED = 0.05  # share of rows with a new identifier and known values; so many are no coincidence

WORST_CONDITION = 1e6

_SAFE_ANCHORS = ("isometric", "gaussian")


@dataclass(frozen=True)
class Finding:
    id: str  # P1 to P6, S1 to S3, H1 to H6, D1
    grade: Grade
    words: str  # a sentence with its figures
    figures: Mapping[str, Any] = field(default_factory=dict)  # for machines; shares are 0 to 1

    @property
    def title(self) -> str:
        return TITLES[self.id]

    @property
    def action(self) -> Action:
        if self.grade != "red":
            return "none"
        return "block" if self.id in BLOCKING else "sign"


def graded(value: float, bounds: tuple[float, float]) -> Grade:
    """Return the grade of a figure of which less is better."""
    green, red = bounds
    return "green" if value <= green else "amber" if value <= red else "red"


def graded_known(number: int | None, tried: int) -> Grade:
    """Return the grade of a number of people who have to be known; None is more than was tried."""
    if (tried + 1 if number is None else number) > KNOWN_GREEN:
        return "green"
    # more than was tried says no more, and is no reason to sign
    return "amber" if number is None or number >= KNOWN_RED else "red"


def graded_bits(sent: float, needed: float) -> Grade:
    """Return the grade of bits that leave of a record, beside those that tell it from all."""
    return "red" if sent >= needed else "amber" if 2 * sent >= needed else "green"


def worst(*grades: Grade) -> Grade:
    order: tuple[Grade, ...] = ("told", "green", "amber", "red")
    return max(grades, key=order.index)


def per_cent(share: float) -> str:
    """Return a share in per cent; what is worse than guessing is 0, and nearly all is not all."""
    percent = 100 * min(max(share, 0.0), 1.0)
    if 0 < percent < 1:
        return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"  # noqa: PLR2004
    if 99.5 < percent < 100:  # noqa: PLR2004
        return f"{percent:.1f} %" if percent < 99.95 else "more than 99.9 %"  # noqa: PLR2004
    return f"{percent:.0f} %"


def checked(subject: Subject, facts: Facts) -> tuple[Finding, ...]:
    return (
        _anchor(subject, facts),
        _rows_per_component(subject, facts),
        _smallest_class(facts),
        history_finding(facts),
        _models(facts),
        _labels(subject, facts),
        formal_guarantee(facts),
    )


def formal_guarantee(facts: Facts) -> Finding:
    stated = "No formal guarantee: what an attacker finds out is not bounded by a proof"
    if facts.guarantee is not None:
        stated = facts.guarantee.statement
    return Finding("D1", "told", f"{stated[:1].upper()}{stated[1:]}.")


def _anchor(subject: Subject, facts: Facts) -> Finding:
    """H1: the anchor's kind, and whether its image has full rank."""
    grade: Grade = "red"
    image = subject.release.anchor_image
    condition = float("inf") if image is None else float(np.linalg.cond(image))
    if facts.anchor not in _SAFE_ANCHORS:
        words = (
            "its image alone gives the secret basis away, or its rows can be found. Agree on "
            'anchor = "isometric" or "gaussian"'
        )
    elif condition >= WORST_CONDITION:
        words = (
            "its image is nearly rank-deficient, which no honest draw is. Do not send this; ask "
            "for a new consortium secret and round"
        )
    else:
        grade = "green"
        words = "drawn from a secret of 256 random bits; its image tells nothing of the basis"
    figures = {"condition": condition if np.isfinite(condition) else None}
    return Finding("H1", grade, f"The anchor is '{facts.anchor}': {words}.", figures)


def _rows_per_component(subject: Subject, facts: Facts) -> Finding:
    """H2: with few rows per component, the basis tells who was in the table."""
    ratio = facts.n_rows / subject.n_components
    figures, rule = {"rows_per_component": ratio}, BASES[facts.basis]
    if not rule.span.startswith("own") and rule.exchanges == 1:
        words = "The basis is not made of your rows, so it tells nothing of who is in the table."
        return Finding("H2", "green", words, figures)
    few: Grade = "red" if ratio < ROWS_PER_COMPONENT_RED else "amber"
    grade = "green" if ratio > ROWS_PER_COMPONENT_GREEN else few
    words = (
        f"{facts.n_rows:,} rows make a basis of {subject.n_components:,} components, "
        f"{ratio:.1f} rows for each. Whoever learns the basis can tell who is in the table the "
        "better, the fewer there are: nearly surely at 3, hardly at 20."
    )
    return Finding("H2", grade, words, figures)


def _smallest_class(facts: Facts) -> Finding:
    """H3: few people with one label, an event or a treatment stand out, whatever their numbers."""
    counts = (*facts.class_counts, *facts.marked_counts)
    if not counts:
        return Finding("H3", "green", "No classes are sent.")
    least = min(counts)
    words = (
        f"The smallest class that is sent has {least:,} {'person' if least == 1 else 'people'}; "
        f"fewer than {SMALLEST_CLASS} stand out."
    )
    figures = {"smallest_class": least, "n_classes": len(counts)}
    return Finding("H3", "green" if least >= SMALLEST_CLASS else "red", words, figures)


def history_finding(facts: Facts) -> Finding:
    """H4: rows that were uploaded before go through the span of then, and few do not change."""
    grade: Grade = "red"
    if facts.renamed > RENAMED:
        words = (
            f"{facts.renamed:.0%} of the rows have a new identifier and the values of rows that "
            "were uploaded before. If these are the same people, give them the identifiers of "
            "then: else they leave twice, and what was promised to them is counted anew."
        )
    elif facts.span == "forced":
        words = (
            "Some of these rows were uploaded before, and now go through a second span. Every "
            "further span shows them from another side, until nothing is hidden."
        )
    elif facts.added is None or facts.gone is None:
        grade, words = "green", "Nothing of these rows left this home folder before."
    else:
        words = f"Since an earlier file of these rows {facts.added:,} came and {facts.gone:,} went."
        least = min((each for each in (facts.added, facts.gone) if each), default=np.inf)
        if least >= SMALLEST_CHANGE:
            grade = "amber" if least < SMALLEST_CHANGED_SHARE * facts.n_rows else "green"
    figures = {name: getattr(facts, name) for name in ("n_uploads", "added", "gone", "renamed")}
    return Finding("H4", grade, words, figures)


def _models(facts: Facts) -> Finding:
    """H5: what may come back; an agreement names no model whose file holds records."""
    if not facts.models:
        words = "No model is trained; a change of basis comes back, and nothing that can run."
        return Finding("H5", "green", words)
    words = (
        f"What may come back is {', '.join(facts.models)}, as a checked model file: weights, "
        "no records, nothing that could run by itself."
    )
    mixed = [name for name in facts.models if FAMILIES[name].additive]
    if mixed and facts.guarantee is None:
        words += (
            f" With {' or '.join(mixed)}, and where three to twenty parties take part, each also "
            "gets the model of the others, without its own rows, for its local fit."
        )
    if all(FAMILIES[name].chain != "boosted_trees" for name in facts.models):
        return Finding("H5", "green", words)
    words += " Thresholds of boosted trees are single values of somebody's projected rows."
    return Finding("H5", "amber", words)


def _labels(subject: Subject, facts: Facts) -> Finding:
    if subject.release.labels is None:
        return Finding("H6", "green", "No labels are sent.")
    if facts.sensitive_label:
        words = "A label was declared sensitive, and the analyst sees it, one for each row."
        return Finding("H6", "red", words)
    if facts.guarantee is not None:
        return Finding("H6", "green", f"Labels: {facts.guarantee.labels}.")
    treated = ", and whether it was treated" if facts.task == "effect" else ""
    if facts.times_alone is not None:  # a time that nobody else has is like a date of birth
        words = (
            f"The analyst sees the time and the event of each row{treated}, as they are. "
            f"{per_cent(facts.times_alone)} of the times are of one row alone: whoever knows when "
            "somebody was taken in, and when the event was, finds the row. Agree on coarser "
            "times, as weeks."
        )
        return Finding("H6", "amber", words, {"times_alone": facts.times_alone})
    n_classes = len(facts.class_counts)
    kind = f"one of {n_classes:,} classes" if n_classes else "a number"
    words = (
        f"The analyst sees the label of each row, {kind}{treated}, as it is. If the label itself "
        "is sensitive, name it with --sensitive."
    )
    return Finding("H6", "amber", words, {"n_classes": n_classes or None})


def model_sentence(facts: Facts) -> str:
    if not facts.models:
        return "You get back no model, only your own change of basis."
    trees = ", but boosted trees carry single values" if _models(facts).grade == "amber" else ""
    return f"The model you get back contains no records{trees}."
