"""A run over files: stopped anywhere it goes on, also within a target that takes many iterations.

Its memory does not grow with the parties.
"""

import io
import itertools
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bundle.payloads import announced, put
from cobasis import (
    GOPP,
    ODC,
    Analyst,
    ConsortiumSecret,
    Imakura,
    Kawakami,
    Whitened,
    align,
    numeric_features,
)
from cobasis.algorithms import gopp, images
from cobasis.bundle import folders
from cobasis.bundle.folders import FitFolder, StateFolder, UploadFolder
from cobasis.cli.bar import shown
from cobasis.errors import AnotherRunError
from cobasis.progress import silent
from protocol.consortium import NONE, agree

N_PARTIES = 60


def agreement_of(n_parties, image_shape):
    """What the parties of a folder agreed on."""
    return agree(
        ConsortiumSecret(bytes(32), simulated=True),
        parties=tuple(f"party-{number:06d}" for number in range(n_parties)),
        **NONE,
        features=numeric_features(f"f{column}" for column in range(image_shape[0])),
        n_anchor_rows=image_shape[0],
        n_components=image_shape[1],
    )


def align_folder(uploads, *, aligner, to, report=silent):
    """Align the uploads of a folder, or go on with that."""
    folder = UploadFolder(uploads)
    agreement = agreement_of(len(folder), folder[next(iter(folder))].anchor_image.shape)
    with FitFolder(to) as fits:
        kept = {"fits": fits, "state": StateFolder(to)}
        return Analyst(agreement, aligner=aligner, uploads=folder, report=report, **kept).align()


def write_folder(folder, *, n_parties, image_shape=(40, 4), own=0.01):
    """Write uploads that see one span, and a little of their `own`, through turned bases."""
    agreement, rng = agreement_of(n_parties, image_shape), np.random.default_rng(0)
    seen, (height, width) = rng.normal(size=image_shape), image_shape
    folder.mkdir()
    for number, party in enumerate(agreement.parties):
        turned = seen[:, rng.permutation(width)] * rng.choice([-1, 1], size=width)
        image = turned + own * seen[rng.permutation(height)]
        told = {"image": image, "agreement_digest": agreement.digest(), "simulated": True}
        upload = announced(party, n_rows=1, **told)
        put(upload, folder / f"{number:06d}.safetensors", precision="fp32")


def measured(script, *arguments):
    """Run a script in a process of its own; return what `result` holds, and its peak in MiB."""
    ends = "\nprint(json.dumps([result, peak_bytes() / 2**20]))\n"
    starts = "import json\nfrom pathlib import Path\nfrom benchmarks.machine import peak_bytes\n"
    command = [sys.executable, "-c", starts + script + ends, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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
    monkeypatch.setattr(folders, "SHARD_BYTES", 1000)


def in_memory(uploads, aligner):
    found = UploadFolder(uploads)
    return align(aligner, {name: found[name].anchor_image[:] for name in found})


def assert_same(found, expected):
    assert list(found.fits) == list(expected.fits)
    np.testing.assert_allclose(found.target.rows, expected.target.rows, rtol=0, atol=1e-12)
    assert found.target.shaped_by == expected.target.shaped_by
    for name, each in expected.fits.items():
        change = found.fits[name].change_of_basis
        np.testing.assert_allclose(change, each.change_of_basis, rtol=0, atol=1e-12)
        assert change.dtype == np.float64


class Stopper:
    """A report that raises Ctrl-C at one point, and remembers what it was told."""

    def __init__(self, step="", done=0):
        self.at, self.told = (step, done), []

    def __call__(self, step, done, total):
        self.told.append((step, done, total))
        if (step, done) == self.at:
            raise KeyboardInterrupt


OTHERS = [Whitened(), GOPP(), Imakura(), Kawakami()]


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


STOPS = [("making the target", 1), ("fitting", 1), ("", 0), ("fitting", 41)]  # and not at all
STOPPED = [(ODC(), stop) for stop in STOPS] + [(each, STOPS[-1]) for each in OTHERS]


@pytest.mark.parametrize(("aligner", "stop"), STOPPED, ids=repr)
def test_after_ctrl_c_the_same_call_goes_on_and_ends_as_arrays_do(tmp_path, uploads, aligner, stop):
    with pytest.raises(KeyboardInterrupt) if stop[1] else nullcontext():
        align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=Stopper(*stop))
    fitted = len(FitFolder(tmp_path / "fits"))
    assert fitted >= stop[1] - 2  # all but a batch, where fits had begun
    again = Stopper()
    found = align_folder(uploads, aligner=aligner, to=tmp_path / "fits", report=again)
    assert_same(found, in_memory(uploads, aligner))
    read = [told for told in again.told if told[0] == "fitting"]
    assert read[0] == ("fitting", fitted, N_PARTIES)
    assert read[-1] == ("fitting", N_PARTIES, N_PARTIES)
    assert len(read) == 1 + N_PARTIES - fitted
    if stop[0] != "making the target":
        assert {step for step, _, _ in again.told} == {"fitting"}


@pytest.mark.parametrize("spoil", [Path.unlink, partial(os.truncate, length=100)])
def test_fits_without_their_target_are_not_gone_on_with(tmp_path, uploads, spoil):
    align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    spoil(tmp_path / "fits" / "target.safetensors")
    with pytest.raises(AnotherRunError, match="not the target that they were made to"):
        align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")


