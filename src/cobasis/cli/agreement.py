"""``cobasis agreement new``: a commented agreement, who takes part, and their secret."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.registry import AlignerName
from cobasis.cli.options import Owner, consent, on_terminal, owned, wrapped
from cobasis.errors import CobasisError, OptionError
from cobasis.models.families import ModelName, Task

if TYPE_CHECKING:
    from cobasis.keys.identity import Identity
    from cobasis.party_side.authoring import Authorship, People

NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The agreement, like icu.toml.")]
Pubs = Annotated[
    list[Path] | None, typer.Argument(metavar="PUB", help="Who takes part: their .pub files.")
]
Lab = Annotated[Path | None, typer.Option(help="The analyst's .pub file.")]
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
    Literal["refuse", "fill"] | None,
    typer.Option(help="Empty cells; fill: the centre, or a level."),
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

Fingerprints = Annotated[
    list[str] | None,
    typer.Option("--fingerprint", help="Read to you by its owner: 'a17c 0d01 d502 2747'; repeat."),
]
Compared = Annotated[bool, typer.Option("--yes", help="All fingerprints are compared; ask none.")]

app = typer.Typer(help="The agreement that everybody signs.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep this a group, though it has one command."""


@app.command()
@owned
def new(
    owner: Owner,
    file: NewFile,
    pubs: Pubs = None,
    analyst: Lab = None,
    fingerprints: Fingerprints = None,
    yes: Compared = False,
    columns: Example = None,
    numbers: Numbers = None,
    categories: Categories = None,
    missing: Cells = None,
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
) -> None:
    """Make the agreement, enrol who takes part, and seal a secret to each party.

    One of the parties types this, never the analyst. What is not told is asked. Typed again
    without options, after you edited FILE and before anybody signs, it says what changed, draws
    a new secret, and replaces every NAME.secret.

    Example: cobasis agreement new icu.toml *.pub --analyst lab.pub --columns codebook.csv
    """
    given = {**locals(), "id": identifier, "dp": noise}
    for word in ("owner", "file", "pubs", "analyst", "fingerprints", "yes", "identifier", "noise"):
        given.pop(word)
    told = {word: each for word, each in given.items() if each is not None}
    _make(owner, file, pubs=(pubs or [], analyst), compared=(fingerprints or [], yes), told=told)


def _make(
    owner: Owner,
    file: Path,
    *,
    pubs: tuple[list[Path], Path | None],
    compared: tuple[list[str], bool],
    told: dict[str, Any],
) -> None:
    """Make an agreement, or make one anew that was edited."""
    from cobasis.bundle.agreement_reading import draft_in, terms_in
    from cobasis.keys.at_rest import home
    from cobasis.party_side.authoring import Authorship, People, read_people

    people = read_people(pubs[0], analyst=pubs[1])
    if people.aside:
        owner.tell(f"{people.aside} is the analyst's, and is set aside from the parties'.")
    author = Authorship(file, home=home(owner.home))
    author.refuse_signed()
    last, words = author.last(), _digest(told)
    before, known = People(), People()
    if last.text:
        before = known = People.of(draft_in(last.text, path=file).fields)
    if file.exists():
        if told and (last.words, last.text) != (words, author.text()):
            raise OptionError(
                f"'{file}' exists, and options describe a new agreement. Edit the file, and type "
                f"'cobasis agreement new {file}' without options, or choose another name."
            )
        before = People.of(draft_in(author.text(), path=file).fields)
        people = before.joined(people)
    identity = _author(owner, people)
    if file.exists():
        text = _edited(author, people)
        changed = author.changed(text(""))
        if not changed and author.whole():
            _show(owner, author, identity, note="Nothing changed since it was written.")
            return
        for line in changed:
            owner.tell(f"  {line}")
    else:
        text, changed = _drawn_up(told, file, people), ()
    draft = draft_in(text(""), path=file)
    if not set(draft.missing) - {*_BY_COMMAND}:
        terms_in(text(""), path=file)  # contradictions are found before anybody is asked
    _compare(people, own=identity, known=known, compared=compared)
    _write(author, text, identity=identity, missing=draft.missing, words=words, yes=compared[1])
    note = "The secrets are new: what was sent before is of no use. " if last.files else ""
    _show(owner, author, identity, changed=changed, more=note)


_BY_COMMAND = ("parties", "enrolled", "analyst", "commitment")
"""Fields that this command fills in, from .pub files and with the secret."""


def _digest(told: Mapping[str, Any]) -> str:
    """Return a digest of options, by which the same command is known when it is typed again."""
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _author(owner: Owner, people: "People") -> "Identity | None":
    """Open the key of the party that makes the secret; None while somebody is not enrolled."""
    from cobasis.keys.at_rest import home
    from cobasis.party_side.authoring import maker_of, refuse_other_key

    if not people.parties or people.analyst is None:
        return None
    identity = owner.identity(maker_of(people, home=home(owner.home), name=owner.name))
    refuse_other_key(identity, people.parties)
    return identity


def _edited(author: "Authorship", people: "People") -> Callable[[str], str]:
    """Return the file's text with who takes part, for a commitment."""
    from cobasis.bundle.agreement_file import complete

    text = author.text()

    def committed(commitment: str) -> str:
        return complete(
            text,
            path=author.path,
            parties=people.parties,
            analyst=people.analyst,
            commitment=commitment,
        )

    return committed


