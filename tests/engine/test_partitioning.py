"""Partitions that an interruption left are kept only if they are what was written."""

import numpy as np
import pytest

from cobasis.engine.partitioning import write_aligned
from cobasis.errors import OptionError
from engine.partitioned import parties


def stop(step, done, total):  # noqa: ARG001
    if done == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize("place", [-1, -500])
def test_a_bit_that_flips_after_an_interruption_does_not_enter_the_manifest(tmp_path, place):
    """In a label, and in a row."""
    rng = np.random.default_rng(0)
    uploads, alignment = parties(
        tmp_path / "uploads", rng.normal(size=(100, 4)), np.arange(100) % 3, sizes=[60, 40]
    )
    whole = write_aligned(uploads, alignment, to=tmp_path / "whole", partition_bytes=640)
    with pytest.raises(KeyboardInterrupt):
        write_aligned(uploads, alignment, to=tmp_path / "aligned", partition_bytes=640, report=stop)
    kept, changed = (tmp_path / "aligned" / f"part-0000{index}.safetensors" for index in (0, 1))
    data, before = bytearray(changed.read_bytes()), kept.stat().st_mtime_ns
    data[place] ^= 1
    changed.write_bytes(data)
    aligned = write_aligned(uploads, alignment, to=tmp_path / "aligned", partition_bytes=640)
    assert aligned.partitions == whole.partitions
    assert kept.stat().st_mtime_ns == before
    for index in range(len(whole.partitions)):
        for found, known in zip(aligned.read(index), whole.read(index), strict=True):
            np.testing.assert_array_equal(found, known)


def test_partitions_of_no_bytes_are_refused(tmp_path):
    uploads, alignment = parties(tmp_path / "uploads", np.eye(4), None, sizes=[4])
    with pytest.raises(OptionError, match="partition_bytes=0 holds no row"):
        write_aligned(uploads, alignment, to=tmp_path / "aligned", partition_bytes=0)
