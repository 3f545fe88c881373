"""Pictures of what leaves show nothing to the eye, and attackers bring them back."""

import numpy as np
import pytest
from experiments.data.sources import MissingDataError
from experiments.pictures import FASHION, figure, strips


def alike(one, other):
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


def test_attackers_bring_back_what_the_eye_does_not_see():
    found = strips("digits")
    original, *rest = found
    assert original.pictures.shape == (8, 8, 8)
    assert [each.pictures.shape for each in rest[3:5]] == [(8, 4, 8)] * 2
    rebuilt = [each for each in rest if each.title.startswith("Rebuilt")]
    assert len(rebuilt) == 3
    for strip in rebuilt:
        assert 0.85 < alike(strip.pictures, original.pictures) < 0.9999, strip.title
    noisy = [each for each in rest if "no guarantee" in each.title]
    assert [alike(each.pictures, original.pictures) < 0.7 for each in noisy] == [True] * 3


def test_pictures_that_need_data_say_so(monkeypatch, tmp_path):
    monkeypatch.setenv("COBASIS_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"(?i)fashion-mnist"):
        figure(FASHION)