def _drawn_up(told: Mapping[str, Any], file: Path, people: "People") -> Callable[[str], str]:
    """Return a new agreement's text, for a commitment, from options, questions and defaults."""
    from cobasis.bundle.agreement_text import new_text
    from cobasis.party_side.draft import draft_fields

    fields = draft_fields(_asked(dict(told), len(people.parties)), stem=file.stem)
    fields |= {"enrolled": people.parties, "analyst": people.analyst}
    return lambda commitment: new_text({**fields, "commitment": commitment or None})


_WORDS = ("columns", "numbers", "categories", "missing", "classes", "models", "dp")
"""Options that are read by themselves; every other one is a field of the agreement."""


def _asked(told: dict[str, Any], n_parties: int) -> dict[str, Any]:
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
    from cobasis.features.encoding import width_of
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


def _compare(
    people: "People",
    *,
    own: "Identity | None",
    known: "People",
    compared: tuple[list[str], bool],
) -> None:
    """Have every fingerprint confirmed that is neither the author's own nor confirmed before."""
    said, yes = {"".join(each.split()).lower() for each in compared[0]}, compared[1]
    everybody = people.everybody
    by_digits = {each.fingerprint.replace(" ", ""): each for each in everybody}
    if said - set(by_digits):
        listed = "; ".join(f"{each.name} {each.fingerprint}" for each in everybody)
        raise OptionError(
            f"--fingerprint {', '.join(sorted(said - set(by_digits)))} is of no file that was "
            f"given: {listed}. If that is what its owner read to you, the file is not theirs."
        )
    seen = {own.public if own is not None else None, *known.everybody}
    open_ones = [
        each for digits, each in by_digits.items() if each not in seen and digits not in said
    ]
    if yes:
        return
    if open_ones and not on_terminal():
        listed = "; ".join(f"{each.name} {each.fingerprint}" for each in open_ones)
        raise OptionError(
            f"nobody is here to confirm fingerprints: {listed}. Compare each with its owner, over "
            "the telephone, then give it with --fingerprint, or all of them with --yes."
        )
    for each in open_ones:
        question = f"{each.role} {each.name}: {each.fingerprint}. Did its owner read you this?"
        consent(question, yes=False, what="the agreement")


def _write(
    author: "Authorship",
    text: Callable[[str], str],
    *,
    identity: "Identity | None",
    missing: Iterable[str],
    words: str,
    yes: bool,
) -> None:
    """Write the agreement and its sealed secrets; a draft alone while something is to be filled."""
    from cobasis.bundle.agreement_file import write_agreement
    from cobasis.party_side.authoring import issue

    last = author.last()
    if identity is None or set(missing) - {"commitment"}:
        author.keep(replace(last, text=text(""), words=words))
        write_agreement(author.path, text(""))
        return
    if author.path.exists() and last.files:
        consent("Draw a new secret, and replace every NAME.secret", yes=yes, what="the new secret")
    issue(author, text=text, identity=identity, words=words)


def _show(
    owner: Owner,
    author: "Authorship",
    identity: "Identity | None",
    *,
    changed: Iterable[str] = (),
    note: str = "",
    more: str = "",
) -> None:
    """Say how the agreement stands, and what is to be done with which file."""
    from cobasis.bundle.agreement_reading import agreement_in, draft_in
    from cobasis.cli.answers import AgreementAnswer, PersonAnswer
    from cobasis.party_side.authoring import People

    path, draft = author.path, draft_in(author.text(), path=author.path)
    people = People.of(draft.fields)
    names = [each.name for each in people.parties]
    digest = None
    if not draft.missing:
        digest = agreement_in(author.text(), path=path).agreement.digest().hex()
    answer = AgreementAnswer(
        command="agreement new",
        round=str(draft.fields.get("round_id", "")),
        path=str(path),
        state="draft" if digest is None else "complete",
        digest=digest,
        missing=list(draft.missing),
        changed=list(changed),
        people=[PersonAnswer.of(each) for each in people.everybody],
        secrets={} if digest is None else {each: str(author.secret(each)) for each in names},
    )
    lines = [note or f"Wrote {path}, of round '{answer.round}'."]
    for each in people.everybody:
        you = "  (you)" if identity is not None and each == identity.public else ""
        lines.append(f"  {each.role:<8} {each.name:<20} {each.fingerprint}{you}")
    if digest is None:
        gaps = [each for each in draft.missing if each not in _BY_COMMAND]
        if gaps:
            lines += wrapped(f"To be filled by hand: {', '.join(gaps)}.")
        pubs = " *.pub" if "enrolled" in draft.missing else ""
        lab = " --analyst lab.pub" if "analyst" in draft.missing else ""
        lines += [f"Next: cobasis agreement new {path}{pubs}{lab}"]
    else:
        lines += [
            "Digest, which everybody signs:",
            f"  {digest}",
            "One file for each party, with the secret sealed to it; none for the analyst:",
            *wrapped(", ".join(path.name for path in map(author.secret, names)), lead="  "),
            *wrapped(
                f"{more}Send {path.name} to everybody, and to each party its own .secret file."
            ),
            f"Next, everybody: cobasis sign {path.name}",
        ]
    owner.say(answer, lines=lines)
