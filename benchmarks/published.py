"""Published and best forms of the baselines against ours, at five points a sweep; and of GOPP."""

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from benchmarks import contenders, goals
from benchmarks.contenders import FORMS, Form
from benchmarks.exactness import objective
from benchmarks.inputs import PUBLISHED, Images, Shape, different, swept, unrelated, where
from benchmarks.timing import Call, interleaved, ratio
from cobasis import GOPP, Imakura, Kawakami, align

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
    levels = {free: values[: 1 if quick else None] for free, values in PUBLISHED.items()}
    rounds = ROUNDS_QUICK if quick else ROUNDS
    points = [a_point(size, free, rounds=rounds) for size, free in swept(levels).items()]
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
    return {"bytes": 8 * form.numbers(*size), "seconds": form.operations(*size) / ASSUMED_RATE}


def fits(found: Mapping[str, float]) -> bool:
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


MOMENTUM = {True: (Shape(200, 20, 10), 3), False: (Shape(), 7)}  # sizes and rounds, if quick
WAYS = {"momentum": GOPP(), "alternation": GOPP(momentum=False)}


def momentum(*, quick: bool) -> dict[str, Any]:
    """Time both to the same tolerance, one thread, under two anchors."""
    shape, rounds = MOMENTUM[quick]
    inputs = [an_input(anchor, shape, rounds=rounds) for anchor in ("isometric", "uniform")]
    return {"inputs": inputs, "goals": [judged_momentum(each) for each in inputs]}


def an_input(anchor: str, shape: Shape, *, rounds: int) -> dict[str, Any]:
    images = different(anchor)(**shape._asdict())
    found = {name: align(way, images, workers=1) for name, way in WAYS.items()}
    calls = {name: lambda way=way: align(way, images, workers=1) for name, way in WAYS.items()}
    times = interleaved(calls, rounds=rounds, warm=False)
    ends = {
        name: objective(images, each.changes_of_basis, each.target.rows)
        for name, each in found.items()
    }
    return {
        **shape._asdict(),
        "anchor": anchor,
        "iterations": {name: each.target.iterations for name, each in found.items()},
        "seconds": times,
        "alternation / momentum": ratio(times, "alternation", "momentum"),
        "objective, momentum / alternation": ends["momentum"] / ends["alternation"],
    }


def judged_momentum(found: dict[str, Any]) -> goals.Judged:
    """Say the ratio, and what both end at; no goal asks for it."""
    iterations = " and ".join(f"{found['iterations'][name]} with {name}" for name in WAYS)
    end = found["objective, momentum / alternation"] - 1
    told = f"iterations: {iterations}; objective {end:+.1e} of the alternation's"
    return goals.goal(
        f"GOPP with momentum against the papers' alternation: different, {found['anchor']} anchor",
        found["alternation / momentum"]["median"],
        unit="x",
        where=f"{where(found)}; {told}",
    )
