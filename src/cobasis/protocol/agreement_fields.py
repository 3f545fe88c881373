"""The agreement's fields, each checked by itself and against the others."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, MAX_ISOMETRIC_FEATURES
from cobasis.algorithms.bases import BASES, check_basis_rule
from cobasis.errors import AgreementError
from cobasis.features.encoder import Feature, width_of
from cobasis.models import ModelName, Task
from cobasis.models.families import FAMILIES, family
from cobasis.protocol.dp_terms import PEOPLE_PER_FAILURE, DPTerms
from cobasis.protocol.enrolment import PublicIdentity

Name = Annotated[str, Field(min_length=1, max_length=100)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(max_length=10_000)]
Precision = Literal["fp64", "fp32", "fp16", "int8"]
MOMENT = "%Y-%m-%dT%H:%M:%SZ"


def moment_text(moment: datetime) -> str:
    """Return a moment as all our files write it: UTC, whole seconds, ``Z`` at the end."""
    return moment.astimezone(UTC).strftime(MOMENT)


def moment_of(text: str) -> datetime:
    """Return the moment that `moment_text` wrote; ValueError for any other text."""
    moment = datetime.strptime(text, MOMENT).replace(tzinfo=UTC)
    if moment_text(moment) != text:
        raise ValueError("not of the form 2026-11-21T15:30:00Z")
    return moment


def _as_moment(text: str) -> str:
    moment_of(text)
    return text


Moment = Annotated[str, AfterValidator(_as_moment)]


class AgreementFields(BaseModel):
    """The fields; `cobasis.Agreement` says what they mean."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    round_id: Name
    parties: Annotated[tuple[Name, ...], Field(min_length=1)]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    task: Task
    classes: tuple[str, ...] | tuple[int, ...] = ()
    n_components: Count
    anchor: AnchorKind = "isometric"
    n_anchor_rows: Count
    public_rows_sha256: Digest | None = None
    basis: BasisName = "svd"
    aligner: AlignerName = "odc"
    model: ModelName | None = None
    models: tuple[ModelName, ...] = ()
    commitment: Digest
    scale_band: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10.0
    label: Annotated[str, Field(max_length=200)] = ""
    id: Annotated[str, Field(max_length=200)] = ""
    holdout: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    precision: Precision = "fp64"
    int8_range: Positive | None = None
    minimum_parties: Count = 1
    deadline: Annotated[str, Field(max_length=30)] = ""
    purpose: Text = ""
    threat_model: Literal["", "semi-honest"] = ""
    retention_days: Count | None = None
    enrolled: tuple[PublicIdentity, ...] = ()
    analyst: PublicIdentity | None = None
    dp: DPTerms | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the raw columns that features are made of, in their order."""
        return tuple(feature.name for feature in self.features)

    @property
    def n_features(self) -> int:
        """m: the columns of what is projected; a category has one for each of its levels."""
        return width_of(self.features)

    @property
    def allowed_models(self) -> tuple[ModelName, ...]:
        """The families that the analyst may train: ``models``, or ``model`` alone."""
        return self.models or (() if self.model is None else (self.model,))

    @property
    def closes(self) -> datetime | None:
        """When the deadline is, in UTC; None without one."""
        return moment_of(self.deadline) if self.deadline else None


def refuse_contradictions(agreement: AgreementFields) -> None:
    """Raise AgreementError where two fields exclude each other."""
    n_parties = len(agreement.parties)
    check_basis_rule(agreement.basis, anchor=agreement.anchor, n_parties=n_parties)
    problems = [
        *_repeats("parties", agreement.parties),
        *_repeats("features", agreement.columns),
        *_repeats("classes", agreement.classes),
        *_size_problems(agreement),
        *_task_problems(agreement),
    ]
    if agreement.label or agreement.id:
        problems += _column_problems(agreement)
    if agreement.deadline and not _is_time(agreement):
        problems.append(
            f"deadline='{agreement.deadline}' is no time in UTC like 2026-12-31T23:59:59Z"
        )
    if agreement.enrolled or agreement.analyst:
        problems += _enrolment_problems(agreement)
    if agreement.dp is not None:
        problems += _dp_problems(agreement, agreement.dp)
    if problems:
        what, then = "these options contradict each other", "Change one of them."
        if agreement.enrolled:
            what = "the agreement contradicts itself"
            then = "Change one of the two fields and have it signed again."
        raise AgreementError(f"{what}: {'; '.join(problems)}. {then}")


NEEDED_TO_SIGN = ("purpose", "threat_model", "retention_days", "enrolled", "analyst")
"""What a simulation does without, and nobody puts a name under."""


def missing_fields(agreement: AgreementFields | Mapping[str, object]) -> tuple[str, ...]:
    """Return which fields have to be filled before anybody may sign."""
    fields = dict(agreement)
    known = AgreementFields.model_fields.items()
    needed = [name for name, field in known if field.is_required()] + list(NEEDED_TO_SIGN)
    task = fields.get("task")
    needed += [] if task == "representation" else ["label", "model"]
    needed += ["classes"] if not task or task == "classification" else []
    return tuple(name for name in needed if not fields.get(name))


def _size_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what is wrong with the sizes, the anchor, and the numbers on the wire."""
    n_features, n_anchor_rows = agreement.n_features, agreement.n_anchor_rows
    if agreement.n_components > n_features:
        yield f"n_components={agreement.n_components} is above the {n_features} features"
    if n_anchor_rows < agreement.n_components:
        yield (
            f"n_anchor_rows={n_anchor_rows} is below n_components, so images would be "
            "rank-deficient"
        )
    if agreement.anchor == "isometric" and n_anchor_rows < n_features:
        yield (
            f"an isometric anchor needs n_anchor_rows >= {n_features}, the number of features, "
            f"not {n_anchor_rows}"
        )
    if agreement.anchor == "isometric" and n_features > MAX_ISOMETRIC_FEATURES:
        yield f"{n_features} features are above {MAX_ISOMETRIC_FEATURES}: use anchor='gaussian'"
    needs_public = agreement.anchor in FROM_PUBLIC_ROWS or agreement.basis == "public"
    if needs_public != (agreement.public_rows_sha256 is not None):
        yield (
            "public_rows_sha256 goes with a public basis or a public or smote anchor, only with one"
        )
    if (agreement.precision == "int8") != (agreement.int8_range is not None):
        yield "int8_range goes with precision='int8', and only with it"
    if agreement.minimum_parties > len(agreement.parties):
        yield (
            f"minimum_parties={agreement.minimum_parties} is above the {len(agreement.parties)} "
            "parties"
        )


