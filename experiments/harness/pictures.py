"""Figures 2 and 8 of the ODC paper, with digits and clothes: what leaves, and what comes back."""

import numpy as np
from matplotlib.figure import Figure

from cobasis.privacy.attacks.known_records import back_to_records
from cobasis.privacy.attacks.public_sample import match_sample
from experiments.attacks.anchors import collude
from experiments.harness.models import Table
from experiments.harness.noise import PAPERS_NOISE, papers_scale
from experiments.harness.systems import generator
from experiments.studies.privacy_content import DIGITS, FASHION, drawn, released

COMPONENTS = {DIGITS: 32, FASHION: 100}
SHOWN, PEOPLE = 8, 600
EPSILONS = (8.0, 2.0, 0.5)


def strips(data: str) -> dict[str, Table]:
    """Make every kind of picture of the same people, by what they are; lighter is more."""
    own, labels, public, public_labels = (each[:PEOPLE] for each in drawn(data, repeat=0))
    size, rng = COMPONENTS[data], generator(0, 8)
    release, anchor = released(own, labels, size=size, rng=rng)
    places = rng.permutation(np.arange(SHOWN, PEOPLE))[: 2 * size]  # nobody who is shown
    shown = {"Original": _squares(own)}
    for epsilon in EPSILONS:
        noise = papers_scale(epsilon) * rng.normal(size=own[:SHOWN].shape)
        title = f"{PAPERS_NOISE.capitalize()}, on raw pixels, epsilon {epsilon:g}"
        shown[title] = _squares(own[:SHOWN] + noise)
    shown[f"What leaves: {size} numbers each, orthonormal basis"] = _grids(release.rows)
    oblique = release.rows @ rng.random((size, size))
    shown["The same with a basis that is not orthonormal"] = _grids(oblique)
    known = f"Rebuilt from it by somebody who knows {2 * size} of the {PEOPLE} people"
    rebuilt = {
        known: release.rows @ back_to_records(release.rows[places], own[places]),
        "Rebuilt by an analyst whom one party helps": collude(release, anchor).rows,
    }
    if data == DIGITS:  # larger pictures take it seconds
        found = match_sample(release, public, labels=public_labels, rng=rng)
        rebuilt["Rebuilt by somebody with other people's pictures, and the labels"] = found.rows
    return shown | {title: _squares(rows) for title, rows in rebuilt.items()}


def _squares(rows: Table) -> Table:
    side = round(rows.shape[1] ** 0.5)
    return rows[:SHOWN].reshape(-1, side, side)


def _grids(rows: Table) -> Table:
    n_numbers = rows.shape[1]
    height = next(each for each in range(int(n_numbers**0.5), 0, -1) if n_numbers % each == 0)
    return rows[:SHOWN].reshape(-1, height, n_numbers // height)


def figure(data: str) -> Figure:
    """Draw all strips, each picture stretched from its own darkest to its own lightest."""
    found = strips(data)
    drawn_on = Figure(figsize=(7.0, 0.98 * len(found)), layout="constrained")
    parts = drawn_on.subfigures(len(found), 1, squeeze=False)
    for (part,), (title, pictures) in zip(parts, found.items(), strict=True):
        part.suptitle(title, fontsize=8, x=0.01, ha="left")
        for axes, picture in zip(part.subplots(1, SHOWN), pictures, strict=True):
            axes.imshow(picture, cmap="gray", interpolation="nearest")
            axes.set_axis_off()
    return drawn_on
