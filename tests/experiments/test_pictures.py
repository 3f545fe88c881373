"""Pictures of what leaves show nothing to the eye, and attackers bring them back."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from experiments.data.images import images
from experiments.data.sources import MissingDataError
from experiments.harness import pictures
from experiments.harness.pictures import DIGITS, FASHION, figure, strips

PAGES = Path(__file__).parents[2] / "docs" / "evidence_pages.py"


@pytest.fixture(scope="module")
def digits():
    return strips(DIGITS)


@pytest.fixture(scope="module")
def drawn(digits):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "strips", {DIGITS: digits}.get)
        return figure(DIGITS)


def alike(one, other):
    return np.corrcoef(one.ravel(), other.ravel())[0, 1]


def test_every_strip_is_drawn_under_its_title(digits, drawn):
    parts = drawn.subfigs
    assert [part.get_suptitle() for part in parts] == [strip.title for strip in digits]
    for part, strip in zip(parts, digits, strict=True):
        np.testing.assert_array_equal(part.axes[-1].images[0].get_array(), strip.pictures[-1])


def test_attackers_bring_back_what_the_eye_does_not_see(digits):
    original, *rest = digits
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
    images.cache_clear()  # another test may have read them
    with pytest.raises(MissingDataError, match=r"(?i)fashion-mnist"):
        figure(FASHION)


def test_the_page_shows_what_can_be_drawn_and_says_why_the_rest_is_not(monkeypatch, drawn):
    def figure_of(data):
        if data == FASHION:
            raise MissingDataError("get it there")
        return drawn

    shown = runpy.run_path(str(PAGES))["pictures"]
    monkeypatch.setitem(shown.__globals__, "figure", figure_of)
    text = shown({})
    assert text.count("<svg") == 1
    assert "*Not drawn in this build: get it there*" in text
