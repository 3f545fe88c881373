"""A run over files: stopped anywhere it goes on, and its memory does not grow with the parties."""

import io
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cobasis import GOPP, ODC, Imakura, Kawakami, Whitened, align
from cobasis.algorithms import images
from cobasis.bundle.folders import FitFolder, UploadFolder
from cobasis.cli.bar import shown
from cobasis.disk.tensors import read_header
from cobasis.errors import AnotherRunError
from protocol.upload_folders import (
    align_folder,
    measured,
    run_child,
    write_folder,
)

N_PARTIES = 60


@pytest.fixture(scope="module")
def uploads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all") / "uploads"
    write_folder(folder, n_parties=N_PARTIES)
    return folder


@pytest.fixture(autouse=True)
def small_batches_and_shards(monkeypatch):
    """Three parties are read together, and nine written, so that sixty are many."""
    monkeypatch.setattr(images, "BATCH_BYTES", 4000)
    monkeypatch.setattr(images, "LARGEST_BATCH", 4000)
    monkeypatch.setitem(FitFolder.__init__.__kwdefaults__, "shard_bytes", 1000)


def in_memory(uploads, aligner):
    found = UploadFolder(uploads)
    return align(aligner, {name: found[name].read_image() for name in found})


def assert_same(found, expected):
    assert list(found.fits) == list(expected.fits)
    np.testing.assert_allclose(found.target.rows, expected.target.rows, rtol=0, atol=1e-12)
    assert found.target.shaped_by == expected.target.shaped_by
    for name, each in expected.fits.items():
        change = found.fits[name].change_of_basis
        np.testing.assert_allclose(change, each.change_of_basis, rtol=0, atol=1e-12)


class Stopper:
    """A report that raises Ctrl-C at one point, and remembers what it was told."""

    def __init__(self, step="", done=0):
        self.at, self.told = (step, done), []

    def __call__(self, step, done, total):
        self.told.append((step, done, total))
        if (step, done) == self.at:
            raise KeyboardInterrupt


ALIGNERS = [ODC(), Whitened(), GOPP(), Imakura(), Kawakami()]


@pytest.mark.parametrize("aligner", ALIGNERS, ids=lambda each: type(each).__name__)
def test_a_folder_aligns_as_arrays_do(tmp_path, uploads, aligner):
    found = align_folder(uploads, aligner=aligner, to=tmp_path / "fits")
    assert_same(found, in_memory(uploads, aligner))
    assert found.aligner is aligner


def test_iterations_are_counted_as_passes_and_share_one_bar(tmp_path, uploads):
    told = Stopper()
    align_folder(uploads, aligner=GOPP(), to=tmp_path / "fits", report=told)
    steps = list(dict.fromkeys(step for step, _, _ in told.told))
    passes = [f"making the target, pass {number}" for number in range(2, len(steps))]
    assert steps == ["making the target", *passes, "fitting"]
    assert len(passes) > 3
    ends = {step: (done, total) for step, done, total in told.told if step in steps[:2]}
    assert set(ends.values()) == {(N_PARTIES, N_PARTIES)}
    console = Console(file=io.StringIO(), width=100)
    with shown(console) as report:
        for step, done, total in told.told:
            report(step, done, total)
    bars = console.file.getvalue().strip().splitlines()
    assert len(bars) == 2
    assert bars[0].startswith(passes[-1])
    assert bars[1].startswith("fitting")


STOPS = [("making the target", 1), ("fitting", 1), ("fitting", 41)]
STOPPED = [(ODC(), stop) for stop in STOPS] + [(each, STOPS[-1]) for each in ALIGNERS[1:]]


@pytest.mark.parametrize(("aligner", "stop"), STOPPED, ids=repr)
def test_after_ctrl_c_the_same_call_goes_on_and_ends_the_same(tmp_path, uploads, aligner, stop):
    stopper = Stopper(*stop)
    with pytest.raises(KeyboardInterrupt):
        align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=stopper)
    fitted = len(FitFolder(tmp_path / "fits"))
    again = Stopper()
    found = align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=again)
    assert_same(found, in_memory(uploads, aligner))
    read = [told for told in again.told if told[0] == "fitting"]
    assert read[0] == ("fitting", fitted, N_PARTIES)
    assert read[-1] == ("fitting", N_PARTIES, N_PARTIES)
    assert len(read) == 1 + N_PARTIES - fitted
    if stop[0] == "fitting":
        assert "making the target" not in {step for step, _, _ in again.told}


