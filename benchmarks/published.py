"""Imakura-DC and Kawakami-DC: published and best forms against ours, at five points a sweep."""

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import contenders, goals
from benchmarks.contenders import FORMS, Form
from benchmarks.inputs import Images, Shape, published_sizes, unrelated, where
from benchmarks.timing import Call, interleaved, ratio
from cobasis import Imakura, Kawakami

ROUNDS, ROUNDS_QUICK = 3, 1
MOST_BYTES, MOST_SECONDS = 12e9, 40.0
ASSUMED_RATE = 2e10  # operations a second, to estimate what is not run; one thread, rounded down
OURS: Mapping[str, Callable[[Images], object]] = {
    "Imakura, ours": partial(contenders.ours, aligner=Imakura()),
    "Kawakami, ours": partial(contenders.ours, aligner=Kawakami()),
}
SLOW = ("Imakura, full SVD + pinv", "Kawakami, dense eigenproblem")
"""The forms that ours shall be five times faster than; there is no goal for the others."""


def measure(*, quick: bool) -> dict[str, Any]:
    """Time what fits, and estimate the rest."""
    swept: dict[Shape, str] = {}
    for free in "lac":
        for size in published_sizes(free, quick=quick):
            swept.setdefault(size, free)
    rounds = ROUNDS_QUICK if quick else ROUNDS
    points = [a_point(size, free, rounds=rounds) for size, free in swept.items()]
    return {
        "points": points,
        "limits": {"bytes": MOST_BYTES, "seconds": MOST_SECONDS, "assumed rate": ASSUMED_RATE},
        "goals": judged(points),
    }


def a_point(size: Shape, free: str, *, rounds: int) -> dict[str, Any]:
    """Time every form that fits at one size; say of the others what they would take."""
    images = unrelated(**size._asdict())
    estimates = {name: estimate(form, size) for name, form in FORMS.items()}
    left_out = {name: each for name, each in estimates.items() if not fits(each)}
    forms = {name: form.run for name, form in FORMS.items() if name not in left_out}
    calls: dict[str, Call] = {name: partial(run, images) for name, run in {**OURS, **forms}.items()}
    times = interleaved(calls, rounds=rounds, warm=False)
    del images, calls
    gc.collect()
    return {
        "sweep": free,
        **size._asdict(),
        "seconds": {name: times[name]["median"] for name in times},
        "runs": {name: times[name]["runs"] for name in times},
        "ratios": {
            f"{name} / ours": ratio(times, name, f"{name.split(',')[0]}, ours") for name in forms
        },
        "does not fit": left_out,
    }


def estimate(form: Form, size: Shape) -> dict[str, float]:
    """Return the bytes and seconds that a form would take."""
    return {"bytes": 8 * form.numbers(*size), "seconds": form.operations(*size) / ASSUMED_RATE}


def fits(found: Mapping[str, float]) -> bool:
    """Whether a form is run at all."""
    return found["bytes"] <= MOST_BYTES and found["seconds"] <= MOST_SECONDS


def judged(points: list[dict[str, Any]]) -> list[goals.Judged]:
    """Return the goals that these points answer; only the slow forms have one."""
    asked, told, best = [], [], []
    for name in FORMS:
        against = f"{name} / ours"
        found = [
            (where(each), each["ratios"][against]["median"])
            for each in points
            if against in each["ratios"]
        ]
        if name in SLOW:
            goal = goals.worst(found, f"faster than {name}", least=5.0)
            tried = f"{goal['where']}; tried at {len(found)} of {len(points)} sizes"
            asked.append(goal | {"where": tried})
        elif name.endswith("best form"):
            turned = [(at, 1 / each) for at, each in found]
            best.append(goals.worst(turned, f"our time against {name} in plain NumPy and SciPy"))
        else:
            told.append(goals.worst(found, f"faster than {name}"))
    return [*asked, *told, *best]
