"""On a Dask cluster of two processes the same models come from the same partitions."""

import os
import signal
import socket
import sys
from threading import Timer
from types import SimpleNamespace

import numpy as np
import pytest

from cobasis.engine.cluster import _address, fit_trees_there, there
from cobasis.engine.training import train_partitions
from cobasis.engine.training_passes import TurnedRows
from cobasis.errors import MissingExtraError, OptionError, PartitionError
from cobasis.progress import silent
from engine.partitioned import aligned_rows

CLASSES = {"task": "classification", "seed": 0}


def rows_and_labels(n_rows=1200):
    rng = np.random.default_rng(0)
    rows = (rng.exponential(size=(n_rows, 5)) - 0.8) * [4.0, 2.0, 1.0, 0.5, 0.3]
    return rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0.5).astype(np.int64)


@pytest.fixture(scope="module")
def client():
    """Two workers in processes of their own; they and the client end with the tests."""
    from distributed import Client, LocalCluster  # noqa: PLC0415 -- only these tests need it

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    return aligned_rows(tmp_path_factory.mktemp("cluster"), *rows_and_labels())


@pytest.mark.parametrize(
    "model",
    ["logistic", *(pytest.param(each, marks=pytest.mark.soak) for each in ("ridge", "rff"))],
)
def test_linear_models_are_the_same_to_rounding(client, aligned, model):
    """The same sums in the same order: tolerance 1e-12."""
    afar = train_partitions(aligned, model=model, **CLASSES, cluster=client)
    here = train_partitions(aligned, model=model, **CLASSES)
    found, known = (
        each.estimator[-1] if model == "rff" else each.estimator for each in (afar, here)
    )
    np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-12)
    np.testing.assert_allclose(afar.axes, here.axes, atol=1e-12)


def test_trees_on_two_workers_predict_as_those_on_one_machine(client, aligned):
    """Likelihoods within 0.02 on average, and 98 % of labels."""
    options = {"model": "boosted_trees", **CLASSES, "max_passes": 15}
    afar = train_partitions(aligned, **options, cluster=client)
    here = train_partitions(aligned, **options)
    rows, labels = rows_and_labels()
    found, known = (each.scores(rows, method="predict_proba") for each in (afar, here))
    assert np.mean(np.abs(found - known)) < 0.02
    assert np.mean(afar.predict(rows) == here.predict(rows)) > 0.98
    assert np.mean(afar.predict(rows) == labels) > 0.95


def test_a_partition_that_a_worker_cannot_use_is_the_same_error(client, tmp_path):
    damaged = aligned_rows(tmp_path, *rows_and_labels(90))
    (damaged.path / damaged.partitions[1].name).unlink()
    with pytest.raises(PartitionError, match="part-00001"):
        train_partitions(damaged, model="ridge", **CLASSES, cluster=client)


def test_mini_batches_are_refused_on_a_cluster(client, aligned):
    with pytest.raises(OptionError, match="one mini-batch after the other"):
        train_partitions(aligned, model="mlp", **CLASSES, cluster=client)


def test_more_workers_than_partitions_are_refused(client, tmp_path):
    one = aligned_rows(tmp_path, *rows_and_labels(90), n_partitions=1)
    with pytest.raises(OptionError, match="2 workers for 1 partitions"):
        train_partitions(one, model="boosted_trees", **CLASSES, cluster=client)


def test_what_is_no_client_is_refused(aligned):
    with pytest.raises(OptionError, match="cluster=str is no cluster"):
        train_partitions(aligned, model="ridge", **CLASSES, cluster="tcp://here")


def test_without_distributed_the_extra_is_named(aligned, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cobasis\[dask\]'"):
        train_partitions(aligned, model="ridge", **CLASSES, cluster="tcp://here")


def test_a_worker_that_fails_while_boosting_does_not_leave_the_others_waiting(client, tmp_path):
    damaged = aligned_rows(tmp_path, *rows_and_labels())
    (damaged.path / damaged.partitions[1].name).unlink()
    rows = TurnedRows(aligned=damaged, axes=np.eye(5))
    options = {"task": "classification", "seed": 0, "max_rounds": 2}
    with pytest.raises(PartitionError, match="part-00001"):
        fit_trees_there(rows, client=client, over=there(damaged, client, report=silent), **options)
    whole = aligned_rows(tmp_path / "again", *rows_and_labels())
    fitted = train_partitions(whole, model="boosted_trees", **CLASSES, cluster=client, max_passes=2)
    assert fitted.estimator.raw.size


def test_few_results_of_a_pass_are_under_way_however_many_partitions_there_are(client, tmp_path):
    """Two for each of two threads, and what the client has just let go."""
    many = aligned_rows(tmp_path, *rows_and_labels(90), n_partitions=30)
    before, most, results = set(client.futures), 0, []
    for result in there(many, client, report=silent)(abs):
        results.append(result)
        most = max(most, len(set(client.futures) - before))
    assert results == list(range(30))
    assert 0 < most <= 8


def scheduler_at(address):
    return SimpleNamespace(scheduler=SimpleNamespace(address=address))


def test_a_scheduler_may_be_reached_by_either_kind_of_address(monkeypatch):
    asked = []

    class Probe:
        def __init__(self, family, _):
            asked.append(family)

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = connect = lambda *_: None

        def getsockname(self):
            return ("::1" if asked[-1] == socket.AF_INET6 else "127.0.0.1", 9)

    monkeypatch.setattr(socket, "socket", Probe)
    assert _address(scheduler_at("tcp://[::1]:8786")) == "::1"
    assert _address(scheduler_at("tcp://127.0.0.1:8786")) == "127.0.0.1"


def test_a_scheduler_that_is_not_found_is_named(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OptionError, match="no way to its scheduler 'nowhere'"):
        _address(scheduler_at("tcp://nowhere:8786"))


def test_a_worker_that_dies_while_boosting_ends_it(client, tmp_path):
    """The last test: the worker that dies is the cluster's."""
    noise = np.random.default_rng(0).integers(0, 2, 1200)
    whole = aligned_rows(tmp_path, rows_and_labels()[0], noise)
    rows = TurnedRows(aligned=whole, axes=np.eye(5))
    options = {"task": "classification", "seed": 0, "max_rounds": 1_000_000}
    victim = next(iter(client.run(os.getpid).values()))
    killing = Timer(2.0, os.kill, (victim, signal.SIGKILL))
    killing.start()
    with pytest.raises(OptionError, match="lost 1 of 2 workers"):
        fit_trees_there(rows, client=client, over=there(whole, client, report=silent), **options)
    killing.join()
