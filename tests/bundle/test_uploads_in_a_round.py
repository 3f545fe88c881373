"""A round whose uploads travel as files is the round that hands them over in memory."""

import numpy as np
import pytest

from cobasis import Analyst
from cobasis.bundle.uploads import UploadFolder, write_upload
from protocol.consortium import NAMES, consortium


@pytest.mark.parametrize("task", ["classification", "representation"])
def test_an_analyst_that_reads_files_ends_with_the_same_alignment(tmp_path, task):
    changes = {} if task == "classification" else {"task": task, "classes": (), "model": None}
    made = consortium(**changes)
    uploads = made.uploads()
    in_memory = Analyst(made.agreement)
    for name in NAMES:
        write_upload(uploads[name], tmp_path / f"{name}.safetensors")
    for name, payload in UploadFolder(tmp_path).items():
        assert payload.n_rows == len(uploads[name].rows)
        in_memory.receive(uploads[name])
    expected = in_memory.align()
    found = Analyst(made.agreement, uploads=UploadFolder(tmp_path)).align()
    for name in NAMES:
        np.testing.assert_array_equal(
            found.fits[name].change_of_basis, expected.fits[name].change_of_basis
        )
