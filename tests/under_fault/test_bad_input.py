import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from bundle.bundles import craft, described, write
from under_fault import in_bundles, in_files, in_returns, in_text, in_uploads, jobs
from under_fault.vectors import Lab

MOST_SECONDS, MOST_MEMORY = 2, 256 * 2**20
UPLOADS = (
    *(in_uploads.numbers, in_uploads.images, in_uploads.shapes, in_uploads.types),
    *(in_files.texts, in_files.places, in_files.says, in_files.others),
    *(in_bundles.manifests, in_bundles.bundles, in_bundles.clocks, in_bundles.seals),
)
RETURNS = (
    *(in_returns.fits, in_returns.returns, in_returns.models),
    *(in_returns.cards, in_returns.secrets),
)
TEXTS = (in_text.agreements, in_text.signature_files, in_text.news, in_text.transcripts)
DOORS = {"analyst": UPLOADS, "party": RETURNS, "reader": TEXTS}
GROUPS = [(door, group) for door, groups in DOORS.items() for group in groups]


@pytest.fixture(scope="module")
def doors(in_memory):
    """Who is given files: each says what it decided, and whether it keeps what it should not."""
    with pytest.MonkeyPatch.context() as patch:
        for name in DOORS:
            (in_memory / name).mkdir()
        yield {
            "analyst": Lab(in_memory / "analyst"),
            "party": in_returns.Site(in_memory / "party", patch),
            "reader": in_text.Reader(in_memory / "reader", patch),
        }


@pytest.fixture
def path(in_memory):
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        yield Path(folder) / "a.upload"


@pytest.mark.parametrize(
    ("door", "vectors"), GROUPS, ids=lambda each: getattr(each, "__name__", each)
)
def test_every_file_is_refused_at_once_with_its_code_and_nothing_of_it_is_kept(
    doors, door, vectors, path
):
    wrong, door = {}, doors[door]
    for each in vectors():
        each.make(door, path)
        begin = time.process_time()  # others may keep the machine busy
        outcome = door.decided(path, each.of)
        seconds = time.process_time() - begin
        if outcome != each.expect or seconds > MOST_SECONDS:
            wrong[each.name] = outcome, each.expect, seconds
        path.unlink(missing_ok=True)
    assert wrong == {}
    assert door.kept() == door.before


def test_there_are_a_thousand_vectors_and_more_and_none_of_them_twice(tell):
    names = [each.name for _, make in GROUPS for each in make()]
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert len(names) >= 1000
    tell(f"bad input: {len(names)} files with one fault each")


def test_what_is_changed_is_good_before_and_odd_numbers_and_clocks_are_accepted(doors, path):
    """Else the vectors would be refused for something else."""
    lab, reader = doors["analyst"], doors["reader"]
    for kind in lab.rounds:
        lab.seal(path, of=kind)
        assert elsewhere(lab, path, of=kind) == "accepted"
    for each in (*in_uploads.odd(), *in_bundles.in_time()):
        each.make(lab, path)
        assert elsewhere(lab, path, of=each.of) == each.expect == "accepted", each.name
    doors["party"].returned(path)
    for kind, data in reader.good.items():
        path.write_bytes(data)
        assert reader.decided(path, kind) == "accepted"


def elsewhere(lab, path, *, of):
    """Receive into a work folder of its own, so that the others stay empty."""
    made = lab.rounds[of]
    with tempfile.TemporaryDirectory(dir=made.folder) as place:
        there = {of: replace(made, folder=Path(place))}
        with mock.patch.dict(lab.rounds, there):
            return lab.decided(path, of)


def test_what_says_that_it_is_up_to_a_million_times_larger_is_refused_in_little_memory(
    warm, tmp_path
):
    """In a child of its own, whose memory is measured."""
    write(tmp_path / "good.bomb")
    for power in (6, 7, 8, 9, 13):
        manifest = described({"upload.safetensors": bytes(1000)}, kind="upload")
        manifest["parts"][0]["n_bytes"] = 10**power
        craft(tmp_path / f"{power}.bomb", manifest, bytes(1000))
    codes, grown, left = warm.ask(jobs.bombs, folder=str(tmp_path))
    assert codes.pop("good.bomb") == "accepted"
    assert list(codes.values()) == ["CB803"] * 5
    assert grown < MOST_MEMORY
    assert left == ["receipt.json"]  # of the good one
