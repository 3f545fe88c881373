"""The model card: who and what made a model; it goes with each return.

All parties see it, so it holds no figure of one party. A party makes the same card of its agreement
and its return, and compares: only rows in all and the evidence rest on the analyst's word.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import Field

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.certificate import FIT_TOLERANCE, Evidence
from cobasis.algorithms.fits import DETERMINED
from cobasis.errors import MessageError
from cobasis.features.contract import Finite
from cobasis.models import UNLABELLED, ChainFamily, Task
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.protocol.agreement import Agreement, Count, Digest, Name, Precision
from cobasis.protocol.enrolment import Text
from cobasis.protocol.sums_terms import FOR_ROWS, Release, guarantee_of
from cobasis.protocol.terms import other_groups
from cobasis.strict_json import IF_ANY, Strict, canonical_json

if TYPE_CHECKING:
    from cobasis.protocol.analyst import Analyst
    from cobasis.protocol.messages import ConsensusSpan, Return

SCORES = {"rows", "accuracy", "accuracy_low", "accuracy_high", "log_loss", "auc", "mae", "r2"}
"""What a card may say of held-back rows."""

_SAID = ("n_rows", "evidence", "scores", "shares", "importance")
"""What rests on the analyst's word."""

_AsTask = Literal["clustering", "novelty", "table"]
Gives = Literal[
    "probabilities", "scores", "numbers", "coefficients", "effects", "aligned rows", _AsTask
]


class ModelCard(Strict):
    passes_over = True

    format: Literal["cobasis/card/1"]
    round_id: Name
    agreement: Digest
    purpose: Text
    task: Task
    label: str
    classes: tuple[str, ...] | tuple[int, ...]
    release: Annotated[Release, Field(exclude_if=lambda release: release == "rows")] = "rows"
    # how rows were projected and aligned; None where sums were sent
    basis: BasisName | None
    n_components: Count | None
    anchor: AnchorKind | None
    aligner: AlignerName | None
    precision: Precision | None
    family: ChainFamily | None  # as the model's file has it; None without a model
    widths: tuple[Count, ...]  # columns in, and what each layer gives
    gives: Gives
    trained_on: tuple[Name, ...]
    target_carries: tuple[Name, ...]
    n_rows: Annotated[int, Field(ge=0, lt=2**53, multiple_of=10)]
    facts: tuple[str, ...]  # exact: a run that lacks one ends without a model
    evidence: Evidence  # the weakest of all parties
    # of sums with a second exchange: on how many held-back rows of all, and what it is worth there
    scores: Annotated[dict[str, Finite], Field(default_factory=dict), IF_ANY]
    # of clusters: how much of all rows each has, to whole percent
    shares: Annotated[tuple[Finite, ...], IF_ANY] = ()
    # of sums where it is agreed: of each raw column by how much accuracy, or R2, falls where it is
    # shuffled among held-back rows, and the standard error
    importance: Annotated[dict[str, tuple[Finite, Finite]], Field(default_factory=dict), IF_ANY]
    limits: tuple[str, ...]
    anchor_tag: Digest | None
    model_sha256: Digest | None
    others_sha256: Digest | None  # another one in each party's card
    consensus_sha256: Digest | None

    def encoded(self) -> bytes:
        return canonical_json(self.model_dump())

    def beside(self, others: Chain | None) -> Self:
        return self.model_copy(update={"others_sha256": _sha256(others)})


def make_card(
    agreement: Agreement,
    returned: "Return",
    *,
    consensus: "ConsensusSpan | None",
    anchor_tag: bytes | None,
    n_rows: int,
    **said: Any,  # noqa: ANN401 -- fields that rest on the analyst's word
) -> ModelCard:
    model = returned.model if isinstance(returned.model, Chain) else None
    gives = _gives(agreement, model)
    shared = ModelCard.model_fields.keys() & Agreement.model_fields.keys()
    unsaid = FOR_ROWS if agreement.sums else ()
    return ModelCard(
        **cast("Any", {x: None if x in unsaid else getattr(agreement, x) for x in shared}),
        format="cobasis/card/1",
        agreement=agreement.digest().hex(),
        family=None if model is None else model.family,
        widths=() if model is None else model.widths,
        gives=gives,
        trained_on=returned.trained_on,
        target_carries=returned.target_carries,
        n_rows=round(n_rows, -1),
        facts=tuple(_facts(agreement)),
        **said,
        limits=tuple(_limits(agreement, returned, gives=gives)),
        anchor_tag=None if anchor_tag is None else anchor_tag.hex(),
        model_sha256=_sha256(model),
        others_sha256=_sha256(returned.others),
        consensus_sha256=None if consensus is None else consensus.digest().hex(),
    )


