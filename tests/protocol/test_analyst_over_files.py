"""A run over files: stopped anywhere it goes on, and its memory does not grow with the parties."""

import io
import os
import tracemalloc
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bundle.payloads import announced, put
from cobasis import GOPP, ODC, Analyst, Imakura, Kawakami, Whitened, align, numeric_features
from cobasis.algorithms import images
from cobasis.algorithms.images import View
from cobasis.bundle import folders
from cobasis.bundle.folders import FitFolder, UploadFolder
from cobasis.cli.options import shown
from cobasis.errors import AnotherRunError
from cobasis.progress import silent
from protocol.consortium import NONE, SEEDED, agree

N_PARTIES = 60


def agreement_of(n_parties):
    return agree(
        SEEDED,
        parties=tuple(f"party-{number:06d}" for number in range(n_parties)),
        **NONE,
        features=numeric_features(f"f{column}" for column in range(40)),
        n_anchor_rows=40,
        n_components=4,
    )


def align_folder(uploads, *, aligner, to, report=silent):
    folder = UploadFolder(uploads)
    with FitFolder(to) as fits:
        told = {"aligner": aligner, "report": report, "fits": fits, "uploads": folder}
        return Analyst(agreement_of(len(folder)), **told).align()


@pytest.fixture(scope="module")
def uploads(tmp_path_factory):
    """A folder of uploads that see one span, and a little of their own, by turned bases."""
    agreement, rng = agreement_of(N_PARTIES), np.random.default_rng(0)
    seen, folder = rng.normal(size=(40, 4)), tmp_path_factory.mktemp("uploads")
    for number, party in enumerate(agreement.parties):
        turned = seen[:, rng.permutation(4)] * rng.choice([-1, 1], size=4)
        image = turned + 0.01 * seen[rng.permutation(40)]
        told = {"image": image, "agreement_digest": agreement.digest(), "simulated": True}
        upload = announced(party, n_rows=1, **told)
        put(upload, folder / f"{number:06d}.safetensors", precision="fp32")
    return folder


@pytest.fixture(autouse=True)
def small_batches_and_shards(monkeypatch):
    """Three parties are read together, and nine written, so that sixty are many."""
    monkeypatch.setattr(images, "BATCH_BYTES", 4000)
    monkeypatch.setattr(folders, "SHARD_BYTES", 1000)


def in_memory(uploads, aligner):
    found = UploadFolder(uploads)
    return align(aligner, {name: found[name].anchor_image[:] for name in found})


class Stopper:
    def __init__(self, step="", done=0):
        self.at, self.told = (step, done), []

    def __call__(self, step, done, total):
        self.told.append((step, done, total))
        if (step, done) == self.at:
            raise KeyboardInterrupt


def test_iterations_are_counted_as_passes_and_share_one_bar(tmp_path, uploads):
    told = Stopper()
    align_folder(uploads, aligner=GOPP(), to=tmp_path / "fits", report=told)
    steps = list(dict.fromkeys(step for step, _, _ in told.told))
    passes = [f"making the target, pass {number}" for number in range(2, len(steps))]
    assert steps == ["making the target", *passes, "fitting"]
    assert len(passes) > 3
    console = Console(file=io.StringIO(), width=100)
    with shown(console) as report:
        for each in told.told:
            report(*each)
    first, second = console.file.getvalue().strip().splitlines()
    assert first.startswith(passes[-1])
    assert second.startswith("fitting")


STOPS = [("making the target", 1), ("fitting", 1), ("", 0), ("fitting", 41)]  # and not at all
STOPPED = [(ODC(), stop) for stop in STOPS]
STOPPED += [(each, STOPS[-1]) for each in (Whitened(), GOPP(), Imakura(), Kawakami())]


@pytest.mark.parametrize(("aligner", "stop"), STOPPED, ids=repr)
def test_after_ctrl_c_the_same_call_goes_on_and_ends_as_arrays_do(tmp_path, uploads, aligner, stop):
    with pytest.raises(KeyboardInterrupt) if stop[1] else nullcontext():
        align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=Stopper(*stop))
    fitted = len(FitFolder(tmp_path / "fits"))
    assert fitted >= stop[1] - 2  # all but a batch, where fits had begun
    again = Stopper()
    found = align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=again)
    expected = in_memory(uploads, aligner)
    np.testing.assert_allclose(found.target.rows, expected.target.rows, rtol=0, atol=1e-12)
    assert found.target.shaped_by == expected.target.shaped_by
    assert list(found.fits) == list(expected.fits)
    for name, change in found.changes_of_basis.items():
        np.testing.assert_allclose(change, expected.changes_of_basis[name], rtol=0, atol=1e-12)
    read = [done for step, done, _ in again.told if step == "fitting"]
    assert read == [*range(fitted, N_PARTIES + 1)]
    if stop[0] != "making the target":
        assert {step for step, _, _ in again.told} == {"fitting"}


@pytest.mark.parametrize("spoil", [Path.unlink, partial(os.truncate, length=100)])
def test_fits_without_their_target_are_not_gone_on_with(tmp_path, uploads, spoil):
    align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    spoil(tmp_path / "fits" / "target.safetensors")
    with pytest.raises(AnotherRunError, match="not the target that they were made to"):
        align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")


class Counted(dict):
    n_fits = 0

    def update(self, fits):
        self.n_fits += len(fits)


def test_ten_times_the_parties_take_hardly_more_memory():
    """Simulated, without files, into a sink that only counts; 100,000 at full size do the same."""
    seen, peaks = np.random.default_rng(0).normal(size=(64, 8)), []
    for n_parties in (100, 1_000):
        names, sink = dict.fromkeys(map(str, range(n_parties))), Counted()
        tracemalloc.start()
        align(ODC(), View(names, read=lambda name: np.roll(seen, int(name) % 8, axis=1)), sink=sink)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert sink.n_fits == n_parties
    assert peaks[1] - peaks[0] < 1e6  # all images are 3.7 MB more
