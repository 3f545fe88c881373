"""What is written is what is opened, by its recipients and by nobody else."""

import hashlib
import io
import stat
from datetime import UTC, datetime

import numpy as np
import pytest

from bundle.bundles import (
    AGREEMENT,
    ENROLLED,
    LAB,
    MAGIC,
    NORTH,
    SOUTH,
    TAG,
    draft,
    opened,
    unsealed,
    write,
)
from cobasis.bundle.enclosure import _Source
from cobasis.bundle.envelope import Expected, look, write_bundle
from cobasis.bundle.manifest import PARTS, signed_message
from cobasis.errors import DiskError, FileChangedError, OptionError, SealError, SecretError
from cobasis.protocol.enrolment import verify
from cobasis.strict_json import canonical_json

NOISE = np.random.default_rng(0).bytes(3_000_000)


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


def test_what_was_drawn_from_a_seed_travels_in_simulation_only(tmp_path):
    path = tmp_path / "a.cb"
    with pytest.raises(SecretError, match="'north' was drawn from a seed"):
        write(path, simulated=True)
    assert list(tmp_path.iterdir()) == []
    write_bundle(
        path,
        draft=draft(simulated=True),
        parts={"receipt.json": b"{}"},
        sign=NORTH.sign,
        recipients=[LAB.public],
        simulation=True,
    )
    assert opened(path, tmp_path / "in", expected=Expected(simulated=True)).manifest.simulated


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parts": {}}, "parts: "),
        (
            {"kind": "return", "parts": {"model.safetensors": b"x"}},
            "has to have a part fit.safetensors",
        ),
        ({"parts": {"other.bin": b"x"}}, "has other parts than other.bin"),
        ({"parts": {"../receipt.json": b"x"}}, "has other parts than"),
        ({"parts": {"receipt.json": b""}}, "receipt.json is empty"),
        ({"parts": {"receipt.json": bytes(2**20 + 1)}}, "1,048,576 are the most"),
        ({"kind": "upload", "parts": {"upload.safetensors": bytes(2**27)}}, "nearly all are alike"),
        ({"recipients": ()}, "recipients"),
        ({"recipients": (LAB, LAB)}, "name somebody twice"),
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
    from cobasis.bundle.envelope import open_bundle  # noqa: PLC0415 -- used once

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
