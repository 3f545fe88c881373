"""What comes back is refused unless it is the analyst's, for this party and round, and sound."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    ClockError,
    CobasisError,
    FitCheckError,
    ForeignBundleError,
    MessageError,
    ReplayError,
    SealError,
    SignatureError,
    StepError,
    VaultError,
)
from cobasis.keys.identity import Identity
from cobasis.party_side.accepted import usable
from cobasis.party_side.exporting import export_onnx
from cobasis.party_side.predicting import predict
from cobasis.party_side.preview import make_ready
from cobasis.party_side.receiving import accept
from cobasis.party_side.scoring import score
from cobasis.party_side.secret import join
from cobasis.party_side.send import prepare
from cobasis.protocol.messages import Return
from party_side.sites import NAMES, Consortium, frame


@pytest.fixture
def returns(uploaded):
    site, paths = uploaded
    return site, site.as_files(site.analyst_of(paths).run())


def changed(returned: Return, **fields) -> Return:
    return Return(**{**vars(returned), **fields})


def refused(site: Consortium, path: Path, error: type[CobasisError], match: str) -> None:
    """Nothing is kept, and nothing lies open, after a refusal."""
    with pytest.raises(error, match=match):
        accept(site.desk("north"), path)
    desk = site.desk("north")
    assert desk.round.accepted() is None
    assert not (desk.work / "opened").exists()
    assert verify_transcript(desk.transcript.path).entries[-1].event == "prepared"


def test_another_partys_return_is_not_opened(returns):
    site, made = returns
    refused(site, site.return_file(made["south"]), SealError, "not sealed for this key")


def test_a_return_for_another_that_was_sealed_for_us_is_foreign(returns):
    site, made = returns
    path = site.sealed(
        site.enclosed(made["south"]), site.folder("north") / "x.return", name="north"
    )
    refused(site, path, ForeignBundleError, "return of 'south'")


def test_a_return_that_somebody_else_signed_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"], sign=Identity.new("lab").sign)
    refused(site, path, SignatureError, "over another channel")


def test_a_return_from_the_future_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"], created=datetime.now(UTC) + timedelta(hours=49))
    refused(site, path, ClockError, "48 hours")


def test_a_fit_that_is_no_rotation_is_refused(returns):
    site, made = returns
    bent = made["north"].change_of_basis.copy()
    bent[0, 0] += 1e-6
    path = site.return_file(changed(made["north"], change_of_basis=bent))
    refused(site, path, FitCheckError, "no rotation")


def test_a_return_for_an_upload_that_is_not_ours_is_refused(returns):
    site, made = returns
    for upload in ("1" * 64, "none"):
        path = site.return_file(made["north"], upload=upload)
        refused(site, path, ForeignBundleError, "none that its vault has made")


def test_a_model_goes_with_the_basis_of_the_upload_that_it_was_made_for(returns):
    site, made = returns
    desk, folder = site.desk("north"), site.folder("north")
    sent = desk.vault.upload_of(site.agreement)
    frame(77).write_csv(folder / "other.csv")
    prepare(make_ready(desk, folder / "other.csv"), folder / "not-sent.upload")
    last = desk.vault.upload_of(site.agreement)
    assert last.dataset.name != sent.dataset.name
    accept(desk, site.return_file(made["north"], upload=sent.entry.upload))
    rows = np.eye(8)
    assert np.array_equal(usable(desk).basis.project(rows), sent.dataset.basis.project(rows))


def test_a_fit_of_another_shape_is_refused(returns):
    site, made = returns
    path = site.return_file(changed(made["north"], change_of_basis=np.eye(4)))
    refused(site, path, MessageError, "4 components")


def test_an_upload_is_no_return(returns):
    site, _ = returns
    refused(site, site.folder("north") / "north.upload", SealError, "not sealed for this key")


def test_a_truncated_return_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"])
    path.write_bytes(path.read_bytes()[:-1])
    refused(site, path, SealError, "damaged")


def test_without_an_upload_nothing_is_accepted(site):
    with pytest.raises(StepError, match="has made no upload"):
        accept(site.desk("north"), site.secret_file("north"))


def test_an_old_return_does_not_take_the_place_of_a_newer_one(returns):
    site, made = returns
    desk, now = site.desk("north"), datetime.now(UTC)
    folder = site.folder("north")
    old = site.return_file(
        made["north"], to=folder / "old.return", created=now - timedelta(minutes=9)
    )
    new = site.return_file(
        changed(made["north"], trained_on=("north", "east")), to=folder / "new.return", created=now
    )
    accept(desk, old)
    accept(desk, new)
    with pytest.raises(ReplayError, match="sends an old one again"):
        accept(desk, old)
    assert accept(desk, new).trained_on == ("north", "east")
    assert desk.round.accepted().trained_on == ("north", "east")


def test_without_the_table_a_return_is_accepted_and_not_scored(returns):
    site, made = returns
    desk, table = site.desk("north"), site.table("north")
    accept(desk, site.return_file(made["north"]))
    elsewhere = table.rename(site.folder("north") / "moved.csv")
    scores = score(desk)
    assert (scores.together, scores.n_rows) == (None, 0)
    assert "give it with --data" in scores.remarks[0]
    assert score(desk, table=elsewhere).together > 0.5


def test_without_a_holdout_there_is_nothing_to_score_on(make):
    site = make(holdout=0.0)
    paths = {}
    for name in NAMES:
        join(site.desk(name), site.secret_file(name))
        paths[name] = site.folder(name) / "x.upload"
        prepare(make_ready(site.desk(name), site.table(name)), paths[name])
    made = site.as_files(site.analyst_of(paths).run())
    accept(site.desk("north"), site.return_file(made["north"]))
    assert "holds no rows back" in score(site.desk("north")).remarks[0]


def test_a_model_that_is_worse_than_the_partys_own_is_pointed_out(returns):
    site, made = returns
    turned = changed(made["north"], change_of_basis=-made["north"].change_of_basis)
    desk = site.desk("north")
    accept(desk, site.return_file(turned))
    scores = score(desk)
    assert scores.together < 0.5 < scores.local
    assert "worse here than the party's own" in scores.remarks[0]


def test_before_a_return_there_is_nothing_to_predict_with(uploaded):
    site, _ = uploaded
    for work in (
        lambda: predict(site.desk("north"), site.table("north"), to=site.root / "out.csv"),
        lambda: export_onnx(site.desk("north"), site.root / "out.onnx"),
    ):
        with pytest.raises(StepError, match="party accept"):
            work()
    assert [each.name for each in site.root.glob("out.*")] == []


def test_a_table_that_fails_half_way_leaves_no_predictions(returns):
    site, made = returns
    desk, folder = site.desk("north"), site.folder("north")
    accept(desk, site.return_file(made["north"]))
    text = site.table("north").read_text(encoding="utf-8")
    (folder / "bad.csv").write_text(text + "0000999,inf,1,2,3,icu,0\n", encoding="utf-8")
    with pytest.raises(CobasisError, match="CB101"):
        predict(desk, folder / "bad.csv", to=folder / "out.csv")
    assert [each.name for each in folder.glob("out.csv*")] == []


def test_notes_that_somebody_else_wrote_are_refused(returns):
    site, made = returns
    desk = site.desk("north")
    (desk.work / "notes.age").write_bytes(site.identities["south"].seal_for_self(b"{}"))
    with pytest.raises(VaultError, match="CB704"):
        accept(desk, site.return_file(made["north"]))
