"""A disk that fills up, or that may not be written to: one error, and no half file."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bundle.payloads import header, tables, write
from cobasis.bundle.payload import PayloadWriter, open_payload
from cobasis.disk import whole
from cobasis.errors import DiskError


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["pwrite", "fsync", "posix_fallocate"])
def test_a_disk_that_fills_up_leaves_what_was_there_before(tmp_path, monkeypatch, call):
    path = tmp_path / "north.safetensors"
    write(path, seed=1)
    before = path.read_bytes()
    monkeypatch.setattr(whole.os, call, full, raising=False)
    with pytest.raises(DiskError, match=r"\(\d+ bytes are needed\): No space left on device"):
        write(path, seed=2)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_disk_without_preallocation_is_written_all_the_same(tmp_path, monkeypatch):
    """As on macOS, which has no posix_fallocate."""
    monkeypatch.delattr(whole.os, "posix_fallocate", raising=False)
    rows, _, _ = write(tmp_path / "north.safetensors")
    np.testing.assert_array_equal(
        open_payload(tmp_path / "north.safetensors").row_block(0, 7), rows
    )


def test_a_real_limit_on_file_sizes_is_found_before_the_first_row(tmp_path):
    """The kernel's own refusal, in a child process that may write 100,000 bytes."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from payloads import header, PayloadWriter\n"
        "PayloadWriter(Path(sys.argv[2]), header=header(n_rows=1_000_000))\n"
    )

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run(
        [sys.executable, "-B", "-c", script, str(Path(__file__).parent), str(tmp_path / "north")],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"\(24,000,\d{3} bytes are needed\): File too large", done.stderr)
    assert "[CB601]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_is_refused(tmp_path):
    with pytest.raises(DiskError, match="No such file or directory"):
        PayloadWriter(tmp_path / "nowhere" / "north.safetensors", header=header())


def test_nothing_stands_under_the_name_before_all_is_written(tmp_path):
    path = tmp_path / "north.safetensors"
    rows, image, _ = tables()
    with PayloadWriter(path, header=header()) as writer:
        writer.write_anchor_image(image)
        assert not path.exists()
        writer.write_rows(0, rows)
        assert [each.name for each in tmp_path.iterdir()] == ["north.safetensors.part"]
    assert [each.name for each in tmp_path.iterdir()] == ["north.safetensors"]


def test_ctrl_c_leaves_nothing_and_a_killed_processs_part_is_written_over(tmp_path):
    path = tmp_path / "north.safetensors"
    writer = PayloadWriter(path, header=header())
    writer.write_rows(0, tables()[0])
    with pytest.raises(KeyboardInterrupt), writer:
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "north.safetensors.part").write_bytes(b"x" * 10_000)
    write(path)
    assert open_payload(path).n_rows == 7
    assert [each.name for each in tmp_path.iterdir()] == ["north.safetensors"]
