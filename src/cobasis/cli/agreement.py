"""``cobasis agreement new``: a commented agreement, who takes part, and their secret."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.cli import options
from cobasis.cli.options import Owner, aside, ask, consent, grouped, listed, wrapped
from cobasis.errors import OptionError
from cobasis.models import ModelName, Task

if TYPE_CHECKING:
    from cobasis.cli.answers import AgreementAnswer
    from cobasis.features.contract import Feature
    from cobasis.keys.identity import Identity
    from cobasis.party_side.author import Authorship, People

_PEOPLE = ("parties", "approvers", "analyst")
_BY_COMMAND = {"parties", "enrolled", "analyst", "commitment"}
"""Fields that this command fills in, from .pub files and with the secret."""


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    """Who takes part, and whose fingerprint somebody compared."""

    pubs: Annotated[list[Path] | None, Argument(metavar="PUB", help="The .pub files of all.")] = (
        None
    )
    analyst: Annotated[Path | None, Option(help="The analyst's .pub file.")] = None
    approver: Annotated[
        list[str] | None, Option(help="Whose files an officer approves: north=officer.pub; repeat.")
    ] = None
    fingerprint: Annotated[
        list[str] | None, Option(help="Read to you by its owner: 'a17c 0d01 d502 2747'; repeat.")
    ] = None
    yes: Annotated[bool, Option("--yes", help="All fingerprints are compared; ask none.")] = False

    def compare(self, people: "People", *, own: "Identity | None", known: "People") -> None:
        """Have every fingerprint confirmed that is neither one's own nor confirmed before."""
        told = {"".join(each.split()).lower() for each in self.fingerprint or ()}
        prints = {each: f"{each.name} {each.fingerprint}" for each in people.everybody}
        by_digits = {each.fingerprint.replace(" ", ""): each for each in people.everybody}
        if wrong := told - set(by_digits):
            raise OptionError(
                f"--fingerprint {', '.join(sorted(wrong))} is of no file that was given, so one of "
                f"these is not of whoever read it to you: {'; '.join(prints.values())}."
            )
        seen = {*known.everybody, own and own.public, *(by_digits[each] for each in told)}
        left = [each for each in people.everybody if each not in seen and not self.yes]
        if left and not options.on_terminal():
            open_ones = "; ".join(prints[each] for each in left)
            raise OptionError(
                f"nobody is here to confirm fingerprints: {open_ones}. Compare each with its "
                "owner, over the telephone, then give it with --fingerprint, or all with --yes."
            )
        for each in left:
            question = f"{each.role} {each.name}: {each.fingerprint}. Did its owner read you this?"
            consent(question, yes=False, what="the agreement")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is agreed, as far as it is told; fields of the agreement, and words for some."""

    columns: Annotated[
        Path | None, Option(help="A table: its columns, words, means and spreads become public.")
    ] = None
    leave_out: Annotated[str | None, Option(help="Its columns to leave out, or none.")] = None
    i_may_publish: Annotated[
        bool, Option("--i-may-publish", help="What is computed of its rows may become public.")
    ] = False
    numbers: Annotated[list[str] | None, Option(help="Numbers: age or age:centre=60.")] = None
    categories: Annotated[list[str] | None, Option("--category", help="sex=female,male.")] = None
    missing: Annotated[
        str | None, Option(help="Empty cells: refuse; fill (the centre, or a level); or columns.")
    ] = None
    round_id: Annotated[str | None, Option("--round", help="Its name, which no other has.")] = None
    purpose: Annotated[str | None, Option(help="What the model is for, in words.")] = None
    retention_days: Annotated[int | None, Option(help="Days that uploads are kept.")] = None
    deadline: Annotated[str | None, Option(help="In UTC, like 2026-12-31T12:00:00Z.")] = None
    minimum_parties: Annotated[int | None, Option(help="With fewer uploads nothing is run.")] = None
    fewest_rows: Annotated[int | None, Option(help="With fewer a party takes no part.")] = None
    task: Annotated[Task | None, Option(help="What the model does.")] = None
    label: Annotated[str | None, Option(help="The column of labels.")] = None
    classes: Annotated[str | None, Option(help="Labels; by default the example's.")] = None
    id: Annotated[str | None, Option(help="The column of identifiers; never uploaded.")] = None
    model: Annotated[ModelName | None, Option(help="Family; rff is nearest pooled rows.")] = None
    models: Annotated[str | None, Option(help="Families the analyst may choose from.")] = None
    holdout: Annotated[float | None, Option(help="Share of rows that stays at a party.")] = None
    n_components: Annotated[str | None, Option(help="Columns of every basis, or auto.")] = None
    n_anchor_rows: Annotated[int | None, Option(help="By default one per encoded feature.")] = None
    anchor: Annotated[AnchorKind | None, Option(help="The anchor's kind.")] = None
    basis: Annotated[BasisName | None, Option(help="The bases; consensus is best, from 3 on.")] = (
        None
    )
    aligner: Annotated[AlignerName | None, Option(help="The method.")] = None
    precision: Annotated[
        Literal["fp64", "fp32", "fp16", "int8"] | None, Option(help="Numbers of an upload.")
    ] = None
    int8_range: Annotated[float | None, Option(help="With int8: largest projected value.")] = None
    public_rows_sha256: Annotated[str | None, Option(help="SHA-256 of public rows.")] = None
    sums: Annotated[str | None, Option(help="Sums, no rows: maps=rff,most_rows=900,...")] = None
    dp: Annotated[
        str | None, Option(help="Noise with a guarantee: epsilon=8,radius=2,most_rows=900,...")
    ] = None

    @property
    def told(self) -> dict[str, Any]:
        """What was told."""
        return {
            word: each
            for word, each in vars(self).items()
            if each is not None and each is not False
        }


app = typer.Typer(help="The agreement that everybody signs.", no_args_is_help=True)


@app.command()
@grouped
def new(
    owner: Owner,
    terms: Terms,
    enrolment: Enrolment,
    file: Annotated[Path, Argument(metavar="FILE", help="The agreement, like icu.toml.")],
) -> None:
    """Make the agreement, enrol who takes part, and seal a secret to each party.

    One of the parties types this, never the analyst. What is not told is asked. Typed again
    without options, after you edited FILE and before anybody signs, it says what changed, draws
    a new secret, and replaces every NAME.secret.

    Example: cobasis agreement new icu.toml *.pub --analyst lab.pub --columns codebook.csv
    """
    from cobasis.bundle.agreement_file import read_draft, read_terms, write_agreement
    from cobasis.party_side.author import Authorship, People, digest_of, issue, read_people
    from cobasis.protocol.agreement import missing_fields

    people = read_people(
        enrolment.pubs or [], analyst=enrolment.analyst, approvers=enrolment.approver or ()
    )
    if people.aside:
        owner.tell([f"{people.aside} is the analyst's, and is set aside from the parties'."])
    author, edited = Authorship(file, home=owner.folder()), file.exists()
    words = digest_of(terms.told) if terms.told else ""
    author.refuse_signed()
    last = author.last()
    known = People.of(read_draft(file, text=last.text))
    if edited:
        author.refuse_options(words)
        people = People.of(read_draft(file)).joined(people)
    identity = _author(owner, people)
    text = _edited(author, people) if edited else _drawn_up(author, people, terms)
    changed = author.changed(text("")) if edited else ()
    if edited and not changed and author.whole():
        _show(owner, author, identity, lead="Nothing changed since it was written.")
        return
    owner.tell(f"  {line}" for line in changed)
    missing = set(missing_fields(read_draft(file, text=text(""))))
    if not missing - _BY_COMMAND:
        read_terms(file, text=text(""))  # contradictions are found before anybody is asked
    enrolment.compare(people, own=identity, known=known)
    if identity is None or missing - {"commitment"} or "sums" in read_draft(file, text=text("")):
        author.keep(replace(last, text=text(""), words=words))
        write_agreement(file, text(""))
    else:
        if edited and last.files:
            question = "Draw a new secret, and replace every NAME.secret?"
            consent(question, yes=enrolment.yes, what="the new secret")
        issue(author, text=text, identity=identity, words=words)
    void = "The secrets are new: what was sent before is of no use. " if last.files else ""
    _show(owner, author, identity, changed=changed, more=void)


def _author(owner: Owner, people: "People") -> "Identity | None":
    """Open the key of the party that makes the secret; None while somebody is not enrolled."""
    from cobasis.keys.identity import refuse_other_key
    from cobasis.party_side.author import maker_of

    if not people.parties or people.analyst is None:
        return None
    maker = maker_of(people, home=owner.folder(), name=owner.name)
    identity = owner.identity(maker.name)
    refuse_other_key(identity, maker)
    return identity


def _edited(author: "Authorship", people: "People") -> Callable[[str], str]:
    """Return the file's text with who takes part, for a commitment."""
    from cobasis.bundle.agreement_file import complete, text_of

    text, told = text_of(author.path), {name: getattr(people, name) for name in _PEOPLE}
    return lambda commitment: complete(text, path=author.path, commitment=commitment, **told)


