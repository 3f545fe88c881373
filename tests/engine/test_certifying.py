"""The certificate from files is the one from memory, and refuses the same."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cobasis import ODC, Agreement, Analyst, ConsortiumSecret, Party, numeric_features
from cobasis.bundle.uploads import write_upload
from cobasis.engine.alignments import align_folder
from cobasis.engine.certifying import certify_folder
from cobasis.errors import (
    FitCheckError,
    MessageError,
    NotFiniteError,
    PrivacyWarning,
    ScaleError,
    UnknownPartyError,
)
from cobasis.store.folder import UploadFolder

NAMES = ("east", "north", "south", "west", "middle")


def uploads_of(folder: Path, *, spoil=None, anchor: str = "isometric"):
    """Write five parties' uploads, one of them changed on the way, and return their agreement."""
    secret = ConsortiumSecret()
    agreement = Agreement(
        round_id="r",
        parties=NAMES,
        task="regression",
        features=numeric_features([f"f{i}" for i in range(12)]),
        n_components=4,
        n_anchor_rows=20,
        model="ridge",
        anchor=anchor,
        commitment=secret.commitment("r"),
    )
    rng = np.random.default_rng(0)
    spread = np.geomspace(10, 0.1, 12)
    folder.mkdir()
    made = {}
    for name in NAMES:
        rows = rng.normal(size=(200, 12)) * spread
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            party = Party(name, agreement=agreement, secret=secret)
        made[name] = party.prepare(rows, rows.sum(axis=1))
        if name == "south" and spoil is not None:
            spoil(made[name])
        write_upload(made[name], folder / f"{name}.safetensors")
    return agreement, made


@pytest.mark.parametrize("anchor", ["isometric", "uniform"])
def test_it_is_the_analysts(tmp_path, anchor):
    agreement, made = uploads_of(tmp_path / "uploads", anchor=anchor)
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(reference="east"), to=tmp_path / "fits")
    seen = []
    found = certify_folder(
        uploads, alignment, agreement=agreement, report=lambda *step: seen.append(step)
    )
    analyst = Analyst(agreement, aligner=ODC(reference="east"))
    for name in sorted(made):
        analyst.receive(made[name])
    analyst.align()
    expected = analyst.certify()
    assert found.chance == expected.chance
    for name, figures in expected.parties.items():
        mine = found.parties[name]
        assert mine.evidence == figures.evidence
        assert mine.correlation == (
            None if anchor == "uniform" else pytest.approx(figures.correlation, rel=1e-9)
        )
        for field in ("residual", "scale", "image_scale", "smallest_cosine"):
            assert getattr(mine, field) == pytest.approx(getattr(figures, field), rel=1e-9)
    assert ("certifying", 5, 5) in seen


def test_a_forged_change_of_basis_is_refused_by_name(tmp_path):
    agreement, _ = uploads_of(tmp_path / "uploads")
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    turned = replace(alignment.fits["south"], change_of_basis=np.eye(4))
    forged = replace(alignment, fits=alignment.fits.changed("south", turned))
    with pytest.raises(FitCheckError, match=r"of party 'south' is not the fit.*\[CB207\]$"):
        certify_folder(uploads, forged, agreement=agreement)


def test_rows_on_another_scale_are_refused_by_name(tmp_path):
    def larger(upload):
        upload.rows[:] *= 1000

    agreement, _ = uploads_of(tmp_path / "uploads", spoil=larger)
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    with pytest.raises(ScaleError, match=r"the rows of party 'south'.*\[CB309\]$"):
        certify_folder(uploads, alignment, agreement=agreement)


def test_uploads_of_another_agreement_are_refused_by_name(tmp_path):
    agreement, made = uploads_of(tmp_path / "uploads")
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    other = agreement.model_copy(update={"n_anchor_rows": 24})
    with pytest.raises(MessageError, match=r"party '\w+' belongs to another agreement"):
        certify_folder(uploads, alignment, agreement=other)
    write_upload(replace(made["east"], party="nobody"), tmp_path / "uploads" / "x.safetensors")
    with pytest.raises(UnknownPartyError, match="'nobody'"):
        UploadFolder(tmp_path / "uploads").check(agreement)
    (tmp_path / "uploads" / "x.safetensors").unlink()
    narrow = replace(made["east"], anchor_image=made["east"].anchor_image[:-1])
    write_upload(narrow, tmp_path / "uploads" / "east.safetensors")
    with pytest.raises(MessageError, match=r"party 'east' holds .* image of shape \(19, 4\)"):
        UploadFolder(tmp_path / "uploads").check(agreement)


def test_an_upload_of_another_agreement_that_is_left_out_does_not_stop_certification(tmp_path):
    agreement, made = uploads_of(tmp_path / "uploads")
    foreign = replace(made["east"], party="guest", agreement_digest=bytes(32))
    write_upload(foreign, tmp_path / "uploads" / "guest.safetensors")
    uploads = UploadFolder(tmp_path / "uploads")
    with pytest.raises(UnknownPartyError, match="'guest'"):
        uploads.check(agreement)
    images = uploads.anchor_images(excluded=["guest"])
    alignment = align_folder(images, aligner=ODC(), to=tmp_path / "fits")
    found = certify_folder(uploads, alignment, agreement=agreement)
    assert set(found.parties) == set(NAMES)


def test_a_late_party_that_is_not_in_the_folder_is_refused_by_name(tmp_path):
    agreement, made = uploads_of(tmp_path / "uploads")
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    late = alignment.add("late", made["east"].anchor_image)
    with pytest.raises(UnknownPartyError, match="'late'"):
        certify_folder(uploads, late, agreement=agreement)


def test_rows_that_are_not_finite_are_refused_by_name(tmp_path):
    def poisoned(upload):
        upload.rows[3, 2] = np.nan

    agreement, _ = uploads_of(tmp_path / "uploads", spoil=poisoned)
    uploads = UploadFolder(tmp_path / "uploads")
    alignment = align_folder(uploads, aligner=ODC(), to=tmp_path / "fits")
    with pytest.raises(NotFiniteError, match=r"the rows of party 'south' contain NaN.*\[CB101\]$"):
        certify_folder(uploads, alignment, agreement=agreement)