def card_of(analyst: "Analyst") -> ModelCard:
    """Return the card of what an analyst trained, as all returns share it."""
    from cobasis.protocol.training import shares_of  # noqa: PLC0415 -- has messages, which have cards

    uploads, told = analyst.uploads, analyst.certificate.parties.values()
    all_alike = all(each.evidence == "not a random turn" for each in told)
    return make_card(
        analyst.agreement,
        next(analyst.returns()),
        consensus=analyst.span,
        anchor_tag=next(iter(uploads.values())).anchor_tag,
        n_rows=sum(each.rows.shape[0] for each in uploads.values()),
        evidence="not a random turn" if all_alike else "cannot tell",
        shares=shares_of(analyst),
    )


def check_card(
    returned: "Return",
    agreement: Agreement,
    *,
    consensus: "ConsensusSpan | None",
    anchor_tag: bytes | None,
    n_rows: int,
) -> ModelCard:
    """Return a return's card, if it is what the party would say itself; it sent so many rows."""
    card, what = returned.card, f"the model card of the return to party '{returned.party}'"
    if card is None:
        raise MessageError(
            f"{what} is missing, so nobody here knows who and what made the model. Ask the analyst "
            "to run the round again with this version of cobasis."
        )
    word: Any = {name: getattr(card, name) for name in _SAID}
    right = make_card(agreement, returned, consensus=consensus, anchor_tag=anchor_tag, **word)
    wrong = [name for name in ModelCard.model_fields if getattr(card, name) != getattr(right, name)]
    terms = agreement.sums
    counted = terms is None or agreement.dp is None  # under noise on sums nothing is
    scored = terms is not None and terms.scores and {"rows"} <= {*card.scores} <= SCORES
    named = agreement.columns if terms is not None and terms.importance else ()
    n_shares = len(agreement.classes) if agreement.task == "clustering" else 0
    flaws = {
        "n_rows, which is below your own": counted and card.n_rows < round(n_rows, -1),
        "evidence": (card.evidence, returned.evidence) == ("not a random turn", "cannot tell"),
        "scores": card.scores and not scored,
        "shares": len(card.shares) != n_shares,
        "importance": card.importance and not (card.scores and {*card.importance} == {*named}),
    }
    wrong += [name for name, flawed in flaws.items() if flawed]
    if wrong:
        raise MessageError(
            f"{what} contradicts the agreement, the return or what you sent: {', '.join(wrong)}. "
            "So it is another model's card, or not the whole truth. Do not use the model, and ask "
            "the analyst to run the round again with this version of cobasis."
        )
    return card


def _sha256(model: Chain | None) -> str | None:
    return None if model is None else hashlib.sha256(encode_chain(model)).hexdigest()


def _gives(agreement: Agreement, model: Chain | None) -> Gives:
    if agreement.tabular:
        return "effects" if agreement.task == "effect" else "coefficients"
    if agreement.task != "classification":
        named: Mapping[Task, Gives] = {"regression": "numbers", "representation": "aligned rows"}
        return named.get(agreement.task, cast("_AsTask", agreement.task))
    certain = model is not None and model.likely and agreement.dp is None
    return "probabilities" if certain else "scores"


def _facts(agreement: Agreement) -> Iterator[str]:
    if agreement.sums is not None and agreement.dp is not None:
        yield "No number of the total is beyond what the agreed rows and noise can add up to."
        return
    if agreement.sums is not None:
        yield "All parties' masks cancelled: the total has one whole count of rows at every place."
        if agreement.tabular:
            yield "No sum is more than so many rows add up to, and every step is of as many rows."
        elif agreement.task == "table":
            yield "In it the cells of each column are whole counts, and at most as many as rows."
        else:
            yield "In it classes add up to the rows, and no table has a negative eigenvalue."
        return
    yield "All parties' anchor images carry one anchor tag, so they are of one anchor."
    yield f"No fit leaves a direction undetermined: all cosines are above {DETERMINED:g}."
    yield f"Each change of basis is the fit that the aligner asks for, to {FIT_TOLERANCE:g}."
    if agreement.turn is not None:
        yield f"Rows go through the agreed map '{agreement.map.kind}' before the basis."
    yield (
        f"No party's rows or anchor image are more than {agreement.scale_band:g} times larger or "
        "smaller than the median party's."
    )


