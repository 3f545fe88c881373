"""The table of model families: what each can do, and what it is built with."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cobasis.errors import OptionError, RowCarryingError
from cobasis.models import ModelName
from cobasis.models.families import EARLY_STOPPING_ROWS, FAMILIES, family
from cobasis.models.trainer import refuse_model, train

TASKS = ("classification", "regression")


def test_the_table_has_a_row_for_every_name_an_agreement_can_hold():
    assert tuple(FAMILIES) == get_args(ModelName)
    assert [name for name, row in FAMILIES.items() if row.carries_rows] == ["svm"]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("task", TASKS)
def test_a_family_fits_and_predicts_the_tasks_it_names_and_refuses_others(name, task, monkeypatch):
    if task not in FAMILIES[name].tasks:
        with pytest.raises(OptionError, match=rf"'{name}' is no family for {task}.*\[CB107\]$"):
            family(name, task)
        return
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4))
    labels = rows[:, 0] if task == "regression" else (rows[:, 0] > 0).astype(int)
    row, quick = FAMILIES[name], {"mlp": {"tol": 1e-2}, "boosted_trees": {"max_iter": 10}}
    if row.build is not None:
        estimator = row.build(task, len(rows), 0)
        assert set(row.grid) <= set(estimator.get_params())
        build = lambda *told: row.build(*told).set_params(**quick.get(name, {}))  # noqa: E731
        monkeypatch.setitem(FAMILIES, name, replace(row, build=build, grid={}))
    if row.carries_rows:
        with pytest.raises(RowCarryingError):
            refuse_model(name, task)
    else:
        refuse_model(name, task)
    fitted = train(rows, labels, model=name, task=task, seed=0, allow_row_carrying=True)
    found = fitted.predict(rows)
    score = np.corrcoef(found, labels)[0, 1] if task == "regression" else np.mean(found == labels)
    assert score > 0.7
    if task == "classification":
        method = "predict_proba" if row.likely else "decision_function"
        assert len(fitted.scores(rows, method=method)) == 60


def test_an_unknown_family_is_refused_with_the_list_of_known_ones():
    with pytest.raises(OptionError, match="logistic, ridge, mlp, rff, boosted_trees, xgboost, svm"):
        family("Ridge", "classification")
    with pytest.raises(OptionError):
        family("ridge", "representation")


@pytest.mark.parametrize("name", ["mlp", "boosted_trees"])
@pytest.mark.parametrize("task", TASKS)
def test_nothing_stops_early_under_two_hundred_rows(name, task):
    """A fold of five trains on four fifths of the rows, and they have to be 200 too."""
    assert EARLY_STOPPING_ROWS == 200
    built = {rows: FAMILIES[name].build(task, rows, 0) for rows in (10, 199, 249, 250, 5000)}
    stops = {rows: each.get_params()["early_stopping"] for rows, each in built.items()}
    assert stops == {10: False, 199: False, 249: False, 250: True, 5000: True}


@pytest.mark.parametrize("name", ["mlp", "boosted_trees"])
def test_what_is_random_in_a_family_follows_the_seed(name):
    built = FAMILIES[name].build("classification", 100, 17)
    seeds = [value for key, value in built.get_params().items() if key.endswith("random_state")]
    assert 17 in seeds
