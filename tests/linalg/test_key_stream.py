from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from aligners import GOLDEN, STEADY, key_of
from cobasis.errors import SecretError
from cobasis.linalg.rng import KeyStream, haar_columns

KEY = bytes(range(32))
UNLIKELY = 1e-4


def stream(label: str = "golden", key: bytes = KEY) -> KeyStream:
    return KeyStream(key, label)


def test_bytes_and_a_permutation_are_golden_over_block_ends():
    """ChaCha20 of zeros, keyed through HKDF-SHA256; checked once against both RFCs' own steps."""
    golden = (
        "528e2c1908f6a5e5684d73989d8c13ca0be85bf5de503a43c55a5fc6bf3d502e"
        "ad5ba6416e6e5926c1206df2ca7c83b745704c7a2457c403ab20167a47061735"
        "40484e9dd3e77679"
    )
    assert stream().words(9).astype("<u8").tobytes().hex() == golden
    assert stream().permutation(10).tolist() == [6, 4, 3, 7, 2, 8, 9, 5, 1, 0]


@given(cuts=st.lists(st.integers(0, 90), max_size=6))
@STEADY
def test_the_stream_does_not_depend_on_how_it_is_cut(cuts):
    source = stream()
    joined = [word for cut in cuts for word in source.words(cut)]
    assert joined == list(stream().words(sum(cuts)))


def test_numbers_are_the_leading_bits_of_words_through_the_inverse_distribution():
    """53 bits for uniform numbers, 52 for normal ones, against the standard library's inverse."""
    words = [int(word) for word in stream().words(200)]
    assert (stream().uniform((2, 3)) * 2**53).ravel().tolist() == [word >> 11 for word in words[:6]]
    inverse = NormalDist().inv_cdf
    expected = [inverse(((word >> 12) + 0.5) / 2**52) for word in words]
    np.testing.assert_allclose(stream().normal((200,)), expected, rtol=GOLDEN)


def test_the_extreme_words_give_finite_normal_numbers(monkeypatch):
    """A word of zeros or of ones, one draw in 2**52, must not become infinite."""
    source = stream()
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr(source, "words", lambda _: extremes)
    low, high = source.normal((2,))
    assert low == -high
    assert 8 < high < 9
    assert list(source.uniform((2,))) == [0.0, 1 - 2.0**-53]


def test_labels_and_keys_give_independent_streams():
    first = stream("golden").normal((4000,))
    for other in (stream("golden2"), stream("golden", key_of(1))):
        assert abs(np.corrcoef(first, other.normal((4000,)))[0, 1]) < 5 / np.sqrt(4000)
    assert stream("other").words(2).tobytes().hex() == "ab03192cc3de99be1e08d6775d3f47db"


@pytest.mark.parametrize(
    "key",
    [7, "0" * 32, None, bytes(31), bytes(33), bytearray(32), b"hunter2"],
    ids=lambda key: type(key).__name__ + str(len(key) if hasattr(key, "__len__") else ""),
)
def test_anything_but_32_bytes_is_refused_and_no_key_is_shown(key):
    got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
    with pytest.raises(SecretError, match=rf"{got}, .*32 random bytes.*\[CB301\]") as raised:
        KeyStream(key, "label")
    assert "hunter2" not in str(raised.value)
    assert repr(stream()) == "<KeyStream, hidden>"


def test_haar_columns_follow_the_haar_law_and_need_the_sign_fix():
    """In three dimensions a coordinate of a random direction is uniform (Archimedes)."""
    fixed = lambda source: haar_columns(source, n_rows=3, n_columns=3)  # noqa: E731
    for draw in (fixed, lambda source: np.linalg.qr(source.normal((3, 3)))[0]):
        drawn = [np.diag(draw(stream(f"trace/{at}"))) for at in range(1500)]
        tests = [kstest(place, "uniform", args=(-1, 2)) for place in np.transpose(drawn)]
        assert all(each.pvalue > UNLIKELY for each in tests) == (draw is fixed)
