"""ODC over the three sweeps of Table 5, one thread, on the papers' input and on three others."""

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import contenders, goals, inputs
from benchmarks.inputs import INPUTS, PAPERS, PUBLISHED, SHARED, Images, Shape, where
from benchmarks.timing import interleaved, ratio
from cobasis import ODC, align
from cobasis.errors import UndeterminedFitError

ROUNDS, ROUNDS_QUICK = 7, 3
DIFFERENT = "different"
LEAST_FASTER = {DIFFERENT: 1.3, SHARED: 2.0}
"""How many times faster than the scipy loop; never slower than it on any other input."""

FEW_COMPONENTS, FLOOR_COMPONENTS = 100, 50
"""With more than a few components different spans are only asked not to be slower."""

MANY_COMPONENTS, ENOUGH_PARTIES = 300, 6
"""Above that many components these parties are timed, and the time is multiplied."""


def measure(*, quick: bool, name: str = PAPERS) -> dict[str, Any]:
    rounds = ROUNDS_QUICK if quick else ROUNDS
    points = [
        a_point(name, free, size=size, rounds=rounds)
        for size, free in inputs.swept(inputs.SHORT if quick else inputs.WHOLE).items()
        if wanted(name, free, size=size)
    ]
    return {"rounds": rounds, "input": name, "points": points, "goals": judged(points, name)}


def wanted(name: str, free: str, *, size: Shape) -> bool:
    """Whether an input is timed at a size.

    Other inputs than the papers': the sweep over parties at five points, since parties only
    repeat, and with different spans that over many components at four.
    """
    if free == "c" and name != PAPERS:
        return size.c in PUBLISHED["c"]
    many = size.l > FEW_COMPONENTS
    return not (name.startswith(DIFFERENT) and many) or size.l in PUBLISHED["l"]


def a_point(name: str, free: str, *, size: Shape, rounds: int) -> dict[str, Any]:
    """Time the contenders on one input of one size; seconds are scaled to all its parties."""
    n_timed = min(ENOUGH_PARTIES, size.c) if size.l > MANY_COMPONENTS else size.c
    images = INPUTS[name](**size._replace(c=n_timed)._asdict())
    replaced = settle(images)
    times = interleaved(chosen(name, size, images=images), rounds=rounds)
    found = {
        "input": name,
        "sweep": free,
        **size._asdict(),
        "parties_timed": n_timed,
        "parties_replaced": replaced,
        "seconds": {each: times[each]["median"] * size.c / n_timed for each in times},
        "runs": {each: times[each]["runs"] for each in times},
        "scipy loop / ours": ratio(times, "scipy loop", "ours"),
    }
    if "floor" in times:
        found["ours / floor"] = ratio(times, "ours", "floor")
    del images
    gc.collect()
    return found


def settle(images: Images) -> int:
    """Put the second party's image in place of each that is refused; return how many there were.

    Of many random images without a common span, one in some ten thousand has a direction that
    the first party's determines to less than 1e-8. The loops turn it anyhow; ours refuses it.
    """
    second, replaced = list(images)[1], 0
    while True:
        try:
            align(ODC(), images, workers=1)
        except UndeterminedFitError as error:
            images[error.parties[0]] = images[second].copy()
            replaced += 1
        else:
            return replaced


def chosen(name: str, size: Shape, *, images: Images) -> Mapping[str, Callable[[], object]]:
    """Return whom to time: everybody on the papers' input, ours and scipy's loop on the others."""
    found: dict[str, Callable[[], object]] = {
        "ours": partial(contenders.ours, images),
        "scipy loop": partial(contenders.scipy_loop, images),
    }
    if name == PAPERS or size.l == FLOOR_COMPONENTS:
        found["floor"] = contenders.floor(images)
    if name == PAPERS and (len(images) == size.c or size.l in PUBLISHED["l"]):
        found["svd loop"] = partial(contenders.svd_loop, images)
    return found


def judged(points: list[dict[str, Any]], name: str) -> list[goals.Judged]:
    against, over = "scipy loop / ours", "ours / floor"
    what = f"ODC against the scipy loop: {name}"
    asked = next((LEAST_FASTER[each] for each in LEAST_FASTER if name.startswith(each)), 1.0)
    groups: dict[tuple[str, float], list[tuple[str, float]]] = {}
    for each in points:
        many = name.startswith(DIFFERENT) and each["l"] > FEW_COMPONENTS
        goal = (f"{what}, l > {FEW_COMPONENTS}", 1.0) if many else (what, asked)
        groups.setdefault(goal, []).append((where(each), each[against]["median"]))
    floored = [
        (where(each), each[over]["median"])
        for each in points
        if each["l"] == FLOOR_COMPONENTS and over in each
    ]
    floor = f"ODC against the product floor, l = {FLOOR_COMPONENTS}: {name}"
    return [
        *(goals.worst(found, said, least=least) for (said, least), found in groups.items()),
        goals.worst(floored, floor, most=3.0),
    ]