def _drawn_up(author: "Authorship", people: "People", terms: Terms) -> Callable[[str], str]:
    """Return a new agreement's text from options, questions and defaults, for a commitment."""
    from cobasis.bundle.agreement_text import new_text
    from cobasis.party_side.draft import draft_fields

    fields = draft_fields(_asked(terms.told, len(people.parties)), stem=author.path.stem)
    fields |= {"enrolled": people.parties, "approvers": people.approvers}
    fields |= {"analyst": people.analyst}
    return lambda commitment: new_text({**fields, "commitment": commitment or None})


_WORDS = {"columns", "leave_out", "i_may_publish", "numbers", "categories", "missing", "classes"}
_WORDS |= {"models", "dp", "sums"}
"""Terms that are read by themselves; every other one is a field of the agreement."""


def _asked(told: dict[str, Any], n_parties: int) -> dict[str, Any]:
    """Return the fields that were told, and on a terminal those that were asked for."""
    from cobasis.algorithms.bases import BASES
    from cobasis.features.contract import with_bases
    from cobasis.party_side import draft

    def table(said: str) -> Path:
        draft.refuse_other_columns(Path(said))
        return Path(said)

    def column(word: str, said: str) -> str:
        if example is not None:
            draft.refuse_other_columns(example, **{word: said})
        return said

    auto = told.get("n_components") == "auto"
    read = set(told) - _WORDS - ({"n_components"} if auto else set())
    fields = {word: draft.field_of_words(word, told[word]) for word in read}
    missing, example = told.get("missing", ""), told.get("columns")
    columns = told.get("numbers", []), told.get("categories", [])
    found = draft.features_of_words(*columns, missing=missing)
    ask(fields, "purpose", "What is the model for, and who may use it")
    if not found and example is None:
        ask(fields, "example", "Public table with all columns (CSV, Parquet)", read=table)
        example = fields.pop("example", None)
    for word in {"label", "id"} & set(fields):
        column(word, fields[word])
    ask(fields, "task", "classification, regression or representation", default="classification")
    if fields.get("task") != "representation":
        ask(fields, "label", "Column of labels", read=partial(column, "label"))
    question = "Column of identifiers, to know people again; it never leaves"
    ask(fields, "id", question, read=partial(column, "id"))
    if example is not None:
        known = [fields.get("label", ""), fields.get("id", ""), *(each.name for each in found)]
        found += _described(example, known, id_column=fields.get("id", ""), told=told)
    blank = {*draft.words_of(missing)} - {"fill", "refuse", *(each.name for each in found)}
    if blank and found:
        raise OptionError(f"--missing {listed(sorted(blank))} names no column. Name one of them.")
    rule = BASES[fields.get("basis", "svd")]
    fields["features"] = with_bases(found, centred=rule.centred) or None
    fields["classes"] = _classes(draft.words_of(told.get("classes", "")), fields, example)
    fields["models"] = draft.words_of(told.get("models", "")) or None
    fields |= draft.sums_of_words(told.get("sums"), fields["features"], example=example)
    fields["dp"] = draft.dp_of_words(told["dp"], fields.get("sums")) if "dp" in told else None
    _ask_numbers(fields, n_parties, auto=auto)
    return fields


