"""What is written is what is opened, by its recipients and by nobody else; the rest is refused.

Files with one fault each, and the codes that they end in, stand in ``tests/under_fault``.
"""

import hashlib
import io
import shutil
import stat
import subprocess
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bundle.bundles import (
    AGE_KEYS,
    AGREEMENT,
    CREATED,
    ENROLLED,
    LAB,
    MAGIC,
    NORTH,
    NOW,
    SOUTH,
    TAG,
    opened,
    receipt,
    refused,
    sealed,
    unsealed,
    with_part,
    write,
    zeros,
)
from cobasis.bundle.enclosure import _Source
from cobasis.bundle.envelope import decompress, open_bundle
from cobasis.bundle.manifest import (
    PARTS,
    Expected,
    refuse_replay,
    signed_message,
)
from cobasis.bundle.seal import look
from cobasis.errors import (
    BundleError,
    ClockError,
    CobasisError,
    DiskError,
    FileChangedError,
    ForeignBundleError,
    OptionError,
    ReplayError,
    SealError,
    SecretError,
    SignatureError,
)
from cobasis.protocol.enrolment import verify
from cobasis.strict_json import canonical_json

NOISE = np.random.default_rng(0).bytes(3_000_000)
PLAIN = b'{"round":"icu-2026"}'
AGE = shutil.which("age")


@pytest.mark.parametrize("kind", sorted(PARTS))
@pytest.mark.parametrize("size", [1, 4000])
def test_every_kind_goes_there_and_back_with_all_its_parts(tmp_path, kind, size):
    parts = {name: NOISE[:size] + name.encode() for name in PARTS[kind]}
    written = write(tmp_path / "a.cb", kind=kind, parts=parts, audit={"angles": [0.5, None]})
    bundle = opened(tmp_path / "a.cb", tmp_path / "in", expected=Expected(kind=kind))
    assert bundle.manifest == written.manifest
    assert bundle.digest == written.digest
    assert written.digest == hashlib.sha256((tmp_path / "a.cb").read_bytes()).hexdigest()
    assert {name: path.read_bytes() for name, path in bundle.parts.items()} == parts
    assert bundle.manifest.audit == {"angles": [0.5, None]}
    assert {path.name for path in (tmp_path / "in").iterdir()} == set(parts)
    bundle.discard()
    assert list((tmp_path / "in").iterdir()) == []
    assert (tmp_path / "a.cb").exists()


def test_parts_larger_than_any_buffer_come_from_files_and_go_to_files(tmp_path):
    parts = {"fit.safetensors": tmp_path / "fit", "model.safetensors": NOISE[:1_500_000]}
    parts["fit.safetensors"].write_bytes(NOISE + bytes(2_000_000) + NOISE[:17])
    write(tmp_path / "a.cb", kind="return", parts=parts)
    bundle = opened(tmp_path / "a.cb", tmp_path / "in")
    assert bundle.parts["fit.safetensors"].read_bytes() == parts["fit.safetensors"].read_bytes()
    assert bundle.parts["model.safetensors"].read_bytes() == NOISE[:1_500_000]


def test_what_is_opened_and_what_is_written_is_for_its_owner_only(tmp_path):
    write(tmp_path / "a.cb")
    bundle = opened(tmp_path / "a.cb", tmp_path / "made" / "in")
    for path in (tmp_path / "a.cb", bundle.parts["receipt.json"]):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "made" / "in").stat().st_mode) == 0o700


def test_each_of_several_recipients_opens_it(tmp_path):
    write(tmp_path / "a.cb", recipients=(LAB, SOUTH))
    for by in (LAB, SOUTH):
        bundle = opened(tmp_path / "a.cb", tmp_path / by.public.name, by=by)
        assert bundle.manifest.recipients == ("lab", "south")
    assert look(tmp_path / "a.cb").n_recipients == 2


def test_without_the_key_there_is_a_number_of_recipients_and_a_size_and_no_name(tmp_path):
    write(tmp_path / "a.cb", told={"marker": "seen-nowhere"})
    data = (tmp_path / "a.cb").read_bytes()
    seal = look(tmp_path / "a.cb")
    assert (seal.n_recipients, seal.n_bytes) == (1, len(data))
    for word in (b"seen-nowhere", b"north", b"lab", b"icu-2026", b"receipt", TAG[:16].encode()):
        assert word not in data


