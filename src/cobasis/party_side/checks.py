"""The checks of an audit that need no attack: of the agreement, of labels, and of the history.

Its bounds are policy: changing one changes `POLICY` of ``cobasis.privacy.audit.report``.
"""

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.bases import BASES
from cobasis.features.outcome import VALUE, part_of
from cobasis.linalg.arrays import Matrix
from cobasis.models import FAMILIES
from cobasis.party_side.preview import NONE, labels_of
from cobasis.privacy.audit.report import Finding, Grade, per_cent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.messages import Labels
from cobasis.vault.datasets import Choice

_ROWS_PER_COMPONENT_GREEN, _ROWS_PER_COMPONENT_RED = 20, 5
_SMALLEST_CLASS = 11
_SMALLEST_CHANGE, _SMALLEST_CHANGED_SHARE = 11, 0.05
_RENAMED = 0.05  # share of rows with a new identifier and known values: no coincidence
_WORST_CONDITION = 1e6
_SAFE_ANCHORS = ("isometric", "gaussian")


def checked(
    agreement: Agreement,
    choice: Choice,
    *,
    image: Matrix,
    sent: Labels | None,  # of all rows
    sensitive: Collection[str] = (),
    guarantee: str = NONE,
) -> tuple[Finding, ...]:
    """Return H1 to H6 and D1 of an upload, or of a proposal, which sends no labels."""
    return (
        _anchor(agreement, image),
        _rows_per_component(agreement, len(choice.asked.rows), image.shape[1]),
        _smallest_class(agreement, sent),
        history(choice),
        _models(agreement),
        _labels(agreement, sent, sensitive=sensitive),
        formal_guarantee(guarantee),
    )


def protected(terms: DPTerms, covered: str) -> str:
    """Return the verdict where a guarantee holds, each condition of which is agreed."""
    told = f"eps={terms.epsilon:g}, delta={terms.delta:g}, per record"
    return f"Protected by differential privacy: {told}, {covered}."


def formal_guarantee(stated: str) -> Finding:
    if stated == NONE:
        stated = f"{NONE}: what an attacker finds out is not bounded by a proof"
    return Finding("D1", "told", f"{stated[:1].upper()}{stated[1:]}.")


def _anchor(agreement: Agreement, image: Matrix) -> Finding:
    """H1: the anchor's kind, and whether its image has full rank."""
    grade: Grade = "red"
    condition = float(np.linalg.cond(image))
    if agreement.anchor not in _SAFE_ANCHORS:
        words = (
            "its image alone gives the secret basis away, or its rows can be found. Agree on "
            'anchor = "isometric" or "gaussian"'
        )
    elif condition >= _WORST_CONDITION:
        words = (
            "its image is nearly rank-deficient, which no honest draw is. Do not send this; ask "
            "for a new consortium secret and round"
        )
    else:
        grade = "green"
        words = "drawn from a secret of 256 random bits; its image tells nothing of the basis"
    figures = {"condition": condition if np.isfinite(condition) else None}
    return Finding("H1", grade, f"The anchor is '{agreement.anchor}': {words}.", figures)


def _rows_per_component(agreement: Agreement, n_rows: int, n_components: int) -> Finding:
    """H2: with few rows per component, the basis tells who was in the table."""
    ratio = n_rows / n_components
    figures, rule = {"rows_per_component": ratio}, BASES[agreement.basis]
    if not rule.span.startswith("own") and rule.exchanges == 1:
        words = "The basis is not made of your rows, so it tells nothing of who is in the table."
        return Finding("H2", "green", words, figures)
    few: Grade = "red" if ratio < _ROWS_PER_COMPONENT_RED else "amber"
    grade = "green" if ratio > _ROWS_PER_COMPONENT_GREEN else few
    words = (
        f"{n_rows:,} rows make a basis of {n_components:,} components, "
        f"{ratio:.1f} rows for each. Whoever learns the basis can tell who is in the table the "
        "better, the fewer there are: nearly surely at 3, hardly above 20."
    )
    return Finding("H2", grade, words, figures)


def _counts(sent: Labels | None, role: str = VALUE) -> npt.NDArray[np.intp]:
    """Return how many people have each value of a column that is sent."""
    told = part_of(sent, role)
    return np.unique([] if told is None else np.asarray(told), return_counts=True)[1]


