from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sklearn.metrics import r2_score

from cobasis import Round, simulate
from cobasis.algorithms.readable import Table
from cobasis.errors import LabelError, StepError, UnknownPartyError

EVIL = "<script>alert('south')</script>\x1b[2J"
NAMES = ("north", EVIL, "e" * 90)


def rows_of(names=NAMES):
    rng = np.random.default_rng(7)
    table = rng.normal(size=(30 * len(names), 6)) * [4, 3, 2, 1, 1, 1]
    label = np.where(table @ [1, 1, 1, 0, 0, 0] > 0, "ill", "well")
    step = len(names)
    return {name: (table[i::step], label[i::step]) for i, name in enumerate(names)}


@cache
def done(names=NAMES, **options):
    return simulate(rows_of(names), rng=np.random.default_rng(0), n_components=5, **options)


def not_run(made):
    return Round(agreement=made.agreement, parties=made.parties, analyst=made.analyst)


def without(alignment, party):
    fits = {name: fit for name, fit in alignment.fits.items() if name != party}
    return replace(alignment, fits=fits)


RESULTS = {
    "round": lambda made: made,
    "round that has not run": not_run,
    "certificate": lambda made: made.analyst.certificate,
    "alignment": lambda made: made.analyst.alignment,
    "alignment that somebody left": lambda made: without(made.analyst.alignment, "north"),
}


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("aligner", ["odc", "gopp"])
def test_a_result_fits_on_80_columns_and_in_a_notebook_and_obeys_no_partys_name(kind, aligner):
    shown = RESULTS[kind](done(aligner=aligner))
    text = shown.summary()
    assert str(shown) == text
    assert max(map(len, text.splitlines())) <= 80
    assert text.replace("\n", "").isprintable()
    assert "array(" not in repr(shown) + text
    assert "object at 0x" not in repr(shown)
    assert "\n" not in repr(shown)
    page = list(ET.fromstring(f"<div>{shown._repr_html_()}</div>").iter())[1:]  # noqa: S314 -- ours
    tags = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert {each.tag for each in page} == tags
    assert {each.get("scope") for each in page if each.tag == "th"} == {"col", "row"}
    assert EVIL.replace("\x1b", "?") in [each.text for each in page]
    assert not [each for each in page if {"src", "href"} & set(each.keys())]


def test_a_summary_of_many_parties_says_how_many_it_does_not_show():
    made = done(tuple(f"clinic-{i:02}" for i in range(25)))
    for shown in (made, made.analyst.certificate, made.analyst.alignment):
        for text in (shown.summary(), shown._repr_html_()):
            assert "And 5 parties more." in text
            assert ("clinic-19" in text, "clinic-20" in text) == (True, False)


def test_an_alignment_says_whose_trace_it_carries_and_a_round_what_went_and_whom_it_left_out():
    found = done(("north", "south", "east"), aligner="gopp").analyst.alignment
    assert repr(found) == "<Alignment by GOPP of 3 parties to a target of 6 x 5>"
    assert "It still carries south, who left." in without(found, "south").summary()
    made = done(("north", "south", "east"), exclude=("south",))
    lines = {line.split()[0]: line for line in made.summary().splitlines()}
    assert f"{made.traffic['north'].up:,}" in lines["north"]
    assert lines["south"].split()[-1] == "0"
    assert "aligned by ODC, model logistic" in made.summary()


def test_a_round_that_has_not_run_says_so_and_predicts_nothing():
    fresh = not_run(done.__wrapped__())  # its parties are spoiled
    for party in fresh.parties.values():
        party._return = None
    assert "It has not run yet: call run(rows)." in fresh.summary()
    with pytest.raises(StepError, match=r"Call run\(rows\) first"):
        fresh.predict(rows_of()["north"][0])


def test_every_party_predicts_one_table_or_its_own_rows_and_numbers_are_scored_by_r2():
    made, rows = done(), rows_of()
    table, label = rows["north"]
    for name, each in made.predict(table).items():
        np.testing.assert_array_equal(each, made.parties[name].predict(table))
    tables, labels = ({name: each[at] for name, each in rows.items()} for at in (0, 1))
    own, scores = made.predict(tables), made.score(tables, labels)
    assert scores == {name: np.mean(own[name] == labels[name]) for name in NAMES}
    assert made.score(table, label)["north"] == scores["north"]
    rows = {name: (X, X[:, 0] - 2 * X[:, 1]) for name, (X, _) in rows.items()}
    made = simulate(rows, rng=np.random.default_rng(0), n_components=5, task="regression")
    X, y = rows["north"]
    told = r2_score(y, made.parties["north"].predict(X))
    assert made.score(X, y)["north"] == pytest.approx(told)


def test_only_who_has_a_return_predicts_and_strangers_and_labels_of_other_rows_are_refused():
    made, (table, label) = done(("north", "south", "east"), exclude=("south",)), rows_of()["north"]
    assert list(made.score(table, label)) == ["north", "east"]
    for name in ("south", "west"):
        with pytest.raises(UnknownPartyError, match=rf"'{name}' is not known here \(east, north\)"):
            made.predict({name: table})
    for labels in (label[:-1], np.full(30, "healthy"), None, {"north": label}):
        with pytest.raises(LabelError):
            made.score(table, labels)
    with pytest.raises(LabelError, match="go together"):
        made.score({"north": table}, {"east": label})


def test_rows_that_would_look_alike_are_told_apart():
    names = ("weighting ATE at 90", "weighting ATE at 365", "weighting ATT at 365")
    rows = [(name, *["-0.004179"] * 6) for name in names]
    shown = Table(title="Effects", header=("", *"abcdef"), rows=rows).text()
    assert all(name in shown for name in names)
    rows = [(f"{at}{'x' * 90}", "1") for at in range(3)]
    shown = Table(title="Parties", header=("", "a"), rows=rows).text()
    assert max(map(len, shown.splitlines())) == 80
