"""What is in memory does not grow with the parties: each test is a process of its own."""

import pytest

from protocol.upload_folders import measured, write_folder

FROM_FILES = """
import sys
from cobasis import ODC
from protocol.upload_folders import align_folder
found = align_folder(Path(sys.argv[1]), aligner=ODC(), to=Path(sys.argv[2]))
result = [len(found.fits), found.changes_of_basis["party-001999"].shape]
"""

WITHOUT_FILES = """
import sys
from collections.abc import Mapping
import numpy as np
from cobasis import ODC, align

class Simulated(Mapping):
    def __init__(self, n_parties):
        self.n_parties = n_parties
        self.seen = np.random.default_rng(0).normal(size=(64, 8))

    def __getitem__(self, party):
        return np.roll(self.seen, int(party) % 8, axis=1)

    def __iter__(self):
        return map(str, range(self.n_parties))

    def __len__(self):
        return self.n_parties

class Counted(dict):
    n_fits = 0

    def __setitem__(self, party, fit):
        self.n_fits += 1

    def update(self, fits):
        for party, fit in fits.items():
            self[party] = fit

sink = Counted()
align(ODC(), Simulated(int(sys.argv[1])), sink=sink)
result = sink.n_fits
"""


@pytest.mark.soak
def test_two_thousand_parties_of_400_megabytes_align_in_300(tmp_path):
    write_folder(tmp_path / "uploads", n_parties=2000, n_anchor_rows=1000, n_components=50)
    size = sum(path.stat().st_size for path in (tmp_path / "uploads").iterdir())
    assert size > 400e6
    result, peak = measured(FROM_FILES, tmp_path / "uploads", tmp_path / "fits")
    assert result == [2000, [50, 50]]
    if peak is None:
        pytest.skip("peak memory is read from /proc, which this system has not")
    assert peak < 300


def test_ten_times_the_parties_take_hardly_more_memory():
    """Simulated, without files, into a sink that only counts; 100,000 at full size do the same."""
    few, peak_of_few = measured(WITHOUT_FILES, 2_000)
    many, peak_of_many = measured(WITHOUT_FILES, 20_000)
    assert (few, many) == (2_000, 20_000)
    if peak_of_few is None:
        pytest.skip("peak memory is read from /proc, which this system has not")
    assert peak_of_many - peak_of_few < 20
