"""Seed 002, Figure 4: alignment time over the number of parties."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import ortho_group
from sklearn.utils.extmath import randomized_svd

from cobasis import ODC, Imakura, Kawakami, align
from experiments.harness.models import Table
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import generator

M = 784
A, L, C = 1000, 50, 50
PARTIES = (50, 100, 150, 200, 300, 400, 500)
ROUNDS, ENOUGH = 5, 15.0
"""Every method is timed this often, or until this many seconds are over."""

PRINTED = "as published"
Images = Mapping[str, Table]
Call = Callable[[Images], object]


def anchor_images(*, a: int, l: int, c: int, repeat: int) -> Images:
    """Make A F_i of one random span and Haar rotations: times do not depend on the rows."""
    rng = generator(repeat)
    common = rng.uniform(size=(a, M)) @ np.linalg.qr(rng.normal(size=(M, l)))[0]
    return {
        f"party-{index:03d}": common @ ortho_group.rvs(l, random_state=rng) for index in range(c)
    }


def odc_printed(images: Images) -> list[Table]:
    """Algorithm 4: product, decomposition, product."""
    target = next(iter(images.values()))
    found = []
    for image in images.values():
        left, _, right = np.linalg.svd(image.T @ target)
        found.append(left @ right)
    return found


def imakura_printed(images: Images) -> list[Table]:
    """Randomised decomposition of all images side by side, then a pseudoinverse a party."""
    size = next(iter(images.values())).shape[1]
    target, _, _ = randomized_svd(np.hstack(list(images.values())), size, random_state=0)
    return [np.linalg.pinv(image) @ target for image in images.values()]


def kawakami_printed(images: Images) -> list[Table]:
    """QR factors, randomised decomposition of all Q side by side, then R_i^-1 times a block."""
    factors = [np.linalg.qr(image) for image in images.values()]
    size = factors[0][1].shape[1]
    beside = np.hstack([each[0] for each in factors])
    _, _, right = randomized_svd(beside, size, random_state=0)
    blocks = np.split(right.T, len(images))
    return [
        np.linalg.inv(triangle) @ block
        for (_, triangle), block in zip(factors, blocks, strict=True)
    ]


def _ours(aligner: Any) -> Call:
    return lambda images: dict(align(aligner, images, workers=1).changes_of_basis)


CALLS: Mapping[str, Call] = {
    f"odc, {PRINTED}": odc_printed,
    f"imakura, {PRINTED}": imakura_printed,
    f"kawakami, {PRINTED}": kawakami_printed,
    "odc": _ours(ODC()),
    "imakura": _ours(Imakura()),
    "kawakami": _ours(Kawakami()),
}


def timed(calls: Mapping[str, Call], images: Images) -> dict[str, list[float]]:
    """Time all methods in turn, forwards and backwards, so that a disturbance hits them all."""
    warm = {name: image[:, :2].copy() for name, image in list(images.items())[:2]}
    for call in calls.values():
        call(warm)
    runs: dict[str, list[float]] = {name: [] for name in calls}
    begun = time.perf_counter()
    for turn in range(ROUNDS):
        if turn and time.perf_counter() - begun > ENOUGH:
            break
        for name in list(calls)[:: -1 if turn % 2 else 1]:
            started = time.perf_counter()
            calls[name](images)
            runs[name].append(time.perf_counter() - started)
    return runs


def measured(*, a: int = A, l: int = L, c: int = C, repeat: int) -> Values:
    """Return median seconds of each method, and how many times ODC's they are."""
    runs = timed(CALLS, anchor_images(a=a, l=l, c=c, repeat=repeat))
    found = {f"{name}/seconds": median(each) for name, each in runs.items()}
    for kind in (f", {PRINTED}", ""):
        for method in ("imakura", "kawakami"):
            both = zip(runs[f"{method}{kind}"], runs[f"odc{kind}"], strict=True)
            found[f"{method}{kind}/times ODC's"] = median(slow / fast for slow, fast in both)
    return found


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one number of parties."""
    return measured(c=int(settings["c"]), repeat=repeat)


HOW = (
    "Seconds to make all G_i from all A_i, one thread, all methods in turn in one process; each "
    f"value is the median of up to {ROUNDS} rounds, the ratio is taken round by round. *As "
    "published*: ODC with one decomposition a party, Imakura and Kawakami with scikit-learn's "
    "randomised decomposition, then a pseudoinverse or inverse a party; the others are this "
    "library's. Open in the paper: machine, threads, implementation; how a party with 100 images "
    "gets a basis of 500 columns. Here all images are of one random span of that size, and no "
    "data is read. The figure prints no numbers."
)
TIMES = ("*/seconds", "*/times ODC's")

STUDY = Study(
    title="Middle version, Figure 4: alignment time over parties",
    source="ODC paper's middle version, Figure 4",
    settings=f"a = {A}, l = {L}. {HOW}",
    unit="seconds, or times ODC's",
    cells=[{"c": count} for count in PARTIES],
    run=run,
    repeats=3,
    more=False,
    times=TIMES,
)
