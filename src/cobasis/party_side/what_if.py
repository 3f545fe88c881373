"""What would change the figures and may be agreed on: components, basis, precision, noise."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cobasis.algorithms import BasisName
from cobasis.bundle.uploads import STEPS, STORED
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KEY_BYTES, KeyStream, haar_columns
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.scores import explained
from cobasis.privacy.audit.attackers import guessed, linkage, rebuilt
from cobasis.privacy.audit.counted import bits_of_record, bits_sent
from cobasis.privacy.audit.report import Effect, graded_bits, per_cent
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.mechanism import noised, randomised
from cobasis.privacy.sensitivity import clip_rows
from cobasis.protocol.agreement import Agreement, Precision
from cobasis.protocol.dp_terms import DPTerms

_EPSILON = (32.0, 8.0, 2.0)

_ROWS, _ROWS_OF_CONTENT = 240, 1000
"""So many people are enough to compare settings."""

_FEWEST = 60  # with fewer people no model is fitted
_SPLITS = 3  # one split says how well a model did; three also say by how much that is chance
_KINDS = {"haar": "random", "public": "public rows'"}  # kinds of bases in words that say more


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What of an agreement could be otherwise; nobody checks whether it could be agreed on."""

    n_components: int
    basis: BasisName
    precision: Precision = "fp64"
    dp: DPTerms | None = None
    n_classes: int = 0  # of labels that are randomised
    fixed: bool = False  # whether no other may be agreed, as where coefficients take all columns

    @classmethod
    def of(cls, agreement: Agreement) -> Self:
        return cls(
            n_components=agreement.n_components,
            basis=agreement.basis,
            precision=agreement.precision,
            dp=agreement.dp,
            n_classes=len(agreement.classes),
            fixed=agreement.tabular,
        )

    def told_beside(self, own: "Setting") -> str:
        size, epsilon = self.n_components, getattr(self.dp, "epsilon", 0)
        told = {
            f"{size:,} component{'s' * (size > 1)}": size != own.n_components,
            f"epsilon {epsilon:g}": epsilon and self.dp != own.dp,
            f"{_KINDS.get(self.basis, self.basis)} basis": self.basis != own.basis,
            f"numbers as {self.precision}": self.precision != own.precision,
        }
        return ", ".join(words for words, differs in told.items() if differs) or "as it is"


def settings_of(
    subject: Subject, own: Setting, *, sizes: tuple[int, ...] = ()
) -> tuple[Setting, ...]:
    """Return what to measure, the own setting first; sizes are by default its half and quarter."""
    if own.fixed:
        return (own,)
    sizes = sizes or (max(1, own.n_components // 2), max(1, own.n_components // 4))
    found = [own, *(replace(own, n_components=each) for each in sizes)]
    found += [replace(own, basis="haar"), replace(own, precision="int8")]
    if subject.public_rows is not None:
        found.append(replace(own, basis="public"))
    if (terms := own.dp) is not None:
        told = ({**terms.model_dump(), "epsilon": each} for each in _EPSILON)
        found += [replace(own, dp=DPTerms(**each)) for each in told]
    return tuple(dict.fromkeys(found))


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
            n_rows=some.n_rows,
            content=explained(rebuilt(made).rows, made.columns),
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
    terms, rows, clipped, sent = setting.dp, subject.rows @ basis, None, subject.labels
    if terms is not None:
        clipped = clip_rows(subject.rows, radius=terms.radius, centre=terms.centre or None)
        normal = KeyStream(key, "audit/noise").tailed_normal(rows.shape)
        rows = noised(clipped @ basis, normal, calibration=terms.calibration)
        if sent is not None and terms.label_epsilon is not None:
            sent = randomised(
                sent.astype(np.int64),
                KeyStream(key, "audit/labels"),
                epsilon=terms.label_epsilon / terms.rows_per_person,
                n_classes=setting.n_classes,
            )
    return replace(
        subject,
        basis=basis,
        release=Release(rows=_stored(rows, setting.precision), labels=sent),
        clipped=clipped,
        precision=setting.precision,
        noisy=terms is not None,
    )


def _stored(rows: Matrix, precision: Precision) -> Matrix:
    """Return rows as a file of this precision holds them; int8 in steps of the range that fits."""
    if precision != "int8":
        kind = np.dtype(STORED[precision][0])
        most = float(np.finfo(kind).max)  # a round would refuse what is larger
        return np.clip(rows, -most, most).astype(kind).astype(np.float64)
    step = float(np.abs(rows).max(initial=0.0)) / STEPS or 1.0
    return np.rint(rows / step) * step


def accuracies(subject: Subject, *, task: str, seed: int) -> list[float]:
    """Fit a ridge model on half of the released rows and score it on the other half: thrice."""
    # Fitted on labels as they are sent. Scored on the table's own, and on rows through the basis
    # without noise, which is how a party predicts.
    labels, taught = subject.labels, subject.release.labels
    if labels is None or taught is None or subject.n_rows < _FEWEST:
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
    return found, (*told, *_beside(made, own))


def _beside(subject: Subject, own: Setting) -> Iterator[str]:
    if own.fixed:
        yield "No other may be agreed: coefficients take all columns, unrounded and without noise."
    elif subject.public_rows is None:
        yield "A basis of public rows was left out: give such rows with --public."
    if subject.labels is not None and subject.classes is not None:
        often = np.unique(subject.labels, return_counts=True)[1].max() / subject.n_rows
        yield f"Always answering the most frequent class is right for {per_cent(often)}."
    if (terms := own.dp) is None and not own.fixed:
        yield (
            "Noise with a guarantee is priced where the draft has a [dp] section, with a ball that "
            "must not come from private rows."
        )
    elif terms is not None:
        yield (
            f"Epsilon is of the features of one person, with delta {terms.delta:g}: rows are "
            f"clipped to a ball of radius {terms.radius:.3g}. Labels are "
            f"{'public' if terms.label_epsilon is None else 'randomised'}."
        )
