"""What would change the figures: fewer components, noise, another basis, other labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cobasis.algorithms import BasisName
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KEY_BYTES, KeyStream
from cobasis.models.passes import Labels
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.audit.attackers import explained, guessed, linkage, rebuilt
from cobasis.privacy.audit.subject import Budget, Setting, Spans, Subject
from cobasis.privacy.clipping import sensitivity_of
from cobasis.privacy.mechanism import calibrated, noised, randomised

_ROWS, _ROWS_OF_CONTENT = 240, 1000
"""So many people are enough to compare settings: what is linked, and what is rebuilt."""

_FEWEST = 60
"""With fewer people no model is fitted."""

SPLITS = 3
"""One split says how well a model did; three also say by how much that is chance."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a setting comes to, all on the same people."""

    name: str  # the setting in words
    setting: Setting
    n_rows: int  # people that linkage was measured on; content and accuracy on up to 1,000
    content: float  # R2 if one party helps the analyst
    alone: float | None  # linkage by an analyst with similar records, alone; None with too few rows
    leaked: float  # linkage if the secret basis leaks, which only noise changes
    chance: float  # what guessing links
    chance_alone: float
    # of a ridge model, or R2 for numbers, as the mean of three splits; None without labels
    accuracy: float | None
    accuracy_least: float | None
    accuracy_most: float | None
    n_scored: int  # people whom a split was scored on


def effects(
    subject: Subject,
    *,
    settings: Sequence[Setting],
    kind: BasisName,
    task: str,
    spans: Spans,
    seed: int,
) -> tuple[Effect, ...]:
    """Measure what settings come to."""
    part = subject.some(_ROWS_OF_CONTENT, seed=seed)
    key = np.random.default_rng(seed).bytes(KEY_BYTES)
    found = []
    for setting in settings:
        own = settings[0]
        basis = spans.basis(setting.basis or kind, setting.n_components)
        if setting == own:
            made = part
        elif basis is None:
            continue
        else:
            exact = basis is part.basis and own.budget is None
            rows = part.release.rows if exact else part.rows @ basis
            made = as_set(part, rows, basis=basis, setting=setting, key=key)
        found.append(_measured(made, setting, name=setting.told_beside(own), task=task, seed=seed))
    return tuple(found)


def as_set(
    subject: Subject, projected: Matrix, *, basis: Matrix, setting: Setting, key: bytes
) -> Subject:
    """Return the upload that a setting makes of people and a basis."""
    labels, budget = subject.labels, setting.budget
    own = labels if labels is None else _coarser(labels, setting, truth=True)
    sent = labels if labels is None or not setting.labels else _coarser(labels, setting)
    if sent is not None and budget is not None and budget.label_epsilon is not None:
        stream = KeyStream(key, "audit/labels")
        sent = randomised(
            sent.astype(np.int64),
            stream,
            epsilon=budget.label_epsilon / budget.rows_per_person,
            n_classes=budget.n_classes,
        )
    if budget is None:
        clipped, rows = None, projected
    else:
        clipped = budget.clipped(subject.rows)
        rows = _private(clipped @ basis, budget=budget, key=key)
    if setting.noise:
        spread = float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()))
        rows = rows + setting.noise * spread * KeyStream(key, "audit/noise").normal(rows.shape)
    made = replace(
        subject,
        basis=basis,
        release=Release(rows=rows, labels=sent),
        labels=own,
        clipped=clipped,
    )
    if labels is None or not setting.without:
        return made
    return made.only(np.flatnonzero(~np.isin(labels, setting.without)))


def _private(values: Matrix, *, budget: Budget, key: bytes) -> Matrix:
    """Return clipped rows with noise that gives them a guarantee, as a round releases them."""
    sensitivity = sensitivity_of(
        radius=budget.radius, adjacency=budget.adjacency, rows_per_person=budget.rows_per_person
    )
    calibration = calibrated(epsilon=budget.epsilon, delta=budget.delta, sensitivity=sensitivity)
    normal = KeyStream(key, "audit/noise").tailed_normal(values.shape)
    return noised(values, normal, calibration=calibration)


def _coarser(labels: Labels, setting: Setting, *, truth: bool = False) -> Labels:
    """Return labels as a setting sends them; what a model is scored on is not rounded."""
    found = labels.copy()
    for group in setting.groups:
        found[np.isin(labels, group)] = group[0]
    if setting.step and not truth:
        found = np.rint(found / setting.step) * setting.step
    return found


def _measured(subject: Subject, setting: Setting, *, name: str, task: str, seed: int) -> Effect:
    """Attack one upload, and fit a model on it."""
    some = subject.some(_ROWS, seed=seed)
    leaked, alone = linkage(some), guessed(some, seed=seed, quick=True)
    worth = accuracy(subject, task=task, seed=seed)
    return Effect(
        name=name,
        setting=setting,
        n_rows=some.n_rows,
        content=explained(subject, rebuilt(subject)),
        alone=None if alone is None else alone[1].value,
        leaked=leaked.value,
        chance=leaked.chance,
        chance_alone=0.0 if alone is None else alone[1].chance,
        accuracy=None if worth is None else worth.mean,
        accuracy_least=None if worth is None else worth.least,
        accuracy_most=None if worth is None else worth.most,
        n_scored=0 if worth is None else worth.n_rows,
    )


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a simple model makes of released rows."""

    mean: float  # over three splits: accuracy, or R2 for numbers
    least: float
    most: float
    n_rows: int  # people that each split is scored on, whom its model was not fitted on


def accuracy(subject: Subject, *, task: str, seed: int) -> Worth | None:
    """Fit a ridge model on half of the released rows, and score it on the other half's people.

    It is fitted on labels as they are sent, and scored on the table's own; where none are sent,
    on the table's own as well: what the rows are worth to whoever has labels from elsewhere. It
    is scored on rows through the basis without noise, which is how a party predicts. It is a
    figure for comparison: the round's model sees everybody's rows and is another family.
    """
    labels = subject.labels
    if labels is None or task == "representation" or subject.n_rows < _FEWEST:
        return None
    taught = labels if subject.release.labels is None else subject.release.labels
    rng, half = np.random.default_rng(seed), subject.n_rows // 2
    rows, exact = subject.release.rows, subject.rows @ subject.basis
    classes, scores = task == "classification", []
    for _ in range(SPLITS):
        order = rng.permutation(subject.n_rows)
        fitted, held = order[:half], order[half:]
        if classes and len(np.unique(taught[fitted])) == 1:
            return None
        seen, unseen = (rows[fitted], taught[fitted]), (exact[held], labels[held])
        scores.append(_scored(seen, unseen, classes=classes))
    return Worth(
        mean=float(np.mean(scores)),
        least=min(scores),
        most=max(scores),
        n_rows=subject.n_rows - half,
    )


def _scored(seen: tuple[Matrix, Labels], unseen: tuple[Matrix, Labels], *, classes: bool) -> float:
    """Fit on some people and score on others."""
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV  # noqa: PLC0415 -- a second to load

    rows = seen[0]
    scales = np.logspace(-4, 3, 8) * float(np.mean(np.einsum("ij,ij->i", rows, rows)) or 1.0)
    model = (RidgeClassifierCV if classes else RidgeCV)(alphas=scales)
    model.fit(*seen)
    return float(model.score(*unseen))
