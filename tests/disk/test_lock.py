import os
import subprocess
import sys
import threading

import pytest

from cobasis.disk import calls
from cobasis.disk.lock import Lock
from cobasis.errors import AnotherRunError, DiskError

HOLDER = """
import sys
from pathlib import Path
from cobasis.disk.lock import Lock
with Lock(Path(sys.argv[1]), what="it"):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["file", "folder"])
def path(request, tmp_path):
    """What to lock: a file that is not there yet, or a folder."""
    path = tmp_path / "x"
    if request.param == "folder":
        path.mkdir()
    return path


@pytest.fixture
def holder(path):
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.kill()


def test_who_may_not_wait_is_refused_and_who_waits_has_it_once_the_other_is_killed(path, holder):
    with pytest.raises(AnotherRunError, match=r"another process writes to it.*\[CB604\]"):
        Lock(path, what="it")
    assert holder.poll() is None
    threading.Timer(0.2, holder.kill).start()
    with Lock(path, what="it", wait=True):
        assert holder.wait() < 0


def test_a_file_that_got_its_name_meanwhile_is_not_the_one_that_was_locked(
    path, tmp_path, monkeypatch
):
    lock = Lock(path, what="it")
    taken, opened, wait_for = [], threading.Event(), calls.lock

    def opened_then_locked(*args, **kwargs):
        opened.set()
        wait_for(*args, **kwargs)

    monkeypatch.setattr(calls, "lock", opened_then_locked)

    def take():
        with Lock(path, what="it", wait=True) as other:
            taken.append(os.fstat(other.descriptor).st_ino)

    waiting = threading.Thread(target=take)
    waiting.start()
    assert opened.wait(timeout=60)  # before, the thread may not have opened the old file yet
    path.rename(tmp_path / "finished")
    if (tmp_path / "finished").is_dir():
        path.mkdir()
    lock.release()
    waiting.join(timeout=60)
    assert taken == [path.stat().st_ino]


def test_a_pipe_or_a_link_in_the_place_of_a_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DiskError, match=r"it is no file.*\[CB601\]"):
        Lock(tmp_path / "pipe", what="it")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DiskError, match=r"it cannot be written: .*\[CB601\]"):
        Lock(tmp_path / "link", what="it")
    assert not (tmp_path / "elsewhere").exists()
