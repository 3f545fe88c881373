"""What the model becomes at one party (F8), by hands and not by commands."""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from cobasis.keys.identity import load_identity
from cobasis.party_side.accept import accept
from cobasis.party_side.predict import predict
from cobasis.party_side.worth import fit_local, score
from cobasis.protocol.training import model_without
from cobasis.protocol.word import Word


def test_f8_a_party_unlike_the_others_gets_a_model_for_its_own_rows(uploaded):
    site, paths = uploaded
    analyst = site.analyst_of(paths)
    made = site.as_files(analyst.run())["north"]
    assert model_without(analyst, made).family == made.model.family
    # where people like the others' are unlike one's own, their model may say the opposite
    *inner, last = made.model.layers
    opposite = replace(
        made.model, layers=(*inner, replace(last, weights=-last.weights, offset=-last.offset))
    )
    session, table = site.session("north"), site.table("north")
    accept(session, site.return_file(replace(made, model=opposite, others=opposite)))
    assert fit_local(session) in {"mix", "alone"}
    found = score(session)
    assert found.local["accuracy"].value > 0.5 > found.together["accuracy"].value
    models = {}
    for which in ("local", "common"):
        predict(session, table, to=table.with_name("out.csv"), model=which)
        models[which] = pl.read_csv(table.with_name("out.csv"))
        assert set(models[which]["model"]) == {which}
    assert models["local"]["prediction"].to_list() != models["common"]["prediction"].to_list()


def test_f8_without_a_model_of_the_others_the_common_one_stays(returns):
    site, made = returns
    session, table = site.session("north"), site.table("north")
    accept(session, site.return_file(made["north"]))
    assert fit_local(session) is None
    predict(session, table, to=table.with_name("out.csv"))
    assert set(pl.read_csv(table.with_name("out.csv"))["model"]) == {"common"}


def test_f8_a_party_says_once_what_a_model_is_worth_to_it_and_no_figure_more(ran):
    """A coarse word, which the analyst takes once a party and model, and only signed."""
    line, path = "score icu.toml --send", Path("icu.north.word")
    assert "nobody is here to be asked" in ran(line, code=2).stderr
    assert "of the rows that were held back" in ran(f"{line} north.csv --yes", code=2).stderr
    assert not path.exists()
    told = " ".join(ran(f"{line} --yes").stdout.split())
    said = re.search(r"Leaves, to lab, unsealed: (.*?%)\.", told)[1]
    number = r"(better than alone|worse than alone|no difference that so few rows can show)"
    assert re.fullmatch(rf"{number}, on some [12]0 rows; accuracy \d?\d?[05] %", said)
    first = path.read_text()
    assert set(json.loads(first)) == {
        *("format", "agreement", "party", "model_sha256", "verdict", "n_rows", "measure"),
        *("value", "history", "time", "approval", "signature"),
    }
    path.unlink()
    found = ran.json(f"{line} --yes")
    assert (found["word"], path.read_text()) == (str(path), first)  # the same, and no second
    told = Word.from_text(first)
    for changed, code in (
        (first.replace(told.verdict, "best"), "CB303"),
        (told.model_copy(update={"n_rows": told.n_rows + 10}).text(), "CB802"),
        (told.model_copy(update={"party": "south"}).text(), "CB802"),
        (told.model_copy(update={"model_sha256": "0" * 64}).text(), "CB804"),
    ):
        path.write_text(changed)
        verdict = ran.json(f"receive icu.toml {path}", by="lab", code=3)["files"][0]
        assert (verdict["verdict"], verdict["code"]) == ("refused", code), verdict
    path.write_text(first)
    verdict = {each["file"]: each for each in ran.json("receive icu.toml", by="lab")["files"]}
    verdict = verdict[path.name]
    assert (verdict["verdict"], verdict["party"], verdict["reason"]) == ("accepted", "north", said)
    assert (
        ran.json(f"receive icu.toml {path}", by="lab")["files"][0]["verdict"] == "received before"
    )
    assert said in " ".join(ran("status icu.toml", by="lab").stdout.split())
    identity = load_identity(
        Path("home-north/keys/north.key"), passphrase=Path("passphrase").read_text().strip()
    )
    other = told.model_copy(update={"n_rows": told.n_rows + 10})
    other = other.model_copy(update={"signature": identity.sign(other.message()).hex()})
    path.write_text(other.text())
    verdict = ran.json(f"receive icu.toml {path}", by="lab", code=3)["files"][0]
    assert "and one is taken. The first stays" in verdict["reason"]