def _task_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what is wrong with classes and models for the task."""
    task, model = agreement.task, agreement.model
    if (task == "classification") != (len(agreement.classes) > 1):
        yield "classification needs at least two classes, other tasks have none"
    if (task == "representation") != (model is None):
        yield "every task but representation names a model"
    elif model is not None:
        family(model, task)
    yield from _repeats("models", agreement.models)
    for name in agreement.models:
        if task not in FAMILIES[name].tasks:
            yield f"models names '{name}', which is no family for {task}"
        if FAMILIES[name].carries_rows:
            yield f"models names '{name}', whose file is made of rows that every party could read"
    if agreement.models and model is not None and model not in agreement.models:
        yield f"model='{model}' is not among models"
    real = agreement.enrolled or agreement.analyst
    if real and model is not None and FAMILIES[model].carries_rows:
        yield f"model='{model}' carries rows and is for simulations, and somebody is enrolled here"


def _column_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what is wrong with the columns that are no features."""
    for role, name in (("label", agreement.label), ("id", agreement.id)):
        if name and name in agreement.columns:
            yield f"the {role} column '{name}' is also a feature"
    if agreement.id and agreement.id == agreement.label:
        yield f"the column '{agreement.id}' is both label and id, and an id is never uploaded"
    if agreement.label and agreement.task == "representation":
        yield "a representation has no label column"


def _enrolment_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what is wrong with who is enrolled."""
    names = tuple(each.name for each in agreement.enrolled)
    if names and names != agreement.parties:
        yield f"enrolled are {', '.join(names)}, the parties are {', '.join(agreement.parties)}"
    yield from _role_problems(agreement)
    everybody = [*agreement.enrolled, *([agreement.analyst] if agreement.analyst else [])]
    yield from _repeats("enrolled and analyst", [each.name for each in everybody])
    for key in ("signing_key", "recipient"):
        owners = Counter(getattr(each, key) for each in everybody)
        shared = [each.name for each in everybody if owners[getattr(each, key)] > 1]
        if shared:
            yield f"{', '.join(shared)} have one and the same {key}"


def _role_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield who takes part as what their key was not made for."""
    for each in agreement.enrolled:
        if each.role != "party":
            yield f"the key of party '{each.name}' was made for an analyst"
    if agreement.analyst is not None and agreement.analyst.role != "analyst":
        yield f"the key of the analyst '{agreement.analyst.name}' was made for a party"


