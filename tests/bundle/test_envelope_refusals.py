"""One fault per bundle, each with its code; nothing is left where it was to be opened."""

import os
from datetime import timedelta

import pytest

from bundle.bundles import (
    CREATED,
    ENROLLED,
    LAB,
    MAGIC,
    NORTH,
    NOW,
    SOUTH,
    opened,
    receipt,
    refused,
    sealed,
    unsealed,
    with_part,
    write,
)
from cobasis.bundle.envelope import Expected, Limits, look
from cobasis.bundle.manifest import AcceptedFile, refuse_replay
from cobasis.errors import (
    BundleError,
    ClockError,
    CobasisError,
    DiskError,
    ForeignBundleError,
    ReplayError,
    SealError,
    SignatureError,
)
from cobasis.keys.identity import Identity

PLAIN = b'{"round":"icu-2026"}'


def test_the_hand_made_bundle_is_taken_when_nothing_is_wrong_with_it(tmp_path):
    bundle = opened(receipt(tmp_path / "a.cb"), tmp_path / "in", expected=Expected(now=NOW))
    assert bundle.parts["receipt.json"].read_bytes() == PLAIN


def test_it_is_not_sealed_for_this_key(tmp_path):
    write(tmp_path / "a.cb", recipients=(SOUTH,))
    refused(tmp_path / "a.cb", SealError, "not sealed for this key")


@pytest.mark.parametrize("data", [b"", b"age", b"x" * 5000, b"PK\x03\x04" + bytes(99), MAGIC * 9])
def test_it_is_not_sealed_at_all(tmp_path, data):
    (tmp_path / "a.cb").write_bytes(data)
    refused(tmp_path / "a.cb", SealError, "not sealed with age")


def test_an_age_header_without_end_is_refused_before_anything_parses_it(tmp_path):
    stanza = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"
    (tmp_path / "a.cb").write_bytes(b"age-encryption.org/v1\n" + stanza * 10_000)
    refused(tmp_path / "a.cb", SealError, "not sealed with age")


def test_it_is_no_file(tmp_path):
    refused(tmp_path / "a.cb", DiskError, "cannot be read")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", DiskError, "it is no file")


@pytest.mark.parametrize(
    "plain",
    [b"", MAGIC[:5], MAGIC, MAGIC + b"\0\0", MAGIC + bytes(4), b"cobasis/bundle/2\n" + bytes(99)],
)
def test_there_is_no_bundle_under_the_seal(tmp_path, plain):
    refused(sealed(tmp_path / "a.cb", plain), BundleError, "cannot be used")


@pytest.mark.parametrize("after", [b"\0", b"\n", bytes(5000)])
def test_bytes_behind_the_last_part_are_refused(tmp_path, after):
    path = receipt(tmp_path / "a.cb", after=after)
    refused(path, BundleError, "bytes long inside, and its manifest says")


@pytest.mark.parametrize("after", [b"\0", b"\n", bytes(100_000)])
def test_bytes_behind_the_seal_are_refused(tmp_path, after):
    path = receipt(tmp_path / "a.cb")
    path.write_bytes(path.read_bytes() + after)
    refused(path, SealError)


def test_a_bundle_above_the_limits_is_refused(tmp_path):
    (tmp_path / "a.cb").write_bytes(
        b"age-encryption.org/v1\n-> X25519 a\nb\n--- c\n" + bytes(10**7)
    )
    refused(tmp_path / "a.cb", BundleError, "10,000,042 bytes", limits=Limits(n_bytes=10**6))
    refused(receipt(tmp_path / "b.cb"), BundleError, "20 bytes", limits=Limits(n_bytes=19))
    opened(
        tmp_path / "b.cb", tmp_path / "in", limits=Limits(n_bytes=20), expected=Expected(now=NOW)
    )


def test_somebody_else_signed_it(tmp_path):
    path = receipt(tmp_path / "a.cb", by=SOUTH)
    words = refused(path, SignatureError, "from 'north', and is not signed")
    assert NORTH.public.fingerprint in words
    refused(receipt(tmp_path / "b.cb", by=Identity.new("north")), SignatureError)


def test_a_manifest_that_was_changed_after_it_was_signed_is_refused(tmp_path):
    plain = unsealed(receipt(tmp_path / "a.cb"))
    for old, new in ((b'"north"', b'"south"'), (b"icu-2026", b"icu-2027"), (PLAIN, PLAIN)):
        sealed(tmp_path / "b.cb", plain.replace(old, new, 1))
        if old != new:
            refused(tmp_path / "b.cb", SignatureError, "not signed with the key")
    opened(tmp_path / "b.cb", tmp_path / "in", expected=Expected(now=NOW))


