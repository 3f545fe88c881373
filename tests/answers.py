"""What `--json` prints, held against the page that promises it."""

import json
import re
from functools import cache
from pathlib import Path

from pydantic_core import to_json

from cobasis.cli.options import Screen

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "json.md"
ROW = re.compile(r"\| `(\w+)` \| (.+?) \| .*\|")
KINDS = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "null": type(None),
}


say = Screen.say


def said_as_promised(answers):
    """Print an answer, in lines or not, whose object the page promises, and note it."""

    def as_promised(screen, lines, **told):
        answers.append(json.loads(to_json(told, inf_nan_mode="null")))
        assert len(titles_of(answers[-1])) == 1, answers[-1]
        say(screen, lines, **told)

    return as_promised


@cache
def promised():
    """The page's sections: title, fields of the object, and those of its parts by name."""
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        own, *rest = re.split(r"\n\*\*(.+)\*\*\n", section)
        parts = {
            name: dict(ROW.findall(text)) for name, text in zip(rest[::2], rest[1::2], strict=True)
        }
        found.append((own.partition("\n")[0], dict(ROW.findall(own)), parts))
    return found


def fits(kind, told, parts):
    """Whether a value is of a kind, as the page writes kinds."""
    if kind.endswith(" or null"):
        return told is None or fits(kind.removesuffix(" or null"), told, parts)
    if kind.startswith("array of "):
        return isinstance(told, list) and all(fits(kind[9:], each, parts) for each in told)
    if kind.startswith("object of "):
        inner = kind.removeprefix("object of ").removesuffix(" by name")
        return isinstance(told, dict) and all(fits(inner, each, parts) for each in told.values())
    if kind.startswith("object: "):
        return has(parts[kind.removeprefix("object: ")], told, parts)
    if isinstance(told, bool):
        return "boolean" in kind
    return any(isinstance(told, KINDS[each]) for each in kind.split(" or "))


def has(fields, told, parts):
    return set(fields) == set(told) and all(
        fits(kind, told[name], parts) for name, kind in fields.items()
    )


def titles_of(told):
    return [
        title
        for title, fields, parts in promised()
        if f"`{told['command']}" in title and has(fields, told, parts)
    ]