def _is_time(agreement: AgreementFields) -> bool:
    """Whether the deadline is a time as we write it."""
    try:
        return agreement.closes is not None
    except ValueError:
        return False


def _repeats(field: str, values: Iterable[str] | Iterable[int]) -> Iterator[str]:
    """Yield a problem where values occur twice."""
    twice = sorted(str(value) for value, count in Counter(values).items() if count > 1)
    if twice:
        yield f"{field} names {', '.join(twice[:5])} more than once"


_FAR = 16.2
"""How many times its scale a number of the noise is at most away."""

_HALF = 65504.0
"""The largest number of float16."""


def _dp_problems(agreement: AgreementFields, terms: DPTerms) -> Iterator[str]:
    """Yield what an agreement says against its own guarantee."""
    if not BASES[agreement.basis].under_dp:
        allowed = ", ".join(name for name, rule in BASES.items() if rule.under_dp)
        yield (
            f"[dp] with basis='{agreement.basis}': rows shape that basis, so one of them can move "
            f"all, whatever the noise; the bases that no row shapes are {allowed}"
        )
    if agreement.anchor in FROM_PUBLIC_ROWS or agreement.anchor == "uniform":
        yield (
            f"[dp] with anchor='{agreement.anchor}', which is for reproducing papers; use "
            "'isometric' or 'gaussian'"
        )
    yield from _ball_problems(terms, agreement.n_features)
    yield from _budget_problems(terms)
    yield from _label_problems(agreement, terms)
    yield from _precision_problems(agreement, terms)


def _ball_problems(terms: DPTerms, n_features: int) -> Iterator[str]:
    """Yield what is wrong with the ball."""
    if terms.centre and len(terms.centre) != n_features:
        yield f"dp.centre has {len(terms.centre)} numbers for {n_features} encoded features"
    if terms.radius < 1e-6 * math.hypot(*terms.centre):
        yield f"dp.radius={terms.radius:g} is lost in the rounding of dp.centre"


def _budget_problems(terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong with delta and the lifetime."""
    most = 1 / (PEOPLE_PER_FAILURE * terms.most_rows)
    if terms.delta > most:
        yield (
            f"dp.delta={terms.delta:g} is above 1/({PEOPLE_PER_FAILURE} most_rows) = {most:g}, and "
            "with 1/most_rows a party could release somebody's whole row; lower one of the two"
        )
    once = terms.epsilon + terms.spent_on_labels
    if terms.lifetime_epsilon < once:
        yield f"dp.lifetime_epsilon={terms.lifetime_epsilon:g} is below the {once:g} of one upload"


def _label_problems(agreement: AgreementFields, terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong with the treatment of labels."""
    if (agreement.task == "representation") != (terms.labels is None):
        yield (
            "dp.labels says 'public' or 'randomised_response', and nothing only for a "
            "representation, which has no labels"
        )
    randomised = terms.labels == "randomised_response"
    if randomised and agreement.task == "regression":
        yield "dp.labels='randomised_response' is for classes; a regression's can only be 'public'"
    if randomised != (terms.label_epsilon is not None):
        yield "dp.label_epsilon goes with labels='randomised_response', and only with it"


def _precision_problems(agreement: AgreementFields, terms: DPTerms) -> Iterator[str]:
    """Yield what is wrong where numbers with noise might not fit into the agreed precision."""
    far = terms.radius + math.hypot(*terms.centre) + _FAR * terms.calibration.noise
    bounds = {"int8": agreement.int8_range, "fp16": _HALF}
    bound = bounds.get(agreement.precision)
    if bound is not None and bound < far:
        yield (
            f"precision='{agreement.precision}' holds numbers up to {bound:g}, and rows with the "
            f"noise of [dp] may reach {far:.3g}; whether they fit must not depend on the rows"
        )
