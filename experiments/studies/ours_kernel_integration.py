"""Kernel integration: LKI and NKI beside ODC and Kawakami-DC.

LKI and NKI (arXiv:2605.27219) are known here by the paper's abstract, which says that NKI is kernel
ridge regression and an eigenvalue problem, and better than linear integration where parties reduce
their rows by nonlinear maps. No figure of the paper is known here, so nothing agrees or disagrees
with one. *Theirs*, as in code of the authors' laboratory: Z has the top l eigenvectors of the sum
of P_i over parties. For LKI (our reading: that code does not use the name) P_i = A_i A_i^+ and
G_i = A_i^+ Z, which is Kawakami-DC with columns of other sizes. For NKI P_i = K_i (K_i + lambda
I)^-1, K_i a Gaussian kernel of A_i whose width is the median distance of the party's uploaded rows,
and its map is g_i(x) = k_i(x, A_i) (K_i + lambda I)^-1 Z; *centred* asks Z for columns of mean
zero. *Ours*: lambda = {PENALTY:g}, beside it {OTHER:g} (both are in that code); columns as uploaded
(some of their runs standardise them); one number that brings all methods' aligned rows to the size
of the uploaded ones; and the data. Left out: their graph of the anchor's labels, since nobody here
labels an anchor. Ten parties of 250 rows, l = {SIZE}. The anchor has {ROWS} rows, public ones that
nobody holds or isometric. Each party reduces on its own, by SVD or by kernel PCA (Gaussian, width
by the median, public anchor). {JUDGES} parties predict all test rows; *parties apart* is how far
their aligned test rows lie from their mean, in per cent of variance. Claims, written before the
first run, on NKI against the best linear method of a place, by the 95 % interval of the difference,
repeat by repeat: (a) under kernel PCA NKI is better on every task with both models; (b) under SVD
with a public anchor it is nowhere more than {NEAR:g} points worse.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import helmert
from scipy.spatial.distance import pdist
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel

from cobasis import Kawakami
from experiments.harness.models import Make, Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, crossed, table
from experiments.harness.systems import Dealt, Shared, alone, central, judged, told_apart
from experiments.harness.uploads import AsPrinted, Uploads, uploads
from experiments.studies._ours import JUDGES, deal, logistic, public, rff

TASKS = ("mnist", "fashion-mnist", "adult")
SIZE, ROWS = 50, 800  # l, and rows of an anchor
PENALTY, OTHER = 0.1, 0.01  # lambda
NEAR = 2.0  # points, of claim (b)
MODELS: Mapping[str, Make] = {"logistic": logistic, "rff": rff}
PUBLIC, ISOMETRIC, KERNEL = "svd, public anchor", "svd, isometric anchor", "kernel pca"
POOLED = "none: pooled"
Map = Callable[[Table], Table]
Maps = dict[str, tuple[Map, Table]]  # of a party: features of uploaded rows, and their weights


def run(*, data: str, reduction: str, repeat: int) -> Values:
    dealt, found = deal(data, repeat=repeat, skewed=False), Values()
    if reduction == POOLED:
        for name, make in MODELS.items():
            found[f"pooled/{name}"] = central(dealt, n_components=SIZE, make=make)[""]
            found[f"alone/{name}"] = alone(dealt, judges=JUDGES, make=make)[""]
        return found
    sent = _sent(dealt, public(data, repeat=repeat, count=ROWS), reduction)
    for method, align in METHODS.items():
        shared = _aligned(sent, align(sent))
        for name, make in MODELS.items():
            found[f"{method}/{name}"] = judged(shared, make=make)[""]
        found[f"{method}/parties apart, %"] = _apart([each for each, _ in shared.tests])
    return found


def _sent(dealt: Dealt, anchor: Table, reduction: str) -> Uploads:
    if reduction != KERNEL:
        how: dict[str, Any] = {"n_components": SIZE, "n_anchor_rows": ROWS, "judges": JUDGES}
        given = {"anchor": "public", "public_rows": anchor}
        how |= given if reduction == PUBLIC else {"anchor": "isometric"}
        return uploads(dealt, span_condition="diffspan_orth", **how)
    reduce: dict[str, Map] = {}
    for name, (rows, _) in dealt.parties.items():
        fit = KernelPCA(SIZE, kernel="rbf", gamma=_width(rows), eigen_solver="dense")
        reduce[name] = fit.fit(rows).transform
    return Uploads(
        images={name: each(anchor) for name, each in reduce.items()},
        rows={name: each(dealt.parties[name][0]) for name, each in reduce.items()},
        tests={name: reduce[name](dealt.test_rows) for name in list(reduce)[:JUDGES]},
        dealt=dealt,
    )


def _width(rows: Table) -> float:
    """Return a Gaussian kernel's gamma by the median distance."""
    return float(0.5 / np.median(pdist(rows, "sqeuclidean")))


