"""GOPP's target goes on from its last kept iteration, and ends bit for bit as without a stop."""

import itertools

import numpy as np
import pytest

from cobasis import GOPP, align
from cobasis.algorithms import gopp
from cobasis.bundle.folders import StateFolder, UploadFolder
from protocol.upload_folders import align_folder, write_folder

N_PARTIES = 12
STARTING = 1  # readings of all images before the first iteration
ALIGNER = GOPP()


@pytest.fixture(scope="module")
def uploads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all") / "uploads"
    write_folder(folder, n_parties=N_PARTIES, own=1.0)
    return folder


@pytest.fixture(scope="module")
def expected(uploads):
    found = UploadFolder(uploads)
    target = align(ALIGNER, {name: found[name].read_image() for name in found}).target
    assert target.iterations > 4
    return target


@pytest.fixture
def at_once(monkeypatch):
    """Every iteration is kept."""
    monkeypatch.setattr(gopp, "SECONDS", 0.0)


def stopped(uploads, to, *, in_pass):
    """Align until Ctrl-C at the first image of one pass."""

    def report(step, done, _total):
        if (step, done) == (f"making the target, pass {in_pass}", 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        align_folder(uploads, aligner=ALIGNER, to=to, report=report)


def resumed(uploads, to, expected):
    """Go on; return how many images were read for the target."""
    told = []

    def report(step, done, _total):
        told.append(step.startswith("making") and done > 0)

    found = align_folder(uploads, aligner=ALIGNER, to=to, report=report).target
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert (found.iterations, found.converged) == (expected.iterations, True)
    assert "iterate" not in StateFolder(to)
    return sum(told)


@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.usefixtures("at_once")
def test_what_was_iterated_is_not_iterated_again(tmp_path, uploads, expected, step):
    stopped(uploads, tmp_path / "fits", in_pass=STARTING + step + 1)
    assert StateFolder(tmp_path / "fits")["iterate"][1]["step"] == step
    whole = N_PARTIES * (STARTING + expected.iterations + 1)  # and one to look for the arbitrary
    in_all = resumed(uploads, tmp_path / "again", expected)
    assert abs(in_all - whole) <= N_PARTIES
    saved = in_all - resumed(uploads, tmp_path / "fits", expected)
    assert saved == N_PARTIES * (STARTING + step)


@pytest.mark.usefixtures("at_once")
def test_an_iteration_that_ended_the_loop_is_the_last(tmp_path, uploads, expected):
    stopped(uploads, tmp_path / "fits", in_pass=STARTING + expected.iterations + 1)
    assert resumed(uploads, tmp_path / "fits", expected) <= 2 * N_PARTIES


def test_an_iterate_is_kept_every_ten_seconds(monkeypatch):
    clock, written = itertools.count(step=4.0), []
    monkeypatch.setattr(gopp.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(gopp, "_keep", lambda _, reached: written.append(reached.step))
    rng = np.random.default_rng(0)
    images = {f"p{index}": rng.random((60, 4)) for index in range(30)}
    made = ALIGNER.target(images)
    assert 2 <= len(written) <= 1 + made.iterations / 3
    assert np.diff(written).min() >= 2


@pytest.mark.parametrize("kept", [0, -1])
@pytest.mark.usefixtures("at_once")
def test_a_damaged_file_makes_the_target_begin_anew(tmp_path, uploads, expected, kept):
    stopped(uploads, tmp_path / "fits", in_pass=STARTING + 4)
    file = tmp_path / "fits" / "iterate.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert resumed(uploads, tmp_path / "fits", expected) > N_PARTIES * expected.iterations


@pytest.mark.usefixtures("at_once")
def test_what_a_kill_left_beside_the_target_is_cleared_away(tmp_path, uploads):
    stopped(uploads, tmp_path / "fits", in_pass=STARTING + 4)
    file = tmp_path / "fits" / "iterate.safetensors"
    left = file.read_bytes()
    align_folder(uploads, aligner=ALIGNER, to=tmp_path / "fits")
    file.write_bytes(left)
    align_folder(uploads, aligner=ALIGNER, to=tmp_path / "fits")
    assert not file.exists()
