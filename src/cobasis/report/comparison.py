"""Alone, together, with a consensus basis, masked sums, pooled: the five numbers that matter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
from cobasis.algorithms.bases import check_basis_rule
from cobasis.errors import AgreementError, OptionError
from cobasis.features.contract import NumericFeature, numeric_features
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import Task
from cobasis.models.passes import Labels
from cobasis.models.trainer import train
from cobasis.protocol.messages import figure_of
from cobasis.protocol.round import Round, SumsRound
from cobasis.protocol.simulation import simulate
from cobasis.protocol.sums_terms import FEWEST_PARTIES
from cobasis.report import DataName, Split


@dataclass(frozen=True, kw_only=True)
class Table:
    name: DataName
    task: Task
    rows: Matrix
    labels: Labels
    features: tuple[NumericFeature, ...]
    parties: int  # of the demo, as are the next two
    rows_each: int
    n_components: int


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """A data set, dealt out to parties, with one test set that all predict."""

    table: Table
    split: Split
    rows: Mapping[str, tuple[Matrix, Labels]]  # and labels, by party
    test_rows: Matrix  # common to all parties
    test_labels: Labels
    public_rows: Matrix  # where anchor or basis are public


@dataclass(frozen=True, kw_only=True)
class Comparison:
    data: Dealt
    settings: Mapping[str, Any]
    alone: Mapping[str, float]  # accuracy, or R2, of each party on the common test set
    together: Mapping[str, float]
    consensus: Mapping[str, float] | None  # None where the table of bases forbids it
    consensus_refusal: str  # why there is none
    sums: SumsRound | None  # None of fewer than three parties
    sums_score: float | None  # the same for every party
    pooled: float  # one model on everybody's raw rows
    round: Round  # behind `together`

    @property
    def metric(self) -> str:
        return "R2" if self.data.table.task == "regression" else "accuracy"


@one_blas_thread()
def compare(
    data: Dealt, settings: Mapping[str, Any], *, tell: Callable[[str], None] = lambda _: None
) -> Comparison:
    """Run the rounds and both raw-feature baselines, by settings of `simulate` and a seed."""
    tell("together: parties upload, the analyst aligns, certifies and trains")
    together = _round(data, settings)
    consensus, refusal = None, ""
    try:
        check_basis_rule("consensus", anchor=settings["anchor"], n_parties=len(data.rows))
    except AgreementError as error:
        refusal = str(error)
    else:
        tell("together with a consensus basis: one small exchange more")
        common = _round(data, {**settings, "basis": "consensus"})
        consensus = common.score(data.test_rows, data.test_labels)
    sums, sums_score = None, None
    if len(data.rows) >= FEWEST_PARTIES:
        tell("masked sums: the same rows as another release")
        rng, task = np.random.default_rng(settings["seed"]), data.table.task
        sums = simulate(data.rows, rng=rng, release="sums", task=task, features=data.table.features)
        sums_score = next(iter(sums.score(data.test_rows, data.test_labels).values()))
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
        sums=sums,
        sums_score=sums_score,
        pooled=pooled,
        round=together,
    )


def _round(data: Dealt, settings: Mapping[str, Any]) -> Round:
    told = dict(settings)
    public = told["anchor"] in FROM_PUBLIC_ROWS or told["basis"] == "public"
    return simulate(
        data.rows,
        rng=np.random.default_rng(told.pop("seed")),
        task=data.table.task,
        features=data.table.features,
        public_rows=data.public_rows if public else None,
        **told,
    )


def _raw_score(rows: Matrix, labels: Labels, data: Dealt, settings: Mapping[str, Any]) -> float:
    task, features = data.table.task, data.table.features
    known = ("model", "seed")
    classes, told = np.unique(labels, return_inverse=True)
    trained = train(
        encode(rows, features, party="raw"),
        told if task == "classification" else labels,
        task=task,
        aligned=False,
        **{word: each for word, each in settings.items() if word in known},
    )
    found = trained.predict(encode(data.test_rows, features, party="raw"))
    found = classes[found] if task == "classification" else found
    return figure_of(data.test_labels, found, task=task)


ROWS_OF_EACH_LABEL = 25
PUBLIC_ROWS = 100


def load(name: DataName) -> Table:
    """Load 1,797 handwritten digits, 569 breast tumours, or 442 patients with diabetes."""
    from sklearn import datasets  # noqa: PLC0415 -- a second

    readers = {"digits": datasets.load_digits, "cancer": datasets.load_breast_cancer}
    bunch = readers.get(name, datasets.load_diabetes)()
    # Centres and scales stand in for a code book's: a pixel counts from 0 to 16, the tumours' own
    # mean and deviation, and of the patients, published centred, columns of length 1.
    parties, rows_each, n_components, centre, scale = {
        "digits": (10, 50, 24, 8.0, 16.0),
        "cancer": (4, 25, 10, bunch.data.mean(axis=0), bunch.data.std(axis=0)),
        "diabetes": (4, 40, 7, 0.0, 1 / np.sqrt(len(bunch.data))),
    }[name]
    return Table(
        name=name,
        task="regression" if name == "diabetes" else "classification",
        rows=bunch.data,
        labels=bunch.target,
        features=numeric_features(bunch.feature_names, centre=centre, scale=scale),
        parties=parties,
        rows_each=rows_each,
        n_components=n_components,
    )


def deal(table: Table, *, n_parties: int | None = None, split: Split, seed: int) -> Dealt:
    """Deal a data set out to parties; what is left is test set, and some public rows."""
    n_parties = table.parties if n_parties is None else n_parties
    if n_parties < 1:
        raise OptionError(f"--parties {n_parties} leaves nobody to hold rows. Use 1 or more.")
    rng = np.random.default_rng(seed)
    dealt = (_by_label if split == "by-label" else _iid)(table, n_parties, rng)
    rest = np.setdiff1d(np.arange(len(table.rows)), np.concatenate(dealt))
    if split == "by-label":  # of a label that nobody holds nothing can be predicted
        rest = rest[np.isin(table.labels[rest], table.labels[np.concatenate(dealt)])]
    public, test = np.split(rng.permutation(rest), [PUBLIC_ROWS])
    return Dealt(
        table=table,
        split=split,
        rows={
            f"party-{number}": (table.rows[chosen], table.labels[chosen])
            for number, chosen in enumerate(dealt, start=1)
        },
        test_rows=table.rows[test],
        test_labels=table.labels[test],
        public_rows=table.rows[public],
    )


def _iid(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    needed, available = n_parties * table.rows_each, len(table.rows) - 2 * PUBLIC_ROWS
    if needed > available:
        raise OptionError(
            f"--parties {n_parties} of {table.rows_each} rows each need {needed} rows, and "
            f"{table.name} has {available} to deal out. "
            f"Use --parties {available // table.rows_each} or fewer."
        )
    return np.split(rng.permutation(len(table.rows))[:needed], n_parties)


def _by_label(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    """Deal each party rows of two labels that are neighbours in a random cycle of labels."""
    if table.name != "digits":
        raise OptionError(
            f"--split by-label is for digits; {table.name} has too few labels for parties that "
            "each hold two. Use --data digits, or --split iid."
        )
    cycle = rng.permutation(np.unique(table.labels))
    fewest = np.unique(table.labels, return_counts=True)[1].min()
    often = -(-n_parties // len(cycle)) * 2 * ROWS_OF_EACH_LABEL
    if often > fewest:
        most = int(fewest // (2 * ROWS_OF_EACH_LABEL)) * len(cycle)
        raise OptionError(
            f"--parties {n_parties} would need {often} rows of one digit, and there are only "
            f"{fewest} of some. Use --parties {most} or fewer."
        )
    parts = []  # of each label in the cycle, a pack of rows for each party that holds it
    for label in cycle:
        rows = rng.permutation(np.flatnonzero(table.labels == label))
        parts.append(iter(np.split(rows, range(ROWS_OF_EACH_LABEL, len(rows), ROWS_OF_EACH_LABEL))))
    return [
        np.concatenate([next(parts[(number + step) % len(parts)]) for step in (0, 1)])
        for number in range(n_parties)
    ]
