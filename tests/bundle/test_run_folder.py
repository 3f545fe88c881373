"""Fits on disk: what was put in comes out, and what is half-written counts for nothing."""

from functools import partial
from operator import setitem
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.payloads import described, file_of
from cobasis.algorithms.fits import Fit, Target
from cobasis.bundle import folders
from cobasis.bundle.folders import FitFolder
from cobasis.errors import AnotherRunError, DiskError, FileChangedError, StepError
from faults import FULL, at_call

STEADY = settings(max_examples=10, deadline=None, derandomize=True, database=None)


def fit(number):
    return Fit(change_of_basis=np.full((3, 3), float(number)), determination=1 / (number + 1))


def filled(path, *, n_parties=10):
    with mock.patch.object(folders, "SHARD_BYTES", 200), FitFolder(path) as fits:
        for number in range(n_parties):
            fits[f"p{number}"] = fit(number)
    return fits


def numbers_in(fits):
    return {name: int(each.change_of_basis[0, 0]) for name, each in fits.items()}


@STEADY
@given(
    fits=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=30) | st.just("__metadata__"),
        st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6)),
        max_size=12,
    ),
    shard_bytes=st.sampled_from([1, 300, 10**6]),
)
def test_fits_of_any_names_and_shapes_come_back_bit_for_bit(tmp_path_factory, fits, shard_bytes):
    path = tmp_path_factory.mktemp("fits")
    made = {
        name: Fit(
            change_of_basis=np.random.default_rng(seed).normal(size=(rows, columns)),
            determination=float(np.random.default_rng(seed).random()),
        )
        for name, (rows, columns, seed) in fits.items()
    }
    with mock.patch.object(folders, "SHARD_BYTES", shard_bytes), FitFolder(path) as folder:
        folder.update(made)
    for found in (folder, FitFolder(path)):
        assert list(found) == list(made)
        for name, each in made.items():
            np.testing.assert_array_equal(found[name].change_of_basis, each.change_of_basis)
            assert found[name].determination == each.determination


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, DiskError])
def test_a_folder_is_taken_up_where_its_last_shard_ends(tmp_path, error):
    """What was gathered is written whatever is raised; of what no disk takes, nothing else goes."""
    filled(tmp_path, n_parties=4)
    (tmp_path / "fits-00002.safetensors.part").write_bytes(b"half")
    folder, known = FitFolder(tmp_path), {"p0": 0, "p1": 1, "p2": 2, "p3": 3}
    full = at_call(int(error is DiskError), FULL, counts=lambda name, *_: name == "fsync")

    def broken_off():
        with folder:
            folder["late"] = fit(99)
            assert numbers_in(folder) == {**known, "late": 99}  # before it is written down, too
            if error is not DiskError:
                raise error

    with pytest.raises(error), full:
        broken_off()
    written = {} if error is DiskError else {"late": 99}
    assert numbers_in(FitFolder(tmp_path)) == {**known, **written}
    assert len(list(tmp_path.glob("fits-*.safetensors"))) == 2 + len(written)


def test_a_target_comes_back_bit_for_bit_or_not_at_all_where_it_is_damaged(tmp_path):
    rows = np.random.default_rng(0).normal(size=(7, 3))
    told = {"shaped_by": ("north", "s\u00fcd"), "iterations": 7, "converged": False}
    made = filled(tmp_path)
    assert made.target is None
    with made:
        made.keep(Target(rows=rows, **told))
    found = FitFolder(tmp_path).target
    np.testing.assert_array_equal(found.rows, rows)
    assert {name: getattr(found, name) for name in told} == told
    file = tmp_path / "target.safetensors"
    whole = file.read_bytes()
    for damaged in (b"", whole[:1], whole[:-1], whole.replace(b"iter", b"itar")):
        file.write_bytes(damaged)
        assert FitFolder(tmp_path).target is None


def test_a_damaged_shard_is_refused_and_may_be_deleted_alone(tmp_path):
    fits = filled(tmp_path, n_parties=4)
    shard = tmp_path / "fits-00000.safetensors"
    header, numbers = described(shard)
    wrong = ({}, {"determination": "[1.0"}, {"determination": "[1.0]"})
    damaged = [file_of({**header, "__metadata__": told}, numbers) for told in wrong]
    for each in (shard.read_bytes()[:-1], *damaged):
        shard.write_bytes(each)
        with pytest.raises(DiskError, match=r"fits-00000.safetensors' is damaged.*deleted alone"):
            FitFolder(tmp_path)
    with pytest.raises(FileChangedError, match="the fit of party 'p0'"):
        fits["p0"]  # of a folder that was opened before
    shard.unlink()
    with FitFolder(tmp_path) as fits:
        assert sorted(fits) == ["p3"]
        fits["p0"] = fit(0)
    assert numbers_in(FitFolder(tmp_path)) == {"p3": 3, "p0": 0}


def test_fits_are_added_within_a_block_of_one_process_and_read_by_all(tmp_path):
    filled(tmp_path, n_parties=1)
    with FitFolder(tmp_path):
        other = FitFolder(tmp_path)
        assert list(other) == ["p0"]
        with pytest.raises(AnotherRunError, match="another process writes to"):
            other.__enter__()
    for add in (partial(setitem, other, "late", fit(2)), partial(other.keep, None)):
        with pytest.raises(StepError, match="Add fits inside"):
            add()
