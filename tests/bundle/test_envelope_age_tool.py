"""A site opens our bundles, and seals for us, with the ``age`` command line tool alone."""

import shutil
import subprocess

import pytest

from bundle.bundles import AGE_KEYS, LAB, MAGIC, NORTH, opened, receipt, unsealed, write
from cobasis.bundle.envelope import look

AGE = shutil.which("age")
pytestmark = pytest.mark.skipif(
    AGE is None, reason="the command line tool `age` is not installed: apt-get install age"
)


def age(*options):
    done = subprocess.run([AGE, *map(str, options)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_age_opens_what_we_seal(tmp_path):
    written = write(tmp_path / "a.cb")
    (tmp_path / "lab.txt").write_text(AGE_KEYS["lab"] + "\n")
    plain = age("--decrypt", "-i", tmp_path / "lab.txt", tmp_path / "a.cb")
    assert plain.startswith(MAGIC)
    assert written.manifest.encoded() in plain
    assert plain == unsealed(tmp_path / "a.cb")


def test_we_open_what_age_seals(tmp_path):
    (tmp_path / "plain").write_bytes(unsealed(receipt(tmp_path / "a.cb")))
    age("-r", LAB.public.recipient, "-o", tmp_path / "b.cb", tmp_path / "plain")
    assert look(tmp_path / "b.cb").n_recipients == 1
    bundle = opened(tmp_path / "b.cb", tmp_path / "in")
    assert bundle.parts["receipt.json"].read_bytes() == b'{"round":"icu-2026"}'


def test_age_opens_a_bundle_larger_than_its_chunks_for_either_recipient(tmp_path):
    part = bytes(range(256)) * 2000
    keys = {"lab.txt": AGE_KEYS["lab"], "north.txt": AGE_KEYS["north"]}
    write(tmp_path / "a.cb", parts={"receipt.json": part}, recipients=(LAB, NORTH))
    for name, key in keys.items():
        (tmp_path / name).write_text(key + "\n")
        assert age("-d", "-i", tmp_path / name, tmp_path / "a.cb") == unsealed(tmp_path / "a.cb")
