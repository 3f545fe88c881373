"""What is computed faster is the same: orthogonality, objective, and the exact dense solutions."""

from typing import Any

import numpy as np
import scipy.linalg

from benchmarks import contenders, goals
from benchmarks.inputs import INPUTS, Images, Matrix, separated
from benchmarks.published import imakura_randomised, kawakami_dense, kawakami_randomised
from cobasis import Imakura, Kawakami, align

NOISES = (1.5, 1.4, 1.25, 1.0, 0.5, 0.1)
LEAST_GAP = 1.05


def measure(*, quick: bool) -> dict[str, Any]:
    """Compare with plain decompositions of the same input."""
    shapes = [{"a": 400, "l": 20, "c": 12}]
    if not quick:
        shapes += [{"a": 1000, "l": 50, "c": 50}, {"a": 1000, "l": 200, "c": 10}]
        shapes += [{"a": 20_000, "l": 50, "c": 5}, {"a": 1000, "l": 950, "c": 3}]
    rotations = [odc_figures(name, each) for name in INPUTS for each in shapes]
    sizes = [{"a": 300, "l": 15, "c": 10}]
    if not quick:
        sizes += [{"a": 300, "l": 15, "c": 40}, {"a": 1000, "l": 50, "c": 20}]
    squares = [least_squares_figures(noise, **size) for noise in NOISES for size in sizes]
    return {
        "procrustes": rotations,
        "least_squares": squares,
        "goals": judged(rotations, squares),
    }


def odc_figures(name: str, shape: dict[str, int]) -> dict[str, Any]:
    """Return how far ODC's G_i are from orthogonal, and its objective from the SVD solution's."""
    images = INPUTS[name](**shape)
    found, exact = contenders.ours(images), contenders.svd_loop(images)
    identity = np.eye(shape["l"])
    off = max(float(np.linalg.norm(each.T @ each - identity)) for each in found.values())
    one, other = objective(images, found), objective(images, exact)
    size = sum(float(np.sum(image**2)) for image in images.values())
    return {
        "input": name,
        **shape,
        "orthogonality": off,
        "objective": other,
        "objective_relative": abs(one - other) / max(other, np.finfo(float).eps * size),
    }


def objective(images: Images, changes: dict[str, Matrix]) -> float:
    """Return the sum of ``||A_i G_i - A_1||^2``."""
    first = next(iter(images.values()))
    return float(sum(np.sum((images[name] @ changes[name] - first) ** 2) for name in images))


def least_squares_figures(noise: float, *, a: int, l: int, c: int) -> dict[str, Any]:  # noqa: E741
    """Return how far Imakura and Kawakami are from exact dense solutions, free of rotations."""
    images = separated(a=a, l=l, c=c, noise=noise)
    ratios = {"Imakura": spectrum_ratio(list(images.values()), l)}
    ratios["Kawakami"] = spectrum_ratio([np.linalg.qr(each)[0] for each in images.values()], l)
    exact = {"Imakura": imakura_exact(images), "Kawakami": kawakami_dense(images)}
    sketched = {"Imakura": imakura_randomised(images), "Kawakami": kawakami_randomised(images)}
    found = {
        "Imakura": dict(align(Imakura(scale="paper"), images, workers=1).changes_of_basis),
        "Kawakami": dict(align(Kawakami(scale="paper"), images, workers=1).changes_of_basis),
    }
    return {
        "noise": noise,
        "a": a,
        "l": l,
        "c": c,
        "gap": ratios,
        "ours": {name: difference(images, found[name], exact[name]) for name in exact},
        "randomised": {name: difference(images, sketched[name], exact[name]) for name in exact},
    }


def imakura_exact(images: Images) -> dict[str, Matrix]:
    """Solve by the full decomposition and an orthogonal least-squares solver."""
    first = next(iter(images.values()))
    target = np.linalg.svd(np.hstack(list(images.values())))[0][:, : first.shape[1]]
    return {
        name: scipy.linalg.lstsq(image, target, lapack_driver="gelsd")[0]
        for name, image in images.items()
    }


def spectrum_ratio(tables: list[Matrix], size: int) -> float:
    """Return s_l / s_(l+1) of the side-by-side tables."""
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


def judged(rotations: list[dict[str, Any]], squares: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the goals that these figures answer."""

    def at(each: dict[str, Any]) -> str:
        return f"{each.get('input', '')} a={each['a']}, l={each['l']}, c={each['c']}".strip()

    found = [
        goals.worst(
            [(at(each), each["orthogonality"]) for each in rotations],
            "||G'G - I|| of ODC",
            most=1e-12,
            unit="",
        ),
        goals.worst(
            [(at(each), each["objective_relative"]) for each in rotations],
            "ODC's objective against the SVD solution's, relative",
            most=1e-12,
            unit="",
        ),
    ]
    for name in ("Imakura", "Kawakami"):
        wide = [each for each in squares if each["gap"][name] >= LEAST_GAP]
        found.append(
            goals.worst(
                [
                    (f"s_l/s_(l+1) = {each['gap'][name]:.3f}, {at(each)}", each["ours"][name])
                    for each in wide
                ],
                f"{name} against the exact dense solution, A_i G_i G_j' A_j', relative",
                most=1e-8,
                unit="",
            )
        )
        found.append(
            goals.worst(
                [
                    (f"s_l/s_(l+1) = {each['gap'][name]:.3f}", each["randomised"][name])
                    for each in wide
                ],
                f"{name}, randomised: error of the published short cut",
                unit="",
            )
        )
    return found
