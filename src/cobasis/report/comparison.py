"""Alone, together, together with a consensus basis, pooled: the four numbers that matter."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.bases import check_basis_rule
from cobasis.errors import AgreementError, OptionError
from cobasis.features.encoder import encode
from cobasis.features.numeric import NumericFeature, numeric_features
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import ModelName, Task
from cobasis.models.trainer import train
from cobasis.protocol.messages import figure_of
from cobasis.protocol.round import Round
from cobasis.protocol.simulation import simulate
from cobasis.report import DataName, Split

if TYPE_CHECKING:
    from sklearn.utils import Bunch

Labels = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """A data set, dealt out to parties, with one test set that all predict."""

    name: str
    task: Task
    split: str  # how it was dealt
    features: tuple[NumericFeature, ...]
    rows: Mapping[str, tuple[Matrix, Labels]]  # and labels, by party
    test_rows: Matrix  # common to all parties
    test_labels: Labels
    public_rows: Matrix | None = None  # where anchor or basis are public


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a comparison may change."""

    n_components: int
    aligner: AlignerName
    anchor: AnchorKind
    basis: BasisName
    model: ModelName
    seed: int  # for keys and folds
    allow_row_carrying: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Scores by party, and the rounds they came from."""

    data: Dealt
    settings: Settings
    alone: Mapping[str, float]  # accuracy, or R2, of each party on the common test set
    together: Mapping[str, float]
    consensus: Mapping[str, float] | None  # None where the table of bases forbids it
    consensus_refusal: str  # why there is none
    pooled: float  # one model on everybody's raw rows
    one_class: tuple[str, ...]  # parties that alone can only repeat their one class
    round: Round  # behind `together`
    seconds: float  # of the whole comparison

    @property
    def metric(self) -> str:
        """What the scores are."""
        return "R2" if self.data.task == "regression" else "accuracy"


def compare(
    data: Dealt, settings: Settings, *, progress: Callable[[str], None] | None = None
) -> Comparison:
    """Run the rounds and the two raw-feature baselines on one dealt data set."""
    with one_blas_thread():
        return _compared(data, settings, progress or (lambda _: None))


def _compared(data: Dealt, settings: Settings, tell: Callable[[str], None]) -> Comparison:
    """Do what `compare` says."""
    started = time.perf_counter()
    tell("together: parties upload, the analyst aligns, certifies and trains")
    together = _round(data, settings)
    consensus, refusal = None, ""
    try:
        check_basis_rule("consensus", anchor=settings.anchor, n_parties=len(data.rows))
    except AgreementError as error:
        refusal = str(error)
    else:
        tell("together with a consensus basis: one small exchange more")
        common = _round(data, replace(settings, basis="consensus"))
        consensus = common.score(data.test_rows, data.test_labels)
    tell("alone: every party by itself")
    alone = {name: _raw_score(*rows, data, settings) for name, rows in data.rows.items()}
    tell("pooled: what nobody may do")
    tables, labels = zip(*data.rows.values(), strict=True)
    pooled = _raw_score(np.vstack(tables), np.concatenate(labels), data, settings)
    return Comparison(
        data=data,
        settings=settings,
        alone=alone,
        together=together.score(data.test_rows, data.test_labels),
        consensus=consensus,
        consensus_refusal=refusal,
        pooled=pooled,
        one_class=tuple(name for name, rows in data.rows.items() if _one_class(rows[1], data)),
        round=together,
        seconds=time.perf_counter() - started,
    )


def _round(data: Dealt, settings: Settings) -> Round:
    """Run one round with the settings."""
    public = settings.anchor in FROM_PUBLIC_ROWS or settings.basis == "public"
    return simulate(
        data.rows,
        rng=np.random.default_rng(settings.seed),
        n_components=settings.n_components,
        task=data.task,
        aligner=settings.aligner,
        anchor=settings.anchor,
        basis=settings.basis,
        model=settings.model,
        features=data.features,
        public_rows=data.public_rows if public else None,
        allow_row_carrying=settings.allow_row_carrying,
    )


def _raw_score(rows: Matrix, labels: Labels, data: Dealt, settings: Settings) -> float:
    """Train on raw features and score; a single class can only be repeated."""
    if _one_class(labels, data):
        return figure_of(
            data.test_labels, np.full(len(data.test_labels), labels[0]), task=data.task
        )
    classes, told = np.unique(labels, return_inverse=True)
    trained = train(
        encode(rows, data.features, party="raw"),
        told if data.task == "classification" else labels,
        model=settings.model,
        task=data.task,
        seed=settings.seed,
        allow_row_carrying=settings.allow_row_carrying,
        aligned=False,
    )
    test = encode(data.test_rows, data.features, party="raw")
    found = trained.predict(test)
    found = classes[found] if data.task == "classification" else found
    return figure_of(data.test_labels, found, task=data.task)


def _one_class(labels: Labels, data: Dealt) -> bool:
    """Whether all labels are of one class."""
    return data.task == "classification" and len(np.unique(labels)) == 1


ROWS_OF_EACH_LABEL = 25
PUBLIC_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class Table:
    """One data set with the numbers that the demo runs with."""

    name: str
    task: Task
    rows: Matrix
    labels: Labels
    features: tuple[NumericFeature, ...]  # centre and scale stand in for a code book's
    parties: int  # of the demo, as are the next two
    rows_each: int
    n_components: int


def load(name: DataName) -> Table:
    """Load one of the three data sets."""
    return {"digits": _digits, "cancer": _cancer, "diabetes": _diabetes}[name]()


def _digits() -> Table:
    """Load 1,797 handwritten digits; a pixel is a count from 0 to 16."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 -- a second

    bunch = load_digits()
    features = numeric_features(bunch.feature_names, centre=8.0, scale=16.0)
    return _table("digits", bunch, features, parties=10, rows_each=50, n_components=24)


