"""``cobasis agreement new``: a commented agreement, from flags, an example and answers."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.cli.options import AsJson, on_terminal
from cobasis.errors import OptionError
from cobasis.models import ModelName, Task

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="To be written; nothing is there.")]
Example = Annotated[
    Path | None,
    typer.Option(help="A public table: its columns, words, means and spreads become public."),
]
Numbers = Annotated[
    list[str] | None,
    typer.Option(help="Columns of numbers: age,pulse or age:centre=60,scale=20,unit=years."),
]
Categories = Annotated[
    list[str] | None, typer.Option("--category", help="A column of words: sex=female,male.")
]
Cells = Annotated[
    Literal["refuse", "fill"], typer.Option(help="Empty cells; fill: the centre, or a level.")
]
RoundId = Annotated[str | None, typer.Option("--round", help="Its name, which no other has.")]
Purpose = Annotated[str | None, typer.Option(help="What the model is for, in words.")]
Days = Annotated[int | None, typer.Option(help="For how many days the analyst keeps uploads.")]
Deadline = Annotated[str | None, typer.Option(help="Like 2026-12-31T23:59:59Z, in UTC.")]
Least = Annotated[int | None, typer.Option(help="With fewer uploads nothing is run.")]
TaskWord = Annotated[Task | None, typer.Option(help="What the model does.")]
Label = Annotated[str | None, typer.Option(help="The column of labels.")]
Classes = Annotated[
    str | None, typer.Option(help="Labels that may occur: no,yes; by default the example's.")
]
Id = Annotated[str | None, typer.Option("--id", help="The column of identifiers; never uploaded.")]
Family = Annotated[
    ModelName | None, typer.Option(help="The model's family; rff came nearest to pooled rows.")
]
Families = Annotated[str | None, typer.Option(help="Families the analyst may choose from.")]
Holdout = Annotated[float | None, typer.Option(help="Share of rows that stays at a party.")]
Components = Annotated[int | None, typer.Option(help="Columns of every secret basis.")]
AnchorRows = Annotated[int | None, typer.Option(help="By default as many as encoded features.")]
Anchor = Annotated[AnchorKind | None, typer.Option(help="The anchor's kind.")]
Basis = Annotated[
    BasisName | None,
    typer.Option(help="How parties choose their bases; consensus is best, from 3 on."),
]
Aligner = Annotated[AlignerName | None, typer.Option(help="The method.")]
Precision = Annotated[
    Literal["fp64", "fp32", "fp16", "int8"] | None, typer.Option(help="Numbers of an upload.")
]
Int8Range = Annotated[float | None, typer.Option(help="With int8: largest projected value.")]
PublicRows = Annotated[
    str | None, typer.Option(help="SHA-256 of public rows, where anchor or basis need them.")
]
Noise = Annotated[
    str | None,
    typer.Option("--dp", help="Noise with a guarantee: epsilon=8,radius=2,most_rows=900,..."),
]

_ASKED: dict[str, tuple[str, type]] = {
    "purpose": ("What is the model for, and who may use it", str),
    "retention_days": ("For how many days may the analyst keep uploads", int),
    "task": ("classification, regression or representation", str),
    "label": ("Column of labels (empty for a representation)", str),
    "n_components": ("Columns of every secret basis", int),
}
_LISTS = ("models", "classes")
_NO_FIELDS = ("file", "columns", "numbers", "categories", "missing", "as_json")


def new(
    file: NewFile,
    columns: Example = None,
    numbers: Numbers = None,
    categories: Categories = None,
    missing: Cells = "refuse",
    round_id: RoundId = None,
    purpose: Purpose = None,
    retention_days: Days = None,
    deadline: Deadline = None,
    minimum_parties: Least = None,
    task: TaskWord = None,
    label: Label = None,
    classes: Classes = None,
    identifier: Id = None,
    model: Family = None,
    models: Families = None,
    holdout: Holdout = None,
    n_components: Components = None,
    n_anchor_rows: AnchorRows = None,
    anchor: Anchor = None,
    basis: Basis = None,
    aligner: Aligner = None,
    precision: Precision = None,
    int8_range: Int8Range = None,
    public_rows_sha256: PublicRows = None,
    noise: Noise = None,
    as_json: AsJson = False,
) -> None:
    """Write a new agreement with a comment on every field; what is not given is asked or left open.

    Example: cobasis agreement new icu.toml --columns public.csv --label sick --id patient
    """
    given = {**locals(), "id": identifier, "dp": noise}
    for word in (*_NO_FIELDS, "identifier", "noise"):
        given.pop(word)
    _write(
        file,
        _asked(given),
        features={"example": columns, "numbers": numbers or [], "categories": categories or []},
        missing=missing,
        as_json=as_json,
    )


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """Ask on a terminal for what nobody may sign without."""
    answered = dict(given)
    for word, (question, kind) in _ASKED.items():
        if answered[word] is None and on_terminal():
            said = typer.prompt(question, default="", show_default=False, err=True)
            answered[word] = _answer(word, said, kind) if said else None
    return answered


def _answer(word: str, said: str, kind: type) -> object:
    """Return what was typed, as the field needs it."""
    try:
        return kind(said)
    except ValueError:
        raise OptionError(
            f"{word} is a whole number, not {said!r}. Start again, or give it as a flag."
        ) from None


def _write(
    file: Path,
    given: dict[str, Any],
    *,
    features: dict[str, Any],
    missing: Literal["refuse", "fill"],
    as_json: bool,
) -> None:
    """Complete the fields, write the file, and say what is left to fill."""
    from cobasis.bundle.agreement_file import write_new
    from cobasis.cli.agreement_state import show_state
    from cobasis.party_side.draft import (
        dp_of_words,
        draft_fields,
        features_of_example,
        features_of_words,
        labels_of_example,
    )

    example, label = features["example"], given["label"]
    for word in _LISTS:
        if isinstance(given[word], str):
            given[word] = tuple(each.strip() for each in given[word].split(",") if each.strip())
    if given["classes"] and all(each.lstrip("-").isdigit() for each in given["classes"]):
        given["classes"] = tuple(int(each) for each in given["classes"])
    given["dp"] = dp_of_words(given["dp"]) if given["dp"] else None
    found = features_of_words(features["numbers"], features["categories"], missing=missing)
    if example is not None:
        leave = {label, given["id"], *(each.name for each in found)}
        found += features_of_example(example, leave_out=leave - {None}, missing=missing)
        if given["task"] == "classification" and label and not given["classes"]:
            given["classes"] = labels_of_example(example, label)
    given["features"] = found or None
    write_new(file, fields=draft_fields(given, stem=file.stem))
    show_state(file, command="agreement new", as_json=as_json)
