"""``cobasis agreement new``: a commented agreement, who takes part, and their secret."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.cli.options import Owner, consent, on_terminal, owned, wrapped
from cobasis.errors import OptionError
from cobasis.models import ModelName, Task

if TYPE_CHECKING:
    from cobasis.cli.answers import AgreementAnswer
    from cobasis.keys.identity import Identity
    from cobasis.party_side.author import Authorship, People

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
Deadline = Annotated[
    str | None, typer.Option(help="A day or time in UTC: 2026-12-31, 2026-12-31T12:00:00Z.")
]
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
    from cobasis.bundle.agreement_file import read_draft, read_terms
    from cobasis.keys.at_rest import home
    from cobasis.party_side.author import Authorship, People, read_people
    from cobasis.protocol.agreement import missing_fields

    people = read_people(pubs[0], analyst=pubs[1])
    if people.aside:
        owner.tell(f"{people.aside} is the analyst's, and is set aside from the parties'.")
    author, words = Authorship(file, home=home(owner.home)), _digest(told)
    changed: tuple[str, ...] = ()
    author.refuse_signed()
    last = author.last()
    known = People.of(read_draft(file, text=last.text))
    if file.exists():
        _refuse_options(author, told, words)
        people = People.of(read_draft(file, text=author.text())).joined(people)
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
        text = _drawn_up(told, file, people)
    missing = missing_fields(read_draft(file, text=text("")))
    if not set(missing) - {*_BY_COMMAND}:
        read_terms(file, text=text(""))  # contradictions are found before anybody is asked
    _compare(people, own=identity, known=known, compared=compared)
    _write(author, text, identity=identity, missing=missing, words=words, yes=compared[1])
    void = "The secrets are new: what was sent before is of no use. " if last.files else ""
    _show(owner, author, identity, changed=changed, more=void)


_BY_COMMAND = ("parties", "enrolled", "analyst", "commitment")
"""Fields that this command fills in, from .pub files and with the secret."""


def _digest(told: Mapping[str, Any]) -> str:
    """Return a digest of options, by which the same command is known when it is typed again."""
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _refuse_options(author: "Authorship", told: Mapping[str, Any], words: str) -> None:
    """Raise OptionError where a file is there and options describe another one."""
    last = author.last()
    if told and (last.words, last.text) != (words, author.text()):
        raise OptionError(
            f"'{author.path}' exists, and options describe a new agreement. Edit the file, and "
            f"type 'cobasis agreement new {author.path}' without options, or choose another name."
        )


def _author(owner: Owner, people: "People") -> "Identity | None":
    """Open the key of the party that makes the secret; None while somebody is not enrolled."""
    from cobasis.keys.at_rest import home
    from cobasis.party_side.author import maker_of, refuse_other_key

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
    from cobasis.cli.questions import asked
    from cobasis.party_side.draft import draft_fields

    fields = draft_fields(asked(dict(told), len(people.parties)), stem=file.stem)
    fields |= {"enrolled": people.parties, "analyst": people.analyst}
    return lambda commitment: new_text({**fields, "commitment": commitment or None})


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
    from cobasis.party_side.author import issue

    last = author.last()
    if identity is None or set(missing) - {"commitment"}:
        author.keep(replace(last, text=text(""), words=words))
        write_agreement(author.path, text(""))
        return
    if author.path.exists() and last.files:
        consent("Draw a new secret, and replace every NAME.secret?", yes=yes, what="the new secret")
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
    from cobasis.bundle.agreement_file import read_agreement, read_draft
    from cobasis.cli.answers import AgreementAnswer
    from cobasis.party_side.author import People
    from cobasis.protocol.agreement import missing_fields

    path, fields = author.path, read_draft(author.path)
    people, missing = People.of(fields), missing_fields(fields)
    names = [each.name for each in people.parties]
    digest = None if missing else read_agreement(path).agreement.digest().hex()
    answer = AgreementAnswer.of(
        people,
        missing=missing,
        command="agreement new",
        round=str(fields.get("round_id", "")),
        path=str(path),
        state="draft" if digest is None else "complete",
        digest=digest,
        changed=tuple(changed),
        people=people.everybody,
        secrets={} if digest is None else {each: str(author.secret(each)) for each in names},
    )
    owner.say(
        answer,
        lines=[
            note or f"Wrote {path}, of round '{answer.round}'.",
            *_lines(answer, own=identity, more=more),
        ],
    )


def _lines(answer: "AgreementAnswer", *, own: "Identity | None", more: str) -> Iterator[str]:
    """Yield who takes part, and what is left to do or to send."""
    for each in answer.people:
        you = "  (you)" if own is not None and each.fingerprint == own.public.fingerprint else ""
        yield f"  {each.role:<8} {each.name:<20} {each.fingerprint}{you}"
    if answer.digest is None:
        gaps = [each for each in answer.missing if each not in _BY_COMMAND]
        if gaps:
            yield from wrapped(f"To be filled by hand: {', '.join(gaps)}.")
        pubs = " *.pub" if "enrolled" in answer.missing else ""
        lab = " --analyst lab.pub" if "analyst" in answer.missing else ""
        yield f"Next: cobasis agreement new {answer.path}{pubs}{lab}"
        return
    name = Path(answer.path).name
    yield "Digest, which everybody signs:"
    yield f"  {answer.digest}"
    yield "One file for each party, with the secret sealed to it; none for the analyst:"
    yield from wrapped(", ".join(Path(each).name for each in answer.secrets.values()), lead="  ")
    yield from wrapped(f"{more}Send {name} to everybody, and to each party its own .secret file.")
    yield f"Next, everybody: cobasis sign {name}"
