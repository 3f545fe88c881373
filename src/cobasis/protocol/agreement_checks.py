"""What an agreement's fields say together: contradictions, and what is still to be filled."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, MAX_ISOMETRIC_FEATURES
from cobasis.algorithms.bases import check_basis_rule
from cobasis.errors import AgreementError
from cobasis.models.families import FAMILIES, family
from cobasis.protocol.agreement_fields import DEADLINE, AgreementFields
from cobasis.protocol.dp_checks import dp_problems


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
        *_column_problems(agreement),
        *_people_problems(agreement),
        *dp_problems(agreement),
    ]
    if problems:
        raise AgreementError(
            f"the agreement contradicts itself: {'; '.join(problems)}. "
            "Change one of the two fields and have it signed again."
        )


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


def _people_problems(agreement: AgreementFields) -> Iterator[str]:
    """Yield what is wrong with who takes part, and until when."""
    if agreement.minimum_parties > len(agreement.parties):
        yield (
            f"minimum_parties={agreement.minimum_parties} is above the {len(agreement.parties)} "
            "parties"
        )
    if not _is_time(agreement):
        yield f"deadline='{agreement.deadline}' is no time in UTC like 2026-12-31T23:59:59Z"
    names = tuple(each.name for each in agreement.enrolled)
    if names and names != agreement.parties:
        yield f"enrolled are {', '.join(names)}, the parties are {', '.join(agreement.parties)}"
    everybody = [*agreement.enrolled, *([agreement.analyst] if agreement.analyst else [])]
    yield from _repeats("enrolled and analyst", [each.name for each in everybody])
    for key in ("signing_key", "recipient"):
        owners = Counter(getattr(each, key) for each in everybody)
        shared = [each.name for each in everybody if owners[getattr(each, key)] > 1]
        if shared:
            yield f"{', '.join(shared)} have one and the same {key}"


def _is_time(agreement: AgreementFields) -> bool:
    """Whether the deadline, if there is one, is a time as we write it."""
    try:
        closes = agreement.closes
    except ValueError:
        return False
    return closes is None or closes.strftime(DEADLINE) == agreement.deadline


def _repeats(field: str, values: Iterable[str] | Iterable[int]) -> Iterator[str]:
    """Yield a problem where values occur twice."""
    twice = sorted(str(value) for value, count in Counter(values).items() if count > 1)
    if twice:
        yield f"{field} names {', '.join(twice[:5])} more than once"
