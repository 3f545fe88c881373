"""What the analyst refuses: one coded error each, and nothing half done."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cobasis import Analyst, simulate
from cobasis.algorithms import AlignerName
from cobasis.errors import (
    AgreementError,
    AnchorImageError,
    AnchorTagError,
    DuplicatePartyError,
    FitCheckError,
    MessageError,
    RemoteError,
    ScaleError,
    UndeterminedFitError,
)
from protocol.consortium import NAMES, consortium, receiving, simulated, state


@pytest.fixture(scope="module")
def made():
    return consortium()


@pytest.fixture(scope="module")
def uploads(made):
    return made.uploads()


FORGERIES = {  # in memory; files of every fault stand in tests/under_fault
    "rows of text": lambda u: {"rows": u.rows.astype(str)},
    "rows missing": lambda _: {"rows": None},
    "image of one dimension": lambda _: {"anchor_image": np.ones(8)},
    "image of rank two": lambda u: {"anchor_image": u.anchor_image @ np.diag([1, 1, 0])},
}


def refuse(analyst, upload, error, words="of party"):
    before = state(analyst)
    with pytest.raises(error, match=words) as caught:
        analyst.receive(upload)
    assert str(caught.value).endswith(f"[{error.code}]")
    assert caught.value.exit_code == (3 if issubclass(error, RemoteError) else 2)
    assert state(analyst) == before


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_upload_is_refused_and_changes_nothing_in_time_or_late(made, uploads, forgery):
    analyst = Analyst(made.agreement)
    forged = replace(uploads["north"], **FORGERIES[forgery](uploads["north"]))
    error = AnchorImageError if "rank" in forgery else MessageError
    analyst.receive(uploads["south"])
    refuse(analyst, forged, error)
    analyst.align()
    analyst.certify()
    refuse(analyst, forged, error)
    analyst.receive(uploads["north"])
    refuse(analyst, uploads["north"], DuplicatePartyError, "party 'north' is in already")
    assert tuple(analyst.uploads) == ("south", "north")


def test_unequal_anchor_tags_are_refused_by_groups(made, uploads):
    tagged = {name: replace(uploads[name], anchor_tag=b"another") for name in ("south", "west")}
    analyst = receiving(made.agreement, {**uploads, **tagged}.values())
    before = state(analyst)
    with pytest.raises(AnchorTagError, match=r"different anchors: north, east \| south, west"):
        analyst.align()
    assert state(analyst) == before
    for name in tagged:  # who stops a run can be left out
        analyst.remove(name)
    assert set(analyst.run()) == {"north", "east"}
    in_time = receiving(made.agreement, {name: uploads[name] for name in NAMES[:3]}.values())
    in_time.align()
    refuse(in_time, tagged["west"], AnchorTagError, r"\| west")


@pytest.mark.parametrize(("of_rows", "of_image"), [(1000.0, 1.0), (1e-3, 1.0), (1000.0, 1000.0)])
def test_another_scale_is_refused_by_name_where_no_wider_band_is_agreed(
    made, uploads, of_rows, of_image
):
    east = uploads["east"]
    scaled = {"rows": east.rows * of_rows, "anchor_image": east.anchor_image * of_image}
    analyst = receiving(made.agreement, {**uploads, "east": replace(east, **scaled)}.values())
    with pytest.raises(ScaleError, match=r"of party 'east' are more than 10 times.*CB309"):
        analyst.run()
    analyst.remove("east")
    assert set(analyst.run()) == {"north", "south", "west"}
    wide = consortium(scale_band=1e4)
    sent = wide.uploads()
    sent["east"] = replace(sent["east"], rows=of_rows * sent["east"].rows)
    assert set(receiving(wide.agreement, sent.values()).run()) == set(NAMES)


def test_a_change_of_basis_that_is_not_the_fit_is_refused_by_name(made, uploads):
    analyst = receiving(made.agreement, uploads.values())
    fits = analyst.align().fits
    turned = replace(fits["south"], change_of_basis=-fits["south"].change_of_basis)
    exchanged = {**fits, "south": turned}
    analyst._alignment = replace(analyst.alignment, fits=exchanged)
    analyst.certify()
    with pytest.raises(FitCheckError, match=r"of party 'south' is not the fit.*CB207"):
        analyst.train()


@pytest.mark.parametrize("aligner", get_args(AlignerName))
def test_a_party_with_nothing_in_common_is_refused_by_every_aligner(aligner):
    """Disjoint features under an isometric anchor: nothing corresponds to anything."""
    rng = np.random.default_rng(0)
    rows = {}
    for name in "abcd":
        table = np.zeros((40, 12))
        columns = slice(6, 12) if name == "d" else slice(0, 6)
        table[:, columns] = rng.normal(size=(40, 6)) * [9, 8, 7, 0.1, 0.1, 0.1]
        rows[name] = (table, np.arange(40) % 2)
    with pytest.raises(UndeterminedFitError, match=r"'d'.*\[CB205\]$") as caught:
        simulate(rows, rng=rng, n_components=3, aligner=aligner)
    assert caught.value.parties == ("d",)


@pytest.mark.parametrize("aligner", ["imakura", "kawakami", "whitened"])
def test_an_oblique_basis_is_not_taken_for_an_undetermined_one(aligner):
    """A_i' Z is as ill-conditioned as E_i; the angles between the spans do not see E_i."""
    rng = np.random.default_rng(1)
    rows = {name: (rng.normal(size=(90, 60)), np.arange(90) % 2) for name in "abcd"}
    options = {"span_condition": "diffspan", "model": "ridge", "aligner": aligner}
    analyst = simulate(rows, rng=rng, n_components=45, **options).analyst
    target, told = analyst.alignment.target.rows, analyst.certificate.parties
    cond = {name: np.linalg.cond(analyst.uploads[name].anchor_image.T @ target) for name in told}
    assert max(each.smallest_cosine * cond[name] for name, each in told.items()) > 10


def test_a_model_that_carries_rows_is_for_simulated_uploads_behind_a_flag():
    analyst = consortium(model="svm").received()
    with pytest.raises(ValueError, match=r"SVC stores training rows.*\[CB401\]$"):
        analyst.run()
    with pytest.raises(ValueError, match=r"allow_row_carrying is for simulations.*\[CB401\]$"):
        analyst.run(allow_row_carrying=True)
    done = simulated(model="svm", allow_row_carrying=True)
    assert hasattr(done.parties["north"]._return.model.estimator, "support_vectors_")


def test_a_party_with_fewer_rows_than_were_agreed_takes_no_part():
    few = consortium(fewest_rows=31, basis="consensus")
    party, (rows, labels) = few.parties["north"], few.rows["north"]
    for send in (lambda: party.propose(rows), lambda: party.prepare(rows, labels)):
        with pytest.raises(AgreementError, match=r"fewer rows to send than fewest_rows=31.*CB303"):
            send()
    enough = consortium(fewest_rows=20)
    sent = enough.parties["north"].prepare(*enough.rows["north"])
    enough.analyst.receive(replace(sent, rows=sent.rows[:20], labels=sent.labels[:20]))
    cut = replace(sent, party="south", rows=sent.rows[:19], labels=sent.labels[:19])
    with pytest.raises(MessageError, match="'south' holds fewer rows than fewest_rows=20"):
        enough.analyst.receive(cut)
