"""The demo's claims, over a few seeds and over ten, and what its page shows."""

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cobasis.protocol.messages import figure_of
from cobasis.report.comparison import Settings, compare, deal, load
from cobasis.report.pages import as_json, conclusion, means, render_comparison

FEW_AND_MANY = pytest.mark.parametrize("n_seeds", [1, pytest.param(10, marks=pytest.mark.soak)])


@cache
def comparison(name, split, seed, **changes):
    table = load(name)
    settings = {
        "n_components": table.n_components,
        "aligner": "odc",
        "anchor": "isometric",
        "basis": "svd",
        "model": "ridge" if table.task == "regression" else "logistic",
        "seed": seed,
    }
    dealt = deal(table, n_parties=changes.pop("n_parties", table.parties), split=split, seed=seed)
    return compare(dealt, Settings(**{**settings, **changes}))


@cache
def digits_in_percent(split, n_seeds):
    runs = [means(comparison("digits", split, seed)) for seed in range(n_seeds)]
    return {key: 100 * float(np.mean([run[key] for run in runs])) for key in runs[0]}


@FEW_AND_MANY
def test_rows_dealt_at_random_together_is_far_above_alone_and_near_pooled(n_seeds):
    found = digits_in_percent("iid", n_seeds)
    assert found["together"] >= found["alone"] + 10
    assert found["together"] >= found["pooled"] - 3
    assert found["together_consensus"] >= found["pooled"] - 1.5


@FEW_AND_MANY
def test_rows_dealt_by_label_the_consensus_basis_is_near_pooled(n_seeds):
    found = digits_in_percent("by-label", n_seeds)
    assert found["together_consensus"] >= found["pooled"] - 3
    assert found["together"] >= 80
    assert found["alone"] <= 20.5


@pytest.mark.parametrize("name", ["cancer", "diabetes"])
def test_smaller_tables_run_and_gain_on_average(name):
    runs = [means(comparison(name, "iid", seed)) for seed in range(2)]
    gains = [run["together"] - run["alone"] for run in runs]
    assert np.mean(gains) > 0


def test_a_party_of_one_class_is_legal_and_alone_says_so():
    table = load("cancer")
    dealt = deal(table, n_parties=4, split="iid", seed=0)
    rows, labels = dealt.rows["party-1"]
    one = labels == labels[0]
    dealt.rows["party-1"] = (np.vstack([rows[one]] * 2)[:, :], np.tile(labels[one], 2))
    found = compare(
        dealt,
        Settings(
            n_components=5, aligner="odc", anchor="isometric", basis="svd", model="logistic", seed=0
        ),
    )
    assert found.one_class == ("party-1",)
    share = float(np.mean(dealt.test_labels == labels[0]))
    assert found.alone["party-1"] == pytest.approx(share)
    assert "party-1" in re.search(r"Alone, these parties.*?</p>", render_comparison(found)).group()


def test_by_label_gives_each_party_two_neighbouring_labels_of_a_cycle():
    dealt = deal(load("digits"), n_parties=10, split="by-label", seed=4)
    held = [tuple(np.unique(labels)) for _, labels in dealt.rows.values()]
    assert all(len(labels) == 2 for labels in held)
    counts = np.bincount(np.concatenate([labels for _, labels in dealt.rows.values()]))
    assert counts.tolist() == [50] * 10
    for this, following in zip(held, held[1:] + held[:1], strict=True):
        assert len(set(this) & set(following)) == 1


def test_no_row_is_both_dealt_and_tested():
    dealt = deal(load("digits"), n_parties=10, split="iid", seed=1)
    total = sum(len(rows) for rows, _ in dealt.rows.values())
    assert total + len(dealt.test_rows) + len(dealt.public_rows) == 1797


def test_the_page_is_one_file_with_three_charts_and_no_outside_reference():
    page = render_comparison(comparison("diabetes", "iid", 0))
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 2
    for chart in charts:
        ET.fromstring(chart)  # noqa: S314 -- our own SVG
    outside = set(re.findall(r"https?://[^\"'\s<]+", page))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<(script|link|img|iframe)\b", page)
    for said in ("pseudonymised", "What each role saw", "principal angle", "residual"):
        assert said in page


def test_the_page_shows_the_comparison_s_own_numbers():
    found = comparison("diabetes", "iid", 0)
    page = render_comparison(found)
    for value in means(found).values():
        assert f"{value:.3f}" in page
    for figures in found.round.analyst.certificate.parties.values():
        assert f"{figures.residual:.3f}" in page


def test_names_from_data_are_escaped():
    found = comparison("diabetes", "iid", 0)
    data = replace(found.data, table=replace(found.data.table, name="<b>bold</b>"))
    assert "<b>bold</b>" not in render_comparison(replace(found, data=data))


def test_where_a_consensus_is_forbidden_the_page_and_the_object_say_why():
    found = comparison("diabetes", "iid", 0, n_parties=2)
    assert found.consensus is None
    assert "bisector" in render_comparison(found)
    assert as_json(found)["together_consensus"] is None
    assert "bisector" in as_json(found)["consensus_refusal"]


def test_bytes_up_are_what_the_upload_s_arrays_weigh():
    found = comparison("diabetes", "iid", 0)
    rows, anchor, labels = 40 * 7 * 8, 10 * 7 * 8, 40 * 8
    assert {each.up for each in found.round.traffic.values()} == {rows + anchor + labels}


@pytest.mark.parametrize(
    ("task", "predicted", "expected"),
    [("classification", [1, 2, 2], 2 / 3), ("regression", [1.0, 2.0, 4.0], 0.5)],
)
def test_score_is_accuracy_or_r2(task, predicted, expected):
    found = figure_of(np.array([1, 2, 3]), np.array(predicted), task=task)
    assert found == pytest.approx(expected)


def test_one_sentence_says_what_to_conclude_on_the_page_and_in_json():
    found = comparison("digits", "iid", 0)
    told = means(found)
    points = [100 * (told[word] - told["alone"]) for word in ("together", "together_consensus")]
    assert all(f"{each:+.1f} points" in conclusion(found) for each in points)
    assert conclusion(found) in render_comparison(found).replace("&#43;", "+")
    assert as_json(found)["conclusion"] == conclusion(found)