FEW = 12
STARTING = 1  # readings of all images before the first iteration


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Uploads of parties that have so much of their own that GOPP iterates."""
    folder = tmp_path_factory.mktemp("all") / "uploads"
    write_folder(folder, n_parties=FEW, own=1.0)
    return folder


@pytest.fixture
def iterated(unlike):
    target = in_memory(unlike, GOPP()).target
    assert target.iterations > 4
    return target


@pytest.fixture
def at_once(monkeypatch):
    """Every iteration is kept."""
    monkeypatch.setattr(gopp, "SECONDS", 0.0)


def stopped(uploads, to, *, in_pass):
    """Align until Ctrl-C at the first image of one pass."""
    stopper = Stopper(f"making the target, pass {in_pass}", 1)
    with pytest.raises(KeyboardInterrupt):
        align_folder(uploads, aligner=GOPP(), to=to, report=stopper)


def resumed(uploads, to, iterated):
    """Go on; return how many images were read for the target."""
    again = Stopper()
    found = align_folder(uploads, aligner=GOPP(), to=to, report=again).target
    np.testing.assert_array_equal(found.rows, iterated.rows)
    assert (found.iterations, found.converged) == (iterated.iterations, True)
    assert "iterate" not in StateFolder(to)
    return sum(step.startswith("making") and done > 0 for step, done, _ in again.told)


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.usefixtures("at_once")
def test_what_was_iterated_is_not_iterated_again(tmp_path, unlike, iterated, step):
    stopped(unlike, tmp_path / "fits", in_pass=STARTING + step + 1)
    assert StateFolder(tmp_path / "fits")["iterate"][1]["step"] == step
    whole = FEW * (STARTING + iterated.iterations + 1)  # and one to look for the arbitrary
    in_all = resumed(unlike, tmp_path / "again", iterated)
    assert abs(in_all - whole) <= FEW
    saved = in_all - resumed(unlike, tmp_path / "fits", iterated)
    assert saved == FEW * (STARTING + step)


@pytest.mark.usefixtures("at_once")
def test_an_iteration_that_ended_the_loop_is_the_last(tmp_path, unlike, iterated):
    stopped(unlike, tmp_path / "fits", in_pass=STARTING + iterated.iterations + 1)
    assert resumed(unlike, tmp_path / "fits", iterated) <= 2 * FEW


def test_an_iterate_is_kept_every_ten_seconds(monkeypatch):
    clock, written = itertools.count(step=4.0), []
    monkeypatch.setattr(gopp.time, "monotonic", lambda: next(clock))

    class Noted(dict):
        def __setitem__(self, name, kept):
            written.append(kept[1]["step"])

    rng = np.random.default_rng(0)
    images = {f"p{index}": rng.random((60, 4)) for index in range(30)}
    made = GOPP().target(images, state=Noted())
    assert 2 <= len(written) <= 1 + made.iterations / 3
    assert np.diff(written).min() >= 2


@pytest.mark.parametrize("kept", [0, -1])
@pytest.mark.usefixtures("at_once")
def test_a_damaged_iterate_begins_anew_and_none_stays(tmp_path, unlike, iterated, kept):
    stopped(unlike, tmp_path / "fits", in_pass=STARTING + 4)
    file = tmp_path / "fits" / "iterate.safetensors"
    left = file.read_bytes()
    file.write_bytes(left[:kept])
    assert resumed(unlike, tmp_path / "fits", iterated) > FEW * iterated.iterations
    file.write_bytes(left)  # as a kill may leave it
    align_folder(unlike, aligner=GOPP(), to=tmp_path / "fits")
    assert not file.exists()


FROM_FILES = """
import sys
from cobasis import ODC
from protocol.test_analyst_over_files import align_folder
found = align_folder(Path(sys.argv[1]), aligner=ODC(), to=Path(sys.argv[2]))
result = [len(found.fits), found.changes_of_basis["party-001999"].shape]
"""

WITHOUT_FILES = """
import sys
import numpy as np
from cobasis import ODC, align
from cobasis.algorithms.images import View

class Counted(dict):
    n_fits = 0

    def update(self, fits):
        self.n_fits += len(fits)

sink, seen = Counted(), np.random.default_rng(0).normal(size=(64, 8))
names = dict.fromkeys(map(str, range(int(sys.argv[1]))))
align(ODC(), View(names, read=lambda name: np.roll(seen, int(name) % 8, axis=1)), sink=sink)
result = sink.n_fits
"""


@pytest.mark.soak
def test_two_thousand_parties_of_400_megabytes_align_in_300(tmp_path):
    write_folder(tmp_path / "uploads", n_parties=2000, image_shape=(1000, 50))
    size = sum(path.stat().st_size for path in (tmp_path / "uploads").iterdir())
    assert size > 400e6
    result, peak = measured(FROM_FILES, tmp_path / "uploads", tmp_path / "fits")
    assert result == [2000, [50, 50]]
    assert peak < 300


def test_ten_times_the_parties_take_hardly_more_memory():
    """Simulated, without files, into a sink that only counts; 100,000 at full size do the same."""
    few, peak_of_few = measured(WITHOUT_FILES, 500)
    many, peak_of_many = measured(WITHOUT_FILES, 5_000)
    assert (few, many) == (500, 5_000)
    assert peak_of_many - peak_of_few < 20
