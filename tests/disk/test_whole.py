import os
import stat
import sys

import pytest

from cobasis.disk.whole import (
    PART,
    WholeFile,
    copy_whole,
    file_digest,
    make_folder,
    move_whole,
    remove_tree,
    write_whole,
)
from cobasis.errors import AnotherRunError, DiskError
from faults import BROKEN, FULL, failures

LARGE = bytes(range(256)) * 4096 * 2 + b"the last piece"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def synced(monkeypatch):
    """What the system was told to put on the disk, by inode; nothing is masked when it is made."""
    seen, real, before = [], os.fsync, os.umask(0)

    def fsync(descriptor):
        seen.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    yield seen
    os.umask(before)


def test_each_folder_that_is_made_is_for_its_owner_alone_and_its_name_is_on_the_disk(
    tmp_path, synced
):
    (tmp_path / "a").mkdir(mode=0o755)
    make_folder(tmp_path / "a" / "b" / "c")
    made = [tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [mode(path) for path in made] == [0o700] * 2
    assert synced == [path.parent.stat().st_ino for path in made]
    make_folder(tmp_path / "a")  # which is there, and stays as it is
    assert mode(tmp_path / "a") == 0o755
    (tmp_path / "b").touch()
    with pytest.raises(DiskError, match=r"cannot be made: File exists.*\[CB601\]"):
        make_folder(tmp_path / "b")


@pytest.mark.parametrize("data", [b"", b"x", LARGE], ids=["empty", "one byte", "pieces"])
def test_a_copy_is_the_same_for_its_owner_alone_and_on_the_disk(tmp_path, synced, data):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(data)
    copy_whole(source, target)
    assert target.read_bytes() == data
    assert mode(target) == 0o600
    assert synced == [target.stat().st_ino, tmp_path.stat().st_ino]


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["full", "broken"])
@pytest.mark.parametrize("how", ["write", "copy", "move"])
def test_at_whatever_call_the_disk_fails_a_file_is_the_old_one_or_the_new_one(tmp_path, act, how):
    source, target, seen = tmp_path / "source", tmp_path / "target", set()
    work = {
        "write": lambda: write_whole(target, b"new"),
        "copy": lambda: copy_whole(source, target),
        "move": lambda: move_whole(source, target),
    }[how]
    source.write_bytes(b"new")
    target.write_bytes(b"old")
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


def test_what_is_removed_is_gone_and_so_is_its_name(tmp_path, synced):
    (tmp_path / "folder" / "in").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")  # of which only the link goes
    for path in (tmp_path / "folder" / "in" / "y", tmp_path / "kept" / "y", tmp_path / "file"):
        path.touch()
    for name in ("folder", "link", "file", "nothing"):
        remove_tree(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "y").exists()
    assert synced == [tmp_path.stat().st_ino] * 4
    remove_tree(tmp_path / "no folder" / "x")


def test_what_a_killed_process_left_is_written_over_and_a_second_writer_is_refused(tmp_path):
    part, path = tmp_path / f"north{PART}", tmp_path / "north"
    part.write_bytes(b"longer than what comes")
    part.chmod(0o666)
    with WholeFile(path, n_bytes=4) as file:
        assert mode(part) == 0o600
        file.write(b"AA", offset=0)
        with pytest.raises(AnotherRunError, match=r"another process writes to .*north' right now"):
            WholeFile(path, n_bytes=8)
        file.write(b"AA", offset=2)
        assert list(tmp_path.iterdir()) == [part]
    assert (path.read_bytes(), mode(path)) == (b"AAAA", 0o600)
    with pytest.raises(KeyboardInterrupt), WholeFile(path, n_bytes=2):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [path]


def given_away(elsewhere, part):
    elsewhere.rename(part)
    os.chown(part, 65534, 65534)
    part.chmod(0o666)


OTHERS_OWN = {
    "a link": (lambda elsewhere, part: part.symlink_to(elsewhere), "cannot be written"),
    "another name": (os.link, "put there by somebody"),
    "another user's": (given_away, "put there by somebody"),
}


@pytest.mark.parametrize("kind", OTHERS_OWN)
def test_a_file_that_somebody_else_laid_ready_is_not_written_to(tmp_path, kind):
    elsewhere, part = tmp_path / "elsewhere", tmp_path / f"north{PART}"
    elsewhere.write_bytes(b"as it was")
    if kind == "another user's" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    lay, words = OTHERS_OWN[kind]
    lay(elsewhere, part)
    with pytest.raises(DiskError, match=words):
        WholeFile(tmp_path / "north", n_bytes=2)
    assert part.read_bytes() == b"as it was"


def test_nobody_waits_for_a_pipe_or_reads_what_has_no_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "endless"):
        with pytest.raises(DiskError, match="it is no file"):
            file_digest(path)


def test_a_disk_without_preallocation_is_written_all_the_same(tmp_path, monkeypatch):
    """As on macOS, which has no posix_fallocate."""
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    write_whole(tmp_path / "north", b"OK")
    assert (tmp_path / "north").read_bytes() == b"OK"


def test_a_disk_that_is_too_small_says_so_before_the_first_byte(tmp_path):
    with pytest.raises(DiskError, match=r"\(9,\d{3},.* bytes are needed\): (File too|No).*CB601"):
        WholeFile(tmp_path / "north", n_bytes=sys.maxsize)
    assert list(tmp_path.iterdir()) == []
