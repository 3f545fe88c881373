"""The common span by files, and what anybody can check of a round afterwards."""

import shutil
from typing import get_args

import numpy as np
import pytest

from analyst_side.rounds import NAMES, real_round
from cobasis.algorithms import AlignerName
from cobasis.algorithms.certificate import FIT_TOLERANCE, fit_error
from cobasis.algorithms.fits import Target
from cobasis.analyst_side.membership import remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.analyst_side.verify import verify
from cobasis.bundle.agreement_file import read_agreement, seal
from cobasis.bundle.agreement_text import new_text
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.messages import consensus_in
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.errors import OptionError, WaitingError
from cobasis.keys.identity import Identity
from cobasis.protocol.signatures import sign_agreement


def adopted(made, name):
    """The common span as a party reads it."""
    bundle = open_bundle(
        made.reply(name, 0),
        unseal=made.identities[name].unseal,
        signer=made.identities["lab"].public,
        into=made.folder / f"span-{name}",
    )
    return consensus_in(bundle, agreement=made.agreement)


def signed(made):
    """The agreement as a sealed file."""
    path = made.folder / "icu.toml"
    fields = {name: getattr(made.agreement, name) for name in type(made.agreement).model_fields}
    path.write_text(new_text(fields))
    agreement = read_agreement(path).agreement
    made.agreement = agreement
    everybody = [*agreement.parties, "lab"]
    seal(
        path,
        [sign_agreement(agreement, name=n, sign=made.identities[n].sign) for n in everybody],
    )
    return path


@pytest.fixture
def consensual(tmp_path):
    return real_round(tmp_path, basis="consensus")


def verdicts(found):
    return {each.file: each.code or each.verdict for each in found.files}


def spanned(made, names=NAMES, **options):
    """Everybody's proposals, received and made one span of."""
    for name in names:
        made.proposal(name)
    assert not receive(made.session(), [made.inbox]).refused
    return run(made.session(), **options)


def test_a_round_with_a_common_span_runs_by_files_in_two_exchanges(consensual):
    made = consensual
    found = spanned(made)
    assert (found.plan.members, set(found.written)) == (NAMES, set(NAMES))
    assert set(made.news().receipts_of(1)) == set(NAMES)
    assert len(made.news().ended) == 1
    for name in NAMES:
        made.upload(name, consensus=adopted(made, name))
    assert not receive(made.session(), [made.inbox]).refused
    ran = run(made.session())
    assert set(ran.concluded.outcome.target_carries) == set(NAMES)
    assert (len(made.news().ended), set(made.news().receipts_of(2))) == (2, set(NAMES))


def test_once_made_the_span_stays_and_late_parties_get_it_too(consensual):
    made = consensual
    first = spanned(made, NAMES[:3], without=["west"])
    assert (first.plan.members, first.plan.without) == (NAMES[:3], ("west",))
    rows = adopted(made, "west").rows
    made.proposal("west")
    late = receive(made.session(), [made.inbox])
    assert verdicts(late)["west.proposal"] == "CB804"
    assert "send 'west' the file outbox/icu.west.1-span" in late.refused[0].reason
    made.reply("north", 0).unlink()
    again = run(made.session())
    assert (again.plan.members, set(again.written)) == (NAMES[:3], {"north"})
    assert "waits for the upload of east, north, south" in again.plan.waits
    np.testing.assert_array_equal(adopted(made, "north").rows, rows)
    with pytest.raises(WaitingError):  # nothing is lost now
        run(made.session())


def test_an_upload_before_the_span_is_refused_with_its_exchange(consensual):
    made = consensual
    for name in NAMES:
        made.proposal(name)
    other = real_round(made.folder, identities=made.identities, secret=made.secret)
    prepared = other.party("north").prepare(*made.rows["north"])
    digest, tag = made.agreement.digest(), made.secret.anchor_tag(made.agreement)
    forged = type(prepared)(**{**vars(prepared), "agreement_digest": digest, "anchor_tag": tag})
    made.party("north").prepare = lambda *_, **__: forged
    made.upload("north", file="early.upload")
    found = receive(made.session(), [made.inbox])
    assert verdicts(found)["early.upload"] == "CB804"
    assert (
        "of exchange 2 of 2, and exchange 1 ('proposal') has not ended" in found.refused[0].reason
    )


def test_too_few_proposals_are_refused_with_who_is_missing(consensual):
    made = consensual
    made.proposal("north")
    made.proposal("south")
    (made.inbox / "x.span").write_bytes(b"junk")
    assert verdicts(receive(made.session(), [made.inbox]))["x.span"] == "CB801"
    with pytest.raises(WaitingError, match="waits for the proposal of east, west"):
        run(made.session())


@pytest.fixture
def done(tmp_path):
    made = real_round(tmp_path)
    made.file = signed(made)
    made.uploads()
    receive(made.session(), [made.inbox])
    run(made.session())
    return made


