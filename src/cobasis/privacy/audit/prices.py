"""What each defence would cost and win on a party's own rows, before anything is agreed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.rng import KEY_BYTES
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import Task
from cobasis.models.passes import Labels
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.audit.choices import Offer, choices
from cobasis.privacy.audit.settings import Setting
from cobasis.privacy.audit.spans import Spans
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.audit.what_if import Effect, as_set, effects


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Hidden):
    """The measured price of each defence."""

    effects: tuple[Effect, ...]  # the first is the agreement as it is
    told: tuple[str, ...]
    n_rows: int
    n_sampled: int  # drawn at random, and looked at


def plan(
    rows: Matrix,
    labels: Labels | None,
    *,
    places: npt.NDArray[np.intp],
    own: Setting,
    offer: Offer,
    task: Task,
    rng: np.random.Generator,
    classes: Sequence[object] = (),
    public_rows: Matrix | None = None,
) -> Plan:
    """Measure every defence that a consortium can choose."""
    with one_blas_thread():
        told = []
        if own.basis.endswith("consensus"):
            told.append(
                "Nobody knows the consensus before it is made: the span of your own rows stands "
                "for it, in which more of your rows is rebuilt."
            )
            own = replace(own, basis="svd")
        public = public_rows is not None
        found = choices(rows, labels, own=own, offer=offer, classes=classes, public=public)
        own_labels = None if labels is None else labels[places]
        subject = _people(rows, own_labels, public_rows)
        largest = max(each.n_components for each in found.settings)
        spans = Spans(subject, own=own.basis or "svd", largest=largest, key=rng.bytes(KEY_BYTES))
        made = _as_agreed(subject, own, spans=spans, key=rng.bytes(KEY_BYTES))
        measured = effects(
            made,
            settings=found.settings,
            kind=own.basis or "svd",
            task=task,
            spans=spans,
            seed=int(rng.integers(2**32)),
        )
    return Plan(
        effects=measured,
        told=(*told, *found.told),
        n_rows=len(rows) if labels is None else len(labels),
        n_sampled=len(rows),
    )


def _people(rows: Matrix, labels: Labels | None, public_rows: Matrix | None) -> Subject:
    """Return people of whom nothing was projected yet."""
    return Subject(
        rows=rows,
        release=Release(rows=np.empty((len(rows), 0))),
        basis=np.empty((rows.shape[1], 0)),
        labels=labels,
        public_rows=public_rows,
    )


def _as_agreed(subject: Subject, own: Setting, *, spans: Spans, key: bytes) -> Subject:
    """Return the upload that the agreement would have; DimensionError where there is none."""
    basis = spans.basis(own.basis or "svd", own.n_components)
    if basis is None:
        raise DimensionError(
            f"the agreement's basis '{own.basis or 'svd'}' has {own.n_components:,} components, "
            "and the rows it would be made of have fewer directions. Plan with fewer components, "
            'or with basis = "haar".'
        )
    return as_set(subject, subject.rows @ basis, basis=basis, setting=own, key=key)
