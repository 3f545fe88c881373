"""Pictures of what leaves show nothing to the eye, and attackers bring them back."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from experiments.data.images import images
from experiments.harness import pictures
from experiments.harness.pictures import DIGITS, strips

PAGES = Path(__file__).parents[2] / "docs" / "evidence_pages.py"


@pytest.fixture(scope="module")
def digits():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "PEOPLE", 200)
        patch.setattr(pictures, "SHOWN", 3)
        yield strips(DIGITS)


def test_attackers_bring_back_what_the_eye_does_not_see(digits):
    original, *rest = digits.values()
    assert original.shape == (3, 8, 8)
    assert [each.shape for each in rest[3:5]] == [(3, 4, 8)] * 2
    alike = {
        title: np.corrcoef(each.ravel(), original.ravel())[0, 1]
        for title, each in digits.items()
        if each.shape == original.shape
    }
    rebuilt = [each for title, each in alike.items() if title.startswith("Rebuilt")]
    noisy = [each for title, each in alike.items() if "no guarantee" in title]
    assert [0.8 < each < 0.9999 for each in rebuilt] == [True] * 3
    assert [each < 0.7 for each in noisy] == [True] * 3


def test_the_page_draws_each_strip_under_its_title_and_says_what_it_cannot_draw(
    digits, monkeypatch, tmp_path
):
    real = pictures.strips
    monkeypatch.setattr(pictures, "strips", lambda data: digits if data == DIGITS else real(data))
    monkeypatch.setenv("COBASIS_DATA", str(tmp_path))
    images.cache_clear()  # another test may have read them
    text = runpy.run_path(str(PAGES))["pictures"]({})
    assert text.count("<svg") == 1
    assert text.count("<image ") == 3 * len(digits)
    assert [title for title in digits if f">{title}</text>" not in text] == []
    for drawn, (title, shown) in zip(pictures.figure(DIGITS).subfigs, digits.items(), strict=True):
        assert drawn.get_suptitle() == title
        np.testing.assert_array_equal(drawn.axes[-1].images[0].get_array(), shown[-1])
    assert "*Not drawn in this build: fashion-mnist/train-images" in text
