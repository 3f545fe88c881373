"""What our own studies share: every task, dealt alike or by label, and rows that are public."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from cobasis import simulate
from experiments.data.adult import adult
from experiments.data.faces import small_faces
from experiments.data.hospitals import diabetes130, eicu_demo
from experiments.data.images import IMAGES, images
from experiments.data.molecules import TASKS as MOLECULES
from experiments.data.molecules import TEST, molecules
from experiments.data.molecules import public_rows as pubchem
from experiments.harness.models import ACCURACY, ROC_AUC, Labels, Make, Metric, Model, Table
from experiments.harness.statistics import Paired, paired, summary
from experiments.harness.study import Published, table
from experiments.harness.systems import Dealt, generator
from experiments.studies.table_11 import SETUPS, Wards, wards

FACES = "faces, 32 x 32"
PIXELS = (*IMAGES, FACES)
TASKS = (*MOLECULES, *IMAGES, FACES, "adult")
DAYS: Mapping[str, str] = {
    "eicu demo": "eicu demo, 4 regions",
    "diabetes130": "diabetes130, 50 sites",
}
"""Tasks with numbers to predict, days in hospital, and what Table 11 calls them."""

MOST_ROWS = 1000  # a molecule party's rows, at most; the papers' tables have all of them
PARTIES, ROWS = 10, 250  # of images, faces and Adult: more rows each than the largest l
JUDGES = 3  # parties that predict, where their predictions differ
TESTS, RESERVED = 2000, 1000  # of images and of Adult: test rows, and rows that nobody holds
FACE_TESTS, FACES_RESERVED = 900, 361
"""Of 4,361 faces, so that ten parties have 250 each of one label too."""

Places = npt.NDArray[np.intp]


def logistic(_: int) -> Model:
    """Return the library's default model, with scikit-learn's own penalty."""
    return LogisticRegression(max_iter=1000)


def rff(seed: int, last: type[Model] = RidgeClassifier) -> Model:
    """Return 1,000 random Fourier features and ridge: near an RBF-SVM, and carries no rows."""
    features = RBFSampler(gamma="scale", n_components=1000, random_state=seed)
    return make_pipeline(features, last(alpha=1.0))


def ridge(_: int) -> Model:
    """Return the library's default model of numbers, with scikit-learn's own penalty."""
    return Ridge(alpha=1.0)


rff_ridge = partial(rff, last=Ridge)


def whitened(make: Make) -> Make:
    """Return a model that first turns its training rows to uncorrelated ones of variance 1."""
    return lambda seed: make_pipeline(PCA(whiten=True), make(seed))


ROC = replace(  # ROC-AUC of a model with or without probabilities
    ROC_AUC,
    predict=lambda model, rows: (
        model.decision_function(rows)
        if hasattr(model, "decision_function")
        else model.predict_proba(rows)[:, 1]
    ),
)

R2 = replace(ACCURACY, judge=lambda y, found: 100 * float(r2_score(y, found)))
"""The share of the test labels' variance that predictions explain, in points like the others."""


def metric(task: str) -> Metric:
    """Return accuracy for images and faces, R2 for days, and ROC-AUC for the rest."""
    if task in DAYS:
        return R2
    return ACCURACY if task in PIXELS else ROC


class Judged:
    """A model of the library as metrics want it: with the scores that it has."""

    def __init__(self, model: Any) -> None:
        self.predict = model.predict
        if getattr(model, "method", "decision_function") == "decision_function":
            self.decision_function = partial(model.scores, method="decision_function")
        else:
            self.predict_proba = partial(model.scores, method="predict_proba")


SUMS = "none: masked sums"
"""In the place of a basis or an anchor."""


def added_up(dealt: Dealt, task: str) -> dict[str, float]:
    """Score the model of masked sums, by default random Fourier features; say n/D."""
    kind: Any = "regression" if task in DAYS else "classification"
    rng, judge = generator(dealt.repeat, 5), dealt.metrics[""]
    done = simulate(dealt.parties, rng=rng, release="sums", task=kind).result
    found = judge.predict(Judged(done.model), dealt.test_rows)
    return {"rff": judge.judge(dealt.test_labels, found), "n/D": done.rows_per_feature}


OWN = ("svd", "pca", "lpp")  # bases that a party makes of its own rows alone


def sizes(task: str, basis: str = "") -> tuple[int, ...]:
    """Return each l.

    Of Adult's 108 features most are rare, and parties have not a hundred of them together. Days
    have 25, of which all parties together have all, and one party alone may not.
    """
    if task in DAYS:
        return (10, 20) if basis in OWN else (10, 20, 24)
    return (50,) if task == "adult" else (50, 100, 200)


