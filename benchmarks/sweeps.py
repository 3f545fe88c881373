"""ODC over the three sweeps of Table 5, one thread, on the papers' input and on three others."""

import gc
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmarks import contenders, goals
from benchmarks.inputs import INPUTS, PAPERS, SHARED, Images
from benchmarks.points import PUBLISHED, label, parties_timed, shape, sizes
from benchmarks.timing import interleaved, ratio
from cobasis import ODC, align
from cobasis.errors import UndeterminedFitError
from cobasis.planning.costs import Size

ROUNDS, ROUNDS_QUICK = 7, 3
DIFFERENT = "different"
LEAST_FASTER = {DIFFERENT: 1.3, SHARED: 2.0}
"""How many times faster than the scipy loop; never slower than it on any other input."""
FEW_COMPONENTS, FLOOR_COMPONENTS = 100, 50
"""With more than a few components different spans are only asked not to be slower."""


def measure(*, quick: bool, name: str = PAPERS) -> dict[str, Any]:
    """Time ours, the loops and the floor at every point."""
    rounds = ROUNDS_QUICK if quick else ROUNDS
    points, seen = [], set()
    for free in ("l", "a", "c"):
        for size in sizes(free, quick=quick):
            if wanted(name, free, size=size) and size not in seen:
                seen.add(size)
                points.append(a_point(name, free, size=size, rounds=rounds))
    return {"rounds": rounds, "input": name, "points": points, "goals": judged(points, name)}


def wanted(name: str, free: str, *, size: Size) -> bool:
    """Whether an input is timed at a size.

    Other inputs than the papers': the sweep over parties at five points, since parties only
    repeat, and with different spans that over many components at four.
    """
    if free == "c" and name != PAPERS:
        return size.n_parties in PUBLISHED["c"]
    many = size.n_components > FEW_COMPONENTS
    return not (name.startswith(DIFFERENT) and many) or size.n_components in PUBLISHED["l"]


def a_point(name: str, free: str, *, size: Size, rounds: int) -> dict[str, Any]:
    """Time the contenders on one input of one size; seconds are scaled to all its parties."""
    timed = replace(size, n_parties=parties_timed(size))
    images = INPUTS[name](**shape(timed))
    replaced = settle(images)
    times = interleaved(chosen(name, size, images=images), rounds=rounds)
    scale = size.n_parties / timed.n_parties
    found = {
        "input": name,
        "sweep": free,
        **shape(size),
        "parties_timed": timed.n_parties,
        "parties_replaced": replaced,
        "seconds": {each: times[each]["median"] * scale for each in times},
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
            [party] = re.findall(r"directions of party '([^']+)'", str(error))
            images[party] = images[second].copy()
            replaced += 1
        else:
            return replaced


def chosen(name: str, size: Size, *, images: Images) -> Mapping[str, Callable[[], object]]:
    """Return whom to time: everybody on the papers' input, ours and scipy's loop on the others.

    The papers' own loop is close to scipy's; where it takes seconds, five points are enough.
    """
    everybody = contenders.all_of(images)
    names = ["ours", "scipy loop"]
    if name == PAPERS:
        names.append("floor")
        if parties_timed(size) == size.n_parties or size.n_components in PUBLISHED["l"]:
            names.append("svd loop")
    elif size.n_components == FLOOR_COMPONENTS:
        names.append("floor")
    return {each: everybody[each] for each in names}


def judged(points: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the goals of the issue that these points answer."""
    against, over = "scipy loop / ours", "ours / floor"
    what = f"ODC against the scipy loop: {name}"
    asked = next((LEAST_FASTER[each] for each in LEAST_FASTER if name.startswith(each)), 1.0)
    groups: dict[tuple[str, float], list[tuple[str, float]]] = {}
    for each in points:
        many = name.startswith(DIFFERENT) and each["l"] > FEW_COMPONENTS
        goal = (f"{what}, l > {FEW_COMPONENTS}", 1.0) if many else (what, asked)
        groups.setdefault(goal, []).append((where(each), each[against]["median"]))
    floored = [each for each in points if each["l"] == FLOOR_COMPONENTS and over in each]
    return [
        *(goals.worst(found, said, least=least) for (said, least), found in groups.items()),
        goals.worst(
            [(where(each), each[over]["median"]) for each in floored],
            f"ODC against the product floor, l = {FLOOR_COMPONENTS}: {name}",
            most=3.0,
        ),
    ]


def where(point: Mapping[str, Any]) -> str:
    """Return a point in words."""
    size = Size(n_anchor_rows=point["a"], n_components=point["l"], n_parties=point["c"])
    return label(size)
