"""Alone, together, with a consensus basis, masked sums, pooled: the five numbers that matter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS
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
class Dealt:
    """A data set, dealt out to parties, with one test set that all predict."""

    name: DataName
    task: Task
    features: tuple[NumericFeature, ...]
    n_components: int  # of the demo
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
        return "R2" if self.data.task == "regression" else "accuracy"


@one_blas_thread()
def compare(
    data: Dealt, settings: Mapping[str, Any], *, tell: Callable[[str], None] = lambda _: None
) -> Comparison:
    """Run the rounds and both raw-feature baselines, by settings of `simulate` and a seed."""
    tell("together: parties upload, the analyst aligns, certifies and trains")
    together = _round(data, settings)
    consensus, refusal = None, ""
    try:
        tell("together with a consensus basis: one small exchange more")
        common = _round(data, {**settings, "basis": "consensus"})
        consensus = common.score(data.test_rows, data.test_labels)
    except AgreementError as error:
        refusal = str(error)
    sums, sums_score = None, None
    if len(data.rows) >= FEWEST_PARTIES:
        tell("masked sums: the same rows as another release")
        rng, task = np.random.default_rng(settings["seed"]), data.task
        sums = simulate(data.rows, rng=rng, release="sums", task=task, features=data.features)
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
        task=data.task,
        features=data.features,
        public_rows=data.public_rows if public else None,
        **told,
    )


def _raw_score(rows: Matrix, labels: Labels, data: Dealt, settings: Mapping[str, Any]) -> float:
    task, features = data.task, data.features
    classes, told = np.unique(labels, return_inverse=True)
    trained = train(
        encode(rows, features, party="raw"),
        told if task == "classification" else labels,
        task=task,
        aligned=False,
        model=settings["model"],
        seed=settings["seed"],
    )
    found = trained.predict(encode(data.test_rows, features, party="raw"))
    found = classes[found] if task == "classification" else found
    return figure_of(data.test_labels, found, task=task)


ROWS_OF_EACH_LABEL = 25
PUBLIC_ROWS = 100


_USUAL: Mapping[DataName, tuple[int, int, int]] = {
    "digits": (10, 50, 24),
    "cancer": (4, 25, 10),
    "diabetes": (4, 40, 7),
}
"""Parties, rows of each, and components."""


def deal(name: DataName, *, n_parties: int | None = None, split: Split, seed: int) -> Dealt:
    """Deal 1,797 handwritten digits, 569 breast tumours, or 442 patients with diabetes out.

    What is left is test set, and some public rows.
    """
    from sklearn import datasets  # noqa: PLC0415 -- a second

    readers = {"digits": datasets.load_digits, "cancer": datasets.load_breast_cancer}
    bunch = readers.get(name, datasets.load_diabetes)()
    rows, labels = bunch.data, bunch.target
    # Centres and scales stand in for a code book's: a pixel counts from 0 to 16, the tumours' own
    # mean and deviation, and of the patients, published centred, columns of length 1.
    constants = {"digits": (8.0, 16.0), "cancer": (rows.mean(axis=0), rows.std(axis=0))}
    centre, scale = constants.get(name, (0.0, 1 / np.sqrt(len(rows))))
    n_parties = _USUAL[name][0] if n_parties is None else n_parties
    if n_parties < 1:
        raise OptionError(f"--parties {n_parties} leaves nobody to hold rows. Use 1 or more.")
    rng = np.random.default_rng(seed)
    if split == "by-label":
        dealt = _by_label(name, labels, n_parties, rng)
    else:
        dealt = _iid(name, len(rows), n_parties, rng)
    rest = np.setdiff1d(np.arange(len(rows)), np.concatenate(dealt))
    if split == "by-label":  # of a label that nobody holds nothing can be predicted
        rest = rest[np.isin(labels[rest], labels[np.concatenate(dealt)])]
    public, test = np.split(rng.permutation(rest), [PUBLIC_ROWS])
    return Dealt(
        name=name,
        task="regression" if name == "diabetes" else "classification",
        features=numeric_features(bunch.feature_names, centre=centre, scale=scale),
        n_components=_USUAL[name][2],
        split=split,
        rows={
            f"party-{number}": (rows[own], labels[own]) for number, own in enumerate(dealt, start=1)
        },
        test_rows=rows[test],
        test_labels=labels[test],
        public_rows=rows[public],
    )


def _iid(name: DataName, n_rows: int, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    rows_each, available = _USUAL[name][1], n_rows - 2 * PUBLIC_ROWS
    needed = n_parties * rows_each
    if needed > available:
        raise OptionError(
            f"--parties {n_parties} of {rows_each} rows each need {needed} rows, and {name} has "
            f"{available} to deal out. Use --parties {available // rows_each} or fewer."
        )
    return np.split(rng.permutation(n_rows)[:needed], n_parties)


def _by_label(
    name: DataName, labels: Labels, n_parties: int, rng: np.random.Generator
) -> list[Labels]:
    """Deal each party rows of two labels that are neighbours in a random cycle of labels."""
    if name != "digits":
        raise OptionError(
            f"--split by-label is for digits; {name} has too few labels for parties that each "
            "hold two. Use --data digits, or --split iid."
        )
    values, counts = np.unique(labels, return_counts=True)
    cycle, fewest = rng.permutation(values), counts.min()
    often = -(-n_parties // len(cycle)) * 2 * ROWS_OF_EACH_LABEL
    if often > fewest:
        most = int(fewest // (2 * ROWS_OF_EACH_LABEL)) * len(cycle)
        raise OptionError(
            f"--parties {n_parties} would need {often} rows of one digit, and there are only "
            f"{fewest} of some. Use --parties {most} or fewer."
        )
    parts = []  # of each label in the cycle, a pack of rows for each party that holds it
    for label in cycle:
        rows = rng.permutation(np.flatnonzero(labels == label))
        parts.append(iter(np.split(rows, range(ROWS_OF_EACH_LABEL, len(rows), ROWS_OF_EACH_LABEL))))
    return [
        np.concatenate([next(parts[(number + step) % len(parts)]) for step in (0, 1)])
        for number in range(n_parties)
    ]
