"""A run that is stopped anywhere goes on where it stopped, and ends as if it had not been."""

import io
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cobasis import GOPP, ODC, Analyst, Imakura, Kawakami, Whitened, align
from cobasis.algorithms import images
from cobasis.bundle.folders import FitFolder, StateFolder, UploadFolder
from cobasis.cli.bar import shown
from cobasis.disk.tensors import read_header
from cobasis.errors import AnotherRunError, FileChangedError, StepError
from protocol.upload_folders import agreement_of, align_folder, run_child, write_folder

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


@pytest.mark.parametrize("aligner", ALIGNERS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("stop", [("making the target", 1), ("fitting", 1), ("fitting", 41)])
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


@pytest.mark.parametrize(
    ("stop", "step", "count"),
    [
        ("SIGKILL", "making the target", 1),
        ("SIGKILL", "fitting", 1),
        ("SIGKILL", "fitting", 35),
        ("SIGINT", "fitting", 35),
        ("SIGKILL", "fsync", 1),
        ("SIGKILL", "fsync", 2),
        ("SIGKILL", "fsync", 3),
        ("SIGKILL", "fsync", 4),
    ],
    ids=str,
)
def test_after_a_kill_at_any_moment_the_same_call_ends_the_same(
    tmp_path, uploads, stop, step, count
):
    """fsync: in the middle of writing the target, the first or second shard."""
    to = tmp_path / "fits"
    done = run_child(uploads, to, stop=stop, step=step, count=count)
    assert done.returncode in {-9, -2}
    assert "done" not in done.stdout
    for path in to.glob("*.safetensors"):
        assert read_header(path).places  # what has its name is whole
    found = align_folder(uploads, aligner=ODC(), to=to)
    assert_same(found, in_memory(uploads, ODC()))
    assert [path.name for path in to.glob("*.part")] == []


@pytest.mark.parametrize(("stop", "kept"), [("SIGINT", range(33, 50)), ("SIGKILL", range(25, 50))])
def test_ctrl_c_loses_the_batches_under_way_and_a_kill_the_shard_under_way(
    tmp_path, uploads, stop, kept
):
    done = run_child(uploads, tmp_path / "fits", stop=stop, step="fitting", count=50)
    assert done.returncode in {-9, -2}
    fits = FitFolder(tmp_path / "fits")
    assert len(fits) in kept
    assert StateFolder(tmp_path / "fits")["target"][1]["shaped_by"] == ["party-000000"]


def test_a_finished_run_is_read_back_without_reading_an_image(tmp_path, uploads):
    first = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    again = Stopper()
    second = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits", report=again)
    assert again.told == [("fitting", N_PARTIES, N_PARTIES)]
    assert_same(second, first)


def test_an_upload_that_changes_between_target_and_fit_stops_the_run(tmp_path):
    write_folder(tmp_path / "uploads", n_parties=5)

    def report(step, done, _):
        if (step, done) == ("fitting", 0):
            os.utime(tmp_path / "uploads" / "000002.safetensors", ns=(0, 1))

    with pytest.raises(FileChangedError, match="party 'party-000002'"):
        align_folder(tmp_path / "uploads", aligner=ODC(), to=tmp_path / "fits", report=report)


@pytest.mark.parametrize("spoil", [Path.unlink, partial(os.truncate, length=100)])
def test_fits_without_their_target_are_not_gone_on_with(tmp_path, uploads, spoil):
    align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    spoil(tmp_path / "fits" / "target.safetensors")
    with pytest.raises(AnotherRunError, match="not the target that they were made to"):
        align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")


def test_without_an_upload_there_is_nothing_to_align():
    agreement = agreement_of(n_parties=1)
    with pytest.raises(StepError, match="no upload is in"):
        Analyst(agreement, uploads={}).align()


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
