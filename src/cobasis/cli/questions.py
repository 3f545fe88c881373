"""What ``cobasis agreement new`` asks on a terminal, of all that was not told."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from cobasis.cli import options
from cobasis.cli.options import consent
from cobasis.cli.words import aside, listed
from cobasis.errors import CobasisError, OptionError
from cobasis.features.contract import Feature, width_of
from cobasis.features.maps import Columns, width_under
from cobasis.models import MODELLESS, UNLABELLED
from cobasis.party_side import draft, sums_draft
from cobasis.protocol.sums_terms import FEWEST_PARTIES
from cobasis.statistics.formula import with_formula

_WORDS = {"columns", "leave_out", "i_may_publish", "numbers", "categories", "missing", "classes"}
_WORDS |= {"models", "dp", "sums", "from_sums", "outcome", "formula", "map"}
"""Terms that are read by themselves; every other one is a field of the agreement."""
_PRIVATE = {"minimum_parties", "fewest_rows"}
"""Of which the offer is taken where nobody can be asked: the agreement's own default is weaker."""


def asked(told: dict[str, Any], n_parties: int) -> dict[str, Any]:
    """Return the fields that were told, and on a terminal those that were asked for."""

    def column(word: str, said: str) -> str:
        if example is not None:
            example.require(said, word=word)
        return said

    auto = told.get("n_components") == "auto"
    read = set(told) - _WORDS - ({"n_components"} if auto else set())
    fields = {word: draft.field_of_words(word, told[word]) for word in read}
    missing = told.get("missing", "")
    example = draft.Example(told["columns"]) if "columns" in told else None
    found: draft.Features = (
        *(each for x in told.get("numbers", ()) for each in draft.numbers_of_words(x, missing)),
        *(draft.category_of_words(x, missing) for x in told.get("categories", ())),
    )
    before = sums_draft.Counted(told["from_sums"]) if "from_sums" in told else None
    fields["outcome"] = outcome = sums_draft.outcome_of_words(told.get("outcome"))
    out = [fields.get("label"), fields.get("id"), *draft.words_of(told.get("leave_out", ""))]
    found += before.features(leave_out=out, missing=missing) if before else ()
    if found and example is None:
        _refuse_absent(draft.words_of(told.get("leave_out", "")), before.names if before else [])
    _ask(fields, "purpose", "What is the model for, and who may use it")
    if not found and example is None:
        question = "Public table with all columns (CSV, Parquet)"
        _ask(fields, "example", question, read=lambda said: draft.Example(Path(said)))
        example = fields.pop("example", None)
    for word in {"label", "id"} & {*fields}:
        column(word, fields[word])
    _ask(fields, "task", "classification, regression, survival, ...", default="classification")
    if fields.get("task") not in MODELLESS | UNLABELLED:
        _ask(fields, "label", "Column of labels", read=partial(column, "label"))
    question = "Column of identifiers, to know people again; it never leaves"
    _ask(fields, "id", question, read=partial(column, "id"))
    if example is not None:
        known = [fields.get("label", ""), fields.get("id", ""), *(each.name for each in found)]
        known += outcome.columns.values() if outcome else ()
        found += _described(example, known, id_column=fields.get("id", ""), told=told)
    blank = {*draft.words_of(missing)} - {"fill", "refuse", *(each.name for each in found)}
    if blank and found:
        raise OptionError(f"--missing {listed(sorted(blank))} names no column. Name one of them.")
    fields["classes"] = _classes(draft.words_of(told.get("classes", "")), fields, example)
    fields |= _released(fields, found, told=told, public=before or example)
    _ask_numbers(fields, n_parties, auto=auto)
    return fields


def _refuse_absent(unwanted: tuple[str, ...], columns: list[str]) -> None:
    if absent := {*unwanted} - {"none", *columns}:
        raise OptionError(
            f"--leave-out {listed(sorted(absent))} is no column of a table that was given, so it "
            "leaves nothing out. Name a table with --columns or --from-sums, or drop the option."
        )


def _released(
    fields: dict[str, Any],
    found: draft.Features,
    *,
    told: dict[str, Any],
    public: sums_draft.Public,
) -> dict[str, Any]:
    found = with_formula(found, told["formula"]) if "formula" in told else found
    found = draft.with_levels(found, fields, sums="sums" in told)
    kind: dict[str, Any] = {"task": fields.get("task", ""), "tabular": draft.is_table(fields)}
    made = sums_draft.sums_of_words(told.get("sums"), found, public=public, **kind)
    noise = sums_draft.dp_of_words(told["dp"], made.get("sums")) if "dp" in told else None
    models = draft.words_of(told.get("models", "")) or None
    one = sums_draft.map_of_words(told["map"], found, public=public) if "map" in told else None
    told = {"features": found or None, "models": models, **made, "dp": noise, "map": one}
    if found and kind["tabular"] and not made:  # all columns of rows, and a basis for them
        usual = {"n_components": width_of(found), "basis": "haar"}
        told |= {word: fields.get(word, each) for word, each in usual.items()}
    return told


