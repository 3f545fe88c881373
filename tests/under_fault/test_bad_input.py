"""Files with one fault each: every one is refused with its code, at once, and leaves nothing."""

import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from bundle.bundles import craft, described, undeclared, write, zeros
from cobasis.protocol.signatures import sign_agreement
from party_side.sites import PEOPLE, consortium
from under_fault import (
    in_bundles,
    in_files,
    in_returns,
    in_text,
    in_uploads,
)
from under_fault.vectors import Lab, outcome_of

MOST_SECONDS, MOST_MEMORY = 2, 256 * 2**20
UPLOADS = (
    *(in_uploads.numbers, in_uploads.labels, in_uploads.images, in_uploads.shapes),
    *(in_uploads.types, in_files.texts, in_files.names, in_files.places),
    *(in_files.says, in_files.others),
    *(in_bundles.manifests, in_bundles.parts, in_bundles.texts),
    *(in_bundles.clocks, in_bundles.signatures, in_bundles.seals),
)
RETURNS = (in_returns.fits, in_returns.returns, in_returns.models, in_returns.secrets)
TEXTS = (in_text.agreements, in_text.signature_files, in_text.news, in_text.transcripts)


@pytest.fixture(scope="module")
def lab(in_memory):
    return Lab(in_memory)


@pytest.fixture(scope="module")
def patch():
    with pytest.MonkeyPatch.context() as made:
        yield made


@pytest.fixture(scope="module")
def site(in_memory, patch):
    (in_memory / "site").mkdir()
    return in_returns.Site(in_memory / "site", patch)


@pytest.fixture(scope="module")
def good(in_memory, patch):
    """A good file of each kind that people can read."""
    (in_memory / "good").mkdir()
    made = consortium(in_memory / "good", patch)
    signed = sign_agreement(made.agreement, name="north", sign=PEOPLE["north"].sign)
    return {
        "agreement": made.agreement_path.read_bytes(),
        "signature": signed.text().encode(),
        "news": in_text.good_news(),
        "transcript": in_text.transcript(),
    }


@pytest.fixture
def path(in_memory):
    """Where each vector stands, alone in its folder."""
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        yield Path(folder) / "a.upload"


def group(function):
    return f"{function.__module__.rpartition('_')[2]}-{function.__name__}"


def wrongly_decided(vectors, path, *, of, decide):
    """Vectors with another outcome than they expect, or that took too long; any crash is one."""
    wrong = {}
    for each in vectors:
        each.make(of(each), path)
        begin = time.process_time()  # others may keep the machine busy
        outcome = decide(each)
        seconds = time.process_time() - begin
        if outcome != each.expect or seconds > MOST_SECONDS:
            wrong[each.name] = outcome, each.expect, seconds
        path.unlink(missing_ok=True)
    return wrong


@pytest.mark.parametrize("vectors", UPLOADS, ids=group)
def test_uploads_are_refused_with_their_codes_and_nothing_of_them_is_kept(lab, vectors, path):
    wrong = wrongly_decided(
        vectors(), path, of=lambda _: lab, decide=lambda each: lab.received(path, of=each.of)
    )
    assert wrong == {}
    assert lab.left() == []
    assert lab.lines() == {1}  # no upload was acknowledged


@pytest.mark.parametrize("vectors", RETURNS, ids=group)
def test_returns_models_and_secrets_are_refused_and_the_party_keeps_what_it_had(
    site, vectors, path
):
    wrong = wrongly_decided(
        vectors(), path, of=lambda _: site, decide=lambda each: site.decided(path, each.of)
    )
    assert wrong == {}
    assert site.state() == site.before


@pytest.mark.parametrize("vectors", TEXTS, ids=group)
def test_agreements_signatures_news_and_transcripts_are_refused(good, vectors, path):
    wrong = wrongly_decided(
        vectors(), path, of=lambda each: good[each.of], decide=lambda each: read(each.of, path)
    )
    assert wrong == {}


def read(kind, path):
    return outcome_of(lambda: in_text.GROUPS[kind](path))


def test_there_are_a_thousand_vectors_and_more_and_none_of_them_twice(tell):
    names = [each.name for make in (*UPLOADS, *RETURNS, *TEXTS) for each in make()]
    assert [name for name, times in Counter(names).items() if times > 1] == []
    assert len(names) >= 1000
    tell(f"bad input: {len(names)} files with one fault each")


def test_what_is_changed_is_good_before_and_odd_numbers_and_clocks_are_accepted(
    lab, site, good, path
):
    """Else the vectors would be refused for something else."""
    for kind in lab.rounds:
        lab.seal(path, of=kind)
        assert elsewhere(lab, path, of=kind) == "accepted"
    for each in (*in_uploads.odd(), *in_bundles.in_time()):
        each.make(lab, path)
        assert elsewhere(lab, path, of=each.of) == each.expect == "accepted", each.name
    site.returned(path)
    for kind, data in good.items():
        path.write_bytes(data)
        assert read(kind, path) == "accepted"


def elsewhere(lab, path, *, of):
    """Receive into a work folder of its own, so that the others stay empty."""
    made = lab.rounds[of]
    kept = made.folder
    with tempfile.TemporaryDirectory(dir=kept) as place:
        made.folder = Path(place)
        try:
            return lab.received(path, of=of)
        finally:
            made.folder = kept


def bomb(path, stored, *, says):
    """An upload, rightly signed, that says it has `says` bytes."""
    manifest = described({"upload.safetensors": (b"x", stored)}, kind="upload")
    manifest["parts"][0]["n_bytes"] = says
    craft(path, manifest, stored)


def test_bombs_of_a_thousand_to_a_million_times_are_refused_in_little_memory(warm, tmp_path):
    """In a child of its own, whose memory is measured."""
    write(tmp_path / "good.bomb")
    for power in (6, 7, 8, 9):
        size = 10**power
        honest = zeros(size, declares=size)
        bomb(tmp_path / f"honest-{power}.bomb", honest, says=size)
        bomb(tmp_path / f"small-{power}.bomb", honest, says=1000)
        bomb(tmp_path / f"lying-{power}.bomb", zeros(size, declares=1000), says=1000)
        bomb(tmp_path / f"huge-{power}.bomb", zeros(size, declares=2**63), says=size)
    bomb(tmp_path / "undeclared.bomb", undeclared(bytes(10**8)), says=10**6)
    twice = zeros(10**9, declares=10**9)[:20_000]
    bomb(tmp_path / "cut.bomb", twice, says=10**7)
    codes, grown, left = warm.ask("bombs", folder=str(tmp_path))
    assert codes.pop("good.bomb") == "accepted"
    assert len(codes) == 18
    assert set(codes.values()) == {"CB803"}
    assert grown < MOST_MEMORY
    assert left == ["receipt.json"]  # of the good one
