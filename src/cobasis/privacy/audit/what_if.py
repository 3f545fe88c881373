"""What would change the figures and may be agreed on: components, basis, precision, noise."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KEY_BYTES, KeyStream, haar_columns
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.scores import explained
from cobasis.privacy.audit.attackers import guessed, linkage, rebuilt
from cobasis.privacy.audit.counted import bits_of_record, bits_sent
from cobasis.privacy.audit.policy import Grade, graded_bits, per_cent
from cobasis.privacy.audit.subject import Budget, Setting, Subject
from cobasis.privacy.mechanism import calibrated, noised, randomised
from cobasis.privacy.sensitivity import sensitivity_of

_EPSILON = (32.0, 8.0, 2.0)

_ROWS, _ROWS_OF_CONTENT = 240, 1000
"""So many people are enough to compare settings."""

_FEWEST = 60  # with fewer people no model is fitted
_SPLITS = 3  # one split says how well a model did; three also say by how much that is chance
_STEPS = 127  # of int8 on each side of 0


def settings_of(
    subject: Subject, own: Setting, *, sizes: tuple[int, ...] = ()
) -> tuple[Setting, ...]:
    """Return what to measure, the own setting first; sizes are by default its half and quarter."""
    sizes = sizes or (max(1, own.n_components // 2), max(1, own.n_components // 4))
    found = [own, *(replace(own, n_components=each) for each in sizes)]
    found += [replace(own, basis="haar"), replace(own, precision="int8")]
    if subject.public_rows is not None:
        found.append(replace(own, basis="public"))
    if own.budget is not None:
        budgets = (replace(own.budget, epsilon=each) for each in _EPSILON)
        found += [replace(own, budget=each) for each in budgets]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class Effect:
    name: str  # the setting in words
    setting: Setting
    # people that linkage was measured on, by an analyst alone on half of them; else up to 1,000
    n_rows: int
    content: float  # R2 if one party helps the analyst
    whole: Grade  # whether enough bits leave to rebuild whole records: red for yes, green for no
    alone: float | None  # linkage by an analyst with similar records, alone; None with too few rows
    leaked: float  # linkage if the secret basis leaks, which only noise changes
    # of a ridge model, or R2 for numbers, as the mean of three splits; None without labels
    accuracy: float | None
    accuracy_least: float | None
    accuracy_most: float | None
    n_scored: int  # people whom a split was scored on


def effects(
    subject: Subject, *, settings: tuple[Setting, ...], task: str, seed: int
) -> tuple[Effect, ...]:
    """Measure what settings come to; the first is how the upload was made."""
    part, found = subject.some(_ROWS_OF_CONTENT, seed=seed), []
    key = np.random.default_rng(seed).bytes(KEY_BYTES)
    for setting in settings:
        made, own = part, settings[0]
        if setting != own:
            basis = basis_of(subject, setting, own=own, key=key)
            if basis is None:
                continue
            made = as_set(part, basis=basis, setting=setting, key=key)
        some = made.some(_ROWS, seed=seed)
        alone = guessed(some, seed=seed, quick=True)
        scores = accuracies(made, task=task, seed=seed)
        effect = Effect(
            name=setting.told_beside(own),
            setting=setting,
            n_rows=some.n_rows,
            content=explained(rebuilt(made).rows, made.rows),
            whole=graded_bits(bits_sent(made), bits_of_record(made)),
            alone=None if alone is None else alone[1].value,
            leaked=linkage(some).value,
            accuracy=float(np.mean(scores)) if scores else None,
            accuracy_least=min(scores, default=None),
            accuracy_most=max(scores, default=None),
            n_scored=made.n_rows - made.n_rows // 2 if scores else 0,
        )
        found.append(effect)
    return tuple(found)


def basis_of(subject: Subject, setting: Setting, *, own: Setting, key: bytes) -> Matrix | None:
    """Return a setting's basis, without a rotation: no figure depends on one; None for none."""
    kind, size, n_features = setting.basis, setting.n_components, subject.rows.shape[1]
    if kind == own.basis and size == subject.n_components:
        return subject.basis
    if kind == "haar":
        stream = KeyStream(key, "audit/haar")
        return haar_columns(stream, n_rows=n_features, n_columns=size)
    rows = subject.public_rows if kind == "public" else subject.rows
    if "consensus" in kind:  # a party alone can only leave out directions of the common span
        rows = subject.rows @ subject.basis
    if rows is None:
        return None
    found = leading_directions(rows, n_wanted=size, centred=kind == "pca").directions
    if found.shape[1] < size:
        return None
    return subject.basis @ found if "consensus" in kind else found


