import re
from dataclasses import replace

import numpy as np

from cobasis.report.comparison import compare, deal
from cobasis.report.pages import template
from golden.doors import recorded


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


def test_the_page_is_one_file_with_bars_the_numbers_and_no_outside_reference():
    found = compare(deal("diabetes", split="iid", seed=0), seed=0)
    page = template("page.html").render(found=found)
    bars = [
        f"width: {100 * score:.0f}%" for each in found.scores.values() for score in each.values()
    ]
    assert sorted(re.findall(r"width: \d+%(?=\"></div>)", page)) == sorted(bars)
    assert not re.findall(r"https?://", page)
    assert not re.search(r"<(script|link|img|iframe)\b", page)
    residuals = [each.residual for each in found.round.analyst.certificate.parties.values()]
    numbers = [f"{value:.3f}" for value in (*found.means.values(), *residuals)]
    for said in ("pseudonymised", "What each role saw", *numbers):
        assert said in page
    alone, *others = found.means.values()
    assert all(f"{each - alone:+.3f} of R2" in found.conclusion for each in others)
    data = replace(found.data, name="<b>bold</b>")
    assert "<b>bold</b>" not in template("page.html").render(found=replace(found, data=data))
