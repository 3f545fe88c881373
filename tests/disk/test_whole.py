"""Files are written, copied, moved and removed as a whole, folders made, and names synced."""

import os
import re
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from cobasis.disk.whole import (
    PART,
    WholeFile,
    copy_whole,
    make_folder,
    move_whole,
    remove_tree,
    write_whole,
)
from cobasis.errors import AnotherRunError, DiskError
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


def test_a_second_writer_is_refused_and_spoils_nothing(tmp_path):
    path = tmp_path / "north"
    with WholeFile(path, n_bytes=4) as first:
        first.write(b"AA", offset=0)
        with pytest.raises(AnotherRunError, match=r"another process writes to .*north' right now"):
            WholeFile(path, n_bytes=8)
        first.write(b"AA", offset=2)
    assert path.read_bytes() == b"AAAA"
    with WholeFile(path, n_bytes=2) as second:
        second.write(b"BB", offset=0)
    assert path.read_bytes() == b"BB"


def test_what_a_killed_process_left_is_written_over(tmp_path):
    path = tmp_path / "north"
    path.with_name(f"north{PART}").write_bytes(b"longer than what comes")
    with WholeFile(path, n_bytes=2) as file:
        file.write(b"OK", offset=0)
    assert path.read_bytes() == b"OK"
    assert not path.with_name(f"north{PART}").exists()


def test_nobody_else_may_read_it_and_no_link_is_followed(tmp_path):
    path = tmp_path / "north"
    with WholeFile(path, n_bytes=2) as file:
        file.write(b"OK", offset=0)
        assert path.with_name(f"north{PART}").stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / f"south{PART}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DiskError):
        WholeFile(tmp_path / "south", n_bytes=2)
    assert not (tmp_path / "elsewhere").exists()


def test_what_was_left_for_others_to_read_is_for_its_owner_only_afterwards(tmp_path):
    part = tmp_path / f"north{PART}"
    part.write_bytes(b"left")
    part.chmod(0o666)
    with WholeFile(tmp_path / "north", n_bytes=2) as file:
        file.write(b"OK", offset=0)
    assert (tmp_path / "north").stat().st_mode & 0o777 == 0o600


def test_a_file_that_somebody_else_laid_ready_is_not_written_to(tmp_path):
    elsewhere, part = tmp_path / "elsewhere", tmp_path / f"north{PART}"
    elsewhere.write_bytes(b"as it was")
    os.link(elsewhere, part)
    with pytest.raises(DiskError, match="put there by somebody else"):
        WholeFile(tmp_path / "north", n_bytes=2)
    assert elsewhere.read_bytes() == b"as it was"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_written_to(tmp_path):
    part = tmp_path / f"north{PART}"
    part.touch()
    os.chown(part, 65534, 65534)
    part.chmod(0o666)
    with pytest.raises(DiskError, match="put there by somebody else"):
        WholeFile(tmp_path / "north", n_bytes=2)
    assert part.read_bytes() == b""


def test_nothing_stands_under_the_name_before_all_is_written_and_after_ctrl_c(tmp_path):
    path = tmp_path / "north"
    with WholeFile(path, n_bytes=2) as file:
        file.write(b"OK", offset=0)
        assert [each.name for each in tmp_path.iterdir()] == ["north.part"]
    with pytest.raises(KeyboardInterrupt), WholeFile(path, n_bytes=2):
        raise KeyboardInterrupt
    assert [each.name for each in tmp_path.iterdir()] == ["north"]


def test_a_disk_without_preallocation_is_written_all_the_same(tmp_path, monkeypatch):
    """As on macOS, which has no posix_fallocate."""
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    write_whole(tmp_path / "north", b"OK")
    assert (tmp_path / "north").read_bytes() == b"OK"


def test_a_real_limit_on_file_sizes_is_found_before_the_first_byte(tmp_path):
    """The kernel's own refusal, in a child process that may write 100,000 bytes."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom cobasis.disk.whole import WholeFile\n"
        "WholeFile(Path(sys.argv[1]), n_bytes=24_000_000)\n"
    )

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [sys.executable, "-B", "-c", script, str(tmp_path / "north")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"\(24,000,000 bytes are needed\): File too large.*\[CB601\]", done.stderr)
    assert list(tmp_path.iterdir()) == []
