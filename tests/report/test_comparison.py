"""The demo's claims, over a few seeds and over ten, and what its page shows."""

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cobasis.models import DEFAULT_MODELS
from cobasis.report.comparison import compare, deal, load
from cobasis.report.pages import as_json, conclusion, means, render_comparison
from golden.doors import recorded


def compared(dealt, **changes):
    table = dealt.table
    told = {"n_components": table.n_components, "model": DEFAULT_MODELS[table.task], "seed": 0}
    return compare(
        dealt, told | {"aligner": "odc", "anchor": "isometric", "basis": "svd"} | changes
    )


@cache
def comparison(name, *, n_parties=None):
    return compared(deal(load(name), n_parties=n_parties, split="iid", seed=0))


def test_together_is_far_above_alone_a_consensus_basis_is_near_pooled_and_sums_above():
    """Over ten seeds, of figures that tests/golden measures again."""
    words, found = ("alone", "together", "together_consensus", "sums", "pooled"), {}
    for split in ("iid", "by-label"):
        runs = [told for case, told in recorded("demo").items() if case.startswith(f"{split},")]
        assert len(runs) == 10
        found[split] = 100 * np.mean([[told[word] for word in words] for told in runs], axis=0)
    alone, together, consensus, sums, pooled = found["iid"]
    assert sums >= 96.5
    assert together >= max(alone + 10, pooled - 3)
    assert consensus >= pooled - 1.5
    alone, together, consensus, sums, pooled = found["by-label"]
    assert sums >= 96.5
    assert consensus >= pooled - 3
    assert together >= 80
    assert alone <= 20.5


def test_a_party_of_one_class_is_legal_and_alone_says_so():
    dealt = deal(load("cancer"), split="iid", seed=0)
    rows, labels = dealt.rows["party-1"]
    one = labels == labels[0]
    dealt.rows["party-1"] = (np.vstack([rows[one]] * 2), np.tile(labels[one], 2))
    found = compared(dealt, n_components=5)
    assert found.one_class == ("party-1",)
    share = float(np.mean(dealt.test_labels == labels[0]))
    assert found.alone["party-1"] == pytest.approx(share)
    page = render_comparison(found)
    assert "party-1" in re.search(r"Alone, these parties.*?</p>", page).group()


def test_rows_are_dealt_once_and_by_label_two_neighbours_of_a_cycle_to_each_party():
    dealt = deal(load("digits"), split="by-label", seed=4)
    held = [tuple(np.unique(labels)) for _, labels in dealt.rows.values()]
    assert all(len(labels) == 2 for labels in held)
    counts = np.bincount(np.concatenate([labels for _, labels in dealt.rows.values()]))
    assert counts.tolist() == [50] * 10
    for this, following in zip(held, held[1:] + held[:1], strict=True):
        assert len(set(this) & set(following)) == 1
    for split in ("iid", "by-label"):
        dealt = deal(load("digits"), split=split, seed=1)
        total = sum(len(rows) for rows, _ in dealt.rows.values())
        assert total + len(dealt.test_rows) + len(dealt.public_rows) == 1797


def test_the_page_is_one_file_with_two_charts_the_numbers_and_no_outside_reference():
    found = comparison("diabetes")
    page = render_comparison(found)
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert [ET.fromstring(each).tag[-3:] for each in charts] == ["svg"] * 2  # noqa: S314 -- ours
    outside = set(re.findall(r"https?://[^\"'\s<]+", page))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert not re.search(r"<(script|link|img|iframe)\b", page)
    residuals = [each.residual for each in found.round.analyst.certificate.parties.values()]
    numbers = [f"{value:.3f}" for value in (*means(found).values(), *residuals)]
    for said in ("pseudonymised", "What each role saw", "principal angle", *numbers):
        assert said in page
    alone, *others = means(found).values()
    assert others[0] > alone
    assert all(f"{each - alone:+.3f} of R2" in conclusion(found) for each in others)
    assert conclusion(found) in page.replace("&#43;", "+")
    assert as_json(found)["conclusion"] == conclusion(found)
    data = replace(found.data, table=replace(found.data.table, name="<b>bold</b>"))
    assert "<b>bold</b>" not in render_comparison(replace(found, data=data))


def test_where_a_consensus_is_forbidden_the_page_and_the_object_say_why():
    found = comparison("diabetes", n_parties=2)
    assert found.consensus is None
    assert "bisector" in render_comparison(found)
    assert as_json(found)["together_consensus"] is None
    assert "bisector" in as_json(found)["consensus_refusal"]
