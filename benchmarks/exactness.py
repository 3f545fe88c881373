"""What is computed faster is the same: orthogonality, objective, and the exact dense solutions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from benchmarks import contenders, goals
from benchmarks.inputs import INPUTS, Images, Matrix, Shape, separated, where
from cobasis import Imakura, Kawakami

NOISES = (1.5, 1.4, 1.25, 1.0, 0.5, 0.1)
LEAST_GAP = 1.05
ROTATED = [Shape(400, 20, 12), Shape(), Shape(1000, 200, 10), Shape(20_000, 50, 5)]
ROTATED += [Shape(1000, 950, 3)]
SOLVED = [Shape(300, 15, 10), Shape(300, 15, 40), Shape(1000, 50, 20)]
"""Sizes of the two comparisons, of which a quick run takes the first."""


def measure(*, quick: bool) -> dict[str, Any]:
    first = slice(1 if quick else None)
    rotations = [odc_figures(name, each) for name in INPUTS for each in ROTATED[first]]
    squares = [least_squares_figures(noise, each) for noise in NOISES for each in SOLVED[first]]
    return {"procrustes": rotations, "least_squares": squares, "goals": judged(rotations, squares)}


def odc_figures(name: str, shape: Shape) -> dict[str, Any]:
    """Return how far ODC's G_i are from orthogonal, and its objective from the SVD solution's."""
    images = INPUTS[name](**shape._asdict())
    found, exact = contenders.ours(images), contenders.svd_loop(images)
    identity = np.eye(shape.l)
    off = max(float(np.linalg.norm(each.T @ each - identity)) for each in found.values())
    first = next(iter(images.values()))
    one, other = (objective(images, each, first) for each in (found, exact))
    size = sum(float(np.sum(image**2)) for image in images.values())
    return {
        "input": name,
        **shape._asdict(),
        "orthogonality": off,
        "objective": other,
        "objective_relative": abs(one - other) / max(other, np.finfo(float).eps * size),
    }


def objective(images: Images, changes: Mapping[str, Matrix], target: Matrix) -> float:
    return float(sum(np.sum((images[name] @ changes[name] - target) ** 2) for name in images))


def least_squares_figures(noise: float, shape: Shape) -> dict[str, Any]:
    """Return how far Imakura and Kawakami are from exact dense solutions, free of rotations."""
    images = separated(**shape._asdict(), noise=noise)
    orthonormal = [np.linalg.qr(each)[0] for each in images.values()]
    exact = {"Imakura": imakura_exact(images), "Kawakami": contenders.kawakami_dense(images)}
    sketched = {
        "Imakura": contenders.imakura_randomised(images),
        "Kawakami": contenders.kawakami_randomised(images),
    }
    found = {
        "Imakura": contenders.ours(images, aligner=Imakura(scale="paper")),
        "Kawakami": contenders.ours(images, aligner=Kawakami(scale="paper")),
    }
    return {
        "noise": noise,
        **shape._asdict(),
        "gap": {
            "Imakura": spectrum_ratio(list(images.values()), shape.l),
            "Kawakami": spectrum_ratio(orthonormal, shape.l),
        },
        "ours": {name: difference(images, found[name], exact[name]) for name in exact},
        "randomised": {name: difference(images, sketched[name], exact[name]) for name in exact},
    }


def imakura_exact(images: Images) -> dict[str, Matrix]:
    """Solve by the full decomposition and an orthogonal least-squares solver."""
    size = contenders.n_components(images)
    target = np.linalg.svd(np.hstack(list(images.values())))[0][:, :size]
    return {
        name: scipy.linalg.lstsq(image, target, lapack_driver="gelsd")[0]
        for name, image in images.items()
    }


def spectrum_ratio(tables: list[Matrix], size: int) -> float:
    values = np.linalg.svd(np.hstack(tables), compute_uv=False)
    return float(values[size - 1] / values[size])


def difference(images: Images, found: dict[str, Matrix], exact: dict[str, Matrix]) -> float:
    """Return the largest relative difference of ``A_i G_i G_j' A_j'`` over pairs with the first."""
    first = next(iter(images))
    largest = 0.0
    for name in images:
        one = (images[first] @ found[first]) @ (images[name] @ found[name]).T
        other = (images[first] @ exact[first]) @ (images[name] @ exact[name]).T
        largest = max(largest, float(np.linalg.norm(one - other) / np.linalg.norm(other)))
    return largest


def judged(rotations: list[dict[str, Any]], squares: list[dict[str, Any]]) -> list[goals.Judged]:
    found = []
    for figure, what in (
        ("orthogonality", "||G'G - I|| of ODC"),
        ("objective_relative", "ODC's objective against the SVD solution's, relative"),
    ):
        places = [(f"{each['input']} {where(each)}", each[figure]) for each in rotations]
        found.append(goals.worst(places, what, most=1e-12, unit=""))
    for name in ("Imakura", "Kawakami"):
        wide = [each for each in squares if each["gap"][name] >= LEAST_GAP]
        gaps = [f"s_l/s_(l+1) = {each['gap'][name]:.3f}, {where(each)}" for each in wide]
        exact = f"{name} against the exact dense solution, A_i G_i G_j' A_j', relative"
        sketched = f"{name}, randomised: error of the published short cut"
        ours = [each["ours"][name] for each in wide]
        theirs = [each["randomised"][name] for each in wide]
        found += [
            goals.worst(list(zip(gaps, ours, strict=True)), exact, most=1e-8, unit=""),
            goals.worst(list(zip(gaps, theirs, strict=True)), sketched, unit=""),
        ]
    return found
