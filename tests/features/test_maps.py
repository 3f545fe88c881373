import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from cobasis.features.contract import CategoryFeature, NumericFeature, numeric_features
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, Mixed, RandomFourier, map_problems, turn_of, width_under

AGE = NumericFeature(name="age", centre=50, scale=10, low=18, high=98)
SEX = CategoryFeature(name="sex", values=("f", "m"))


def test_the_map_of_columns_reaches_from_minus_one_to_one_and_needs_a_range():
    turn = turn_of(Columns(), [AGE, SEX])
    people = pl.DataFrame({"age": [18.0, 58.0, 98.0], "sex": ["f", "m", "m"]})
    table = encode(people, [AGE, SEX], party="a")
    np.testing.assert_allclose(turn.apply(table), [[-1, 1, 0], [0, 0, 1], [1, 0, 1]], atol=1e-15)
    [problem] = map_problems(Columns(), numeric_features(["pulse"]))
    assert "'pulse' has no range" in problem


FIRST_WAVES = [-0.639637, -0.528468]


def test_random_features_have_length_one_give_the_kernel_and_never_change():
    turn = turn_of(RandomFourier(n_waves=5_000, bandwidth=2.0, seed=7), numeric_features("ab"))
    rows = np.array([[0.0, 0.0], [1.0, -1.0], [50.0, 3.0]])
    mapped = turn.apply(rows)
    np.testing.assert_allclose(np.sum(mapped**2, axis=1), 1.0, rtol=1e-13)
    distances = np.sum((rows[:, None] - rows) ** 2, axis=2)
    np.testing.assert_allclose(mapped @ mapped.T, np.exp(-distances / 8), atol=0.06)
    told = turn_of(RandomFourier(n_waves=2, bandwidth=1.0, seed=7), numeric_features("ab"))
    assert told.weights[0, :2].round(6).tolist() == FIRST_WAVES


def test_the_mixed_map_is_normal_scores_in_waves_beside_hats_at_knots():
    """Against scipy's interpolation, and made of shares that many rows have alike."""
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.exponential(size=400), rng.integers(0, 3, size=400)])
    each = Mixed.from_public_rows(
        table, pieces=8, n_waves=40, bandwidth=1.5, columns_per_wave=1, seed=1
    )
    features = numeric_features("ab")
    turn = turn_of(each, features)
    rows = np.vstack([table[:50], [[-5.0, 0.5], [1e3, 9.0]]])
    mapped = turn.apply(rows)
    assert mapped.shape == (52, width_under(each, features))
    np.testing.assert_allclose(np.sum(mapped[:, :80] ** 2, axis=1), 1.0, rtol=1e-12)
    hats, at = np.sqrt(2) * mapped[:, 80:], 0
    for column, own in enumerate(each.knots):
        places = np.unique(own)
        for number in range(1, len(places)):
            hat = np.interp(rows[:, column], places, np.eye(len(places))[number])
            np.testing.assert_allclose(hats[:, at], hat, atol=1e-8)
            at += 1
    assert at == hats.shape[1] == 8 + 2
    # a wave is of one column: a change of the other leaves it, and both are used
    moved = turn.apply(rows + np.array([0.3, 0.0]))[:, :80] - mapped[:, :80]
    assert 0 < np.count_nonzero(np.abs(moved).max(axis=0) < 1e-9) < 80


def test_knots_of_other_columns_and_knots_that_fall_are_refused():
    one = Mixed(knots=((0.0, 1.0),))
    [problem] = map_problems(one, numeric_features("ab"))
    assert "has knots of 1 columns: encoded there are 2" in problem
    with pytest.raises(ValidationError, match="do not rise"):
        Mixed(knots=((1.0, 1.0),))
