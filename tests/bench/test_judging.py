"""A denominator is the best there is, and a quiet time counts where it was quiet."""

from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest
from benchmarks import busy, party_table, second_core, threads


def test_a_busy_goal_counts_where_the_quiet_time_was_quiet():
    slower = {"ours": 2.0, "scipy loop": 50.0}
    ours, theirs = busy.judged(slower, where="")
    assert (ours["verdict"], theirs["verdict"]) == ("met", "no goal")
    assert busy.judged(slower | {"ours": 3.1}, where="")[0]["verdict"] == "missed"


@pytest.mark.parametrize("free", [0, 6])
def test_a_busy_goal_does_not_count_where_fewer_rounds_were_quiet(free, monkeypatch):
    answers = chain([1.99] * free, repeat(1.2))
    monkeypatch.setattr(second_core, "reached", lambda: next(answers))
    monkeypatch.setattr(busy, "SHAPE_QUICK", {"a": 40, "l": 3, "c": 4})
    found = busy.measure(quick=True)
    assert found["load_before_quiet"] >= 0
    assert [each["verdict"] for each in found["goals"]] == ["not measured"] * 2
    told = f"1.9x to 2.1x in {free} of {second_core.MOST} rounds, and 7 were wanted"
    assert told in found["goals"][0]["where"]


def test_rounds_count_where_the_second_core_was_free_until_there_are_enough(monkeypatch):
    answers = iter([1.89, 1.9, 1.0, 2.11, 1.95, 1.99])
    monkeypatch.setattr(second_core, "reached", lambda: next(answers))
    called = []
    calls = {name: partial(called.append, name) for name in ("one", "two")}
    found = second_core.in_free_rounds(calls, wanted=2)
    assert found.controls == [1.89, 1.9, 1.0, 2.11, 1.95]
    assert {name: len(runs) for name, runs in found.runs.items()} == {"one": 2, "two": 2}
    assert found.told == "control at 1.9x to 2.1x in 2 of 5 rounds"
    assert called == ["one", "two", "two", "one", "one", "two"]  # once before, then in turns


def test_two_threads_are_judged_by_the_rounds_that_count_and_not_by_too_few():
    point = {"a": 1, "l": 1, "c": 1, "told": "", "speed-up": {"median": 1.8}}
    assert threads.judged(point | {"runs": {"one": [1.0] * 9}}, rounds=9)["verdict"] == "met"
    few = threads.judged(point | {"runs": {"one": [1.0] * 8}}, rounds=9)
    assert few["verdict"] == "not measured"


def test_two_threads_are_timed_against_one_in_the_rounds_that_count(monkeypatch):
    answers = chain([1.99, 1.2, 1.95], repeat(1.99))
    monkeypatch.setattr(second_core, "reached", lambda: next(answers))
    monkeypatch.setattr(threads, "SHAPES", ({"a": 40, "l": 3, "c": 4},))
    [point] = threads.measure(quick=True)["points"]
    one, two = point["runs"]["one"], point["runs"]["two"]
    assert len(one) == len(two) == threads.ROUNDS_QUICK
    assert point["speed-up"]["median"] == pytest.approx(np.median(np.divide(one, two)))
    assert point["told"] == "control at 1.9x to 2.1x in 3 of 4 rounds"


def test_the_control_compares_two_threads_with_one(monkeypatch):
    monkeypatch.setattr(second_core, "HASHED", bytes(2**23))
    assert 0.2 < second_core.reached() < 5


def test_an_upload_is_compared_with_the_faster_of_two_reads(monkeypatch):
    took = {None: [2.0, 3.0], 10_000: [5.0, 4.0]}
    monkeypatch.setattr(party_table, "in_a_child", lambda *_, chunk, **__: {"result": took[chunk]})
    monkeypatch.setattr(party_table, "upload_once", lambda path: path)
    found = party_table.a_turn("table.parquet")
    assert (found["read"], found["read_cpu"]) == (2.0, 3.0)
    assert found["read, batches of 10,000 rows"] == pytest.approx(5.0)


@pytest.mark.parametrize("chunk", party_table.CHUNKS.values())
def test_a_read_reads_every_row(chunk, tmp_path):
    path = str(tmp_path / "table.parquet")
    party_table.make(path, 3000)
    assert party_table.read_once(path, chunk) == 3000
    assert all(each > 0 for each in party_table.a_read(path, chunk))
