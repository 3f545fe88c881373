"""Write ``reference/json.md`` from the models of ``--json``; a test compares the two.

Run it after changing an answer: ``python docs/make_json_reference.py``.
"""

# ruff: noqa: INP001 -- a script, not a package

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cobasis.cli import answers, audit_answers
from cobasis.cli.answers import Answer

PAGE = Path(__file__).parent / "reference" / "json.md"

HEAD = """# What `--json` prints

Written by `docs/make_json_reference.py` from the models in `src/cobasis/cli/answers.py` and
`audit_answers.py`.

With `--json` a command, `demo` aside, prints one JSON object on one line of standard output, and
nothing else there; progress, questions and errors go to standard error. The exit code says the
rest: 0, 2 where something on this side is to be changed, 3 where another side is to change what it
sent, or 4 where others' files have to come first.
An error prints no object; `send --dry-run` and `verify` print theirs also where
something does not hold. Fields are added in later releases, and none is renamed or dropped.
"""


def models() -> list[type[Answer]]:
    """Return every model of an answer, in the order of the file."""
    found = {**vars(answers), **vars(audit_answers)}.values()
    chosen = [each for each in found if isinstance(each, type) and issubclass(each, Answer)]
    return [each for each in chosen if not each.__subclasses__()]


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *map(_section, models())])


def _section(model: type[Answer]) -> str:
    """Return one answer's section."""
    schema = model.model_json_schema()
    parts = schema.get("$defs", {})
    title = (model.__doc__ or "").strip().splitlines()[0]
    lines = [f"## {title.rstrip('.')}", "", *_table(schema["properties"], parts)]
    for name in sorted(parts):
        said = parts[name].get("description", name).splitlines()[0].rstrip(".")
        lines += ["", f"**{said}**", "", *_table(parts[name]["properties"], parts)]
    return "\n".join([*lines, ""])


def _table(fields: dict[str, Any], parts: dict[str, Any]) -> Iterator[str]:
    """Yield a table of fields."""
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for name, field in fields.items():
        yield f"| `{name}` | {_kind(field, parts)} | {field.get('description', '')} |".replace(
            "  |", " |"
        )


def _kind(field: dict[str, Any], parts: dict[str, Any]) -> str:
    """Return a field's type in words."""
    if "$ref" in field:
        part = parts[field["$ref"].rsplit("/", 1)[1]]
        said = str(part.get("description", "an object")).splitlines()[0].rstrip(".")
        return f"object: {said}"
    if "anyOf" in field:
        return " or ".join(_kind(each, parts) for each in field["anyOf"])
    if "enum" in field:
        return " or ".join(f"`{each}`" for each in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"array of {_kind(field.get('items', {}), parts)}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {_kind(field['additionalProperties'], parts)} by name"
    return kind


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
