"""The certificate's measured figures on scikit-learn's data: wrong secrets found, nobody else."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from aligners import Toy, haar, make_anchor
from cobasis.algorithms.base import align
from cobasis.algorithms.bases import own_directions
from cobasis.algorithms.concordance import Certificate, certify
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.unrelated import pair_residual
from cobasis.linalg.arrays import Matrix

WRONG = "p1"
SLACK = 0.03
"""How far a figure may be from the one measured when the rule was made: other draws."""


@cache
def digits() -> tuple[Matrix, Matrix]:
    rows, labels = load_digits(return_X_y=True)
    return (rows - 8) / 16, labels


def dealt(rows: Matrix, size: int, n_parties: int, number: int) -> dict[str, Matrix]:
    order = np.random.default_rng(number).permutation(len(rows))
    return {f"p{i}": rows[order[i * size : (i + 1) * size]] for i in range(n_parties)}


def digits_of_100(number: int) -> dict[str, Matrix]:
    return dealt(digits()[0], 100, 10, number)


def digits_of_50(number: int) -> dict[str, Matrix]:
    return dealt(digits()[0], 50, 10, number)


def digits_by_label(number: int) -> dict[str, Matrix]:
    """Party i holds 25 rows each of the labels i and i + 1 of a random cycle."""
    rng = np.random.default_rng(number)
    rows, labels = digits()
    cycle = rng.permutation(10)
    places = [rng.permutation(np.flatnonzero(labels == label)) for label in cycle]
    return {
        f"p{i}": rows[np.hstack([places[i][:25], places[(i + 1) % 10][25:50]])] for i in range(10)
    }


def cancer(number: int) -> dict[str, Matrix]:
    rows = load_breast_cancer(return_X_y=True)[0]
    return dealt((rows - rows.mean(axis=0)) / rows.std(axis=0), 100, 5, number)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of the issue, with the figures measured there under an isometric anchor."""

    rows: Callable[[int], Mapping[str, Matrix]]
    n_components: int
    honest: float
    wrong: float
    unrelated: float


SETTINGS = {
    "digits-l32": Setting(
        rows=digits_of_100, n_components=32, honest=0.12, wrong=0.35, unrelated=0.37
    ),
    "digits-l24": Setting(
        rows=digits_of_50, n_components=24, honest=0.19, wrong=0.45, unrelated=0.46
    ),
    "by-label": Setting(
        rows=digits_by_label, n_components=24, honest=0.29, wrong=0.46, unrelated=0.46
    ),
    "cancer-l20": Setting(rows=cancer, n_components=20, honest=0.07, wrong=0.23, unrelated=0.24),
}
ANCHOR_ROWS = {"isometric": None, "gaussian": 1000, "uniform": 1000}

on_every_setting = pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
on_every_anchor = pytest.mark.parametrize("anchor", list(ANCHOR_ROWS))
on_three_draws = pytest.mark.parametrize("number", range(3))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A round of real rows, with what the analyst sees of it."""

    images: Mapping[str, Matrix]
    sizes: Mapping[str, float]
    anchor: str
    n_features: int

    def certificate(self, *, without: str = "") -> Certificate:
        images = {party: image for party, image in self.images.items() if party != without}
        return certify(
            images,
            align(ODC(reference="p0"), images),
            row_sizes=self.sizes,
            anchor=self.anchor,
            n_features=self.n_features,
            rng=np.random.default_rng(5),
        )


def judged(setting: Setting, anchor: str, number: int, *, wrong: bool) -> Judged:
    """Make the round; with `wrong`, one party has drawn its anchor from another secret."""
    rows = setting.rows(number)
    size, width = setting.n_components, rows["p0"].shape[1]
    bases = {
        party: own_directions(table, n_components=size, party=party, centred=False).directions
        @ haar(100 * number + index, size)
        for index, (party, table) in enumerate(rows.items())
    }
    shape = {"n_rows": ANCHOR_ROWS[anchor] or width, "n_features": width}
    images = Toy(anchor=make_anchor(anchor, number=number, **shape), bases=bases).images
    if wrong:
        other = make_anchor(anchor, number=number + 500, **shape)
        images = {**images, WRONG: other.apply(bases[WRONG])}
    sizes = {p: float(np.sqrt(np.mean((table @ bases[p]) ** 2))) for p, table in rows.items()}
    return Judged(images=images, sizes=sizes, anchor=anchor, n_features=width)


@on_every_setting
@on_every_anchor
@on_three_draws
def test_no_honest_party_is_flagged(setting, anchor, number):
    found = judged(setting, anchor, number, wrong=False).certificate()
    assert found.verdict == "aligned"
    assert found.flagged == ()


@on_every_setting
@on_every_anchor
@on_three_draws
def test_a_wrong_secret_is_flagged_and_leaving_it_out_heals_the_round(setting, anchor, number):
    spoilt = judged(setting, anchor, number, wrong=True)
    found = spoilt.certificate()
    assert found.verdict == "flagged"
    assert found.flagged == (WRONG,)
    healed = spoilt.certificate(without=WRONG)
    assert healed.verdict == "aligned"
    assert WRONG not in healed.parties


@on_every_setting
def test_the_figures_are_those_that_were_measured(setting):
    """Means over three draws of the worst honest party, the wrong secret, and unrelated bases."""
    honest, wrong, unrelated = [], [], []
    for number in range(3):
        fair = judged(setting, "isometric", number, wrong=False).certificate()
        spoilt = judged(setting, "isometric", number, wrong=True).certificate()
        honest.append(max(figures.residual for figures in fair.parties.values()))
        wrong.append(spoilt.parties[WRONG].residual)
        unrelated.append(fair.unrelated)
    assert np.mean(honest) == pytest.approx(setting.honest, abs=SLACK)
    assert np.mean(wrong) == pytest.approx(setting.wrong, abs=SLACK)
    assert np.mean(unrelated) == pytest.approx(setting.unrelated, abs=SLACK)


def test_a_uniform_anchor_has_to_be_deflated():
    """Its common mean makes everybody look aligned."""
    spoilt = judged(SETTINGS["cancer-l20"], "uniform", 0, wrong=True)
    first, other = (spoilt.images[party] for party in ("p0", WRONG))
    blurred = pair_residual(first, other)
    assert blurred < pair_residual(first - first.mean(axis=0), other - other.mean(axis=0)) - 0.05


@on_three_draws
def test_another_public_file_is_flagged_by_permuted_images(number):
    """The analyst cannot draw public rows; the round's own images, shuffled, stand in."""
    rows, setting = digits_of_50(number), SETTINGS["digits-l24"]
    spare = np.random.default_rng(number + 50).permutation(digits()[0])
    fair = judged(setting, "gaussian", number, wrong=False)
    bases = {
        party: own_directions(table, n_components=24, party=party, centred=False).directions
        for party, table in rows.items()
    }
    images = {party: spare[:300] @ basis for party, basis in bases.items()}
    honest = Judged(images=images, sizes=fair.sizes, anchor="public", n_features=64).certificate()
    assert honest.verdict == "aligned"
    images = {**images, WRONG: spare[300:600] @ bases[WRONG]}
    found = Judged(images=images, sizes=fair.sizes, anchor="public", n_features=64).certificate()
    assert found.flagged == (WRONG,)
