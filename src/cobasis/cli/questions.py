"""What `agreement new` was not told, asked on a terminal until each answer can stand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from cobasis.cli.options import on_terminal, wrapped
from cobasis.errors import CobasisError

_WORDS = ("columns", "numbers", "categories", "missing", "classes", "models", "dp")
"""Options that are read by themselves; every other one is a field of the agreement."""


def asked(told: dict[str, Any], n_parties: int) -> dict[str, Any]:
    """Return the fields that were told, and on a terminal those that were asked for."""
    from cobasis.party_side import draft

    fields = {word: draft.field_of_words(word, told[word]) for word in set(told) - {*_WORDS}}
    missing = told.get("missing", "refuse")
    found = draft.features_of_words(
        told.get("numbers", []), told.get("categories", []), missing=missing
    )
    fields["example"] = told.get("columns")
    _ask(fields, "purpose", "What is the model for, and who may use it")
    if not found:
        _ask(fields, "example", "Public table with all columns (CSV, Parquet)", read=_table)
    example = fields.pop("example")
    _ask_roles(fields, example)
    leave: set[str | None] = {fields.get("label"), fields.get("id"), *(each.name for each in found)}
    if example is not None:
        found += draft.features_of_example(example, leave_out=filter(None, leave), missing=missing)
    fields["features"] = found or None
    fields["classes"] = _classes(_listed(told.get("classes")), fields, example)
    fields["models"] = _listed(told.get("models")) or None
    fields["dp"] = draft.dp_of_words(told["dp"]) if "dp" in told else None
    _ask_numbers(fields, n_parties)
    return fields


def _ask_roles(fields: dict[str, Any], example: Path | None) -> None:
    """Ask for task, label and identifiers; a public table has to have these columns."""
    from cobasis.party_side.draft import refuse_other_columns

    def column(word: str) -> Callable[[str], str]:
        def read(said: str) -> str:
            if example is not None:
                refuse_other_columns(example, **{word: said})
            return said

        return read

    for word in ("label", "id"):
        column(word)(fields.get(word, ""))
    _ask(fields, "task", "classification, regression or representation", default="classification")
    if fields.get("task") != "representation":
        _ask(fields, "label", "Column of labels", read=column("label"))
    _ask(fields, "id", "Column of identifiers, which never leaves (empty: none)", read=column("id"))


def _classes(
    told: tuple[str, ...], fields: dict[str, Any], example: Path | None
) -> tuple[str, ...] | tuple[int, ...] | None:
    """Return the classes that were told, or that the public table has, or that were asked for."""
    from cobasis.party_side.draft import labels_of_example

    if not told and fields.get("task") == "classification" and fields.get("label"):
        if example is not None:
            return labels_of_example(example, fields["label"])
        _ask(fields, "classes", "Labels that may occur, like no,yes", read=_listed)
        told = fields.get("classes") or ()
    if told and all(each.lstrip("-").isdigit() for each in told):
        return tuple(map(int, told))
    return told or None


def _ask_numbers(fields: dict[str, Any], n_parties: int) -> None:
    """Ask for sizes and times."""
    from cobasis.features.encoder import width_of
    from cobasis.party_side.draft import likely_components

    width = width_of(fields["features"] or ())
    _ask(
        fields,
        "n_components",
        f"Numbers that stand for a row, of {width}" if width else "Numbers that stand for a row",
        default=str(likely_components(width)) if width else "",
    )
    _ask(fields, "retention_days", "Days that the analyst keeps uploads", default="90")
    _ask(
        fields,
        "minimum_parties",
        f"Parties that are needed, of {n_parties}" if n_parties else "Parties that are needed",
        default=str(max(2, n_parties - 1)),
    )
    _ask(fields, "deadline", "Deadline in UTC, like 2026-12-31 (empty: none)")
    _ask(fields, "holdout", "Share of rows that stays at a party, to score on", default="0.2")


def _ask(
    fields: dict[str, Any],
    word: str,
    question: str,
    *,
    default: str = "",
    read: Callable[[str], object] | None = None,
) -> None:
    """Ask on a terminal for a field that was not told, until the answer can stand; or leave it."""
    from cobasis.party_side.draft import field_of_words

    while fields.get(word) is None and on_terminal():
        said = typer.prompt(question, default=default, show_default=bool(default), err=True)
        if not said.strip():
            return
        try:
            fields[word] = read(said.strip()) if read else field_of_words(word, said.strip())
        except CobasisError as error:
            typer.echo("\n".join(wrapped(f"{error}", lead="  ")), err=True)


def _table(said: str) -> Path:
    """Return a table's path, if it can be read."""
    from cobasis.party_side.draft import refuse_other_columns

    refuse_other_columns(Path(said))
    return Path(said)


def _listed(said: str | None) -> tuple[str, ...]:
    """Return words that commas part."""
    return tuple(each.strip() for each in (said or "").split(",") if each.strip())
