from dataclasses import replace

import numpy as np
import pytest
from experiments.data.faces import Faces
from experiments.harness.noise import Ball, on_images, papers_scale, stretch
from experiments.harness.systems import Dealt
from experiments.harness.uploads import uploads
from experiments.studies import ours_honest_dp, table_10

from cobasis import ODC, Imakura


@pytest.fixture
def dealt():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(120, 8)) * np.geomspace(3, 0.3, 8)
    labels = (table[:, 0] > 0).astype(int)
    parties = {f"p{i}": (table[i:90:3], labels[i:90:3]) for i in range(3)}
    return Dealt(parties=parties, test_rows=table[90:], test_labels=labels[90:], repeat=3)


def sent_by(dealt, **options):
    how = {"anchor": "uniform", "n_anchor_rows": 40, "n_components": 4, **options}
    return uploads(dealt, **how)


def test_noise_is_on_training_rows_or_images_only_and_as_strong_as_asked(dealt):
    sent = sent_by(dealt)
    changes = sent.changes(ODC())
    clean, noisy, twice = (sent.turned(changes, noise=s) for s in (0.0, 0.5, 1.0))
    assert np.std(noisy.rows - clean.rows) == pytest.approx(0.5, rel=0.15)
    np.testing.assert_array_equal(noisy.tests[0][0], clean.tests[0][0])
    np.testing.assert_allclose(twice.rows - clean.rows, 2 * (noisy.rows - clean.rows))
    other = replace(sent, dealt=replace(dealt, repeat=4)).turned(changes, noise=0.5)
    assert not np.allclose(other.rows, noisy.rows)
    # on images it turns the alignment, and only least squares stretch it
    sent = sent_by(dealt, span_condition="samespan_orth")
    noisy = on_images(sent, noise=1.0)
    assert noisy.rows is sent.rows
    assert np.linalg.norm(noisy.changes(ODC())["p1"] - sent.changes(ODC())["p1"]) > 0.05
    assert stretch(noisy.changes(ODC())) == pytest.approx(1)
    assert stretch(sent_by(dealt).changes(Imakura())) > 2


def test_the_papers_sigma_is_for_a_sensitivity_of_one_and_the_honest_for_twice_the_radius(dealt):
    assert papers_scale(8.0) == pytest.approx(0.480014, abs=1e-6)
    ball = Ball(centre=np.zeros(2), radius=3.0)
    assert ball.noise(epsilon=8, delta=1e-3) == pytest.approx(6 * papers_scale(8.0))
    assert ours_honest_dp.DELTA <= 1 / (10 * ours_honest_dp.ROWS)
    public = np.random.default_rng(5).normal(loc=2, size=(41, 8))
    ball = Ball.of(public)  # half of the public rows fit into it, and clipped rows all do
    assert np.sum(np.linalg.norm(public - ball.centre, axis=1) <= ball.radius) == 21
    clipped = ball.dealt(dealt)
    for rows in [clipped.test_rows, *(rows for rows, _ in clipped.parties.values())]:
        assert np.linalg.norm(rows, axis=1).max() <= ball.radius * (1 + 1e-12)


def test_released_coordinates_tell_people_apart_and_a_colluder_rebuilds_them(monkeypatch):
    rng = np.random.default_rng(1)
    centres = rng.uniform(0, 255, size=(10, 16))
    pixels = np.repeat(centres, 8, axis=0) + rng.normal(scale=20, size=(80, 16))
    numbers = np.repeat(np.arange(10), 8)
    made = Faces(pixels=np.clip(pixels, 0, 255).astype(np.uint8), people=numbers, male=numbers % 2)
    monkeypatch.setitem(table_10.LOADERS, "olivetti", lambda: made)
    monkeypatch.setitem(table_10.COMPONENTS, "olivetti", 5)
    monkeypatch.setitem(table_10.DIRECTIONS, "olivetti", 4)
    found = table_10.run(data="olivetti", repeat=0)
    assert found[f"orthonormal basis, l = 5/{table_10.COSINE}"] > 0.95
    rebuilt = f"orthonormal basis, l = 5/rebuilt by a colluder, {table_10.LEARNED}"
    assert found[rebuilt] == pytest.approx(found[f"original/{table_10.LEARNED}"], abs=0.05)
    assert all(0 <= value <= 1 for value in found.values())
