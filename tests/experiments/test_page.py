"""The pages say what differs, why, and what nobody measured; charts need no colour."""

import re
import runpy
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from experiments.harness import page
from experiments.harness.comparison import differ, layout, numbers, rounding
from experiments.harness.figures import MOST, MOST_PANELS, draw, panels_of, styles_for, svg
from experiments.harness.statistics import summary
from experiments.harness.store import RECORDED, Cell, Results
from experiments.harness.study import Published, load, names
from experiments.studies import table_12

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def told(monkeypatch, toys, toy_results):
    """Return the section of a study, changed in some way, and its summary."""

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


def test_ours_stands_beside_the_papers_in_the_papers_layout(told):
    section, _ = told()
    assert "**mnist**" in section
    assert "| %; condition | any | samespan | diffspan |" in section
    assert "| central | 96.00 ± 0.12 (3)<br>paper 96 ± 0.1 |  |  |" in section
    row = next(line for line in section.splitlines() if line.startswith("| odc |"))
    assert row.count("differs, open") == 1
    assert "95.00 ± 0.12 (3)<br>paper 90 ± 0.1<br>**differs, open**" in row
    assert "Printed in the paper and not measured here: `adult/diffspan/gopp`." in section


def test_differences_are_counted_first_those_without_a_reason_listed_and_one_repeat_unjudged(told):
    _, summarised = told()
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


def test_a_method_with_cells_of_its_own_is_a_row_and_cells_that_are_no_more_are_none(
    toys, toy_results
):
    cell = {"data": "mnist", "condition": "samespan"}
    shown = numbers(toys(cells=[cell]), toy_results(toys()))
    assert {each.place.rpartition("/")[0] for each in shown} == {"mnist/samespan"}
    study = toys(cells=[cell, {**cell, "system": "gopp"}])
    rows = numbers(study, toy_results(study))
    own = [each for each in rows if each.name.startswith("gopp/")]
    assert own
    assert len(own) < len(rows)
    assert all(each.settings == cell for each in rows)
    assert all(each.place == f"mnist/samespan/{each.name}" for each in rows)


def test_an_analysis_stands_below_the_table_and_may_need_more_repeats(told):
    section, _ = told(analysis=lambda values: [f"{len(values)} numbers."])
    assert "\n14 numbers.\n" in section

    def impatient(values):
        return [str(values["absent"])]

    assert "Too little is measured" in told(analysis=impatient)[0]


def test_the_last_setting_of_few_levels_goes_across_and_levels_of_others_are_tables(told):
    assert layout([{"data": d, "l": n} for d in "ab" for n in range(3)]).across == "l"
    laid = layout([{"l": n, "data": d} for d in "ab" for n in range(20)])
    assert (laid.across, laid.apart) == ("data", ("l",))
    section, _ = told(cells=[{"l": n} for n in range(20)], published={})
    assert "**l = 19**\n\n| % | ours | the paper's |  |\n" in section
    cells = [{"data": f"d{n}", "basis": b} for n in range(20) for b in ("svd", "haar")]
    assert "**d3**\n\n| %; basis | svd | haar |" in told(cells=cells, published={})[0]
    barred = [{"data": "a|b"}, {"data": "c"}]
    assert r"| %; data | a\|b | c |" in told(cells=barred, published={})[0]


def test_a_span_condition_in_a_name_is_laid_out_like_one_in_the_settings(toys, tmp_path):
    cells = [{"system": "round"}, {"system": "central"}, {"system": "round", "method": "gopp"}]
    measured = [{"samespan/odc": 1.0, "diffspan/odc": 2.0}, {"mlp": 3.0}, {"diffspan": 4.0}]
    study = toys(cells=cells, published={})
    results = Results("toy", folder=tmp_path)
    for settings, values in zip(study.cells, measured, strict=True):
        cell = Cell(settings=settings, repeat=0, values=values, seconds=1.0, commit="abc")
        results.cells[cell.place] = cell
    found = numbers(study, results)
    assert [(each.place, each.name, each.settings["condition"]) for each in found] == [
        ("round/samespan/odc", "odc", "samespan"),
        ("round/diffspan/odc", "odc", "diffspan"),
        ("central/mlp", "central/mlp", "any"),
        ("round/gopp/diffspan", "gopp", "diffspan"),
    ]
    [panel] = panels_of(found)
    assert [level for level, _ in panel.series["odc"]] == ["samespan", "diffspan"]
    assert set(panel.lines) == {"central/mlp"}


def test_a_chart_has_ours_filled_the_papers_hollow_and_shapes_besides_colours(toys, toy_results):
    study = toys()
    found = numbers(study, toy_results(study))
    figure = draw(study, found)
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_marker() not in {"", "None"}]
    faces = {line.get_markerfacecolor() for line in marks}
    assert "none" in faces
    assert len(faces) > 1
    panels = panels_of(found)
    assert [panel.title for panel in panels] == ["mnist", "adult"]
    assert set(panels[0].series) == {"odc", "whitened"}
    assert set(panels[0].lines) == {"central"}
    styles = styles_for(panels).values()
    assert len({style.marker for style in styles}) == len({s.colour for s in styles}) == 3


