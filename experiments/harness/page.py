"""The page that sets our numbers beside the papers', made from results alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.harness import comparison
from experiments.harness.store import Results
from experiments.harness.study import Published, Study, load, table

Kept = Mapping[str, Results]
ABSENT = "*Not measured yet: `./run.sh experiment {name} --record` writes this.*"
LISTED = 12  # keys that a sentence still lists


def write_page(studies: Iterable[str], kept: Kept, folder: Path) -> Path:
    """Write one Markdown page with a table for each experiment; the site shows their charts."""
    shown = list(studies)
    lines = ["# The papers' tables and figures, run again", "", summarised(shown, kept), ""]
    for name in shown:
        lines += [f"## {load(name).title}", "", *section(name, kept[name])]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "evidence.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def summarised(studies: Iterable[str], kept: Kept) -> str:
    """Say how many numbers agree with the papers', and list those that nobody can explain."""
    counts: Counter[str] = Counter()
    listed: list[str] = []
    absent: list[str] = []
    for name in studies:
        study = load(name)
        found = comparison.numbers(study, kept[name])
        counts.update(each.verdict for each in found)
        absent += [] if found else [f"`{name}`"]
        different = [each for each in found if each.verdict == comparison.OPEN]
        if different:
            listed.append(f"- **{study.title}** (`{name}`), {len(different)}:")
            listed += [
                f"  - {each.place}: {_ours(each)}, the paper {_printed(each.theirs)}"
                for each in different
            ]
    judged = counts[comparison.AGREES] + counts[comparison.EXPLAINED] + counts[comparison.OPEN]
    told = (
        f"Numbers that a paper prints and that we measured often enough to judge: {judged}. "
        f"{counts[comparison.AGREES]} differ by no more than the two 95 % intervals together, "
        f"{counts[comparison.EXPLAINED]} by more for a reason that stands at their table, and "
        f"**{counts[comparison.OPEN]} by more for a reason that we do not know**."
    )
    if counts[comparison.UNJUDGED]:
        told += f" {counts[comparison.UNJUDGED]} more have one repeat so far and cannot be judged."
    lines = [told]
    if absent:
        lines += ["", f"Not measured yet: {', '.join(absent)}."]
    if listed:
        lines += ["", "Open differences:", "", *listed]
    return "\n".join(lines)


def section(name: str, results: Results) -> list[str]:
    study = load(name)
    found = comparison.numbers(study, results)
    lines = [f"`./run.sh experiment {name}` · {study.source}", "", study.settings, ""]
    if not found:
        return [*lines, ABSENT.format(name=name), ""]
    laid = comparison.layout(each.settings for each in found)
    reasons = dict.fromkeys(each.reason for each in found if each.verdict == comparison.EXPLAINED)
    letters = {why: chr(ord("a") + n % 26) * (1 + n // 26) for n, why in enumerate(reasons)}
    for heading, each in comparison.parts(found, laid).items():
        lines += [f"**{heading}**", ""] if heading else []
        lines += _table(study, each, laid=laid, letters=letters)
        lines += [""]
    lines += [f"- ({letter}) {reason}" for reason, letter in letters.items()]
    lines += [""] if letters else []
    lines += _after(study, results, found)
    return lines


def _after(study: Study, results: Results, found: Sequence[comparison.Number]) -> list[str]:
    lines: list[str] = []
    if study.analysis is not None:
        try:
            lines += [*study.analysis(results.complete(study)), ""]
        except (LookupError, ValueError, ArithmeticError):
            lines += ["*Too little is measured for the tests that belong here.*", ""]
    cells = results.cells.values()
    repeats = sorted({each.ours.repeats for each in found})
    minutes = sum(cell.seconds for cell in cells) / 60
    lines.append(
        f"Repeats: {' to '.join(dict.fromkeys(map(str, (repeats[0], repeats[-1]))))}. "
        f"{minutes:.1f} minutes of one core in all. "
        f"Commit {', '.join(sorted({f'`{cell.commit}`' for cell in cells}))}."
    )
    have = {each.place for each in found}
    left_out = [place for place in study.published if place not in have]
    if left_out:
        some = ", ".join(f"`{place}`" for place in left_out[:LISTED])
        rest = f" and {len(left_out) - LISTED} more" if len(left_out) > LISTED else ""
        lines.append(f"Printed in the paper and not measured here: {some}{rest}.")
    return [*lines, ""]


def _table(
    study: Study,
    found: Sequence[comparison.Number],
    *,
    laid: comparison.Layout,
    letters: Mapping[str, str],
) -> list[str]:
    if not laid.across:
        rows = [
            [each.name, _ours(each), _printed(each.theirs), _mark(each, letters)] for each in found
        ]
        return table([study.unit, "ours", "the paper's", ""], rows)
    cells: dict[str, dict[str | int | float, str]] = {}
    for each in found:
        cells.setdefault(each.name, {})[each.settings[laid.across]] = _cell(each, letters)
    rows = [[name, *(row.get(level, "") for level in laid.levels)] for name, row in cells.items()]
    used = [0, *(i + 1 for i in range(len(laid.levels)) if any(row[i + 1] for row in rows))]
    levels = [level if isinstance(level, str) else f"{level:,}" for level in laid.levels]
    head = [f"{study.unit}; {laid.across}", *levels]
    return table([head[i] for i in used], [[row[i] for i in used] for row in rows])


def _cell(each: comparison.Number, letters: Mapping[str, str]) -> str:
    theirs = f"<br>paper {_printed(each.theirs)}" if each.theirs else ""
    mark = _mark(each, letters)
    return f"{_ours(each)}{theirs}" + (f"<br>{mark}" if mark else "")


def _ours(each: comparison.Number) -> str:
    text = str(each.ours)
    exact = each.ours.margin == 0 or each.ours.repeats == 1
    return text if exact else f"{text} ({each.ours.repeats})"


def _mark(each: comparison.Number, letters: Mapping[str, str]) -> str:
    if each.verdict == comparison.EXPLAINED:
        return f"differs ({letters[each.reason]})"
    return "**differs, open**" if each.verdict == comparison.OPEN else ""


def _printed(theirs: Published | None) -> str:
    if theirs is None:
        return ""
    margin = f" ± {theirs.margin:.3g}" if theirs.margin is not None else ""
    return f"{theirs.value:,.10g}{margin}"
