"""What each defence that a consortium can choose would cost and win on a party's own rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor, log10

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.bases import BASES
from cobasis.errors import DimensionError
from cobasis.features.contract import Feature
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.rng import KEY_BYTES
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import Task
from cobasis.models.passes import Labels
from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.counted import BITS
from cobasis.privacy.audit.policy import SMALLEST_CLASS, change_rule, per_cent
from cobasis.privacy.audit.subject import Budget, Setting, Spans, Subject, check_asked
from cobasis.privacy.audit.what_if import Effect, as_set, effects

NOISE, EPSILON = (0.1, 0.2, 0.4), (32.0, 8.0, 2.0)
"""What is measured where nobody asks for other values."""

_NAMED = 8  # so many groups of classes are written out


@dataclass(frozen=True, kw_only=True)
class Offer:
    n_components: tuple[int, ...] = ()  # empty for twice, half and a quarter of the agreed
    noise: tuple[float, ...] = NOISE
    epsilon: tuple[float, ...] = EPSILON
    # ball, delta and unit of each epsilon; None where no ball is known
    budget: Budget | None = None
    ball: str = ""  # where it comes from, in words


def choices(
    rows: Matrix,
    labels: Labels | None,
    *,
    own: Setting,
    offer: Offer,
    classes: Sequence[object] = (),
    public: bool = False,
) -> tuple[list[Setting], list[str]]:
    """Return every defence as a setting, the agreed one first, and what is said beside them."""
    asked = {name: getattr(offer, name) for name in ("n_components", "noise", "epsilon")}
    check_asked(**asked, n_features=rows.shape[1])
    size = own.n_components
    sizes = offer.n_components or (2 * size, size // 2, size // 4)
    found: list[Setting | str] = [own]
    found += [replace(own, n_components=each) for each in sizes if 0 < each <= min(rows.shape)]
    found.append(replace(own, basis="haar"))
    coarse = [each for each in ("fp16", "int8") if BITS[each] < BITS[own.precision]]
    found += [replace(own, precision=each) for each in coarse]
    if public:
        found += [replace(own, basis="public"), "Whoever has the public rows knows their span."]
    else:
        found.append("A basis of public rows was left out: give such rows with --public.")
    if labels is not None:
        found += _of_labels(labels, own=own, classes=classes)
    if labels is not None and classes:
        found += _small_classes(labels, own=own, classes=classes)
    found += [replace(own, budget=None, noise=each) for each in offer.noise]
    found += _guaranteed(own, offer=offer, public=public)
    found.append(change_rule(len(rows) if labels is None else len(labels)))
    settings = [each for each in found if not isinstance(each, str)]
    return list(dict.fromkeys(settings)), [each for each in found if isinstance(each, str)]


def _of_labels(
    labels: Labels, *, own: Setting, classes: Sequence[object]
) -> Iterator[Setting | str]:
    yield replace(own, labels=False)
    yield "Without labels the analyst trains nothing: the figure is for whoever has other labels."
    if not classes:
        yield "A model fitted on rounded labels is scored on exact ones."
        if step := _step(float(np.std(labels)) / 2):
            yield replace(own, step=step)
        return
    often = float(np.unique(labels, return_counts=True)[1].max() / len(labels))
    yield f"Always answering the most frequent class is right for {per_cent(often)}."
    groups = _merged(labels)
    if len(groups) == 1:
        yield "Coarser labels were left out: two classes put together are no label."
        return
    names = [" + ".join(str(classes[each]) for each in group) for group in groups]
    yield (
        f"Labels in {len(groups):,} classes: the two that are smallest are put together until half "
        f"are left ({_some(names)}). The model's figure is for these, which is another question."
    )
    yield replace(own, groups=groups)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _merged(labels: Labels) -> tuple[tuple[int, ...], ...]:
    """Put the two smallest classes together until half are left."""
    values, counts = np.unique(labels, return_counts=True)
    groups: dict[tuple[int, ...], int] = {
        (int(each),): int(count) for each, count in zip(values, counts, strict=True)
    }
    for _ in range(len(groups) // 2):
        one, two = sorted(groups, key=lambda group: (groups[group], group))[:2]
        groups[tuple(sorted((*one, *two)))] = groups.pop(one) + groups.pop(two)
    return tuple(sorted(groups))


def _step(scale: float) -> float:
    """Return the largest of 1, 2, 5, 10 and so on that is not above a scale; 0 for none."""
    if scale <= 0:
        return 0.0
    ten = 10.0 ** floor(log10(scale))
    return max(each * ten for each in (1, 2, 5) if each * ten <= scale * (1 + 1e-9))


def _small_classes(
    labels: Labels, *, own: Setting, classes: Sequence[object]
) -> Iterator[Setting | str]:
    """Yield a setting without classes of a few people, where there are some."""
    values, counts = np.unique(labels, return_counts=True)
    small = [int(each) for each in values[counts < SMALLEST_CLASS]]
    few = f"fewer than {SMALLEST_CLASS} people"
    if len(small) in {0, len(values)}:
        yield f"{'Every' if small else 'No'} class has {few}: none is left out."
    else:
        gone, names = int(np.isin(labels, small).sum()), [str(classes[each]) for each in small]
        yield (
            f"Without small classes, {gone:,} of {len(labels):,} rows stay at home, of classes "
            f"with {few}: {_some(names)}."
        )
        yield replace(own, without=tuple(small))


def _guaranteed(own: Setting, *, offer: Offer, public: bool) -> Iterator[Setting | str]:
    """Yield settings with a guarantee, through a basis that no private row shapes."""
    if (budget := offer.budget) is None:
        yield (
            "Noise with a guarantee was left out: rows are clipped to a ball that must not come "
            "from private rows. Give public rows with --public, or agree on a [dp] section."
        )
        return
    if not BASES[own.basis].under_dp:
        own = replace(own, basis="public" if public else "haar")
    yield (
        f"Epsilon is of the features of one person, with delta {budget.delta:g}: rows are clipped "
        f"to a ball of radius {budget.radius:.3g} {offer.ball}. Labels are "
        f"{'public' if budget.label_epsilon is None else 'randomised'}."
    )
    for each in offer.epsilon:
        yield replace(own, budget=replace(budget, epsilon=each))


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Hidden):
    effects: tuple[Effect, ...] = ()  # the first is the agreement as it is; none of sums
    told: tuple[str, ...] = ()
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
    features: tuple[Feature, ...] = (),
    public_rows: Matrix | None = None,
) -> Plan:
    told = []
    if own.basis.endswith("consensus"):  # which nobody knows before it is made
        told.append("The span of your own rows stands for the consensus, which holds less of them.")
        own = replace(own, basis="svd")
    settings, more = choices(
        rows, labels, own=own, offer=offer, classes=classes, public=public_rows is not None
    )
    with one_blas_thread():
        people = Subject(  # of whom nothing was projected yet
            rows=rows,
            release=Release(rows=np.empty((len(rows), 0))),
            basis=np.empty((rows.shape[1], 0)),
            labels=None if labels is None else labels[places],
            features=features,
            public_rows=public_rows,
        )
        largest = max(each.n_components for each in settings)
        spans = Spans(people, own=own.basis, largest=largest, key=rng.bytes(KEY_BYTES))
        if (basis := spans.basis(own.basis, own.n_components)) is None:
            raise DimensionError(
                f"the agreement's basis '{own.basis}' has {own.n_components:,} components, and the "
                "rows it would be made of have fewer directions. Plan with fewer components, or "
                'with basis = "haar".'
            )
        key = rng.bytes(KEY_BYTES)
        made = as_set(people, basis=basis, setting=own, key=key)
        seed = int(rng.integers(2**32))
        measured = effects(made, settings=settings, task=task, spans=spans, seed=seed)
    n_rows = len(rows) if labels is None else len(labels)
    return Plan(effects=measured, told=(*told, *more), n_rows=n_rows, n_sampled=len(rows))
