"""The common span by files, and what anybody can check of a round afterwards."""

from itertools import count
from typing import get_args

import numpy as np
import pytest

from analyst_side.rounds import NAMES, real_round
from cobasis.algorithms import AlignerName
from cobasis.algorithms.base import Target
from cobasis.algorithms.certificate import FIT_TOLERANCE, fit_error
from cobasis.analyst_side.consensus import consensus
from cobasis.analyst_side.membership import remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.analyst_side.verify import verify
from cobasis.bundle.agreement_file import read_agreement, seal, write_new
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.messages import consensus_in
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.errors import OptionError, StepError
from cobasis.keys.identity import Identity
from cobasis.protocol.signatures import sign_agreement
from faults import died, dying_after


def adopted(made, name):
    """The common span as a party reads it."""
    bundle = open_bundle(
        made.folder / "consensus" / f"{name}.consensus",
        unseal=made.identities[name].unseal,
        signer=made.identities["lab"].public,
        into=made.folder / f"span-{name}",
    )
    return consensus_in(bundle, agreement=made.agreement)


def signed(made):
    """The agreement as a sealed file."""
    path = made.folder / "icu.toml"
    fields = {name: getattr(made.agreement, name) for name in type(made.agreement).model_fields}
    write_new(path, fields=fields)
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


def test_a_round_with_a_common_span_runs_by_files(consensual):
    made = consensual
    for name in NAMES:
        made.proposal(name)
    found = consensus(made.desk(), made.folder / "spans", to=made.folder / "consensus")
    assert (found.contributors, found.missing) == (NAMES, ())
    for name in NAMES:
        made.upload(name, consensus=adopted(made, name))
    assert not receive(made.desk(), made.inbox).refused
    ran = run(made.desk(), to=made.returns)
    assert set(ran.concluded.outcome.target_carries) == set(NAMES)


def test_once_made_the_span_stays_and_late_parties_get_it_too(consensual):
    made = consensual
    for name in NAMES[:3]:
        made.proposal(name)
    to = made.folder / "consensus"
    first = consensus(made.desk(), made.folder / "spans", to=to)
    assert (first.contributors, first.missing) == (NAMES[:3], ("west",))
    rows = adopted(made, "west").rows
    made.proposal("west")
    again = consensus(made.desk(), made.folder / "spans", to=to)
    assert again.contributors == NAMES[:3]
    np.testing.assert_array_equal(adopted(made, "north").rows, rows)


def test_too_few_proposals_are_refused_with_who_is_missing(consensual):
    made = consensual
    made.proposal("north")
    made.proposal("south")
    (made.folder / "spans" / "x.span").write_bytes(b"junk")
    with pytest.raises(StepError, match=r"Missing: east, west; refused: x.span \(CB801\)"):
        consensus(made.desk(), made.folder / "spans", to=made.folder / "consensus")


def test_killed_anywhere_the_span_is_one_and_the_same_for_all(tmp_path):
    made = real_round(tmp_path, basis="consensus")
    for name in NAMES:
        made.proposal(name)
    spans, to = made.folder / "spans", made.folder / "consensus"
    consensus(made.desk(), spans, to=to)
    wanted = adopted(made, "north").rows
    for number in count(1, 6):  # the slow tests under fault take each
        (made.work.path / "transcript.jsonl").unlink()
        made.work.consensus.unlink(missing_ok=True)
        if not died(dying_after, number, lambda: consensus(made.desk(), spans, to=to)):
            break
        consensus(made.desk(), spans, to=to)
        for name in NAMES:
            np.testing.assert_allclose(adopted(made, name).rows, wanted, rtol=0, atol=1e-12)
    assert number > 60


def test_a_round_without_common_span_makes_none(tmp_path):
    made = real_round(tmp_path)
    with pytest.raises(StepError, match="takes no common span"):
        consensus(made.desk(), made.folder, to=made.folder)


@pytest.fixture
def done(tmp_path):
    made = real_round(tmp_path)
    made.file = signed(made)
    made.uploads()
    receive(made.desk(), made.inbox)
    run(made.desk(), to=made.work.path / "returns")
    return made


def kinds(verified):
    found = {}
    for each in verified.findings:
        found.setdefault(each.what, []).append(each.code)
    return found


def test_a_whole_round_verifies_fits_included(done):
    remove(done.desk(), "west", to=done.work.path / "returns")
    assert not (done.work.path / "returns" / "west.return").exists()
    found = verify(done.file, done.work.path)
    assert not found.failed
    assert {what: len(codes) for what, codes in kinds(found).items()} == {
        "agreement": 1,
        "transcript": 1,
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
    for path in (done.work.transcript, *done.work.receipts.iterdir()):
        (folder / path.name).write_bytes(path.read_bytes())
    found = verify(done.file, folder)
    assert not found.failed
    assert kinds(found) == {"agreement": [""], "transcript": [""], "receipt": [""] * 4}
    assert list(found.heads) == [str(folder / "transcript.jsonl")]


def test_every_kind_of_change_is_found_and_named(done):
    work = done.work
    good = {path: path.read_bytes() for path in work.path.rglob("*") if path.is_file()}
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
        "receipt": (lambda: flip(work.receipt("north")), "CB80"),
        "upload": (lambda: flip(work.sealed("north")), "CB603"),
        "payload": (lambda: flip(work.payload("north")), "CB603"),
        "return": (lambda: flip(work.path / "returns" / "north.return"), "CB603"),
        "fit": (bend, "CB207"),
    }
    for what, (change, code) in cases.items():
        change()
        failed = verify(done.file, work.path).failed
        assert [each for each in failed if each.what == what and each.code.startswith(code)], what
        for path, data in good.items():
            path.write_bytes(data)
    assert not verify(done.file, work.path).failed


def test_a_receipt_of_somebody_else_is_found(done):
    other = real_round(done.folder / "other", names=NAMES)
    other.folder.mkdir()
    other.upload("north")
    receive(other.desk(), other.inbox)
    path = done.work.receipts / "forged.receipt"
    path.write_bytes(other.work.receipt("north").read_bytes())
    failed = verify(done.file, done.work.path).failed
    assert [(each.what, each.name, each.code) for each in failed] == [
        ("receipt", "forged.receipt", "CB802")
    ]


def test_an_agreement_that_was_changed_after_signing_is_found(done):
    text = done.file.read_text()
    done.file.write_text(text.replace('"a test"', '"another purpose"'))
    failed = {each.what: each.code for each in verify(done.file, done.work.path).failed}
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
    receive(made.desk(), made.inbox)
    run(made.desk(), to=made.returns)
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
    made.identities["lab"] = Identity.new("lab")
    with pytest.raises(Exception, match=r"is not the one.*\[CB702\]"):
        made.desk()
