"""A party's whole way, with files on a real disk and the analyst's messages made by hand."""

import numpy as np
import onnxruntime
import polars as pl
import pytest

from cobasis.bundle.transcript import verify_transcript
from cobasis.party_side.accept import accept, adopt
from cobasis.party_side.predict import export_onnx, predict, score
from cobasis.party_side.send import send
from cobasis.party_side.session import join
from party_side.sites import NAMES, NUMBERS, frame, ready_from


def test_from_the_table_to_predictions_that_keep_their_ids(returns):
    site, made = returns
    session, folder = site.session("south"), site.folder("south")
    taken = accept(session, site.return_file(made["south"]))
    assert taken.trained_on == NAMES
    assert taken.orthogonality < 1e-12
    scores = score(session)
    assert scores.n_rows > 10
    assert min(scores.together, scores.local) > scores.baseline
    new, tables = frame(9), []
    for suffix in ("csv", "parquet"):
        path, out = folder / f"new.{suffix}", folder / f"out.{suffix}"
        getattr(new.drop("died"), f"write_{suffix}")(path)
        assert predict(session, path, to=out) == 120
        read = {"csv": pl.read_csv, "parquet": pl.read_parquet}[suffix](out)
        tables.append(read.with_columns(pl.col("patient").cast(pl.String).str.zfill(7)))
    one, two = tables
    assert one.columns == ["patient", "prediction", "score_1"]
    assert one["patient"].to_list() == new["patient"].to_list()
    assert ((one["score_1"] > 0) == (one["prediction"] == 1)).all()
    assert one.select("patient", "prediction").equals(two.select("patient", "prediction"))
    np.testing.assert_allclose(one["score_1"], two["score_1"], rtol=1e-12)
    assert "0009000" in (folder / "out.csv").read_text()
    assert_graph_predicts(session, folder / "south.onnx", new, two)
    events = [each.event for each in verify_transcript(session.transcript.path).entries]
    assert events == ["joined", "prepared", "accepted", "exported"]


def assert_graph_predicts(session, path, new, told):
    """The exported graph predicts from raw columns what predict does."""
    export_onnx(session, path)
    assert path.stat().st_mode & 0o777 == 0o600
    graph = onnxruntime.InferenceSession(path.read_bytes())
    given = {
        name: new[name].cast(pl.Float64).fill_null(np.nan).to_numpy()[:, None] for name in NUMBERS
    }
    given["ward"] = np.array(new["ward"].to_list(), dtype=object)[:, None]
    label, scores = graph.run(["label", "scores"], given)
    np.testing.assert_array_equal(label, told["prediction"])
    np.testing.assert_allclose(scores[:, 1], told["score_1"], atol=1e-12)


def test_every_party_gets_the_same_model_file_and_another_fit(returns):
    site, made = returns
    taken = [accept(site.session(name), site.return_file(made[name])) for name in NAMES]
    assert len({each.model_sha256 for each in taken}) == 1
    assert np.abs(taken[1].change_of_basis - taken[2].change_of_basis).max() > 0.1


def test_a_consensus_basis_takes_two_exchanges(make):
    site = make(basis="consensus")
    proposals = []
    for name in NAMES:
        join(site.session(name), site.secret_file(name))
        to = site.folder(name) / f"{name}.span"
        ready = ready_from(site.session(name), site.table(name))
        send(ready, to)
        proposals.append(site.proposal(name, to))
    analyst = site.analyst_of({})
    span = analyst.consensus(proposals)
    for name in NAMES:
        session = site.session(name)
        assert adopt(session, site.consensus_file(name, span)) == NAMES
        send(ready_from(session, site.table(name)), site.folder(name) / f"{name}.upload")
        analyst.receive(site.opened_upload(name, site.folder(name) / f"{name}.upload"))
    made = site.as_files(analyst.run())
    session = site.session("east")
    accept(session, site.return_file(made["east"]))
    scores = score(session)
    assert scores.together > scores.baseline
    # one shared span: F_i G_i is the same everywhere but for rounding
    maps = []
    for name in ("north", "east"):
        basis = site.session(name).vault.upload_of(site.agreement).dataset.basis
        maps.append(basis.project(np.eye(8)) @ made[name].change_of_basis)
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-10)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_uploads_stand_in_the_agreed_precision(make, precision):
    site = make(precision=precision, **({"int8_range": 40.0} if precision == "int8" else {}))
    session = site.session("north")
    join(session, site.secret_file("north"))
    ready = ready_from(session, site.table("north"))
    to = site.folder("north") / "north.upload"
    send(ready, to)
    told = site.opened("north", to).manifest.told
    assert told["rows_dtype"] == {"fp32": "float32", "fp16": "float16", "int8": "int8"}[precision]
    assert told["n_rows"] == ready.rows.n_sent
    n_bytes = site.opened("north", to).parts["upload.safetensors"].stat().st_size
    assert 0 < n_bytes - ready.preview.n_bytes < 1000


def test_a_regression_is_scored_by_r2(make):
    site = make(task="regression", classes=(), label="pulse_later", models=())
    paths = {}
    for at, name in enumerate(NAMES, start=1):
        made = frame(at)
        made.with_columns(pulse_later=made["pulse"] * 2 + 1).write_csv(
            site.folder(name) / "data.csv"
        )
        join(site.session(name), site.secret_file(name))
        paths[name] = site.folder(name) / f"{name}.upload"
        send(ready_from(site.session(name), site.table(name)), paths[name])
    session = site.session("north")
    made = site.as_files(site.analyst_of(paths).run())
    accept(session, site.return_file(made["north"]))
    scores = score(session)
    assert scores.metric == "r2"
    assert scores.local > 0.99
    assert scores.local >= scores.together
    assert scores.baseline < 0.1
