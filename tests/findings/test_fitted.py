"""What the model becomes at one party (F8), by hands and not by commands."""

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from cobasis.party_side.accept import accept
from cobasis.party_side.predict import predict
from cobasis.party_side.worth import fit_local, score
from cobasis.protocol.training import model_without
from cobasis.protocol.word import Word


def test_f8_a_party_unlike_the_others_gets_a_model_for_its_own_rows(uploaded):
    site, paths = uploaded
    analyst = site.analyst_of(paths)
    made = analyst.run()["north"]
    assert model_without(analyst, made).family == made.model.family
    # where people like the others' are unlike one's own, their model may say the opposite
    *inner, last = made.model.layers
    opposite = replace(
        made.model, layers=(*inner, replace(last, weights=-last.weights, offset=-last.offset))
    )
    session, table = site.session("north"), site.table("north")
    path = site.return_file(replace(made, others=None))
    accept(session, path)
    assert fit_local(session) is None  # without a model of the others the common one stays
    path.unlink()
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


def test_f8_a_party_says_once_what_a_model_is_worth_to_it_and_no_figure_more(ran):
    """A coarse word, which the analyst takes once a party and model, and only signed."""
    line, path = "score icu.toml --send", Path("icu.north.word")

    def received(code=0):
        found = ran.json(f"receive icu.toml {path}", by="lab", code=code)["files"]
        return found[0]["verdict"], found[0]["code"], found[0]["reason"]

    ran.refused(line, "nobody is here to be asked")
    ran.refused(f"{line} north.csv --yes", "of the rows that were held back")
    assert not path.exists()
    said = re.search(r"Leaves, to lab, unsealed: (.*?%)\.", ran.said(f"{line} --yes"))[1]
    number = r"(better than alone|worse than alone|no difference that so few rows can show)"
    assert re.fullmatch(rf"{number}, on some [1-3]0 rows; accuracy \d?\d?[05] %", said)
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
        assert received(3)[:2] == ("refused", code)
    path.write_text(first)
    assert received() == ("accepted", "", said)
    assert received()[0] == "received before"
    ran.said("status icu.toml", said, by="lab")
    other = told.model_copy(update={"n_rows": told.n_rows + 10})
    signature = ran.identity("north").sign(other.message()).hex()
    path.write_text(other.model_copy(update={"signature": signature}).text())
    assert received(3)[2].endswith("which stays.")