def _described(
    example: Path, known: list[str], *, id_column: str, told: dict[str, Any]
) -> "tuple[Feature, ...]":
    """Describe the other columns of a table, and ask whether what tells of rows may be public."""
    from cobasis.party_side import draft

    people, missing = draft.looks_like_people(example, id_column), told.get("missing", "")
    if people and "i_may_publish" not in told and not options.on_terminal():
        draft.refuse_people(example)
    describe = partial(
        draft.features_of_example, example, known=known, people=people, missing=missing
    )
    found = {"these": describe(told["leave_out"])} if "leave_out" in told else {}
    if not found and options.on_terminal():
        left = [each for each in draft.columns_of(example) if each not in known]
        aside(f"{example.name} has {listed(left)}.")
    ask(found, "these", "Which of them shall be no features", default="none", read=describe)
    features, rare = found.get("these") or describe()
    aside(f"Features, of {example.name}: {listed(each.name for each in features)}.")
    if rare:
        aside(f"In fewer than {draft.FEWEST} rows, so any other word: {listed(rare)}.")
    if people:
        question = f"{example.name} looks like people. May its means, spreads and words be public?"
        consent(question, yes="i_may_publish" in told, what="the table")
    return features


def _classes(
    told: tuple[str, ...], fields: dict[str, Any], example: Path | None
) -> tuple[str, ...] | tuple[int, ...] | None:
    """Return the classes that were told, or that the public table has, or that were asked for."""
    from cobasis.party_side.draft import labels_of_example, words_of

    if not told and fields.get("task") == "classification" and fields.get("label"):
        if example is not None:
            return labels_of_example(example, fields["label"])
        ask(fields, "classes", "Labels that may occur, like no,yes", read=words_of)
        told = fields.get("classes") or ()
    if told and all(each.lstrip("-").isdigit() for each in told):
        return tuple(map(int, told))
    return told or None


