"""Cells of one round: one process measures them one after another, and makes uploads once."""

import gc
import weakref
from collections import Counter

import numpy as np
import pytest
from experiments.harness import uploads
from experiments.harness.runner import Run, Task, ordered, waiting
from experiments.harness.store import Results
from experiments.harness.study import but, load, names
from experiments.harness.systems import Dealt
from experiments.harness.uploads import kept
from experiments.studies import v1_figs
from rich.console import Console

SHARING = {name for name in names() if load(name).round_of}


class Table:
    """Something that is made, and can be watched."""


def test_the_last_round_is_kept_and_dropped_before_the_next_is_made():
    made, watched = [], []

    def make(data, repeat):
        gc.collect()
        made.append((data, repeat, [before() is None for before in watched]))
        return Table()

    first = kept(make, "mnist", 0)
    watched.append(weakref.ref(first))
    assert kept(make, "mnist", 0) is first
    del first
    kept(make, "mnist", 1)
    kept(make, "mnist", 0)
    assert made == [("mnist", 0, []), ("mnist", 1, [True]), ("mnist", 0, [True])]
    assert kept(lambda *_: "another study's", "mnist", 0) == "another study's"


def task(study, at, shared="", *, expected=1.0, repeat=0):
    return Task(study=study, settings={"at": at}, repeat=repeat, expected=expected, shared=shared)


def test_cells_of_one_round_stand_together_and_count_as_one():
    tasks = [
        task("a", 1, "x", expected=2),
        task("b", 1, expected=5),
        task("a", 2, "y", expected=1),
        task("a", 3, "x", expected=4),
        task("a", 4, "y", expected=1),
        task("a", 5, "x", repeat=1),
    ]
    assert [(each.study, each.settings["at"]) for each in ordered(tasks)] == [
        *[("a", 2), ("b", 1), ("a", 4), ("a", 1), ("a", 3), ("a", 5)]
    ]


class At:
    """A process, by what it is at."""

    def __init__(self, task=None):
        self.task = task


def test_a_process_goes_on_with_its_round_and_leaves_another_ones():
    x, y = [task("a", at, "x") for at in (1, 2)], [task("a", at, "y") for at in (3, 4)]
    begun = Run(rest=[*x, *y], kept={}, until=float("inf"), console=Console())
    first, second = At(), At()
    first.task = begun.next([first, second])
    second.task = begun.next([first, second])
    assert (first.task, second.task) == (x[0], y[0])
    second.task = None
    second.task = begun.next([first, second])
    assert second.task is y[1]
    second.task = None
    assert begun.next([first, second]) is x[1]  # nothing else is left


def test_every_repeat_is_a_round_of_its_own(monkeypatch, tmp_path, toys):
    study = toys(round_of=but("condition"), repeats=2)
    monkeypatch.setattr("experiments.harness.runner.load", lambda _: study)
    monkeypatch.setattr("experiments.harness.store.RECORDED", tmp_path)
    tasks = waiting(["toy"], None, {"toy": Results("toy", folder=tmp_path)})
    assert len({each.round for each in tasks}) == 2 * 2  # data sets, repeats
    study = toys()
    tasks = waiting(["toy"], None, {"toy": Results("toy", folder=tmp_path)})
    assert len({each.round for each in tasks}) == len(tasks)


def test_gopp_takes_the_uploads_that_other_methods_had():
    assert {"table_07_tdc", "table_09", "table_15", "table_16", "v1_figs"} == SHARING
    for name in SHARING - {"v1_figs"}:
        study = load(name)
        own = [cell for cell in study.cells if "gopp" in cell.values()]
        others = [study.round_of(cell) for cell in study.cells if cell not in own]
        assert own
        assert {study.round_of(cell) for cell in own} <= set(others)
        assert len(set(others)) == len(others)


@pytest.mark.parametrize("name", sorted(SHARING))
def test_cells_that_are_said_to_share_a_round_ask_for_the_same_uploads(name, monkeypatch):
    class Asked(Exception):  # noqa: N818 -- it is what the cell asks for, and no error
        """A cell asks for uploads, and gets no further."""

    def ask(*which):
        raise Asked(which)

    study = load(name)
    monkeypatch.setattr(f"experiments.studies.{name}.kept", ask)
    cells = [(study.round_of(settings), settings) for settings in study.cells]
    shared = [each for each, count in Counter(at for at, _ in cells).items() if count > 1]
    asked = {at: set() for at in shared}
    for at, settings in cells:
        if at in asked:
            with pytest.raises(Asked) as raised:
                study.run(settings, repeat=0)
            asked[at].add(raised.value.args)
    assert shared
    assert {len(each) for each in asked.values()} == {1}
    assert len(set.union(*asked.values())) == len(shared)


def test_noise_of_every_strength_is_put_on_one_rounds_rows_rescaled_or_not(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    rows, labels = rng.random((150, 9)), np.arange(150) % 2
    parties = {f"p{i}": (rows[40 * i : 40 * i + 40], labels[:40]) for i in range(3)}
    dealt = Dealt(parties=parties, test_rows=rows[120:], test_labels=labels[120:])
    for name, value in {"ANCHOR": 40, "COMPONENTS": 4}.items():
        monkeypatch.setattr(v1_figs, name, value)
    monkeypatch.setattr(v1_figs, "deal_images", lambda *_, **__: dealt)
    made, sizes, real, judged = [], [], v1_figs.uploads, v1_figs.judged
    monkeypatch.setattr(v1_figs, "uploads", lambda *a, **k: made.append(k) or real(*a, **k))

    def watched(shared, **how):
        sizes.append(float(np.sqrt(np.mean(shared.rows**2))))
        return judged(shared, **how)

    monkeypatch.setattr(v1_figs, "judged", watched)
    cells = [
        {"data": "mnist", "sweep": f"{sweep}{scale}", "at": at}
        for sweep, at in (("l", 4), ("epsilon", 2), ("epsilon", 64), ("c", 50))
        for scale in ("", v1_figs.RESCALED)
    ]
    assert len({load("v1_figs").round_of(cell) for cell in cells}) == 1
    found = [v1_figs.run(cell, repeat=0) for cell in cells]
    assert len(made) == 1
    printed, fair, *_ = found
    assert {name.replace(v1_figs.RESCALED, "") for name in fair} == {
        name for name in printed if not name.startswith("odc")
    }
    noisy, clean = np.reshape(sizes[:10], (-1, 2)).T  # imakura, kawakami, odc; the two rescaled
    assert np.all(noisy > clean)
    assert (noisy / clean)[3:] == pytest.approx((noisy / clean)[:2])
    assert np.all(clean[3:] > 2 * clean[:2])
    for cell, values in zip(cells, found, strict=True):
        uploads._last.clear()
        assert v1_figs.run(cell, repeat=0) == values
    v1_figs.run({"data": "mnist", "sweep": "l", "at": 3}, repeat=0)
    assert made[-1]["n_components"] == 3