def test_the_container_is_what_the_page_says(tmp_path):
    """Read by hand, as a reader in another language would do it."""
    written = write(tmp_path / "a.cb")
    plain = unsealed(tmp_path / "a.cb")
    assert plain.startswith(MAGIC)
    length = int.from_bytes(plain[17:21], "little")
    text, rest = plain[21 : 21 + length], plain[21 + length :]
    assert text == canonical_json(written.manifest.model_dump(), ascii_only=False)
    message = b"cobasis/bundle/1\0" + hashlib.sha256(text).digest()
    assert message == signed_message(text)
    assert verify(NORTH.public, message, signature=rest[:64])
    assert len(rest) == 64 + written.manifest.parts[0].stored_bytes


def test_the_moment_is_the_senders_clock_in_whole_seconds_utc(tmp_path):
    before = datetime.now(UTC).replace(microsecond=0)
    created = datetime.fromisoformat(write(tmp_path / "a.cb").manifest.created)
    assert before <= created <= datetime.now(UTC)


def test_what_was_drawn_from_a_seed_does_not_travel(tmp_path):
    with pytest.raises(SecretError, match="'north' was drawn from a seed"):
        write(tmp_path / "a.cb", simulated=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": {}}, "parts: "),
        (
            {"kind": "return", "parts": {"model.safetensors": b"x"}},
            "has to have a part fit.safetensors",
        ),
        ({"parts": {"other.bin": b"x"}}, "has other parts than receipt.json"),
        ({"parts": {"../receipt.json": b"x"}}, "parts.0.name"),
        ({"parts": {"receipt.json": b""}}, "parts.0.n_bytes"),
        ({"parts": {"receipt.json": bytes(2**20 + 1)}}, "1,048,576 are the most"),
        ({"kind": "upload", "parts": {"upload.safetensors": bytes(2**27)}}, "is to grow from"),
        ({"recipients": ()}, "recipients"),
        ({"sender": "../north"}, "sender"),
        ({"agreement": AGREEMENT[:-1]}, "agreement"),
        ({"told": {"share": float("nan")}}, "told"),
        ({"told": {"word": "\x1b[2J"}}, "not printable"),
        ({"audit": {"x": float("inf")}}, "not JSON"),
        ({"audit": {"x": b"bytes"}}, "not JSON"),
        ({"audit": {"x": "y" * 2**20}}, "manifest has 1,049,"),
    ],
)
def test_what_no_reader_would_take_is_not_written(tmp_path, changes, words):
    with pytest.raises(OptionError, match=words):
        write(tmp_path / "a.cb", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_changes_between_the_passes_becomes_no_bundle(tmp_path, monkeypatch):
    part = tmp_path / "part"
    for changed in (b"x" * 4999, b"x" * 5001, b"y" * 5000):
        part.write_bytes(b"x" * 5000)

        def swap(self, pieces, changed=changed):
            part.write_bytes(changed)
            self._pieces, self._rest = pieces, memoryview(b"")

        monkeypatch.setattr(_Source, "__init__", swap)
        with pytest.raises(FileChangedError, match=r"receipt\.json changed"):
            write(tmp_path / "a.cb", parts={"receipt.json": part})
        assert list(tmp_path.iterdir()) == [part]


def test_a_full_disk_is_a_disk_error_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    write(tmp_path / "a.cb")
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        with pytest.raises(DiskError, match="No space left"):
            write(tmp_path / "b.cb")
        with pytest.raises(DiskError, match="No space left"):
            opened(tmp_path / "a.cb", tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["a.cb"]


def test_a_disk_that_is_full_of_the_plain_stream_is_a_disk_error(tmp_path):
    class Full(io.RawIOBase):
        def write(self, _):
            raise OSError(28, "No space left on device")

    def unseal(source, _):
        LAB.unseal(source, Full())

    write(tmp_path / "a.cb")
    with pytest.raises(DiskError, match=r"cannot be opened into .*No space left"):
        open_with(tmp_path, unseal)
    assert [path.name for path in tmp_path.iterdir()] == ["a.cb"]


def open_with(folder, unseal):
    """Open with another way to unseal."""

    return open_bundle(folder / "a.cb", unseal=unseal, signer=ENROLLED, into=folder / "in")


def test_a_key_that_leaves_bytes_unread_does_not_hide_them(tmp_path):
    write(tmp_path / "a.cb")
    whole = (tmp_path / "a.cb").read_bytes()
    (tmp_path / "a.cb").write_bytes(whole + b"more")

    def unseal(source, target):
        LAB.unseal(io.BytesIO(source.read(len(whole))), target)

    with pytest.raises(SealError, match="longer than its seal"):
        open_with(tmp_path, unseal)
    assert not (tmp_path / "in").exists()


def test_an_interrupted_opening_leaves_nothing(tmp_path):
    def unseal(source, target):
        LAB.unseal(source, target)
        raise KeyboardInterrupt

    write(tmp_path / "a.cb")
    with pytest.raises(KeyboardInterrupt):
        open_with(tmp_path, unseal)
    assert [path.name for path in tmp_path.iterdir()] == ["a.cb"]


def test_an_age_header_without_end_is_refused_before_anything_parses_it(tmp_path):
    stanza = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"
    (tmp_path / "a.cb").write_bytes(b"age-encryption.org/v1\n" + stanza * 10_000)
    refused(tmp_path / "a.cb", SealError, "not sealed with age")


def test_a_bundle_above_the_limits_is_refused(tmp_path):
    (tmp_path / "a.cb").write_bytes(
        b"age-encryption.org/v1\n-> X25519 a\nb\n--- c\n" + bytes(10**7)
    )
    refused(tmp_path / "a.cb", BundleError, "10,000,042 bytes", max_bytes=10**6)
    refused(receipt(tmp_path / "b.cb"), BundleError, "20 bytes", max_bytes=19)
    opened(tmp_path / "b.cb", tmp_path / "in", max_bytes=20, expected=Expected(now=NOW))


def test_somebody_else_signed_it(tmp_path):
    path = receipt(tmp_path / "a.cb", by=SOUTH)
    words = refused(path, SignatureError, "from 'north', and is not signed")
    assert NORTH.public.fingerprint in words


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
    ],
)
def test_it_is_another_one_than_expected(tmp_path, wanted, words):
    path = receipt(tmp_path / "a.cb")
    refused(path, ForeignBundleError, words, expected=Expected(now=NOW, **wanted))


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
    for accepted, created, words in (
        (bundle.digest, CREATED, "came before: the same"),
        ("0" * 64, "2026-11-21T12:00:01Z", "before the one that was accepted"),
        ("0" * 64, "2026-11-21T11:59:59Z", "is a second one of 'north'"),
        ("0" * 64, CREATED, "is a second one of 'north'"),
    ):
        with pytest.raises(ReplayError, match=words):
            refuse_replay(bundle.manifest, digest=bundle.digest, accepted=accepted, created=created)