KILLS = {
    "in fitting": ("SIGKILL", "fitting", 50, range(25, 50)),  # it loses the shard under way
    "by Ctrl-C": ("SIGINT", "fitting", 50, range(33, 50)),  # it loses the batches under way
    "in writing a shard": ("SIGKILL", "fsync", 4, {0, 9}),
}


@pytest.mark.parametrize("where", KILLS)
def test_after_a_kill_at_any_moment_the_same_call_ends_the_same(tmp_path, uploads, where):
    stop, step, count, kept = KILLS[where]
    to = tmp_path / "fits"
    done = run_child(uploads, to, stop=stop, step=step, count=count)
    assert done.returncode in {-9, -2}
    assert "done" not in done.stdout
    for path in to.glob("*.safetensors"):
        assert read_header(path).places  # what has its name is whole
    assert len(FitFolder(to)) in kept
    found = align_folder(uploads, aligner=ODC(), to=to)
    assert_same(found, in_memory(uploads, ODC()))
    assert [path.name for path in to.glob("*.part")] == []


def test_a_finished_run_is_read_back_without_reading_an_image(tmp_path, uploads):
    first = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    again = Stopper()
    second = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits", report=again)
    assert again.told == [("fitting", N_PARTIES, N_PARTIES)]
    assert_same(second, first)


@pytest.mark.parametrize("spoil", [Path.unlink, partial(os.truncate, length=100)])
def test_fits_without_their_target_are_not_gone_on_with(tmp_path, uploads, spoil):
    align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    spoil(tmp_path / "fits" / "target.safetensors")
    with pytest.raises(AnotherRunError, match="not the target that they were made to"):
        align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")


def test_late_parties_and_leavers_change_nobody_elses_fit(tmp_path, uploads):
    """Fits to a target stay where they are; who is removed is left out of the view."""
    names = [f"party-{number:06d}" for number in range(N_PARTIES)]
    first = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits", removed=names[5:7])
    assert "party-000005" not in first.fits
    later = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits", removed=names[1:2])
    assert set(later.fits) == {*names} - {"party-000001"}
    assert len(FitFolder(tmp_path / "fits")) == N_PARTIES
    for name in set(first.fits) & set(later.fits):
        before, after = first.fits[name].change_of_basis, later.fits[name].change_of_basis
        np.testing.assert_array_equal(before, after)


FROM_FILES = """
import sys
from cobasis import ODC
from protocol.upload_folders import align_folder
found = align_folder(Path(sys.argv[1]), aligner=ODC(), to=Path(sys.argv[2]))
result = [len(found.fits), found.changes_of_basis["party-001999"].shape]
"""

WITHOUT_FILES = """
import sys
from collections.abc import Mapping
import numpy as np
from cobasis import ODC, align

class Simulated(Mapping):
    def __init__(self, n_parties):
        self.n_parties = n_parties
        self.seen = np.random.default_rng(0).normal(size=(64, 8))

    def __getitem__(self, party):
        return np.roll(self.seen, int(party) % 8, axis=1)

    def __iter__(self):
        return map(str, range(self.n_parties))

    def __len__(self):
        return self.n_parties

class Counted(dict):
    n_fits = 0

    def __setitem__(self, party, fit):
        self.n_fits += 1

    def update(self, fits):
        for party, fit in fits.items():
            self[party] = fit

sink = Counted()
align(ODC(), Simulated(int(sys.argv[1])), sink=sink)
result = sink.n_fits
"""


@pytest.mark.soak
def test_two_thousand_parties_of_400_megabytes_align_in_300(tmp_path):
    write_folder(tmp_path / "uploads", n_parties=2000, n_anchor_rows=1000, n_components=50)
    size = sum(path.stat().st_size for path in (tmp_path / "uploads").iterdir())
    assert size > 400e6
    result, peak = measured(FROM_FILES, tmp_path / "uploads", tmp_path / "fits")
    assert result == [2000, [50, 50]]
    assert peak < 300


def test_ten_times_the_parties_take_hardly_more_memory():
    """Simulated, without files, into a sink that only counts; 100,000 at full size do the same."""
    few, peak_of_few = measured(WITHOUT_FILES, 1_000)
    many, peak_of_many = measured(WITHOUT_FILES, 10_000)
    assert (few, many) == (1_000, 10_000)
    assert peak_of_many - peak_of_few < 20