def as_set(subject: Subject, *, basis: Matrix, setting: Setting, key: bytes) -> Subject:
    budget, rows, clipped, sent = setting.budget, subject.rows @ basis, None, subject.labels
    if budget is not None:
        clipped = budget.clipped(subject.rows)
        moved = sensitivity_of(
            radius=budget.radius, adjacency=budget.adjacency, rows_per_person=budget.rows_per_person
        )
        calibration = calibrated(epsilon=budget.epsilon, delta=budget.delta, sensitivity=moved)
        normal = KeyStream(key, "audit/noise").tailed_normal(rows.shape)
        rows = noised(clipped @ basis, normal, calibration=calibration)
        if sent is not None and budget.label_epsilon is not None:
            sent = randomised(
                sent.astype(np.int64),
                KeyStream(key, "audit/labels"),
                epsilon=budget.label_epsilon / budget.rows_per_person,
                n_classes=budget.n_classes,
            )
    return replace(
        subject,
        basis=basis,
        release=Release(rows=_stored(rows, setting.precision), labels=sent),
        clipped=clipped,
        precision=setting.precision,
        noisy=budget is not None,
    )


def _stored(rows: Matrix, precision: str) -> Matrix:
    """Return rows as a file of this precision holds them; int8 in steps of the range that fits."""
    if precision != "int8":
        kind = np.dtype(f"f{int(precision[2:]) // 8}")
        most = float(np.finfo(kind).max)  # a round would refuse what is larger
        return np.clip(rows, -most, most).astype(kind).astype(np.float64)
    step = float(np.abs(rows).max(initial=0.0)) / _STEPS or 1.0
    return np.rint(rows / step) * step


def accuracies(subject: Subject, *, task: str, seed: int) -> list[float]:
    """Fit a ridge model on half of the released rows and score it on the other half: thrice."""
    # Fitted on labels as they are sent. Scored on the table's own, and on rows through the basis
    # without noise, which is how a party predicts.
    labels, taught = subject.labels, subject.release.labels
    if labels is None or taught is None or task == "representation" or subject.n_rows < _FEWEST:
        return []
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV  # noqa: PLC0415 -- a second to load

    rows, exact = subject.release.rows, subject.rows @ subject.basis
    rng, scores = np.random.default_rng(seed), []
    for _ in range(_SPLITS):
        fitted, held = np.split(rng.permutation(subject.n_rows), [subject.n_rows // 2])
        if task == "classification" and len(np.unique(taught[fitted])) == 1:
            return []
        size = float(np.mean(np.einsum("ij,ij->i", rows[fitted], rows[fitted])) or 1.0)
        family: Any = RidgeClassifierCV if task == "classification" else RidgeCV
        model = family(alphas=np.logspace(-4, 3, 8) * size).fit(rows[fitted], taught[fitted])
        scores.append(float(model.score(exact[held], labels[held])))
    return scores


def planned(
    people: Subject, *, own: Setting, task: str
) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """Measure what each defence would come to for people whose rows nobody projected yet.

    The agreement as it is comes first; what was left out, and why, is said beside the figures.
    """
    told, n_features = list[str](), people.rows.shape[1]
    if own.basis.endswith("consensus"):  # which nobody knows before it is made
        told.append("The span of your own rows stands for the consensus, which holds less of them.")
        own = replace(own, basis="svd")
    size, key = own.n_components, bytes(KEY_BYTES)  # the same table has the same prices
    sizes = min(2 * size, n_features), max(1, size // 2), max(1, size // 4)
    with one_blas_thread():
        basis = basis_of(people, own, own=own, key=key)
        if basis is None:
            raise DimensionError(
                f"the agreement's basis '{own.basis}' has {size:,} components, and the rows it "
                "would be made of have fewer directions. Plan with fewer components, or with "
                'basis = "haar".'
            )
        made = as_set(people, basis=basis, setting=own, key=key)
        settings = settings_of(made, own, sizes=sizes)
        found = effects(made, settings=settings, task=task, seed=0)
    return found, (*told, *_beside(made, own.budget))


def _beside(subject: Subject, budget: Budget | None) -> Iterator[str]:
    if subject.public_rows is None:
        yield "A basis of public rows was left out: give such rows with --public."
    if subject.labels is not None and subject.classes is not None:
        often = np.unique(subject.labels, return_counts=True)[1].max() / subject.n_rows
        yield f"Always answering the most frequent class is right for {per_cent(often)}."
    if budget is None:
        yield (
            "Noise with a guarantee is priced where the draft has a [dp] section, with a ball that "
            "must not come from private rows."
        )
    else:
        yield (
            f"Epsilon is of the features of one person, with delta {budget.delta:g}: rows are "
            f"clipped to a ball of radius {budget.radius:.3g}. Labels are "
            f"{'public' if budget.label_epsilon is None else 'randomised'}."
        )
