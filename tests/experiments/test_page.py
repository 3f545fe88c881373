import inspect
import runpy
from pathlib import Path

import pytest
from experiments.harness import page
from experiments.harness.comparison import differ, rounding
from experiments.harness.statistics import summary
from experiments.harness.store import RECORDED, recorded
from experiments.harness.study import Published, key, load, names

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def told(monkeypatch, toys, toy_results):
    def made(**changed):
        repeats = changed.pop("measured", 3)
        study = toys(**changed)
        monkeypatch.setattr(page, "load", lambda _: study)
        kept = {"toy": toy_results(study, repeats=repeats)}
        return "\n".join(page.section("toy", kept["toy"])), page.summarised(kept, kept)

    return made


def test_numbers_differ_only_beyond_both_intervals_together():
    ours = summary([95.0, 95.2, 95.4])  # 95.2 with a margin of 0.497
    assert not differ(ours, Published(value=95.75, margin=0.1))
    assert differ(ours, Published(value=95.85, margin=0.1))
    assert not differ(summary([1.0]), Published(value=2.0))
    assert not differ(ours, None)
    # a printed number without an interval has that of its rounding
    assert [rounding(each) for each in (10.4, 20.0, 0.463)] == pytest.approx([0.05, 0.5, 0.0005])


def test_ours_stands_beside_the_papers_and_what_differs_is_counted_with_its_reason(told):
    section, summarised = told()
    assert "| %; condition | any | samespan | diffspan |" in section
    assert "| central | 96.00 ± 0.12 (3)<br>paper 96 ± 0.1 |  |  |" in section
    row = next(line for line in section.splitlines() if line.startswith("| odc |"))
    assert row.count("differs, open") == 1
    assert "95.00 ± 0.12 (3)<br>paper 90 ± 0.1<br>**differs, open**" in row
    assert "Printed in the paper and not measured here: `adult/diffspan/gopp`." in section
    assert "to judge: 4. 2 differ by no more" in summarised
    assert "**2 by more for a reason that we do not know**" in summarised
    assert "  - mnist/diffspan/odc: 95.00 ± 0.12 (3), the paper 90 ± 0.1" in summarised
    section, summarised = told(explained={"mnist/": "Other mice.", "adult/": "Other mice."})
    assert (section.count("- (a) Other mice."), section.count("differs (a)")) == (1, 2)
    assert "**0 by more" in summarised
    assert "Open differences" not in summarised
    _, summarised = told(measured=1)
    assert "to judge: 0." in summarised
    assert "4 more have one repeat so far" in summarised
    assert "to judge: 4. 2 differ" in told(measured=1, exact=True)[1]
    # an analysis stands below the table, and may need more repeats
    assert "\n14 numbers.\n" in told(analysis=lambda values: [f"{len(values)} numbers."])[0]
    assert "Too little is measured" in told(analysis=lambda values: [str(values["absent"])])[0]


def test_the_documentation_shows_every_study_and_says_what_is_not_measured(tmp_path, toy_results):
    toy_results(load("traffic"), name="traffic", repeats=1).write(load("traffic"))
    pages = runpy.run_path(str(DOCS / "evidence_pages.py"))
    text = (DOCS / "explanation" / "evidence.md").read_text(encoding="utf-8")
    filled = pages["filled"](text, folder=tmp_path)
    assert "{{" not in filled
    for name in names():
        assert f"(study-{name})=\n## {load(name).title}" in filled
    assert filled.count("Not measured yet: `./run.sh") == len(names()) - 1
    assert "| odc | 95 | 95 |" in filled


UNMEASURED = {f"components/{name}, as published/exponent" for name in ("imakura", "kawakami")}


def test_every_cell_is_recorded_with_all_that_papers_print_and_analyses_and_reasons_have_theirs():
    assert {path.stem for path in RECORDED.glob("*.json")} == {*names(), "bench"}
    told = (DOCS / "how-to" / "reproduce-the-papers.md").read_text(encoding="utf-8")
    assert f"all {sum(len(study.cells) for study in map(load, names()))} recorded cells" in told
    for name in names():
        study, results = load(name), recorded(name)
        cells = {key(each.settings, "") for each in results.cells.values()}
        assert cells == {key(each, "") for each in study.cells}, name
        for cell in study.cells:
            inspect.signature(study.run).bind(**cell, repeat=0)
        assert {*study.published} - {*results.values()} <= UNMEASURED, name
        for reason in study.explained:
            assert any(place.startswith(reason) for place in study.published), reason
        if study.analysis is not None:
            assert study.analysis(results.complete(study)), name
