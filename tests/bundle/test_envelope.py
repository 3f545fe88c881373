import hashlib
import io
import json
import re
import stat
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from bundle.bundles import (
    LAB,
    MAGIC,
    NORTH,
    NOW,
    SOUTH,
    TAG,
    craft,
    described,
    draft,
    opened,
    receipt,
    refused,
    unsealed,
    write,
)
from cobasis.bundle.envelope import _Source
from cobasis.bundle.manifest import PARTS, Expected, signed_message
from cobasis.bundle.seal import look
from cobasis.errors import (
    BundleError,
    DiskError,
    FileChangedError,
    OptionError,
    SealError,
    SecretError,
)
from cobasis.protocol.enrolment import verify
from cobasis.strict_json import canonical_json

NOISE = np.random.default_rng(0).bytes(3_000_000)


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_every_kind_goes_there_and_back_with_all_its_parts(tmp_path, kind):
    """From memory or from files, and larger than any buffer where it may be."""
    most = {name: min(size - 100, 2_000_000) for name, size in PARTS[kind].items()}
    parts = {name: NOISE[:size] + name.encode() for name, size in most.items()}
    part, first = tmp_path / "part", next(iter(parts))
    part.write_bytes(parts[first])
    given, audit = parts | {first: part}, {"angles": [0.5, None]}
    digest = write(tmp_path / "a.cb", kind=kind, parts=given, audit=audit)
    bundle = opened(tmp_path / "a.cb", tmp_path / "in", expected=Expected(kind=kind))
    assert bundle.manifest.told == draft()["told"]
    assert bundle.digest == digest
    assert digest == hashlib.sha256((tmp_path / "a.cb").read_bytes()).hexdigest()
    assert {name: path.read_bytes() for name, path in bundle.parts.items()} == parts
    assert bundle.manifest.audit == {"angles": [0.5, None]}
    assert set((tmp_path / "in").iterdir()) == set(bundle.parts.values())
    for path in (tmp_path / "a.cb", *bundle.parts.values()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "in").stat().st_mode) == 0o700


def test_each_recipient_opens_it_and_without_a_key_there_is_their_number_a_size_and_no_name(
    tmp_path,
):
    write(tmp_path / "a.cb", recipients=(LAB, SOUTH), told={"marker": "seen-nowhere"})
    for by in (LAB, SOUTH):
        bundle = opened(tmp_path / "a.cb", tmp_path / by.public.name, by=by)
        assert bundle.manifest.recipients == ("lab", "south")
    data = (tmp_path / "a.cb").read_bytes()
    assert look(tmp_path / "a.cb") == 2
    for word in (b"seen-nowhere", b"north", b"lab", b"icu-2026", b"receipt", TAG[:16].encode()):
        assert word not in data


def test_the_container_is_what_the_page_says(tmp_path):
    """Read by hand, as a reader in another language would do it."""
    before = datetime.now(UTC).replace(microsecond=0)
    write(tmp_path / "a.cb")
    plain = unsealed(tmp_path / "a.cb")
    assert plain.startswith(MAGIC)
    length = int.from_bytes(plain[17:21], "little")
    text, rest = plain[21 : 21 + length], plain[21 + length :]
    told = json.loads(text)
    assert before <= datetime.fromisoformat(told["created"]) <= datetime.now(UTC)
    assert text == canonical_json(told, ascii_only=False)
    message = b"cobasis/bundle/1\0" + hashlib.sha256(text).digest()
    assert message == signed_message(text)
    assert verify(NORTH.public, message, signature=rest[:64])
    part = b'{"round":"icu-2026"}'
    assert rest[64:] == part + bytes(4096 - 21 - length - 64 - len(part))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": {"other.bin": b"x"}}, "has other parts than receipt.json"),
        ({"parts": {"receipt.json": bytes(2**20 + 1)}}, "1,048,576 are the most"),
        ({"audit": {"x": "y" * 2**20}}, "of its 1,049,"),
        ({"simulated": True}, "'north' was drawn from a seed"),
    ],
)
def test_what_no_reader_would_take_and_what_was_drawn_from_a_seed_is_not_written(
    tmp_path, changes, words
):
    with pytest.raises(SecretError if "simulated" in changes else OptionError, match=words):
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


def test_an_odd_manifest_is_refused_in_words_for_people_with_its_fields_by_name(tmp_path):
    odd: dict = {"kind": 7, "agreement": "x", "recipients": [], "told": {"a": {}}, "pickle": "x"}
    with pytest.raises(BundleError) as told:
        opened(craft(tmp_path / "a.cb", described({}, **odd)), tmp_path / "in")
    for name in (
        "kind: it has to be 'pro",
        "agreement: it has other letters",
        "recipients: it has",
    ):
        assert name in str(told.value)
    assert not re.search(r"Input|valid|pattern|after|string", str(told.value))


def test_an_opening_that_is_broken_off_leaves_nothing(tmp_path):
    path = tmp_path / "a.cb"
    write(path)
    whole, full = path.read_bytes(), Mock()
    full.write.side_effect = OSError(28, "No space left on device")

    def interrupted(source, target):
        LAB.unseal(source, target)
        raise KeyboardInterrupt

    def reads_too_little(source, target):
        LAB.unseal(io.BytesIO(source.read(len(whole))), target)

    for more, unseal, error, words in (
        (b"", lambda source, _: LAB.unseal(source, full), DiskError, "cannot be opened: No space"),
        (b"", interrupted, KeyboardInterrupt, "^$"),
        (b"more", reads_too_little, SealError, "longer than its seal"),
    ):
        path.write_bytes(whole + more)
        refused(path, error, words, by=SimpleNamespace(unseal=unseal), expected=None)


def test_a_bundle_above_the_limits_is_refused(tmp_path):
    (tmp_path / "a.cb").write_bytes(
        b"age-encryption.org/v1\n-> X25519 a\nb\n--- c\n" + bytes(10**7)
    )
    refused(tmp_path / "a.cb", BundleError, "10,000,042 bytes", max_bytes=10**6)
    refused(receipt(tmp_path / "b.cb"), BundleError, "20 bytes", max_bytes=19)
    opened(tmp_path / "b.cb", tmp_path / "in", max_bytes=20, expected=Expected(now=NOW))