def _described(
    example: draft.Example, known: list[str], *, id_column: str, told: dict[str, Any]
) -> tuple[Feature, ...]:
    """Describe the other columns of a table, and ask whether what tells of rows may be public."""
    people, missing = example.looks_like_people(id_column), told.get("missing", "")
    name = example.path.name
    describe = partial(example.features, known=known, people=people, missing=missing)
    found = {"these": describe(told["leave_out"])} if "leave_out" in told else {}
    if not found and options.on_terminal():
        left = [each for each in example.names if each not in known]
        aside(f"{name} has {listed(left)}.")
    _ask(found, "these", "Which of them shall be no features", default="none", read=describe)
    features, rare = found.get("these") or describe()
    aside(f"Features, of {name}: {listed(each.name for each in features)}.")
    if rare:
        aside(f"In fewer than {draft.FEWEST} rows, so any other word: {listed(rare)}.")
    if people:
        question = f"{name} looks like people. May its means, spreads and words be public?"
        what = f"'{name}' (it has identifiers, or {draft.FEWEST} rows or more, so it looks like "
        what += "people, whose means, spreads and words become public; a code book has none)"
        consent(question, yes="i_may_publish" in told, what=what, option="--i-may-publish")
    return features


def _classes(
    told: tuple[str, ...], fields: dict[str, Any], example: draft.Example | None
) -> tuple[str, ...] | tuple[int, ...] | None:
    questions = {"clustering": "Clusters, by name, like 1,2,3"}
    if fields.get("label"):
        questions["classification"] = "Labels that may occur, like no,yes"
    if not told and (question := questions.get(fields.get("task", ""))):
        if fields["task"] == "classification" and example is not None:
            return example.labels(fields["label"])
        _ask(fields, "classes", question, read=draft.words_of)
        told = fields.get("classes") or ()
    if told and all(each.lstrip("-").isdigit() for each in told):
        return tuple(map(int, told))
    return told or None


def _ask_numbers(fields: dict[str, Any], n_parties: int, *, auto: bool) -> None:
    of_rows, features = {"n_components", "fewest_rows"}, fields["features"] or ()
    skipped = of_rows if "sums" in fields else set()
    precision = fields.get("precision", "fp64")
    width = width_under(fields["map"] or Columns(), features)
    sizes = draft.components_for(() if skipped else features, width=width, precision=precision)
    if auto or (options.on_terminal() and "n_components" not in fields):
        for line in sizes.values():
            aside(line)
    if auto and "n_components" not in fields:
        fields["n_components"] = min(sizes, default=None)
        aside(f"Taken: {fields['n_components']}.")
    size, of_all = str(max(sizes, default="")), f", of {n_parties}" if n_parties else ""
    least = max(FEWEST_PARTIES, n_parties) if "sums" in fields else max(2, n_parties - 1)
    for word, question, default in (
        ("n_components", "Numbers that stand for a row", size),
        ("retention_days", "Days that the analyst keeps uploads", "90"),
        ("minimum_parties", f"Parties that are needed{of_all}", str(least)),
        ("fewest_rows", "Rows that a party needs to take part", "10"),
        ("deadline", "Deadline in UTC, like 2026-12-31 (empty: none)", ""),
        ("holdout", "Share of rows that stays at a party, to score on", "0.2"),
    ):
        if word in _PRIVATE - skipped and fields.get(word) is None and not options.on_terminal():
            fields[word] = draft.field_of_words(word, default)
            aside(f"Taken: {word}={default}, since nobody says another.")
        elif word not in skipped:
            _ask(fields, word, question, default=default)


def _ask(
    fields: dict[str, Any],
    word: str,
    question: str,
    *,
    default: str = "",
    read: Callable[[str], object] | None = None,
) -> None:
    """Ask on a terminal for a field that was not told, until the answer can stand; or leave it."""
    read = read or partial(draft.field_of_words, word)
    while fields.get(word) is None and options.on_terminal():
        said = typer.prompt(question, default=default, show_default=bool(default), err=True)
        if not said.strip():
            return
        try:
            fields[word] = read(said.strip())
        except CobasisError as error:
            aside(f"{error}", lead="  ")
