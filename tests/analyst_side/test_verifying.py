"""What anybody can check of a round, and what only its analyst can."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from analyst_side.rounds import real_round
from cobasis.analyst_side.verify import verify
from cobasis.bundle.transcript import Transcript
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.errors import OptionError
from cobasis.protocol.signatures import Receipt, sign_receipt


def concluded(folder, **changes):
    folder.mkdir(exist_ok=True)
    made = real_round(folder, **changes)
    made.write()
    made.uploads()
    made.receive()
    made.run()
    return made


@pytest.fixture
def done(tmp_path):
    return concluded(tmp_path)


def test_where_nothing_of_a_round_is_it_is_refused(done):
    for folder, words in ((done.inbox, "nothing"), (done.folder / "nowhere", "no folder")):
        with pytest.raises(OptionError, match=words):
            verify(done.path, folder)


def test_a_folder_that_may_not_be_read_is_named_and_does_not_count_as_nothing(done, monkeypatch):
    scandir = os.scandir

    def refused(path):  # as for anybody but root
        if Path(path).name == "icu.round":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    [failed] = verify(done.path, done.folder).failed
    assert (failed.what, failed.name) == ("folder", "icu.round")
    assert "Permission denied" in failed.reason


def test_fits_that_cannot_be_checked_are_named_beside_what_can(done):
    n_findings = len(verify(done.path, done.folder).findings)
    for end in ("payloads/west", "alignment/*/fits-00000", "alignment/*/target"):
        [file] = done.work.path.glob(f"{end}.safetensors")
        whole = file.read_bytes()
        file.write_bytes(whole[:100])
        found = verify(done.path, done.folder)
        assert found.failed[-1].what == "fits", end
        assert len(found.findings) == n_findings - 3  # one in place of four
        file.write_bytes(whole)


def test_every_kind_of_change_is_found_and_named(done):
    work = done.work
    good = {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()}
    target = next(work.alignments.rglob("target.safetensors"))
    tables, header = read_tables(target)

    def flip(path):
        data = bytearray(good[path])
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    def bend():
        write_tables(target, {"rows": tables["rows"][::-1]}, metadata=header.metadata)

    def edit():
        done.path.write_text(good[done.path].decode().replace('"a test"', '"another purpose"'))

    def forge(*, by="lab", **fields):
        made = done.news().receipts_of(1)["north"].receipt.model_copy(update=fields)
        told = {"receipts": (sign_receipt(made, done.identities[by].sign),)}
        told = done.news().model_copy(update=told).text(done.identities["lab"].sign)
        (done.folder / "icu.news").write_bytes(told)

    for what, code, change in (
        ("transcript", "CB807", lambda: flip(work.transcript)),
        ("news", "CB80", lambda: flip(done.folder / "icu.news")),
        ("receipt", "CB802", lambda: forge(by="east")),
        ("receipt", "CB807", lambda: forge(transcript="0" * 64)),  # of a line that is not there
        ("upload", "CB603", lambda: flip(done.sealed("north"))),
        ("payload", "CB603", lambda: flip(work.payload("north"))),
        ("return", "CB603", lambda: flip(done.reply("north"))),
        ("fit", "CB207", bend),
        ("agreement", "CB303", edit),  # it differs from the sealed one beside it
    ):
        change()
        failed = verify(done.path, done.folder).failed
        assert [each for each in failed if each.what == what and each.code.startswith(code)], what
        for path, data in good.items():
            path.write_bytes(data)
    assert not verify(done.path, done.folder).failed
    done.path.with_name("icu.sealed.toml").unlink()
    failed = verify(done.path, done.folder).failed
    assert [(each.what, each.code) for each in failed] == [("agreement", "CB311")]


def test_fits_by_least_squares_to_images_in_few_bits_are_checked_too(tmp_path):
    made = concluded(tmp_path, aligner="imakura", precision="fp32")
    found = verify(made.path, made.work.path).findings
    assert [each.holds for each in found if each.what == "fit"] == [True] * 4


def test_what_somebody_made_up_fails_by_name_and_hides_nothing_else(done):
    digest = done.agreement.digest().hex()
    words = {*Receipt.model_fields, "signature"}
    noted = {**done.news().receipts_of(1)["north"].receipt.model_dump(), "signature": "0" * 128}
    made_up = (
        [("opened", {})],
        [("x", {**dict.fromkeys(words, "z"), "agreement": digest}), ("x", noted)],
        [("opened", {"agreement": digest}), ("received", {"party": "west"})],
        [("opened", {"agreement": digest}), ("run", {"returns": 3})],
        [("opened", {"agreement": "00"})],
    )
    for at, lines in enumerate(made_up):
        transcript = Transcript((done.folder, done.work.path)[at // 4] / f"{at}.jsonl")
        for event, told in lines:
            transcript.append(event, told)
    (done.folder / "removal-west.json").write_text(
        '{"format":"cobasis/removal/1","removal":{"party":1e999},"signature":"00"}'
    )
    found = verify(done.path, done.folder)
    failed = Counter((each.what, each.code) for each in found.failed)
    once = dict.fromkeys((("receipt", "CB807"), ("receipt", "CB802"), ("removal", "CB807")), 1)
    assert failed == {("transcript", "CB807"): 3, **once}
    assert sum(each.what == "fit" for each in found.findings) == 4


def test_another_round_in_the_same_folder_or_a_copy_of_this_agreement_changes_nothing(done):
    alone = verify(done.path, done.folder)
    other = concluded(done.folder / "other", round_id="other")
    other.remove("west")
    for path in (*other.folder.glob("icu.*"), *other.outbox.glob("icu.*")):
        path.rename(done.folder / path.name.replace("icu", "icu.other"))
    shutil.rmtree(other.folder)
    shutil.copy(done.path, done.folder / "icu.west.toml")
    beside = verify(done.path, done.folder)
    assert (beside.findings, beside.chains) == (alone.findings, alone.chains)
    copy = shutil.copy(done.folder / "icu.sealed.toml", done.inbox / "a.toml")
    copied = verify(copy, done.folder).findings
    assert {"transcript", "news", "receipt"} < {each.what for each in copied}
