"""Write the catalogue of attacks into ``explanation/threat-model.md``; a test compares the two.

Run it after changing the catalogue: ``python docs/make_threat_model.py``.
"""

# ruff: noqa: INP001 -- a script, not a package

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from cobasis.privacy.attacks.catalogue import CATALOGUE, Entry, Role
from cobasis.privacy.attacks.not_tested import NOT_TESTED

PAGE = Path(__file__).parent / "explanation" / "threat-model.md"
BEGIN, END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"


def page() -> str:
    """Return the whole page, with what stands between the two marks written anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n".join(catalogue()) + "\n" + END + after


def catalogue() -> Iterator[str]:
    """Yield the lines of all attacks, by who can do them, and of those that were not tried."""
    for role in get_args(Role):
        yield f"\n### By {role}"
        for entry in CATALOGUE:
            if entry.role == role:
                yield from _lines(entry)
    yield "\n### Not tested\n"
    yield "| attack | why |"
    yield "|---|---|"
    for each in NOT_TESTED:
        yield f"| {each.name} | {each.why} |"


def _lines(entry: Entry) -> Iterator[str]:
    """Yield one attack's lines."""
    path, test = entry.test.split("::")
    yield f"\n**{entry.name}** (`{entry.attack.removeprefix('cobasis.privacy.attacks.')}`)\n"
    yield f"- needs: {entry.needs}"
    yield f"- recovers: {entry.recovers}"
    yield f"- stopped by: {entry.stops}"
    yield f"- not stopped by: {entry.does_not_stop}"
    yield f"- shown by `{path}`: *{test.removeprefix('test_').replace('_', ' ')}*"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
