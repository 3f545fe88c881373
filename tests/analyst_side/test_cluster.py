"""On a Dask cluster of two processes the same models come from the same uploads."""

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import distributed
import numpy as np
import pytest

from aligned import aligned_rows, cut, parties, rows_and_labels
from cobasis.analyst_side import passes
from cobasis.analyst_side.passes import ClusterPasses, passes_for
from cobasis.errors import MissingExtraError, OptionError
from cobasis.models.trainer import train
from cobasis.progress import silent

CLASSES = {"task": "classification", "seed": 0}


@pytest.fixture(scope="module")
def over():
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        address = cluster.scheduler_address
        with passes_for("ridge", folder=Path(), cluster=address, report=silent) as found:
            yield found


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    return aligned_rows(tmp_path_factory.mktemp("cluster"), *rows_and_labels(1200), n_blocks=5)


def test_models_of_sums_are_the_same_to_rounding(over, aligned):
    """The same sums in the same order: tolerance 1e-12."""
    afar, here = (train(aligned, model="logistic", over=x, **CLASSES) for x in (over, None))
    for found, known in zip(afar.layers, here.layers, strict=True):
        if not isinstance(found, str):
            size = np.abs(known.weights).max()
            np.testing.assert_allclose(found.weights, known.weights, atol=1e-12 * size)


def test_a_worker_gets_paths_and_changes_of_basis_of_its_blocks_and_no_rows(tmp_path):
    uploads, alignment = parties(tmp_path, *rows_and_labels(4000), sizes=[3000, 997, 1, 1, 1])
    sent = cut(uploads, alignment.changes_of_basis, n_blocks=500).only([0])
    data = pickle.dumps(sent)
    assert len(data) < 10_000
    assert set(sent._uploads) < set(uploads)
    assert not [row for row in rows_and_labels(4000)[0][:50] if row.tobytes() in data]


def test_where_no_cluster_can_train_it_is_an_error_that_says_why(monkeypatch):
    def refused(error, words, *, model="ridge", at="tcp://127.0.0.1:1"):
        with (
            pytest.raises(error, match=words),
            passes_for(model, folder=Path(), cluster=at, report=silent),
        ):
            pass

    for model in ("mlp", "boosted_trees", "xgboost"):
        refused(OptionError, f"model='{model}' is not trained on a cluster", model=model)
    monkeypatch.setattr(passes, "_ANSWER_SECONDS", 1)
    for address in ("tcp://127.0.0.1:1", "no://where"):
        refused(OptionError, f"no cluster answers at '{address}'", at=address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(MissingExtraError, r"pip install 'cobasis\[dask\]'")


def _index(_, index):
    return index


KILLED = distributed.KilledWorker("a task", SimpleNamespace(address="tcp://there:9"), 3)


@pytest.mark.parametrize(
    ("error", "words"), [(KILLED, "lost its workers"), (TimeoutError(), "has no workers left")]
)
def test_a_pass_that_nobody_is_left_to_do_ends_in_words(aligned, error, words):
    client = mock.Mock(nthreads=dict)
    client.submit.return_value.result.side_effect = error
    with pytest.raises(OptionError, match=words):
        list(ClusterPasses(client=client)(_index, aligned, step="dying"))