def linear(sent: Uploads, *, aligner: Any) -> Maps:
    return {name: (np.asarray, change) for name, change in sent.changes(aligner).items()}


def lki(sent: Uploads) -> Maps:
    inverses = {name: np.linalg.pinv(image) for name, image in sent.images.items()}
    rows = target([image @ inverses[name] for name, image in sent.images.items()])
    return {name: (np.asarray, inverse @ rows) for name, inverse in inverses.items()}


def nki(sent: Uploads, *, penalty: float = PENALTY, centred: bool = False) -> Maps:
    features, inverses, smoothers = dict[str, Map](), dict[str, Any](), list[Table]()
    for name, image in sent.images.items():
        features[name] = partial(rbf_kernel, Y=image, gamma=_width(sent.rows[name]))
        gram = features[name](image)
        inverses[name] = np.linalg.inv(gram + penalty * np.eye(len(gram)))
        smoothers.append(gram @ inverses[name])
    rows = target(smoothers, centred=centred)
    return {name: (each, inverses[name] @ rows) for name, each in features.items()}


def target(smoothers: Sequence[Table], *, centred: bool = False) -> Table:
    """Return Z, the orthonormal columns that all P_i together change least."""
    total = np.sum(smoothers, axis=0)
    within = helmert(len(total)) if centred else np.eye(len(total))
    columns: Table = within.T @ np.linalg.eigh(within @ total @ within.T)[1][:, : -SIZE - 1 : -1]
    return columns


def _aligned(sent: Uploads, maps: Maps) -> Shared:
    """Return what a model is trained on, of the size of the uploaded rows."""
    rows = np.vstack([maps[name][0](own) @ maps[name][1] for name, own in sent.rows.items()])
    size = np.linalg.norm(np.vstack([*sent.rows.values()])) / np.linalg.norm(rows)
    tests = [size * maps[name][0](own) @ maps[name][1] for name, own in sent.tests.items()]
    how: dict[str, Any] = {"labels": sent.dealt.labels, "dealt": sent.dealt}
    return Shared(rows=size * rows, tests=told_apart(tests), **how)


def _apart(tests: Sequence[Table]) -> float:
    mean = np.mean(tests, axis=0)
    within = np.mean([np.sum((each - mean) ** 2) for each in tests])
    return float(100 * within / (within + np.sum((mean - mean.mean(axis=0)) ** 2)))


LINEAR: Mapping[str, Callable[[Uploads], Maps]] = {
    "odc": partial(linear, aligner=AsPrinted()),
    "kawakami": partial(linear, aligner=Kawakami()),
    "lki": lki,
}
METHODS: Mapping[str, Callable[[Uploads], Maps]] = {
    **LINEAR,
    "nki": nki,
    f"nki, lambda {OTHER:g}": partial(nki, penalty=OTHER),
    "nki, centred": partial(nki, centred=True),
}


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    lines, claims = list[list[str]](), list[str]()
    for reduction, least in ((KERNEL, 0.0), (PUBLIC, -NEAR), (ISOMETRIC, -NEAR)):
        met: list[bool] = []
        for data in TASKS:
            gains = []
            for model in MODELS:
                told = {name: values[f"{data}/{reduction}/{name}/{model}"] for name in METHODS}
                best = max((told[name] for name in LINEAR), key=np.mean)
                gains.append(summary(np.subtract(told["nki"], best).tolist()))
            met += [each.mean - each.margin > least for each in gains]
            lines.append([reduction, data, *map(str, gains)])
        claims.append(f"holds at {sum(met)} of {len(met)} places")
    head = ["points of NKI above the best linear method", "task", *MODELS]
    return [*table(head, lines), "", f"Claim (a) {claims[0]}, claim (b) {claims[1]}."]


STUDY = Study(
    source="ours",
    unit="accuracy (images) or ROC-AUC (Adult), %",
    cells=crossed(data=TASKS, reduction=(PUBLIC, ISOMETRIC, KERNEL, POOLED)),
    charted=("*/logistic",),
)
