"""Alone, together, with a consensus basis, masked sums, pooled: the five numbers that matter."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cobasis.errors import OptionError
from cobasis.features.contract import NumericFeature, numeric_features
from cobasis.features.encoder import encode
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import DEFAULT_MODELS, Task
from cobasis.models.passes import Labels
from cobasis.models.trainer import train
from cobasis.protocol.messages import figure_of
from cobasis.protocol.round import Round, SumsRound
from cobasis.protocol.simulation import simulate

DataName = Literal["digits", "cancer", "diabetes"]
Split = Literal["iid", "by-label"]


@dataclass(frozen=True, kw_only=True)
class Dealt:
    name: DataName
    task: Task
    features: tuple[NumericFeature, ...]
    n_components: int
    split: Split
    rows: Mapping[str, tuple[Matrix, Labels]]  # and labels, by party
    test_rows: Matrix  # common to all parties
    test_labels: Labels


@dataclass(frozen=True, kw_only=True)
class Comparison:
    data: Dealt
    seed: int
    scores: Mapping[str, Mapping[str, float]]  # by way and party: accuracy, or R2, on the test set
    round: Round  # behind `together`
    sums: SumsRound

    @property
    def metric(self) -> str:
        return "R2" if self.data.task == "regression" else "accuracy"

    @property
    def means(self) -> dict[str, float]:
        return {way: float(np.mean([*scores.values()])) for way, scores in self.scores.items()}

    @property
    def conclusion(self) -> str:
        alone, *others = self.means.values()
        points = self.metric == "accuracy"
        together, consensus, sums, pooled = (
            f"{100 * (each - alone):+.1f} points" if points else f"{each - alone:+.3f} of R2"
            for each in others
        )
        return (
            f"Against being alone, taking part brings the average party {together}, with a "
            f"consensus basis {consensus}, with masked sums {sums}; pooling all rows would bring "
            f"{pooled}."
        )

    @property
    def about_sums(self) -> str:
        told = self.sums.result
        size = told.layout.n_words * 8 / 1e6
        return f"Sums: {told.aggregate} Each party sends {size:.1f} MB."

    def told(self) -> dict[str, Any]:
        figures = self.round.analyst.certificate.parties
        return {
            "data": self.data.name,
            "metric": self.metric,
            **self.means,
            "conclusion": self.conclusion,
            "sums_told": self.about_sums,
            "parties": len(figures),
            "n_components": self.data.n_components,
            "seed": self.seed,
            "split": self.data.split,
            "per_party": {
                name: {
                    **{way: scores[name] for way, scores in self.scores.items()},
                    "residual": figures[name].residual,
                    "correlation": figures[name].correlation,
                    "evidence": figures[name].evidence,
                    "bytes_up": traffic.up,
                    "bytes_down": traffic.down,
                }
                for name, traffic in self.round.traffic.items()
            },
        }


@one_blas_thread()
def compare(data: Dealt, *, seed: int, tell: Callable[[str], None] = lambda _: None) -> Comparison:
    def simulated(**options: Any) -> Any:  # noqa: ANN401 -- a round of rows or of sums
        told: Any = {"task": data.task, "features": data.features, **options}
        return simulate(data.rows, rng=np.random.default_rng(seed), **told)

    tell("together: parties upload, the analyst aligns, certifies and trains")
    together = simulated(n_components=data.n_components)
    tell("together with a consensus basis: one small exchange more")
    consensus = simulated(n_components=data.n_components, basis="consensus")
    tell("masked sums: the same rows as another release")
    sums = simulated(release="sums")
    tell("alone: every party by itself")
    alone = {name: _raw_score(*rows, data, seed) for name, rows in data.rows.items()}
    tell("pooled: what nobody may do")
    tables, labels = zip(*data.rows.values(), strict=True)
    pooled = _raw_score(np.vstack(tables), np.concatenate(labels), data, seed)
    rounds = {"together": together, "together_consensus": consensus, "sums": sums}
    measured = {way: each.score(data.test_rows, data.test_labels) for way, each in rounds.items()}
    scores = {"alone": alone, **measured, "pooled": dict.fromkeys(data.rows, pooled)}
    return Comparison(data=data, seed=seed, scores=scores, round=together, sums=sums)


def _raw_score(rows: Matrix, labels: Labels, data: Dealt, seed: int) -> float:
    task, features = data.task, data.features
    classes, told = np.unique(labels, return_inverse=True)
    trained = train(
        encode(rows, features, party="raw"),
        told if task == "classification" else labels,
        task=task,
        aligned=False,
        model=DEFAULT_MODELS[task],
        seed=seed,
    )
    found = trained.predict(encode(data.test_rows, features, party="raw"))
    found = classes[found] if task == "classification" else found
    return figure_of(data.test_labels, found, task=task)


ROWS_OF_EACH_LABEL = 25
SPARE_ROWS = 100  # beside the test set, that nobody has

_USUAL: Mapping[DataName, tuple[str, int, int, int]] = {
    "digits": ("load_digits", 10, 50, 24),
    "cancer": ("load_breast_cancer", 4, 25, 10),
    "diabetes": ("load_diabetes", 4, 40, 7),
}
"""What reads it, parties, rows of each, and components."""


def deal(name: DataName, *, n_parties: int | None = None, split: Split, seed: int) -> Dealt:
    """Deal 1,797 handwritten digits, 569 breast tumours, or 442 patients with diabetes out."""
    from sklearn import datasets  # noqa: PLC0415 -- a second

    reader, usual, n_each, n_components = _USUAL[name]
    bunch = getattr(datasets, reader)()
    rows, labels, available = bunch.data, bunch.target, len(bunch.data) - 2 * SPARE_ROWS
    # Centres and scales stand in for a code book's: a pixel counts from 0 to 16, the tumours' own
    # mean and deviation, and of the patients, published centred, columns of length 1.
    constants = {"digits": (8.0, 16.0), "cancer": (rows.mean(axis=0), rows.std(axis=0))}
    centre, scale = constants.get(name, (0.0, 1 / np.sqrt(len(rows))))
    n_parties = usual if n_parties is None else n_parties
    rng = np.random.default_rng(seed)
    if split == "by-label":
        dealt = _by_label(name, labels, n_parties, rng)
    elif n_parties * n_each > available:
        raise OptionError(
            f"--parties {n_parties} of {n_each} rows each need more than the {available} rows that "
            f"{name} has to deal out. Use --parties {available // n_each} or fewer."
        )
    else:
        dealt = np.split(rng.permutation(len(rows))[: n_parties * n_each], n_parties)
    rest = np.setdiff1d(np.arange(len(rows)), np.concatenate(dealt))
    if split == "by-label":  # of a label that nobody holds nothing can be predicted
        rest = rest[np.isin(labels[rest], labels[np.concatenate(dealt)])]
    test = rng.permutation(rest)[SPARE_ROWS:]
    return Dealt(
        name=name,
        task="regression" if name == "diabetes" else "classification",
        features=numeric_features(bunch.feature_names, centre=centre, scale=scale),
        n_components=n_components,
        split=split,
        rows={
            f"party-{number}": (rows[own], labels[own]) for number, own in enumerate(dealt, start=1)
        },
        test_rows=rows[test],
        test_labels=labels[test],
    )


def _by_label(
    name: DataName, labels: Labels, n_parties: int, rng: np.random.Generator
) -> list[Labels]:
    """Deal each party rows of two labels that are neighbours in a random cycle of labels."""
    if name != "digits":
        raise OptionError(
            f"--split by-label is for digits; {name} has too few labels for parties that each "
            "hold two. Use --data digits, or --split iid."
        )
    cycle = rng.permutation(np.unique(labels))
    if n_parties > len(cycle):
        raise OptionError(
            f"--parties {n_parties} is more than the {len(cycle)} digits, of which each party "
            "takes two neighbours. Use as many parties or fewer."
        )
    parts = []  # of each label in the cycle, a pack of rows for each party that holds it
    for label in cycle:
        rows = rng.permutation(np.flatnonzero(labels == label))
        parts.append(iter(np.split(rows, range(ROWS_OF_EACH_LABEL, len(rows), ROWS_OF_EACH_LABEL))))
    return [
        np.concatenate([next(parts[number]), next(parts[(number + 1) % len(parts)])])
        for number in range(n_parties)
    ]