def test_a_setting_with_numbers_becomes_a_curve(toys, toy_results):
    cells = [{"l": n, "data": "mnist"} for n in (10, 100, 1000)]
    study = toys(cells=[{"l": 0, "data": "any"}, *cells], published={})
    axes = draw(study, numbers(study, toy_results(study))).axes[0]
    assert axes.get_xlabel() == "l"
    assert axes.get_xscale() == "log"


def test_a_chart_is_the_same_every_time_and_refers_to_nothing_outside(toys, toy_results):
    study = toys()
    found = numbers(study, toy_results(study))
    one, other = (svg(draw(study, found), title='a "toy" & <more>') for _ in range(2))
    assert one == other
    assert 'aria-label="a &quot;toy&quot; &amp; &lt;more>"' in one
    assert not re.search(r'href="(?!#)', one)


def test_a_chart_shows_what_its_study_names_and_nothing_else_stretches_it(toys, toy_results):
    study = toys(charted=("odc*",))
    results = toy_results(study)
    more = {f"odc, {i}": 90.0 for i in range(MOST)} | {"odc, tiny": 0.1, "ratio": 1e4}
    for cell in results.cells.values():
        cell.values.update(more)
    found = numbers(study, results)
    figure, wide = draw(study, found), draw(replace(study, charted=("odc", "ratio")), found)
    shown = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"odc", "odc, 0", "hollow: the paper's"} <= shown
    assert not {"ratio", "odc, tiny", "central"} & shown
    assert [{each.get_yscale() for each in one.axes} for one in (figure, wide)] == [
        {"linear"},
        {"log"},
    ]
    assert draw(replace(study, charted=()), found) is None
    study = toys(cells=[{"data": str(i), "condition": c} for i in range(14) for c in "abc"])
    assert len(draw(study, numbers(study, toy_results(study))).axes) == MOST_PANELS


def test_the_documentation_shows_every_study_and_says_what_is_not_measured(tmp_path, toy_results):
    study = load("traffic")
    results = toy_results(study, name="traffic", repeats=1)
    results.write(study)
    pages = runpy.run_path(str(DOCS / "evidence_pages.py"))
    text = (DOCS / "explanation" / "evidence.md").read_text(encoding="utf-8")
    filled = pages["filled"](text, folder=tmp_path)
    assert "{{" not in filled
    for name in names():
        assert f"(study-{name})=\n## {load(name).title}" in filled
    assert filled.count("Not measured yet: `./run.sh") == len(names()) - 1
    assert "| odc | 95 | 95 |" in filled
    chart = (DOCS / "explanation" / "gallery.md").read_text(encoding="utf-8")
    pages["PARTS"]["pictures"] = str  # they take seconds, and test_pictures looks at them
    assert "Not measured yet" in pages["filled"](chart, folder=tmp_path)


def test_the_contents_say_how_many_repeats_every_cell_has(toy_results):
    contents = runpy.run_path(str(DOCS / "evidence_pages.py"))["contents"]
    kept = toy_results(load("v2_table_3"), name="v2_table_3", repeats=2)
    assert "| 3 | 2 | 0.1 |" in contents({"v2_table_3": kept})
    kept.cells.popitem()
    assert "| 3 | 1 to 2 | 0.1 |" in contents({"v2_table_3": kept})
    kept.cells.clear()
    assert "| 3 | 0 | 0.0 |" in contents({"v2_table_3": kept})
    assert "| 6 | computed |  |" in contents({"traffic": toy_results(load("traffic"), repeats=1)})


def test_what_is_recorded_has_a_study():
    others = {"bench", "ames"}
    assert {path.stem for path in RECORDED.glob("*.json")} - others <= set(names())


def test_every_printed_number_and_every_reason_belongs_to_a_cell_of_its_study():
    for study in map(load, names()):
        shared = [field for field in study.cells[0] if all(field in cell for cell in study.cells)]
        levels = [dict.fromkeys(str(cell[field]) for cell in study.cells) for field in shared]
        starts = tuple("/".join(each) + "/" for each in product(*levels))
        assert [place for place in study.published if not place.startswith(starts)] == []
        for reason in study.explained:
            assert any(reason.startswith(each) or each.startswith(reason) for each in starts)


def test_table_12_has_honest_noise_by_its_figure_beside_the_papers():
    rows = table_12.analysis({f"{kind}/messages": [1.0] for kind in table_12.SAID})
    [noise] = [each for each in rows if each.startswith(f"| {table_12.NOISE} |")]
    papers, honest = noise.split("|")[4].split(";")
    assert honest.rstrip().endswith("honest noise")
    assert 50 < float(honest.split()[0]) < float(papers.split()[0])
