import re
from functools import partial

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from lifelines.datasets import load_lung

from cli.round_by_commands import NAMES, Typed
from cobasis import Agreement, NumericFeature, Outcome
from cobasis.errors import AgreementError, LabelError, MessageError
from cobasis.features.contract import CategoryFeature
from cobasis.features.outcome import part_of
from cobasis.protocol.messages import encode_labels
from regressions.cohort import in_three

COLUMNS = ["age", "ph.ecog", "wt.loss"]
FORMULA = "age * sex + wt.loss + cr(ph.ecog, knots=(1,), lower_bound=0, upper_bound=3)"
AT_HORIZONS = {f"{what} at {at}" for what in ("Brier", "O/E") for at in (180, 365)}


def lung():
    table = load_lung()[[*COLUMNS, "sex", "time", "status"]].dropna().reset_index(drop=True)
    table["sex"] = table["sex"].map({1: "male", 2: "female"})
    return table.rename(columns={"time": "days", "status": "died"})


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Three hospitals with a sealed agreement on a Cox regression, by a formula."""
    made, table = Typed(tmp_path, monkeypatch), lung()
    screen = made.signed_on(
        "--task survival --label days --id patient "
        "--outcome event=died,horizons=180/365 --numbers age:centre=60,scale=10 --numbers ph.ecog "
        f"--formula '{FORMULA}' "
        "--numbers wt.loss:scale=15 --category sex=female,male --purpose study "
        "--retention-days 30 --minimum-parties 3 --holdout 0.3 --yes"
    )
    for at, name in enumerate(NAMES):
        own = table[at::3].assign(patient=[f"{name}-{row}" for row in range(len(table[at::3]))])
        own.to_csv(tmp_path / f"{name}.csv", index=False)
    assert "label 'days' (a number), event 'died'" in screen
    assert "cr(ph.ecog, knots=[1], lower_bound=0, upper_bound=3) + wt.loss + sex" in screen
    assert "EVERY RECORD EXACTLY, for all columns leave" in screen
    return made


def test_columns_that_follow_from_others_are_named_and_the_return_is_kept(typed, tmp_path):
    for name in NAMES:
        table = pl.read_csv(tmp_path / f"{name}.csv")
        double = table.with_columns((pl.col("age") - 60).alias("wt.loss"))
        double.write_csv(tmp_path / f"{name}.csv")
    typed.send()
    typed.run()
    typed.accept()
    (tmp_path / "icu.north.1-return").unlink()
    said = typed("accept icu.toml outbox/icu.north.1-return", by="north").output
    told = " ".join(said.split())
    assert "Accepted icu.north.1-return." in told
    assert "No table: of the columns 'age', 'wt.loss', 1 follow" in told
    assert "[CB109]" in told
    assert not (tmp_path / "icu.north.table").exists()


def test_a_hazard_ratio_without_pooling_is_that_of_all_rows_sent_together(typed, tmp_path):
    typed.send()
    typed.run()
    typed.accept()
    lines = {}
    for name in NAMES:
        folder = tmp_path / f"icu.{name}.table"
        assert {each.name for each in folder.iterdir()} >= {"coefficients.csv", "forest.png"}
        lines[name] = (folder / "coefficients.csv").read_bytes()
    assert len({*lines.values()}) == 1  # the same everywhere, though each made it by its own M
    found = pl.read_csv(lines["north"])
    # which rows stay is for each party's key to say
    scores = [typed.json("score icu.toml", by=name)["score"] for name in NAMES]
    assert {"C-index"} <= {*scores[0]["together"]} <= {"C-index", *AT_HORIZONS}
    lines = ["age", "ph.ecog[1]", "ph.ecog[3]", "wt.loss", "sex=male", "age:sex=male"]
    assert found["name"].to_list() == lines
    assert 0 < sum(each["n_rows"] for each in scores) < len(lung())
    typed("plan icu.toml north.csv", by="north")  # of the times, as of a regression's numbers
    typed("predict icu.toml north.csv -o out.csv", by="north")
    shares = pl.read_csv(tmp_path / "out.csv")
    assert shares.columns == ["patient", "prediction", "survival_180", "survival_365", "model"]
    assert (shares["survival_180"] >= shares["survival_365"]).all()
    middle = "patient,age,ph.ecog,wt.loss,sex\nx,60,0,0,female\n"  # all centres, and the base
    (tmp_path / "middle.csv").write_text(middle)
    typed("predict icu.toml middle.csv -o out.csv", by="north")
    page = (tmp_path / "icu.north.table" / "coefficients.html").read_text()
    told = [float(each) for each in re.findall(r"(0\.\d+) at", page)]
    assert pl.read_csv(tmp_path / "out.csv").row(0)[2:4] == pytest.approx(told, abs=0.001)
    far = pl.Series(np.resize([1e9, -1e9], shares.height))  # whichever sign the coefficient has
    later = pl.read_csv(tmp_path / "north.csv").with_columns(age=far)
    later.write_csv(tmp_path / "later.csv")
    told = typed("predict icu.toml later.csv -o none.csv", by="north", code=2).stderr
    assert "hazard above 1.8e308" in told.replace("\n", " ")
    assert not (tmp_path / "none.csv").exists()


@pytest.mark.parametrize("words", [(0, 1), ("no", "yes")], ids=repr)
def test_classes_of_weighted_rows_are_those_of_the_label_column(words):
    rng = np.random.default_rng(0)
    table, weight = pl.DataFrame({"dose": rng.normal(size=90)}), rng.choice([1.0, 2.5], 90)
    sick = rng.logistic(size=90) < table["dose"].to_numpy()
    labels = pl.DataFrame({"value": np.array(words)[sick * 1], "share": weight})
    told = {"model": "logit", "features": [NumericFeature(name="dose")]}
    done = in_three(table, labels, outcome=Outcome(weight="share"), **told)
    model = sm.GLM(
        sick, sm.add_constant(table.to_numpy()), sm.families.Binomial(), freq_weights=weight
    )
    assert done.agreement.classes == words
    found = [each.estimate for each in done.parties["north"].coefficients().lines]
    np.testing.assert_allclose(found, model.fit(tol=1e-13).params, rtol=1e-7)


def known(**terms):
    return {"outcome": Outcome(**{"event": "e"} | terms)}


THREE = tuple(NumericFeature(name=each) for each in "abc")
WARD = CategoryFeature(name="w", values=("x", "y"))
NUMBERS = {"task": "regression", "model": "ols"} | known(event="")
FIRTH = {"task": "classification", "model": "firth", "classes": (0, 1)}
COUNTS = {"task": "count", "model": "negative_binomial"}
REFUSED = {
    "fewer components": ({"n_components": 2}, "takes n_components=3: with fewer"),
    "a basis of rows": ({"basis": "svd"}, "takes basis='haar'"),
    "coarse numbers": ({"precision": "fp16"}, "takes precision='fp64' or 'fp32'"),
    "trimming": (known(trim=0.1), "outcome.trim is for task='effect' alone"),
    "no event": ({"outcome": None}, "needs an .outcome. table with event"),
    "an exposure": (known(exposure="x"), "is for task='count' alone"),
    "an event of numbers": (NUMBERS | known(event="e"), "outcome.event is for task='survival'"),
    "robust firth": (FIRTH | known(event="", errors="robust"), "'firth' takes errors='model'"),
    "weighted counts": (COUNTS | known(event="", weight="w"), "takes no weight: 'poisson' does"),
    "errors of few parties": (known(errors="party"), "takes 10 parties or more"),
    "horizons that fall": (known(horizons=(2.0, 1.0)), "horizons do not rise"),
    "horizons by party": (known(horizons=(2.0,), strata_by_party=True), "take one baseline"),
    "an event that is a feature": (known(event="a") | {"id": "p"}, "also a feature"),
    "no base": ({"features": (THREE[0], WARD)}, "compares levels with a base, and w has none"),
    "another task": (NUMBERS | known(event="", horizons=(1.0,)), "outcome.horizons is for"),
    "ridge": (NUMBERS | known(event="", weight="w") | {"model": "ridge"}, "model of coefficients"),
}


def agreed(**changes):
    told = {"round_id": "r", "parties": NAMES, "features": THREE, "commitment": "0" * 64}
    told |= {"n_components": 3, "n_anchor_rows": 3, "basis": "haar", "label": "t"}
    told |= {"task": "survival", "model": "cox", "outcome": Outcome(event="e")}
    return Agreement(**told | changes)


@pytest.mark.parametrize("kind", REFUSED)
def test_an_agreement_that_could_not_give_a_right_table_is_refused(kind):
    changes, words = REFUSED[kind]
    with pytest.raises(AgreementError, match=rf"{words}.*\[CB303\]$"):
        agreed(**changes)


BAD = {
    "negative": ({"t": [1.0, -2.0]}, "a time that is not above 0"),
    "missing": ({"t": [1.0, np.nan]}, "a cell that is empty or infinite"),
    "an event of two": ({"e": [1, 2]}, "an event that is neither 0 nor 1"),
    "an entry behind the time": ({"n": [0.0, 5.0]}, "not before its time"),
    "a weight below 0": ({"w": [1.0, -1.0]}, "a weight below 0"),
    "half a stratum": ({"s": [0.5, 1.0]}, "a stratum that is no whole number"),
    "text": ({"e": ["yes", "no"]}, "'e' of party 'north' is"),
}
GOOD = {"t": [1.0, 2.0], "e": [1, 0], "n": [0.0, 1.0], "w": [1.0, 2.0], "s": [1, 2]}


@pytest.mark.parametrize("kind", BAD)
def test_labels_that_no_row_can_have_are_refused_by_their_column(kind):
    changes, words = BAD[kind]
    agreement = agreed(**known(entry="n", weight="w", stratum="s"))
    read = partial(encode_labels, n_rows=2, party="north")
    whole = {name: np.array(cells) for name, cells in GOOD.items()}
    told = read(whole, agreement)
    assert told.dtype.names == ("value", "event", "entry", "stratum", "weight")
    np.testing.assert_array_equal(part_of(told, "weight"), [1.0, 2.0])
    bad = whole | {name: np.array(cells) for name, cells in changes.items()}
    with pytest.raises(LabelError, match=rf"{words}.*\[CB104\]$"):
        read(bad, agreement)
    with pytest.raises(LabelError, match="lack one of the columns t, e, n, s, w"):
        read({"t": whole["t"]}, agreement)
    counts = agreed(task="count", model="poisson", outcome=None)
    assert read([0, 3], counts).tolist() == [0.0, 3.0]
    for bad in ([0, -1], [0.5, 1.0]):
        with pytest.raises(LabelError, match="a count that is no whole number of 0 or more"):
            read(bad, counts)


def test_an_upload_with_other_label_columns_than_agreed_is_refused_and_names_the_party():
    rng = np.random.default_rng(0)
    table, time = rng.normal(size=(60, 3)), rng.exponential(size=60)
    labels = pl.DataFrame({"value": time, "e": rng.integers(0, 2, 60)})
    done = in_three(table, labels, task="survival", outcome=Outcome(event="e"))
    upload = done.parties["north"].prepare(table[::3], labels[::3])
    upload.labels["event"][0] = 3
    done.analyst.remove("north")
    with pytest.raises(MessageError, match="an event that is neither 0 nor 1"):
        done.analyst.receive(upload)
