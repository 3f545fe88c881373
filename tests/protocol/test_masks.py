"""Masked sums: nobody reads less than the total, and the total is exact."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cobasis.errors import MessageError, OptionError, SecretError, StepError
from cobasis.protocol.baseline import TableLayout
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.scores import ScoreLayout
from cobasis.protocol.totals import Layout, checked, ones_and
from protocol.summed import KEYS, LAYOUT, NAMES, OCCASION, PUBLIC, added, message, rows_of, sums_of

WORD = 2**64
VECTORS = Path(__file__).parents[2] / "docs" / "reference" / "sums-vectors.json"


def mask(told, one, two, *, count):
    """A pair's words as the reference page says, from one's private and two's public key."""
    private = X25519PrivateKey.from_private_bytes(bytes.fromhex(one["private_key"]))
    public = bytes.fromhex(two["public_key"])
    pair = sorted((one, two), key=told["parties"].index)
    words = [told["format"], told["round_id"], str(told["exchange"]), str(told["attempt"])]
    parts = [each.encode() for each in (*words, *(each["name"] for each in pair))]
    parts += [bytes.fromhex(each["public_key"]) for each in pair]
    info = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    seed = HKDF(SHA256(), 32, salt=bytes.fromhex(told["salt"]), info=info).derive(shared)
    key = HKDF(SHA256(), 32, salt=None, info=b"cobasis/1/mask").derive(seed)
    drawn = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * count))
    return [int.from_bytes(drawn[at : at + 8], "little") for at in range(0, 8 * count, 8)]


def test_the_published_vectors_are_what_this_code_makes_and_follow_from_the_reference_page():
    told = json.loads(VECTORS.read_text())
    assert told["format"] == "cobasis/sums/1"
    layout = {name: each for name, each in asdict(LAYOUT).items() if name != "bare"}
    assert (told["layout"], told["bits"]) == (layout | {"n_features": [2]}, LAYOUT.bits)
    assert told["salt"] == LAYOUT.digest().hex()
    assert {name: told[name] for name in OCCASION} == OCCASION
    assert {each["name"]: each["public_key"] for each in told["parties"]} == PUBLIC
    n_words = len(told["parties"][0]["sums"])
    total = [0] * n_words
    for one in told["parties"]:
        rows = rows_of(one["name"])
        assert one["rows"] == rows.tolist()
        unit = 2 ** told["bits"]
        table = [[unit, *(int(each * unit) for each in row)] for row in one["rows"]]
        pairs = [(i, j) for i in range(4) for j in range(i, 4)]
        exact = [sum(row[i] * row[j] for row in table) for i, j in pairs]
        assert one["sums"] == exact == sums_of(rows).tolist()
        words = list(one["sums"])
        for two in told["parties"]:
            if two is not one:
                sign = 1 if told["parties"].index(one) < told["parties"].index(two) else -1
                drawn = mask(told, one, two, count=n_words)
                words = [(a + sign * b) % WORD for a, b in zip(words, drawn, strict=True)]
        assert one["masked"] == words == message(one["name"]).tolist()
        total = [(a + b) % WORD for a, b in zip(total, words, strict=True)]
    right = [sum(each["sums"][at] for each in told["parties"]) for at in range(n_words)]
    assert total == [each % WORD for each in right]


def test_the_total_is_exact_and_any_two_of_three_files_show_nothing():
    messages = {name: message(name) for name in NAMES}
    total = sum(sums_of(rows_of(name)) for name in NAMES)
    assert np.array_equal(added(messages.values()), total)
    assert checked(LAYOUT, total, n_waves=[0]).n_rows == 12
    for missing in NAMES:
        some = added(each for name, each in messages.items() if name != missing)
        assert np.abs(some).astype(np.float64).max() > 2**50  # of rows it would be below 2**46
        with pytest.raises(MessageError, match="what no rows have"):
            checked(LAYOUT, some, n_waves=[0])


def test_a_stream_begun_anew_for_each_map_shows_their_difference_and_one_stream_does_not():
    maps = [sums_of(rows_of(name)) for name in NAMES[:2]]
    anew = [message("north", sums=each) for each in maps]
    assert np.array_equal(anew[1] - anew[0], (maps[1] - maps[0]).view(np.uint64))
    first, second = np.split(message("north", sums=np.hstack(maps)), 2)
    assert not np.any(second - first == anew[1] - anew[0])