def _of_tables(agreement: Agreement, returned: "Return") -> Iterator[str]:
    if agreement.tabular and agreement.sums is None:
        yield (
            "All encoded columns left: one party that helps the analyst shows every row of all "
            "others."
        )
    fit = returned.model.fit if isinstance(returned.model, Chain) else None
    if fit is not None and not fit.finished:
        yield "These are the weights of one step, and no estimate: errors come with the last."
    if fit is not None and agreement.outcome is not None and agreement.outcome.grid:
        yield f"Times were rounded up to the agreed {len(agreement.outcome.grid)}."


_GIVES: Mapping[Gives, str] = {
    "probabilities": "Its probabilities are right on average over the people of these parties; for "
    "people unlike them they can be too high or too low.",
    "scores": "Its scores are no probabilities: they put classes in an order, and no more.",
    "numbers": "It gives one number for a row, and does not say how far off that may be.",
    "coefficients": "Its coefficients, errors and p-values are those of the same fit to all rows "
    "together. They describe these rows, and prove no cause. Which columns are in it, and in which "
    "form, was agreed before anybody saw a figure.",
    "effects": "Its effects and errors are those of all rows together. They are a treatment's only "
    "if no cause of both treatment and outcome is missing from the columns, which no figure here "
    "can show.",
    "clustering": "Its clusters are a description of these rows: another number of them, another "
    "family or other columns give others, and no label says which are right.",
    "novelty": "Its number says which share of these parties' rows is as unlikely, and not why: "
    "an error of a cell and a rare patient are unlikely alike.",
    "table": "No model was trained: what comes back is a table of counts, means and histograms. "
    "Means and standard deviations are exact, medians and quartiles are read off the bins.",
    "aligned rows": "No model was trained: what comes back is one common form of the rows.",
}


def _limits(agreement: Agreement, returned: "Return", *, gives: Gives) -> Iterator[str]:
    who, noise = returned.trained_on, agreement.dp
    yield (
        f"It is of rows of {', '.join((*who, *other_groups(agreement)))} and of nobody else, and "
        "was tried on no others: for people of other places, times and devices nothing is known."
    )
    if absent := [name for name in agreement.parties if name not in who]:
        yield f"Named in the agreement, but not among these: {', '.join(absent)}."
    if traces := [name for name in returned.target_carries if name not in who]:
        yield f"The alignment keeps a trace of {', '.join(traces)}, whose rows are not in it."
    yield _GIVES[gives]
    yield from _of_tables(agreement, returned)
    if agreement.sums is not None:
        yield (
            "A party that sent wrong sums is not found: nobody sees one party's, and the total "
            "shows no party."
        )
    yield (
        "This card is no approval as a medical device, and the model decides about nobody: whoever "
        "uses it for that needs such an approval first."
    )
    left = f"Of each person {agreement.n_components} numbers left through a secret basis"
    left += "" if agreement.task in UNLABELLED else ", and the label"
    if agreement.task == "table":
        yield (
            "What few people have in common shows them: no formal guarantee covers the table, and "
            "a level, a bin or a group of one person says what that person has."
        )
    elif agreement.sums is not None and noise is None:
        yield (
            "Of each person the features of the map and the label are in sums over all parties' "
            "rows, which no formal guarantee covers: with few rows for each feature they still "
            "tell who is in them."
        )
    elif noise is None:
        yield (
            f"{left}, without noise: pseudonymised personal data, which no formal guarantee covers."
        )
    else:
        left = left if agreement.sums is None else "Sums left"
        yield f"{left}, with noise: {guarantee_of(agreement)}."
    yield (
        "Rows in all, and the others' part in facts and evidence, are the analyst's word: no party "
        "can check them alone."
    )