def test_what_was_there_before_a_refusal_stays(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "receipt.json").write_bytes(b"kept")
    with pytest.raises(CobasisError):
        opened(with_part(tmp_path / "a.cb", sha256="0" * 64), tmp_path / "in")
    assert [path.read_bytes() for path in (tmp_path / "in").iterdir()] == [b"kept"]


def test_nothing_beyond_the_declared_size_is_handed_on():
    """Neither the library's count nor ours lets 800 MB through to the disk."""
    written = []
    stored = zeros(800_000_000, declares=10**6)
    with pytest.raises(BundleError):
        decompress(
            io.BytesIO(stored),
            lambda data: written.append(len(data)),
            stored_bytes=len(stored),
            n_bytes=10**6,
            what="the part",
        )
    assert sum(written) <= 10**6
    assert max(written) <= 2**17


def age_tool(*options):
    done = subprocess.run([AGE, *map(str, options)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(AGE is None, reason="the tool `age` is not installed: apt-get install age")
def test_age_opens_what_we_seal(tmp_path):
    written = write(tmp_path / "a.cb")
    (tmp_path / "lab.txt").write_text(AGE_KEYS["lab"] + "\n")
    plain = age_tool("--decrypt", "-i", tmp_path / "lab.txt", tmp_path / "a.cb")
    assert plain.startswith(MAGIC)
    assert written.manifest.encoded() in plain
    assert plain == unsealed(tmp_path / "a.cb")


@pytest.mark.skipif(AGE is None, reason="the tool `age` is not installed: apt-get install age")
def test_we_open_what_age_seals(tmp_path):
    (tmp_path / "plain").write_bytes(unsealed(receipt(tmp_path / "a.cb")))
    age_tool("-r", LAB.public.recipient, "-o", tmp_path / "b.cb", tmp_path / "plain")
    assert look(tmp_path / "b.cb").n_recipients == 1
    bundle = opened(tmp_path / "b.cb", tmp_path / "in")
    assert bundle.parts["receipt.json"].read_bytes() == b'{"round":"icu-2026"}'