def _smallest_class(agreement: Agreement, sent: Labels | None) -> Finding:
    """H3: few people with one label, an event or a treatment stand out, whatever their numbers."""
    roles = [VALUE] * (agreement.task == "classification") + ["event", "treatment"]
    counts = [int(count) for role in roles for count in _counts(sent, role)]
    if not counts:
        return Finding("H3", "green", "No classes are sent.")
    least = min(counts)
    words = (
        f"The smallest class that is sent has {least:,} {'person' if least == 1 else 'people'}; "
        f"fewer than {_SMALLEST_CLASS} stand out."
    )
    figures = {"smallest_class": least, "n_classes": len(counts)}
    return Finding("H3", "green" if least >= _SMALLEST_CLASS else "red", words, figures)


def history(choice: Choice) -> Finding:
    """H4: rows that were uploaded before go through the span of then, and few do not change."""
    grade: Grade = "red"
    changes, n_rows, figures = choice.changes, len(choice.asked.rows), dict[str, float | None]()
    figures |= {"n_uploads": 0 if choice.dataset is None else len(choice.dataset.history)}
    figures |= {name: getattr(changes, name, None) for name in ("added", "gone")}
    if choice.renamed > _RENAMED:
        words = (
            f"{choice.renamed:.0%} of the rows have a new identifier and the values of rows that "
            "were uploaded before. If these are the same people, give them the identifiers of "
            "then: else they leave twice, and what was promised to them is counted anew."
        )
    elif choice.span == "forced":
        words = (
            "Some of these rows were uploaded before, and now go through a second span. Every "
            "further span shows them from another side, until nothing is hidden."
        )
    elif changes is None:
        grade, words = "green", "Nothing of these rows left this home folder before."
    else:
        added, gone = changes.added, changes.gone
        words = f"Since an earlier file of these rows {added:,} came and {gone:,} went."
        if (least := changes.fewest) >= _SMALLEST_CHANGE:
            grade = "amber" if least < _SMALLEST_CHANGED_SHARE * n_rows else "green"
    return Finding("H4", grade, words, {**figures, "renamed": choice.renamed})


def _models(agreement: Agreement) -> Finding:
    """H5: what may come back; an agreement names no model whose file holds records."""
    models = agreement.allowed_models
    if not models:
        words = "No model is trained; a change of basis comes back, and nothing that can run."
        return Finding("H5", "green", words)
    words = (
        f"What may come back is {', '.join(models)}, as a checked model file: weights, "
        "no records, nothing that could run by itself."
    )
    mixed = [name for name in models if FAMILIES[name].additive]
    if mixed and agreement.dp is None:
        words += (
            f" With {' or '.join(mixed)}, and where three to twenty parties take part, each also "
            "gets the model of the others, without its own rows, for its local fit."
        )
    if all(FAMILIES[name].chain != "boosted_trees" for name in models):
        return Finding("H5", "green", words)
    words += " Thresholds of boosted trees are single values of somebody's projected rows."
    return Finding("H5", "amber", words)


def _labels(agreement: Agreement, sent: Labels | None, *, sensitive: Collection[str]) -> Finding:
    if sent is None:
        return Finding("H6", "green", "No labels are sent.")
    if not {*labels_of(agreement)}.isdisjoint(sensitive):
        words = "A label was declared sensitive, and the analyst sees it, one for each row."
        return Finding("H6", "red", words)
    if (terms := agreement.dp) is not None:
        how = "public by declaration" if terms.labels == "public" else "randomised response"
        return Finding("H6", "green", f"Labels: {how}.")
    treated = ", and whether it was treated" if agreement.task == "effect" else ""
    values = _counts(sent)
    if part_of(sent, "event") is not None:  # a time that nobody else has is like a date of birth
        alone = int(np.count_nonzero(values == 1)) / len(sent)
        words = (
            f"The analyst sees the time and the event of each row{treated}, as they are. "
            f"{per_cent(alone)} of the times are of one row alone: whoever knows when "
            "somebody was taken in, and when the event was, finds the row. Agree on coarser "
            "times, as weeks."
        )
        return Finding("H6", "amber", words, {"times_alone": alone})
    n_classes = len(values) if agreement.task == "classification" else 0
    kind = f"one of {n_classes:,} classes" if n_classes else "a number"
    words = (
        f"The analyst sees the label of each row, {kind}{treated}, as it is. If the label itself "
        "is sensitive, name it with --sensitive."
    )
    return Finding("H6", "amber", words, {"n_classes": n_classes or None})


def model_sentence(agreement: Agreement) -> str:
    if not agreement.allowed_models:
        return "You get back no model, only your own change of basis."
    trees = ", but boosted trees carry single values"
    trees = trees if _models(agreement).grade == "amber" else ""
    return f"The model you get back contains no records{trees}."