def _cancer() -> Table:
    """Load 569 breast tumours; the whole table's mean and deviation stand in for a code book."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415 -- a second

    bunch = load_breast_cancer()
    features = numeric_features(
        bunch.feature_names, centre=bunch.data.mean(axis=0), scale=bunch.data.std(axis=0)
    )
    return _table("cancer", bunch, features, parties=4, rows_each=25, n_components=10)


def _diabetes() -> Table:
    """Load 442 patients; published centred, each column of length 1."""
    from sklearn.datasets import load_diabetes  # noqa: PLC0415 -- a second

    bunch = load_diabetes()
    features = numeric_features(bunch.feature_names, scale=1 / np.sqrt(len(bunch.data)))
    return _table("diabetes", bunch, features, parties=4, rows_each=40, n_components=7)


def _table(
    name: str,
    bunch: "Bunch",
    features: tuple[NumericFeature, ...],
    *,
    parties: int,
    rows_each: int,
    n_components: int,
) -> Table:
    """Put a scikit-learn data set into our own table."""
    return Table(
        name=name,
        task="regression" if name == "diabetes" else "classification",
        rows=bunch.data,
        labels=bunch.target,
        features=features,
        parties=parties,
        rows_each=rows_each,
        n_components=n_components,
    )


def deal(table: Table, *, n_parties: int, split: Split, seed: int) -> Dealt:
    """Deal a data set out to parties; what is left is test set, and some public rows.

    By label, party i holds 25 rows of each of two labels, i and i + 1 of a random cycle.
    """
    if n_parties < 1:
        raise OptionError(f"--parties {n_parties} leaves nobody to hold rows. Use 1 or more.")
    rng = np.random.default_rng(seed)
    dealers: dict[Split, Callable[[], list[Labels]]] = {
        "iid": lambda: _iid(table, n_parties, rng),
        "by-label": lambda: _by_label(table, n_parties, rng),
    }
    dealt = dealers[split]()
    rest = np.setdiff1d(np.arange(len(table.rows)), np.concatenate(dealt))
    public, test = np.split(rng.permutation(rest), [PUBLIC_ROWS])
    return Dealt(
        name=table.name,
        task=table.task,
        split=split,
        features=table.features,
        rows={
            f"party-{number}": (table.rows[chosen], table.labels[chosen])
            for number, chosen in enumerate(dealt, start=1)
        },
        test_rows=table.rows[test],
        test_labels=table.labels[test],
        public_rows=table.rows[public],
    )


def _iid(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    """Deal rows out in random order."""
    _refuse_too_many(table, n_parties, table.rows_each, len(table.rows) - 2 * PUBLIC_ROWS)
    order = rng.permutation(len(table.rows))[: n_parties * table.rows_each]
    return np.split(order, n_parties)


def _by_label(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    """Deal each party two labels that are neighbours in a random cycle of labels."""
    if table.name != "digits":
        raise OptionError(
            f"--split by-label is for digits; {table.name} has too few labels for parties that "
            "each hold two. Use --data digits, or --split iid."
        )
    cycle = rng.permutation(np.unique(table.labels))
    counts = np.unique(table.labels, return_counts=True)[1]
    often = -(-n_parties // len(cycle)) * 2 * ROWS_OF_EACH_LABEL
    if often > counts.min():
        most = int(counts.min() // (2 * ROWS_OF_EACH_LABEL)) * len(cycle)
        raise OptionError(
            f"--parties {n_parties} would need {often} rows of one digit, and there are only "
            f"{counts.min()} of some. Use --parties {most} or fewer."
        )
    waiting = {label: rng.permutation(np.flatnonzero(table.labels == label)) for label in cycle}
    dealt = []
    for number in range(n_parties):
        taken = []
        for label in (cycle[number % len(cycle)], cycle[(number + 1) % len(cycle)]):
            rows, waiting[label] = np.split(waiting[label], [ROWS_OF_EACH_LABEL])
            taken.append(rows)
        dealt.append(np.concatenate(taken))
    return dealt


def _refuse_too_many(table: Table, n_parties: int, rows_each: int, available: int) -> None:
    """Raise OptionError where parties would take the rows that the test needs."""
    if n_parties * rows_each > available:
        raise OptionError(
            f"--parties {n_parties} of {rows_each} rows each need {n_parties * rows_each} rows, "
            f"and {table.name} has {available} to deal out. "
            f"Use --parties {available // rows_each} or fewer."
        )
