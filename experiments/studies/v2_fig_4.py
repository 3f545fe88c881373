"""Middle version, Figure 4: alignment time over parties.

a = 1000, l = 50. {HOW}
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks import contenders
from benchmarks.inputs import Images
from benchmarks.timing import interleaved, ratio
from scipy.stats import ortho_group

from cobasis import ODC, Imakura, Kawakami
from experiments.harness.study import Study, Values
from experiments.harness.systems import generator

HOW = (
    "Seconds to make all G_i from all A_i, one thread, all methods in turn in one process; each "
    "value is the median of up to 5 rounds, the ratio is taken round by round. *As published*: ODC "
    "with one decomposition a party, Imakura and Kawakami with scikit-learn's randomised "
    "decomposition, then a pseudoinverse or inverse a party; the others are this library's. Open "
    "in the paper: machine, threads, implementation; how a party with 100 images gets a basis of "
    "500 columns. Here all images are of one random span of that size, and no data is read. The "
    "figure prints no numbers."
)
M = 784
BASE = {"a": 1000, "l": 50, "c": 50}
ROUNDS, ENOUGH = 5, 15.0  # every method is timed this often, or until this many seconds are over
PRINTED = "as published"
CALLS: Mapping[str, Any] = {
    f"odc, {PRINTED}": contenders.svd_loop,
    f"imakura, {PRINTED}": contenders.imakura_randomised,
    f"kawakami, {PRINTED}": contenders.kawakami_randomised,
    **{
        name: partial(contenders.ours, aligner=aligner)
        for name, aligner in {"odc": ODC(), "imakura": Imakura(), "kawakami": Kawakami()}.items()
    },
}


def anchor_images(*, a: int, l: int, c: int, repeat: int) -> Images:
    """Make A F_i of one random span and Haar rotations: times do not depend on the rows."""
    rng = generator(repeat)
    common = rng.uniform(size=(a, M)) @ np.linalg.qr(rng.normal(size=(M, l)))[0]
    return {
        f"party-{index:03d}": common @ ortho_group.rvs(l, random_state=rng) for index in range(c)
    }


def run(*, repeat: int, **size: int) -> Values:
    images = anchor_images(**{**BASE, **size}, repeat=repeat)
    warm = {name: image[:, :2].copy() for name, image in list(images.items())[:2]}
    for call in CALLS.values():
        call(warm)
    calls = {name: partial(call, images) for name, call in CALLS.items()}
    times = interleaved(calls, rounds=ROUNDS, warm=False, enough=ENOUGH)
    found = {f"{name}/seconds": times[name]["median"] for name in CALLS}
    for kind in (f", {PRINTED}", ""):
        for method in ("imakura", "kawakami"):
            slower = ratio(times, f"{method}{kind}", f"odc{kind}")["median"]
            found[f"{method}{kind}/times ODC's"] = slower
    return found


def over(letter: str, levels: Sequence[int], *, figure: int) -> Study:
    return Study(
        source=f"ODC paper's middle version, Figure {figure}",
        unit="seconds, or times ODC's",
        cells=[{letter: each} for each in levels],
        repeats=3,
        times=("*/seconds", "*/times ODC's"),
    )


STUDY = over("c", (50, 100, 150, 200, 300, 400, 500), figure=4)
