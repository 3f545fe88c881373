"""One file has one writer at a time, and belongs to its owner."""

import os

import pytest

from cobasis.disk.whole import PART, WholeFile
from cobasis.errors import AnotherRunError, DiskError


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
