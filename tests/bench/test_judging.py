"""A denominator is the best there is, and a quiet time counts where it was quiet."""

import pytest
from benchmarks import busy, party_table, threads


def test_a_busy_goal_counts_where_the_quiet_time_was_quiet():
    slower = {"ours": 2.0, "scipy loop": 50.0}
    ours, theirs = busy.judged(slower, control=1.95)
    assert (ours["verdict"], theirs["verdict"]) == ("met", "no goal")
    assert busy.judged(slower | {"ours": 3.1}, control=1.95)[0]["verdict"] == "missed"


def test_a_busy_goal_does_not_count_where_a_core_was_taken():
    found = busy.judged({"ours": 2.0, "scipy loop": 50.0}, control=1.5)
    assert [each["verdict"] for each in found] == ["not measured"] * 2
    assert "control reached 1.50x, not 1.9x; ours 2x" in found[0]["where"]


def test_the_control_is_asked_before_and_after_the_quiet_time(monkeypatch):
    answers = iter([1.99, 1.2])
    monkeypatch.setattr(busy, "control", lambda: next(answers))
    monkeypatch.setattr(busy, "SHAPE_QUICK", {"a": 40, "l": 3, "c": 4})
    found = busy.measure(quick=True)
    assert found["control"] == [1.99, 1.2]
    assert found["load_before_quiet"] >= 0
    assert found["goals"][0]["verdict"] == "not measured"


def test_the_control_compares_two_threads_with_one(monkeypatch):
    monkeypatch.setattr(threads, "HASHED", bytes(2**20))
    assert 0.2 < busy.control() < 5


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