@pytest.mark.parametrize(
    "changes",
    [{"round_id": "icu-2027"}, {"exchange": 2}, {"attempt": 2}, {"salt": bytes(32)}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_file_that_was_masked_for_something_else_voids_the_total(changes):
    files = [message("north", **changes), message("south"), message("east")]
    with pytest.raises(MessageError, match=r"Nobody can say whose.*\[CB306\]"):
        checked(LAYOUT, added(files), n_waves=[0])


def test_a_key_that_is_none_or_not_in_the_roster_is_refused():
    with pytest.raises(MessageError, match="'south' is none"):
        message("north", keys={**PUBLIC, "south": bytes(32).hex()})
    with pytest.raises(StepError, match="nothing would cancel"):
        message("north", keys={**PUBLIC, "north": MaskKey().public})
    with pytest.raises(SecretError, match="MaskKey"):
        MaskKey(b"short")
    assert KEYS["north"].public not in repr(KEYS["north"])


WRONG = {
    "a count that is no whole number": (0, 1),
    "more squares than rows": (4, 2**50),
    "a negative square": (4, -(2**50)),
    "no Gram matrix": (1, 2**43),
    "too many rows": (0, 2**40 * 1000),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_total_that_no_rows_have_is_refused(wrong):
    total = sum(sums_of(rows_of(name)) for name in NAMES)
    at, more = WRONG[wrong]
    total[at] += more
    with pytest.raises(MessageError, match="what no rows have"):
        checked(LAYOUT, total, n_waves=[0])


def test_classes_that_do_not_add_up_and_pairs_off_the_circle_are_refused():
    layout = Layout(n_features=(2, 2), n_targets=2, one_hot=True, most_rows=100)
    angles, labels = np.arange(20.0), (np.arange(20) % 3 == 0).astype(int)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])

    def total(first, second, targets):
        parts = [sums_of(np.hstack([each, targets]), layout) for each in (first, second)]
        return checked(layout, np.concatenate(parts), n_waves=[1, 1])

    hot = np.eye(2)[labels]
    assert total(circle, circle, hot).n_rows == 20
    unlike = [(circle, bad) for bad in (hot * [1, 0], hot * 0 + 1, hot * 0.5, hot * 0 + 0.5)]
    for off, targets in (*unlike, (circle * 0.9, hot), (circle * 0 + 0.9, hot)):
        with pytest.raises(MessageError, match="what no rows have"):
            total(circle, off, targets)
    one, two = (sums_of(np.hstack([circle, each]), layout) for each in (hot, 1 - hot))
    numbers = Layout(n_features=(2, 2), n_targets=1, one_hot=False, most_rows=100)
    whole = sums_of(np.hstack([circle, hot[:, :1]]), numbers)
    less = whole - (np.arange(len(whole)) == 0) * 4**layout.bits  # a row in one map alone
    for kind, words in ((layout, (one, two)), (numbers, (whole, less)), (layout, (0 * one,) * 2)):
        with pytest.raises(MessageError, match="what no rows have"):
            checked(kind, np.concatenate(words), n_waves=[1, 1])


def test_no_total_leaves_62_bits_and_a_sum_has_the_same_bits_in_any_order():
    for most_rows in (1, 2**22, 2**22 + 1, 10**12):
        layout = Layout(n_features=(3,), n_targets=1, one_hot=False, most_rows=most_rows)
        assert most_rows * 4**layout.bits <= 2**62
        assert layout.bits == 20 or (most_rows + 1) * 4 ** (layout.bits + 1) > 2**62
        table = TableLayout(features=(), n_bins=1, n_groups=1, most_rows=most_rows)
        for each in (table, ScoreLayout(n_classes=2, most_rows=most_rows)):
            assert most_rows * 2**each.bits <= 2**62
    rng = np.random.default_rng(0)
    table = rng.uniform(0.9, 1, size=(20_000, 4))  # their squares add up beyond 2**53
    assert np.array_equal(sums_of(table), sums_of(rng.permutation(table)))


@pytest.mark.parametrize("bad", [1.0001, -2.0, np.nan, np.inf])
def test_numbers_beyond_their_range_are_refused(bad):
    with pytest.raises(OptionError, match="no numbers from -1 to 1"):
        ones_and(np.array([[0.5, bad]]), np.zeros((1, 1)), bits=20)
