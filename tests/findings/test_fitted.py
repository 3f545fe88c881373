"""What the model becomes at one party (F8), by hands and not by commands."""

from dataclasses import replace

import polars as pl

from cobasis.party_side.accept import accept
from cobasis.party_side.predict import predict
from cobasis.party_side.worth import fit_local, score
from cobasis.protocol.others import model_without


def test_f8_a_party_unlike_the_others_gets_a_model_for_its_own_rows(uploaded):
    site, paths = uploaded
    analyst = site.analyst_of(paths)
    made = site.as_files(analyst.run())["north"]
    assert model_without(analyst, "north", like=made.model).family == made.model.family
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