def deal(task: str, *, repeat: int, skewed: bool, most: int | None = None) -> Dealt:
    if task in DAYS:
        return _stays(task, repeat) if skewed else _mixed(_stays(task, repeat))
    rows, labels = tabled(task)
    rng = generator(repeat)
    order = rng.permutation(len(labels))
    if task in MOLECULES:
        is_test = molecules(task).part[order] == TEST
        train, test = order[~is_test], order[is_test]
        groups = np.array_split(train, 4)
        if skewed:  # two parties with all rows of label 0 and two with all of label 1
            of_each = [train[labels[train] == label] for label in (0, 1)]
            groups = [half for held in of_each for half in np.array_split(held, 2)]
        groups = [group[: most or MOST_ROWS] for group in groups]
    else:
        tests, reserved = _apart(task)
        train, test = order[tests:-reserved], order[:tests]
        groups = _ring(labels, train) if skewed else np.split(train[: PARTIES * ROWS], PARTIES)
    how: dict[str, Any] = {"test": test, "repeat": repeat, "metrics": {"": metric(task)}}
    held = {f"party-{number:02d}": group for number, group in enumerate(groups)}
    return Dealt.of(lambda at: _values(task, rows[at]), labels, held=held, **how)


def public(task: str, *, repeat: int, count: int) -> Table:
    """Return rows that no party holds and no model is judged by."""
    if task in DAYS:
        return _stays(task, repeat).scale(_of_nobody(task)[:count])
    if task in MOLECULES:
        return pubchem(count, rng=generator(repeat, 2))
    rows, labels = tabled(task)
    left = generator(repeat).permutation(len(labels))[-_apart(task)[1] :]
    return _values(task, rows[left[:count]])


def tabled(task: str) -> tuple[npt.NDArray[Any], Labels]:
    if task in IMAGES:
        return images(task)
    if task == FACES:
        return small_faces()
    if task in MOLECULES:
        return molecules(task).bits, molecules(task).labels
    return adult().rows, adult().labels


def _apart(task: str) -> tuple[int, int]:
    return (FACE_TESTS, FACES_RESERVED) if task == FACES else (TESTS, RESERVED)


def _stays(task: str, repeat: int) -> Wards:
    setup = SETUPS[DAYS[task]]
    split = wards(setup.load(), setup=setup, repeat=repeat)
    return replace(split, metrics={"": R2})


def _of_nobody(task: str) -> Table:
    """Return stays of which no party has any, in the order of the file."""
    if task == "eicu demo":
        return eicu_demo("no region").rows
    patients, setup = diabetes130(), SETUPS[DAYS[task]]
    return patients.rows[~np.isin(patients.sites, patients.largest(setup.parties))]


def _mixed(split: Wards) -> Dealt:
    rows, labels = split.pooled()
    groups = np.array_split(generator(split.repeat, 4).permutation(len(labels)), len(split.parties))
    named = {f"party-{n:02d}": (rows[group], labels[group]) for n, group in enumerate(groups)}
    return replace(split, parties=named)


def _values(task: str, rows: npt.NDArray[Any]) -> Table:
    return rows / 255.0 if task in PIXELS else rows.astype(np.float64)


def _ring(labels: Labels, places: Places) -> list[Places]:
    """Give party i rows of the labels i and i + 1 of a ring; of two labels, i alone."""
    names = np.unique(labels)
    width = 2 if len(names) > 2 else 1
    rest = {turn: list(places[labels[places] == label]) for turn, label in enumerate(names)}
    groups = []
    for number in range(PARTIES):
        chosen: list[np.intp] = []
        for turn in range(width):
            held = rest[(number + turn) % len(names)]
            chosen += [held.pop() for _ in range(ROWS // width)]
        groups.append(np.array(chosen))
    return groups


Values = Mapping[str, Sequence[float]]


def nearness(
    what: str,
    theirs: Mapping[str, Published],
    *,
    pattern: str,
    corner: str,
    columns: Mapping[str, tuple[Values, str, str]],
) -> list[str]:
    """Return mean distances from printed numbers, in Markdown; nothing where one is missing.

    A row has the numbers that a pattern finds, and its group for a name; a column has values, and
    what to put for what in such a number's name.
    """
    rows: dict[str, list[str]] = {}
    for place in theirs:
        if found := re.fullmatch(pattern, place):
            rows.setdefault(found[1], []).append(place)

    def apart(places: Sequence[str], values: Values, old: str, new: str) -> str:
        pairs = {place.replace(old, new, 1): theirs[place].value for place in places}
        if not all(ours in values for ours in pairs):
            return ""
        return f"{np.mean([abs(np.mean(values[ours]) - pairs[ours]) for ours in pairs]):.1f}"

    lines = [
        [name, *(apart(places, *column) for column in columns.values())]
        for name, places in rows.items()
    ]
    told = f"Mean distance from the paper's {what}, points:"
    return [told, "", *table([corner, *columns], lines)]


def random_minus_identity(
    first: Sequence[float], second: Sequence[float]
) -> tuple[Paired, str, str, str]:
    """Test whether the second series is worse; return the test and its figures as text."""
    if len(first) < 2:
        raise ValueError("one repeat has no spread")
    found, change = paired(first, second), summary(np.subtract(second, first).tolist())
    return found, f"{change}", f"{found.p:.2g}", f"{found.effect:+.2f}"
