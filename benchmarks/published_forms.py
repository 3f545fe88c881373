"""Imakura-DC and Kawakami-DC: published and best forms against ours, at five points a sweep."""

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import goals
from benchmarks.inputs import Images, unrelated
from benchmarks.points import label, published_sizes, shape
from benchmarks.published import FORMS, Form
from benchmarks.timing import Call, interleaved, ratio
from cobasis import Imakura, Kawakami, align
from cobasis.planning.costs import Size

ROUNDS, ROUNDS_QUICK = 3, 1
MOST_BYTES = 12e9
MOST_SECONDS = 40.0
ASSUMED_RATE = 2e10
"""Operations a second, to estimate what is not run; one thread, rounded down."""

OURS: Mapping[str, Callable[[Images], object]] = {
    "Imakura, ours": lambda images: dict(align(Imakura(), images, workers=1).changes_of_basis),
    "Kawakami, ours": lambda images: dict(align(Kawakami(), images, workers=1).changes_of_basis),
}
SLOW = ("Imakura, full SVD + pinv", "Kawakami, dense eigenproblem")
NO_GOAL = (
    "Imakura, thin SVD + pinv",
    "Imakura, randomised SVD + pinv",
    "Kawakami, randomised SVD",
)
BEST = ("Imakura, best form", "Kawakami, best form")


def measure(*, quick: bool) -> dict[str, Any]:
    """Time what fits, and estimate the rest."""
    points, seen = [], set()
    for free in ("l", "a", "c"):
        for size in published_sizes(free, quick=quick):
            if size not in seen:
                seen.add(size)
                points.append(a_point(size, free, rounds=ROUNDS_QUICK if quick else ROUNDS))
    return {
        "points": points,
        "limits": {"bytes": MOST_BYTES, "seconds": MOST_SECONDS, "assumed rate": ASSUMED_RATE},
        "goals": judged(points),
    }


def a_point(size: Size, free: str, *, rounds: int) -> dict[str, Any]:
    """Time every form that fits at one size; say of the others what they would take."""
    images = unrelated(**shape(size))
    estimates = {name: estimate(form, size) for name, form in FORMS.items()}
    left_out = {name: each for name, each in estimates.items() if not fits(each)}
    calls: dict[str, Call] = {name: partial(run, images) for name, run in OURS.items()}
    calls |= {
        name: partial(form.run, images) for name, form in FORMS.items() if name not in left_out
    }
    times = interleaved(calls, rounds=rounds, warm=False)
    ratios = {
        f"{name} / ours": ratio(times, name, f"{name.split(',')[0]}, ours")
        for name in FORMS
        if name in times
    }
    del images, calls
    gc.collect()
    return {
        "sweep": free,
        **shape(size),
        "seconds": {name: times[name]["median"] for name in times},
        "runs": {name: times[name]["runs"] for name in times},
        "ratios": ratios,
        "does not fit": left_out,
    }


def estimate(form: Form, size: Size) -> dict[str, float]:
    """Return the bytes and seconds that a form would take."""
    return {
        "bytes": 8 * form.numbers(size),
        "seconds": form.operations(size) / ASSUMED_RATE,
    }


def fits(found: Mapping[str, float]) -> bool:
    """Whether a form is run at all."""
    return found["bytes"] <= MOST_BYTES and found["seconds"] <= MOST_SECONDS


def judged(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the goals that these points answer; only the slow forms have one."""

    def ratios(name: str) -> list[tuple[str, float]]:
        found = []
        for each in points:
            if f"{name} / ours" in each["ratios"]:
                sizes = Size(n_anchor_rows=each["a"], n_components=each["l"], n_parties=each["c"])
                found.append((label(sizes), each["ratios"][f"{name} / ours"]["median"]))
        return found

    asked = []
    for name in SLOW:
        found = ratios(name)
        goal = goals.worst(found, f"faster than {name}", least=5.0)
        where = f"{goal['where']}; tried at {len(found)} of {len(points)} sizes"
        asked.append(goal | {"where": where})
    told = [goals.worst(ratios(name), f"faster than {name}") for name in NO_GOAL]
    for name in BEST:
        turned = [(where, 1 / each) for where, each in ratios(name)]
        told.append(goals.worst(turned, f"our time against {name} in plain NumPy and SciPy"))
    return asked + told