def kinds(verified):
    found = {}
    for each in verified.findings:
        found.setdefault(each.what, []).append(each.code)
    return found


def test_a_whole_round_verifies_fits_included(done):
    remove(done.session(), "west")
    assert not done.reply("west").exists()
    found = verify(done.file, done.folder)
    assert not found.failed
    assert {what: len(codes) for what, codes in kinds(found).items()} == {
        "agreement": 1,
        "transcript": 1,
        "news": 1,
        "receipt": 4,
        "upload": 3,
        "payload": 3,
        "return": 3,
        "removal": 2,
        "fit": 3,
    }


def test_anybody_verifies_transcript_and_receipts_without_a_key(done, tmp_path):
    folder = tmp_path / "transcript"
    folder.mkdir()
    for path in (done.work.transcript, done.folder / "icu.news"):
        (folder / path.name).write_bytes(path.read_bytes())
    found = verify(done.file, folder)
    assert not found.failed
    assert kinds(found) == {
        "agreement": [""],
        "transcript": [""],
        "news": [""],
        "receipt": [""] * 4,
    }
    assert list(found.heads) == [str(folder / "transcript.jsonl")]


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

    cases = {
        "transcript": (lambda: flip(work.transcript), "CB807"),
        "news": (lambda: flip(done.folder / "icu.news"), "CB80"),
        "upload": (lambda: flip(done.sealed("north")), "CB603"),
        "payload": (lambda: flip(work.payload("north")), "CB603"),
        "return": (lambda: flip(done.reply("north")), "CB603"),
        "fit": (bend, "CB207"),
    }
    for what, (change, code) in cases.items():
        change()
        failed = verify(done.file, done.folder).failed
        assert [each for each in failed if each.what == what and each.code.startswith(code)], what
        for path, data in good.items():
            path.write_bytes(data)
    assert not verify(done.file, done.folder).failed


def test_a_receipt_of_somebody_else_is_found(done):
    other = real_round(done.folder / "other", names=NAMES)
    other.folder.mkdir()
    other.upload("north")
    receive(other.session(), [other.inbox])
    forged = other.news().receipts_of(1)["north"]
    told = done.news().model_copy(update={"receipts": (forged,)})
    (other.folder / "icu.news").write_bytes(told.text(done.identities["lab"].sign))
    (done.folder / "other" / "icu.news").replace(done.folder / "forged.news")
    shutil.rmtree(other.folder)
    failed = verify(done.file, done.folder).failed
    assert [(each.what, each.name, each.code) for each in failed] == [
        ("receipt", "north, exchange 1", "CB802")
    ]


def test_an_agreement_that_was_changed_after_signing_is_found(done):
    text = done.file.read_text()
    done.file.write_text(text.replace('"a test"', '"another purpose"'))
    failed = {each.what: each.code for each in verify(done.file, done.folder).failed}
    assert failed["agreement"] == "CB303"  # it differs from the sealed one beside it
    done.file.with_name("icu.sealed.toml").unlink()
    failed = {each.what: each.code for each in verify(done.file, done.folder).failed}
    assert failed["agreement"] == "CB311"


def test_a_folder_without_anything_to_check_is_refused(done, tmp_path):
    with pytest.raises(OptionError, match="nothing"):
        verify(done.file, tmp_path / "inbox")
    with pytest.raises(OptionError, match="no folder"):
        verify(done.file, tmp_path / "nowhere")


@pytest.mark.parametrize("aligner", get_args(AlignerName))
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_every_method_passes_the_fit_check_and_no_other_matrix_does(tmp_path, aligner, precision):
    made = real_round(tmp_path, aligner=aligner, precision=precision)
    made.file = signed(made)
    made.uploads()
    receive(made.session(), [made.inbox])
    run(made.session())
    found = verify(made.file, made.work.path)
    assert kinds(found)["fit"] == [""] * 4
    rng = np.random.default_rng(0)
    image, target = rng.normal(size=(2, 8, 3))
    method = made.agreement.make_aligner()
    fits = method.fits({"north": image}, Target(rows=target, shaped_by=("north",)))
    good, options = fits["north"].change_of_basis, {"target": target, "kind": method.fit_kind}
    assert fit_error(image, good, **options) < 1e-13
    for wrong in (
        good * (1 + 1e-9),
        good + 1e-9 * rng.normal(size=good.shape),
        good @ np.diag([1.0, 1.0, -1.0]),
        np.eye(3),
        good * np.nan,
    ):
        assert fit_error(image, wrong, **options) > FIT_TOLERANCE


def test_another_key_than_the_enrolled_analysts_opens_no_desk(tmp_path):
    made = real_round(tmp_path)
    made.identities["lab"] = Identity.new("lab", role="analyst")
    with pytest.raises(Exception, match=r"is not the one.*\[CB702\]"):
        made.session()
