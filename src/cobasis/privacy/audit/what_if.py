"""What would change the figures: other components, noise, bases, labels; and the papers' distance.

The distance is epsilon-DR as the papers mean it: how far records stay from what a colluder rebuilds
of them. It is an average over people, and relative to an attacker who knows nothing else: the
weakest figure of an audit.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import ConsensusError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.directions import right_singular
from cobasis.linalg.rng import KEY_BYTES, KeyStream
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.scores import explained
from cobasis.privacy.audit.attackers import guessed, linkage, rebuilt
from cobasis.privacy.audit.counted import bits_of_record, bits_sent
from cobasis.privacy.audit.policy import Grade, graded_bits
from cobasis.privacy.audit.subject import Setting, Spans, Subject
from cobasis.privacy.mechanism import calibrated, noised, randomised
from cobasis.privacy.sensitivity import sensitivity_of

_ROWS, _ROWS_OF_CONTENT, _ROWS_OF_DISTANCES = 240, 1000, 800
"""So many people are enough to compare settings and bases."""

_FEWEST = 60  # with fewer people no model is fitted
_SPLITS = 3  # one split says how well a model did; three also say by how much that is chance
_PARTIES = 3  # as many as a consensus takes

_WORST = 0.01

_STEPS = 127  # of int8 on each side of 0

THIS = "this upload"


@dataclass(frozen=True, kw_only=True)
class Effect:
    name: str  # the setting in words
    setting: Setting
    n_rows: int  # people that linkage was measured on; content and accuracy on up to 1,000
    content: float  # R2 if one party helps the analyst
    whole: Grade  # whether enough bits leave to rebuild whole records: red for yes, green for no
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
    subject: Subject, *, settings: Sequence[Setting], task: str, spans: Spans, seed: int
) -> tuple[Effect, ...]:
    """Measure what settings come to; the first is how the upload was made."""
    part, found = subject.some(_ROWS_OF_CONTENT, seed=seed), []
    key = np.random.default_rng(seed).bytes(KEY_BYTES)
    for setting in settings:
        own, made, basis = settings[0], part, spans.basis(setting.basis, setting.n_components)
        if basis is None:
            continue
        if setting != own:
            made = as_set(part, basis=basis, setting=setting, key=key)
        some = made.some(_ROWS, seed=seed)
        leaked, alone = linkage(some), guessed(some, seed=seed, quick=True)
        scores = accuracies(made, task=task, seed=seed)
        effect = Effect(
            name=setting.told_beside(own),
            setting=setting,
            n_rows=some.n_rows,
            content=explained(rebuilt(made).rows, made.rows),
            whole=graded_bits(bits_sent(made), bits_of_record(made)),
            alone=None if alone is None else alone[1].value,
            leaked=leaked.value,
            chance=leaked.chance,
            chance_alone=0.0 if alone is None else alone[1].chance,
            accuracy=float(np.mean(scores)) if scores else None,
            accuracy_least=min(scores, default=None),
            accuracy_most=max(scores, default=None),
            n_scored=made.n_rows - made.n_rows // 2 if scores else 0,
        )
        found.append(effect)
    return tuple(found)


def as_set(subject: Subject, *, basis: Matrix, setting: Setting, key: bytes) -> Subject:
    budget, labels, rows, clipped = setting.budget, subject.labels, subject.rows @ basis, None
    if labels is not None:
        for group in setting.groups:
            labels = np.where(np.isin(labels, group), group[0], labels)
    sent = labels if setting.labels else None
    if sent is not None and setting.step:  # what a model is scored on is not rounded
        sent = np.rint(sent / setting.step) * setting.step
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
    if setting.noise:
        spread = float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()))
        rows = rows + setting.noise * spread * KeyStream(key, "audit/noise").normal(rows.shape)
    made = replace(
        subject,
        basis=basis,
        release=Release(rows=_stored(rows, setting.precision), labels=sent),
        labels=labels,
        clipped=clipped,
        precision=setting.precision,
        noisy=budget is not None or setting.noise > 0,
    )
    if labels is None or not setting.without:
        return made
    return made.only(np.flatnonzero(~np.isin(labels, setting.without)))


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
    # Fitted on labels as they are sent, or on the table's own where none are: what the rows are
    # worth to whoever has labels from elsewhere. Scored on the table's own, and on rows through the
    # basis without noise, which is how a party predicts.
    labels = subject.labels
    if labels is None or task == "representation" or subject.n_rows < _FEWEST:
        return []
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV  # noqa: PLC0415 -- a second to load

    taught = labels if subject.release.labels is None else subject.release.labels
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


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a record is from what a colluding partner can make of it, for one basis and size."""

    basis: str  # a kind of basis, or 'this upload'
    n_components: int
    mean: float  # |x - x F F'| over the mean distance between a record and the average person
    worst: float  # over the 1 % of people for whom it is smallest


def distances(
    subject: Subject, *, settings: Sequence[Setting], spans: Spans, rng: np.random.Generator
) -> tuple[Distance, ...]:
    """Measure the distance of the upload, and over numbers of components for each kind of basis."""
    own, sizes = _distance(THIS, subject.rows, subject.basis), swept(subject, settings)
    rows = subject.some(_ROWS_OF_DISTANCES, seed=int(rng.integers(2**32))).rows
    found = [
        _distance(kind, rows, basis)
        for kind in ("svd", "haar", "public")
        for size in sizes
        if (basis := spans.basis(kind, size)) is not None
    ]
    with suppress(ConsensusError):  # of rows that are nearly all alike
        found += _of_consensus(rows, sizes, rng=rng)
    return (own, *found)


def swept(subject: Subject, settings: Sequence[Setting]) -> list[int]:
    """Return the numbers of components to sweep: a quarter to twice the own, and those asked."""
    own = subject.n_components
    sizes = {own // 4, own // 2, own, 2 * own, *(each.n_components for each in settings)}
    return sorted(each for each in sizes if 0 < each <= subject.rows.shape[1])


def _of_consensus(
    rows: Matrix, sizes: Iterable[int], *, rng: np.random.Generator
) -> list[Distance]:
    """Measure the common span of three parties like this one: an isometric anchor changes none."""
    dealt = np.array_split(rng.permutation(len(rows)), _PARTIES)
    parts = [right_singular(rows[places]).directions for places in dealt if len(places)]
    most = min(each.shape[1] for each in parts) if len(parts) == _PARTIES else 0
    found = []
    for size in (each for each in sizes if each <= most):
        proposed = {f"party-{index}": each[:, :size] for index, each in enumerate(parts)}
        whole = size == rows.shape[1]
        span = np.eye(size) if whole else consensus_span(proposed, n_components=size)
        found.append(_distance("consensus", rows, span))
    return found


def _distance(kind: str, rows: Matrix, basis: Matrix) -> Distance:
    """Measure what is lost of rows by a basis that colluders know."""
    axes = np.linalg.qr(basis)[0]
    lost = np.sort(np.linalg.norm(rows - (rows @ axes) @ axes.T, axis=1))
    few = max(1, round(_WORST * len(lost)))
    whole = float(np.linalg.norm(rows - rows.mean(axis=0), axis=1).mean()) or 1.0
    return Distance(
        basis=kind,
        n_components=basis.shape[1],
        mean=float(lost.mean()) / whole,
        worst=float(lost[:few].mean()) / whole,
    )
