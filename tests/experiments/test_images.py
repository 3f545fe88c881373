"""Studies on images, with scikit-learn's small digits in place of MNIST."""

import numpy as np
import pytest
from experiments.data import images
from experiments.harness.store import recorded
from experiments.harness.systems import a_round
from experiments.harness.uploads import AsPrinted, uploads
from experiments.studies import table_13_14
from sklearn.datasets import load_digits

from cobasis import ODC, Imakura, align
from cobasis.errors import UndeterminedFitError

SMALL = {"n_parties": 4, "n_rows": 40, "n_tests": 50}
ROUND = {"anchor": "uniform", "n_anchor_rows": 80, "n_components": 6}


@pytest.fixture(autouse=True)
def digits(monkeypatch):
    pixels, labels = load_digits(return_X_y=True)
    grey = (pixels * 15).astype(np.uint8)
    monkeypatch.setattr(images, "images", lambda _: (grey, labels))


def split(repeat=0):
    return images.deal_images("mnist", repeat=repeat, **SMALL)


def test_an_idx_file_is_read_by_its_own_dimensions_and_no_image_is_dealt_twice():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = bytes([0, 0, 8, 3]) + np.array(pixels.shape, dtype=">u4").tobytes()
    assert np.array_equal(images._idx(header + pixels.tobytes()), pixels)
    dealt = images.deal_images("mnist", repeat=0, n_parties=7, n_rows=200, n_tests=397)
    everything = np.hstack([np.vstack([dealt.pooled()[0], dealt.test_rows]) * 255, [[0]] * 1797])
    everything[:, -1] = np.concatenate([dealt.pooled()[1], dealt.test_labels])
    known = np.column_stack(images.images("mnist"))
    assert sorted(map(tuple, everything.round())) == sorted(map(tuple, known))
    assert {len(mine) for _, mine in dealt.parties.values()} == {200}


def test_odc_as_printed_goes_on_where_the_library_refuses():
    skewed = np.random.default_rng(0).normal(size=(40, 5)) * np.logspace(0, -5, 5)
    with pytest.raises(UndeterminedFitError):
        align(ODC(), {"one": skewed, "two": skewed})
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    found = align(AsPrinted(rotation=turn), {"one": skewed, "two": skewed}).changes_of_basis
    np.testing.assert_allclose(found["two"], turn, atol=1e-4)


@pytest.mark.parametrize("condition", ["samespan", "diffspan_orth"])
def test_one_rounds_uploads_aligned_later_are_what_a_round_of_that_aligner_gives(condition):
    options = {"span_condition": condition, **ROUND}
    later = uploads(split(3), **options).aligned(Imakura(scale="paper"))
    dealt = split(3)
    done = a_round(dealt.parties, repeat=3, aligner=Imakura(scale="paper"), **options).parties
    rows = [each.transform(dealt.parties[name][0]) for name, each in done.items()]
    np.testing.assert_allclose(later.rows, np.vstack(rows), atol=1e-8)
    assert np.array_equal(later.labels, dealt.pooled()[1])
    assert [count for _, count in later.tests] == ([4] if condition == "samespan" else [1] * 4)
    seen = done["party-000"].transform(dealt.test_rows)
    np.testing.assert_allclose(later.tests[0][0], seen, atol=1e-8)
    judged = uploads(split(3), judges=2, **options).aligned(ODC())
    assert sum(count for _, count in judged.tests) == 2


def test_one_split_redraws_the_matrices_alone_and_redrawn_splits_everything():
    """As it is recorded: what no matrix is drawn for is the same in all repeats, or in none."""
    values = recorded("table_13_14").values().items()
    for split, same in zip(table_13_14.VARIANTS, (True, False), strict=True):
        found = [each for place, each in values if place.endswith(f"identity/svm, {split}")]
        assert {len({*repeats}) == 1 for repeats in found} == {same}