def test_its_sender_is_not_enrolled_or_was_revoked(tmp_path):
    path = receipt(tmp_path / "a.cb")
    without = {name: each for name, each in ENROLLED.items() if name != "north"}
    refused(path, SignatureError, "'north', who is not among", signer=without)
    refused(path, SignatureError, "'north', who is not among", signer=SOUTH.public)
    assert opened(path, tmp_path / "in", signer=NORTH.public, expected=Expected(now=NOW))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"kind": "return"}, "is of kind 'receipt', and kind 'return' is expected"),
        ({"round_id": "icu-2027"}, "is of round 'icu-2026', not of round 'icu-2027'"),
        ({"agreement": "0" * 64}, "its agreement is another .0001"),
        ({"sender": "south"}, "is from 'north', not from 'south'"),
        ({"recipient": "south"}, "is for lab, not for 'south'; somebody passed it on"),
        ({"anchor_tag": "0" * 64}, "belongs to another anchor"),
        ({"simulated": True}, "is of a real round"),
    ],
)
def test_it_is_another_one_than_expected(tmp_path, wanted, words):
    path = receipt(tmp_path / "a.cb")
    refused(path, ForeignBundleError, words, expected=Expected(now=NOW, **wanted))


def test_what_was_drawn_from_a_seed_does_not_enter_a_real_round(tmp_path):
    path = receipt(tmp_path / "a.cb", simulated=True)
    refused(path, ForeignBundleError, "is drawn from a seed")


def test_a_bundle_that_was_sealed_again_for_somebody_else_is_refused(tmp_path):
    """The analyst cannot pass a party's bundle on as if it had been meant for another."""
    sealed(tmp_path / "b.cb", unsealed(receipt(tmp_path / "a.cb")), to=SOUTH)
    wanted = Expected(now=NOW, recipient="south")
    refused(tmp_path / "b.cb", ForeignBundleError, "passed it on", by=SOUTH, expected=wanted)


def test_clocks_may_differ_by_two_days_and_not_by_more(tmp_path):
    path = receipt(tmp_path / "a.cb")  # made at NOW
    two, second = timedelta(hours=48), timedelta(seconds=1)
    for wanted in (
        Expected(now=NOW - two),
        Expected(now=NOW + 100 * two),
    ):
        assert opened(path, tmp_path / "in", expected=wanted).manifest.created == CREATED
        opened(path, tmp_path / "in", expected=wanted).discard()
    (tmp_path / "in").rmdir()
    late = Expected(now=NOW - two - second)
    refused(path, ClockError, "more than 48 hours after now, 2026-11-19T11:59:59Z", expected=late)


def test_an_upload_counts_once(tmp_path):
    bundle = opened(receipt(tmp_path / "a.cb"), tmp_path / "in", expected=Expected(now=NOW))
    refuse_replay(bundle.manifest, digest=bundle.digest, accepted=None)
    for digest, created, words in (
        (bundle.digest, CREATED, "came before: the same"),
        ("0" * 64, "2026-11-21T12:00:01Z", "before the one that was accepted"),
        ("0" * 64, "2026-11-21T11:59:59Z", "is a second one of 'north'"),
        ("0" * 64, CREATED, "is a second one of 'north'"),
    ):
        with pytest.raises(ReplayError, match=words):
            refuse_replay(
                bundle.manifest,
                digest=bundle.digest,
                accepted=AcceptedFile(digest=digest, created=created),
            )


def test_what_was_there_before_a_refusal_stays(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "receipt.json").write_bytes(b"kept")
    with pytest.raises(CobasisError):
        opened(with_part(tmp_path / "a.cb", sha256="0" * 64), tmp_path / "in")
    assert [path.read_bytes() for path in (tmp_path / "in").iterdir()] == [b"kept"]


def test_two_thousand_recipients_are_looked_through(tmp_path):
    path = receipt(tmp_path / "a.cb")
    start, rest = path.read_bytes().split(b"\n", 1)
    stanza = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"
    path.write_bytes(start + b"\n" + stanza * 2000 + rest)
    assert look(path).n_recipients == 2001
    refused(path, SealError, by=LAB)