def _ask_numbers(fields: dict[str, Any], n_parties: int, *, auto: bool) -> None:
    """Ask for sizes and times; take the smaller number of components where nobody chooses."""
    from cobasis.party_side.draft import components_for

    of_rows, features = {"n_components", "fewest_rows"}, fields["features"] or ()
    skipped = of_rows if "sums" in fields else set()
    sizes = components_for(() if skipped else features, precision=fields.get("precision", "fp64"))
    if auto or (options.on_terminal() and "n_components" not in fields):
        for line in sizes.values():
            aside(line)
    if auto:
        fields["n_components"] = min(sizes, default=None)
    size, of_all = str(max(sizes, default="")), f", of {n_parties}" if n_parties else ""
    least = max(2, n_parties - 1) if "sums" not in fields else n_parties
    for word, question, default in (
        ("n_components", "Numbers that stand for a row", size),
        ("retention_days", "Days that the analyst keeps uploads", "90"),
        ("minimum_parties", f"Parties that are needed{of_all}", str(least)),
        ("fewest_rows", "Rows that a party needs to take part", "10"),
        ("deadline", "Deadline in UTC, like 2026-12-31 (empty: none)", ""),
        ("holdout", "Share of rows that stays at a party, to score on", "0.2"),
    ):
        if word not in skipped:
            ask(fields, word, question, default=default)


def _show(
    owner: Owner,
    author: "Authorship",
    own: "Identity | None",
    *,
    changed: Iterable[str] = (),
    lead: str = "",
    more: str = "",
) -> None:
    """Say how the agreement stands, and what is to be done with which file."""
    from cobasis.bundle.agreement_file import read_agreement, read_draft
    from cobasis.cli.answers import AgreementAnswer
    from cobasis.party_side.author import People
    from cobasis.protocol.agreement import missing_fields

    path, fields = author.path, read_draft(author.path)
    people, missing = People.of(fields), missing_fields(fields)
    digest = None if missing else read_agreement(path).agreement.digest().hex()
    features = fields.get("features", ())
    sealed = people.parties if digest and "sums" not in fields else ()
    answer = AgreementAnswer.of(
        missing=missing,
        command="agreement new",
        round=str(fields.get("round_id", "")),
        path=path,
        state="complete" if digest else "draft",
        digest=digest,
        changed=changed,
        features=[each["name"] for each in features],
        people=people.everybody,
        secrets={each.name: author.secret(each.name) for each in sealed},
    )
    lead = lead or f"Wrote {path}, of round '{answer.round}'."
    bases = [f"{each['name']}={each['base']}" for each in features if "base" in each]
    if bases:
        lead += f" No column of its own has what follows from others: {', '.join(bases)}."
    owner.say(answer, [*wrapped(lead), *_lines(answer, own=own, more=more)])


def _lines(answer: "AgreementAnswer", *, own: "Identity | None", more: str) -> Iterator[str]:
    """Yield who takes part, and what is left to do or to send."""
    from cobasis.protocol.enrolment import words_of

    for each in answer.people:
        you = "  (you)" if own is not None and each.fingerprint == own.public.fingerprint else ""
        yield f"  {each.role:<8} {each.name:<20} {each.fingerprint}{you}"
    if answer.digest is None:
        if gaps := [each for each in answer.missing if each not in _BY_COMMAND]:
            yield from wrapped(f"To be filled by hand: {', '.join(gaps)}.")
        pubs = " *.pub" if "enrolled" in answer.missing else ""
        lab = " --analyst lab.pub" if "analyst" in answer.missing else ""
        yield f"Next: cobasis agreement new {answer.path}{pubs}{lab}"
        return
    name = answer.path.name
    yield "Digest, which everybody signs:"
    yield f"  {answer.digest}"
    yield f"  {words_of(bytes.fromhex(answer.digest))}"
    send = f"{more}Send {name} to everybody"
    if answer.secrets:
        yield "One file for each party, with the secret sealed to it; none for the analyst:"
        yield from wrapped(listed(each.name for each in answer.secrets.values()), lead="  ")
        send += ", and to each party its own .secret file"
    yield from wrapped(f"{send}.")
    yield f"Next, everybody: cobasis sign {name}"
