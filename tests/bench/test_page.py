import runpy
from collections import Counter
from pathlib import Path

from benchmarks import results

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join(
    (DOCS / page).read_text(encoding="utf-8")
    for page in ("explanation/speed.md", "how-to/large-training.md")
)
FIGURES = runpy.run_path(str(DOCS / "speed_figures.py"))


def test_every_place_on_the_page_has_a_figure_and_without_a_result_the_page_says_so(tmp_path):
    assert set(FIGURES["PLACE"].findall(PAGE)) == set(FIGURES["FIGURES"])
    page = FIGURES["filled"](PAGE, path=tmp_path / "absent.json")
    assert page.count("Not measured yet") == len(FIGURES["FIGURES"])


def test_tables_and_charts_are_those_of_the_recorded_result_the_same_every_time():
    recorded, page = results.read(results.RESULT), FIGURES["filled"](PAGE)
    again = FIGURES["filled"]("{{ sweeps }}")
    assert again in page
    assert page.count("<svg") == 2
    assert not [unwanted for unwanted in ("<script", "{{", "Not measured yet") if unwanted in page]
    told, counts = page.split("| goal |")[0], Counter(each["verdict"] for each in recorded["goals"])
    for word in ("met", "missed", "failed", "not measured"):
        assert f"- {word.capitalize()}: {counts[word]}" in told
    for each in recorded["goals"]:
        goal = each["goal"].replace("|", r"\|")
        assert f"| {goal} | {each['asked']} | {each['figure']} | **{each['verdict']}** |" in page
    odc = recorded["fig_6"]["exponents"]["l"]["ours"]
    assert f"| ODC, ours | {odc['exponent']:.2f} (R2 {odc['r2']:.2f}) |" in page
    for point in recorded["sections"]["published"]["points"]:
        for name, size in point["does not fit"].items():
            told = f"| {name} | {point['l']} | {point['a']} | {point['c']} | "
            assert f"{told}{size['bytes'] / 1e9:.1f} GB | {size['seconds']:.0f} s a run |" in page
