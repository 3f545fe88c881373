"""Files are written, copied, moved and removed as a whole, folders made, and names synced."""

import os
import stat
from pathlib import Path
from unittest import mock

import pytest

from cobasis.disk.whole import PART, copy_whole, make_folder, move_whole, remove_tree, write_whole
from cobasis.errors import DiskError
from faults import BROKEN, FULL, at_call

LARGE = bytes(range(256)) * 4096 * 2 + b"the last piece"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def synced(monkeypatch):
    """What the system was told to put on the disk, by inode."""
    seen, real = [], os.fsync

    def fsync(descriptor):
        seen.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def failures(act, work):
    """Let the disk fail at the k-th call, k = 1 until it runs clean; yields where it did."""
    for number in range(1, 100):
        with at_call(number, act) as clock:
            try:
                work()
            except DiskError as error:
                assert "[CB601]" in str(error)  # noqa: PT017 -- it need not be raised every time
        if clock.stopped_at is None:
            return
        yield clock.stopped_at


@pytest.mark.usefixtures("open_umask")
def test_each_folder_that_is_made_is_for_its_owner_alone_and_its_name_is_on_the_disk(
    tmp_path, synced
):
    make_folder(tmp_path / "a" / "b" / "c")
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [mode(path) for path in made] == [0o700] * 3
    assert synced == [path.parent.stat().st_ino for path in made]


@pytest.mark.usefixtures("open_umask")
def test_a_folder_that_is_there_is_left_as_it_is(tmp_path, synced):
    (tmp_path / "a").mkdir(mode=0o755)
    make_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o755
    assert synced == []


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(DiskError, match=r"cannot be made: File exists.*\[CB601\]"):
        make_folder(tmp_path / "a")


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("data", [b"", b"x", LARGE], ids=["empty", "one byte", "pieces"])
def test_a_copy_is_the_same_for_its_owner_alone_and_on_the_disk(tmp_path, synced, data):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(data)
    copy_whole(source, target)
    assert target.read_bytes() == data
    assert mode(target) == 0o600
    assert synced == [target.stat().st_ino, tmp_path.stat().st_ino]


def test_a_source_that_cannot_be_read_is_a_disk_error_and_leaves_the_old_copy(tmp_path):
    source, target = Path("/proc/self/mem"), tmp_path / "target"
    if not source.exists():
        pytest.skip("this system has no file that opens and cannot be read")
    target.write_bytes(b"old")
    with pytest.raises(DiskError, match=r"'/proc/self/mem' cannot be read: .*\[CB601\]"):
        copy_whole(source, target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["full", "broken"])
@pytest.mark.parametrize("how", ["write", "copy", "move"])
def test_at_whatever_call_the_disk_fails_a_file_is_the_old_one_or_the_new_one(tmp_path, act, how):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    work = {
        "write": lambda: write_whole(target, b"new"),
        "copy": lambda: copy_whole(source, target),
        "move": lambda: move_whole(source, target),
    }[how]
    seen = set()
    for where in failures(act, work):
        assert target.read_bytes() in {b"old", b"new"}, where
        assert how != "move" or source.exists() or target.read_bytes() == b"new", where
        # who has no lock deletes no part: it may be another writer's
        assert where == "flock" or not target.with_name(target.name + PART).exists(), where
        seen.add(where)
        source.write_bytes(b"new")
        target.write_bytes(b"old")
    assert seen >= {"replace", "fsync"}
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_removed_is_gone_and_so_is_its_name(tmp_path, synced, kind):
    path = tmp_path / "x"
    if kind == "file":
        path.touch()
    else:
        (path / "in").mkdir(parents=True)
        (path / "in" / "y").touch()
    remove_tree(path)
    assert not path.exists()
    assert synced == [tmp_path.stat().st_ino]


def test_to_remove_what_is_not_there_is_no_error(tmp_path):
    remove_tree(tmp_path / "x")
    remove_tree(tmp_path / "no folder" / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["unlink", "rmdir", "fsync"])
def test_what_cannot_be_removed_is_a_disk_error(tmp_path, call):
    path = tmp_path / "x"
    path.mkdir()
    (path / "y").touch()
    with (
        mock.patch.object(os, call, side_effect=OSError(5, "Input/output error")),
        pytest.raises(DiskError, match=r"x' cannot be deleted: Input/output error.*\[CB601\]"),
    ):
        remove_tree(path)
    remove_tree(path)
    assert not path.exists()


def test_of_a_link_to_a_folder_only_the_link_is_removed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "y").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "y").exists()
