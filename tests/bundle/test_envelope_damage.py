"""Not one bit of a sealed bundle can change, and not one kilobyte be missing, unnoticed."""

import numpy as np
import pytest

from bundle.bundles import ENROLLED, LAB, write
from cobasis.bundle.envelope import open_bundle
from cobasis.errors import BundleError, SealError

FIRST = 4096
PART = np.random.default_rng(0).bytes(20_000)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "a.cb"
    write(path, parts={"receipt.json": PART})
    return path.read_bytes()


def accepted(path, data):
    """Whether damaged data are opened; every refusal has to leave nothing."""
    path.write_bytes(data)
    into = path.parent / "in"
    try:
        open_bundle(path, unseal=LAB.unseal, signer=ENROLLED, into=into)
    except (SealError, BundleError):
        assert not into.exists()
        return False
    return True


def flipped(data, bit):
    """Data with one bit changed."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_undamaged_it_is_opened(tmp_path, whole):
    assert len(whole) > 5 * FIRST
    assert accepted(tmp_path / "a.cb", whole)


def test_six_hundred_bit_flips_of_the_first_four_kilobytes_are_refused(tmp_path, whole):
    bits = np.random.default_rng(1).choice(8 * FIRST, size=600, replace=False)
    path = tmp_path / "a.cb"
    assert [int(bit) for bit in bits if accepted(path, flipped(whole, int(bit)))] == []


def test_bit_flips_anywhere_are_refused(tmp_path, whole):
    bits = np.random.default_rng(2).choice(8 * len(whole), size=300, replace=False)
    path = tmp_path / "a.cb"
    assert [int(bit) for bit in bits if accepted(path, flipped(whole, int(bit)))] == []


@pytest.mark.soak
def test_all_bit_flips_of_the_first_four_kilobytes_are_refused(tmp_path, whole):
    path = tmp_path / "a.cb"
    assert [bit for bit in range(8 * FIRST) if accepted(path, flipped(whole, bit))] == []


def test_truncation_at_every_kilobyte_and_by_every_last_byte_is_refused(tmp_path, whole):
    cuts = [*range(0, len(whole), 1024), *range(len(whole) - 40, len(whole))]
    path = tmp_path / "a.cb"
    assert [cut for cut in cuts if accepted(path, whole[:cut])] == []


def test_a_bundle_of_many_age_chunks_without_its_last_is_refused(tmp_path):
    """Age's chunks are whole each by itself; only the last one says that it is the last."""
    path = tmp_path / "a.cb"
    write(path, kind="upload", parts={"upload.safetensors": PART * 20})
    noise = np.random.default_rng(3).bytes(300_000)
    write(path, kind="upload", parts={"upload.safetensors": noise})
    data = path.read_bytes()
    header = data.index(b"\n", data.index(b"\n--- ") + 1) + 1 + 16
    ends = range(header, len(data), 2**16 + 16)
    assert len(ends) == 5
    assert [end for end in ends if accepted(path, data[:end])] == []
