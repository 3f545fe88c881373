"""``cobasis agreement new``: a commented agreement, who takes part, and their secret."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cobasis.algorithms import AlignerName, AnchorKind, BasisName
from cobasis.bundle.agreement_file import (
    BY_COMMAND,
    complete,
    line_in,
    read_agreement,
    read_draft,
    read_terms,
    stem_of,
    text_of,
    write_agreement,
)
from cobasis.bundle.agreement_text import new_text
from cobasis.cli import options
from cobasis.cli.options import Owner, consent, grouped
from cobasis.cli.questions import asked
from cobasis.cli.words import PERSON, aside, listed, picked, wrapped
from cobasis.errors import OptionError
from cobasis.keys.identity import Identity, enrolled_here, names
from cobasis.linalg.rng import KEY_BYTES
from cobasis.models import ModelName, Task
from cobasis.party_side.author import Authorship, People, issue, read_people, vouched
from cobasis.party_side.draft import draft_fields
from cobasis.party_side.session import read_secret
from cobasis.protocol.agreement import Precision, missing_fields
from cobasis.protocol.enrolment import PublicIdentity, words_of
from cobasis.transport.invites import Invitations
from cobasis.transport.mailbox import INVITES

_UNPINNED = (
    "The server shows no certificate yet that the analyst has signed for, so the codes hold no pin."
)


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    pubs: Annotated[list[Path] | None, Argument(metavar="PUB", help="All .pub files.")] = None
    analyst: Annotated[Path | None, Option(help="The analyst's .pub file.")] = None
    approver: Annotated[list[str] | None, Option(help="Officer: north=officer.pub; repeat.")] = None
    invite: Annotated[list[str] | None, Option(help="Who comes by a code; repeat.")] = None
    known: Annotated[list[Path] | None, Option(help="Agreements whose keys you know.")] = None
    group: Annotated[list[Path] | None, Option(help="All groups' analysts, .pub.")] = None
    secret_of: Annotated[Path | None, Option(help="Agreement of a group with the secret.")] = None
    yes: Annotated[bool, Option("--yes", help="All fingerprints are compared; ask none.")] = False

    def compare(self, people: People, *, own: Identity | None, known: People) -> None:
        """Have every fingerprint confirmed that is neither one's own nor confirmed before."""
        prints = {each: f"{each.name} {each.fingerprint}" for each in people.everybody}
        officers = (Path(each.partition("=")[2]) for each in self.approver or ())
        pubs = filter(None, (*(self.pubs or ()), self.analyst, *officers))
        by = vouched(people, own=own, pubs=pubs, known=self.known or ())
        for each, key in by.items():
            how = "itself" if each == key else f"{key.fingerprint}, which signed it"
            aside(f"{prints[each]}: you know {how}")
        seen = {*known.everybody, *by, own and own.public}
        left = [each for each in people.everybody if each not in seen and not self.yes]
        if left and not options.on_terminal():
            raise OptionError(
                f"nobody is here to confirm fingerprints: {'; '.join(prints[x] for x in left)}. "
                "Compare each with its owner, over the telephone, then say so with --yes."
            )
        for each in left:
            shown = f"{each.role} {each.name}:\n  {each.fingerprint}"
            consent(f"{shown}\nDid its owner read you this?", yes=False, what="the agreement")

    def people(self, owner: Owner) -> People:
        pubs = self.pubs or []
        found = read_people(pubs, analyst=self.analyst, approvers=self.approver or ())
        for each in pubs:
            if line_in(each, PublicIdentity) == found.analyst:
                owner.tell([f"{each} is the analyst's, and is set aside from the parties'."])
        return replace(found, groups=tuple(line_in(x, PublicIdentity) for x in self.group or ()))

    def secret(self, owner: Owner, draft: Mapping[str, Any]) -> bytes:
        """Draw the consortium's secret, or open that of another group."""
        if self.secret_of is None:
            return secrets.token_bytes(KEY_BYTES)
        session = owner.party(self.secret_of, sealed=False)
        of = session.agreement.round_id
        if draft["round_id"] != of or "groups" not in draft:
            raise OptionError(
                f"--secret-of: '{self.secret_of}' is of round '{of}', and only another group of "
                f"that round has its secret, too. Say --round {of}, and --group for each group's "
                "analyst, as there."
            )
        return read_secret(session).key


@dataclass(frozen=True, kw_only=True)
class Terms:
    columns: Annotated[
        Path | None, Option(help="A table: its columns, words, means and spreads become public.")
    ] = None
    leave_out: Annotated[str | None, Option(help="Its columns to leave out, or none.")] = None
    i_may_publish: Annotated[
        bool, Option("--i-may-publish", help="What is computed of its rows may become public.")
    ] = False
    numbers: Annotated[list[str] | None, Option(help="Numbers: age or age:centre=60.")] = None
    categories: Annotated[list[str] | None, Option("--category", help="sex=female,male.")] = None
    formula: Annotated[str | None, Option(help="How columns enter: age * sex + cr(bmi).")] = None
    missing: Annotated[str | None, Option(help="Empty cells: refuse, fill, or columns.")] = None
    round_id: Annotated[str | None, Option("--round", help="Its name, which no other has.")] = None
    purpose: Annotated[str | None, Option(help="What the model is for, in words.")] = None
    retention_days: Annotated[int | None, Option(help="Days that uploads are kept.")] = None
    deadline: Annotated[str | None, Option(help="In UTC, like 2026-12-31T12:00:00Z.")] = None
    minimum_parties: Annotated[int | None, Option(help="With fewer uploads nothing is run.")] = None
    fewest_rows: Annotated[int | None, Option(help="With fewer a party takes no part.")] = None
    server: Annotated[str | None, Option(help="The analyst's, https://...; empty: none.")] = None
    task: Annotated[Task | None, Option(help="What the model does.")] = None
    label: Annotated[str | None, Option(help="The column of labels.")] = None
    outcome: Annotated[str | None, Option(help="Beside the label: event=died,horizons=365.")] = None
    classes: Annotated[str | None, Option(help="Labels, else the example's; or clusters.")] = None
    id: Annotated[str | None, Option(help="The column of identifiers; never uploaded.")] = None
    model: Annotated[ModelName | None, Option(help="Family; rff is nearest pooled rows.")] = None
    models: Annotated[str | None, Option(help="Families the analyst may choose from.")] = None
    holdout: Annotated[float | None, Option(help="Share of rows that stays at a party.")] = None
    n_components: Annotated[str | None, Option(help="Columns of every basis, or auto.")] = None
    n_anchor_rows: Annotated[int | None, Option(help="Isometric: by default one a feature.")] = None
    anchor: Annotated[AnchorKind | None, Option(help="The anchor's kind.")] = None
    basis: Annotated[BasisName | None, Option(help="Consensus is best, from 3 parties.")] = None
    aligner: Annotated[AlignerName | None, Option(help="The method.")] = None
    precision: Annotated[Precision | None, Option(help="Numbers of an upload.")] = None
    int8_range: Annotated[float | None, Option(help="With int8: largest projected value.")] = None
    public_rows_sha256: Annotated[str | None, Option(help="SHA-256 of public rows.")] = None
    sums: Annotated[str | None, Option(help="Sums, no rows: maps=rff,most_rows=900,...")] = None
    from_sums: Annotated[Path | None, Option(help="A baseline table's folder, for columns.")] = None
    map: Annotated[str | None, Option(help="Of rows, before the basis: rff,waves=200.")] = None
    dp: Annotated[str | None, Option(help="Noise: epsilon=8,radius=2,most_rows=900,...")] = None

    @property
    def told(self) -> dict[str, Any]:
        return {word: x for word, x in vars(self).items() if x is not None and x is not False}


def agreement() -> None:
    """Make the agreement that everybody signs."""


@grouped
def new(
    owner: Owner,
    terms: Terms,
    enrolment: Enrolment,
    file: Annotated[Path, Argument(metavar="FILE", help="The agreement, like icu.toml.")],
) -> None:
    """Make the agreement, enrol who takes part, and seal a secret to each party.

    One of the parties types this, never the analyst. What is not told is asked. Typed again
    without options, after you edited FILE and before anybody signs, it says what changed, and
    replaces every NAME.secret.

    Example: cobasis agreement new icu.toml *.pub --analyst lab.pub --columns codebook.csv
    """
    people = enrolment.people(owner)
    author, edited = Authorship(file, home=owner.folder(), told=terms.told), file.exists()
    author.refuse_change()
    last, invited = author.last(), Invitations(author)
    people, known = _gathered(people, invited, enrolment, terms)
    identity = None  # while somebody is not enrolled
    if people.parties and people.analyst is not None:  # the party that makes the secret
        makers = {each.name: each for each in people.parties}
        where = "this agreement as a party, and only a party makes it"
        maker = enrolled_here(makers, where=where, home=owner.folder(), name=owner.name)
        identity = owner.enrolled(maker)
    told = None if edited else asked(terms.told, len(people.parties))
    base = text_of(file) if told is None else new_text(draft_fields(told, stem=file.stem))
    text = cache(partial(complete, base, path=file, **vars(people)))
    changed = author.changed(text()) if edited else ()
    if edited and not (changed or enrolment.invite) and author.whole():
        _bring(invited)  # again, if it did not get through
        _show(owner, author, identity, lead="Nothing changed since it was written.")
        return
    owner.tell(f"  {line}" for line in changed)
    draft = read_draft(file, text=text())
    if not (missing := set(missing_fields(draft))) - BY_COMMAND:
        read_terms(file, text=text())  # contradictions are found before anybody is asked
    enrolment.compare(people, own=identity, known=known)
    if identity is None or missing - {"commitment"} or "sums" in draft:
        author.keep(text=text(), words=author.words)
        write_agreement(file, text())
    else:
        if edited and last.files:
            question = "Draw a new secret, and replace every NAME.secret?"
            consent(question, yes=enrolment.yes, what="the new secret")
        issue(author, text=text, identity=identity, key=enrolment.secret(owner, draft))
    if edited and not missing_fields(read_draft(file)):
        _bring(invited)
    void = "The secrets are new: what was sent before is of no use. " if last.files else ""
    _show(owner, author, identity, changed=changed, more=void)


def _gathered(
    people: People, invited: Invitations, enrolment: Enrolment, terms: Terms
) -> tuple[People, People]:
    """Return who takes part, and whose key needs no comparing: it was there, or came by a code.

    While somebody is only invited, no party stands in the draft.
    """
    author, edited = invited.author, invited.author.path.exists()
    known = People.of(read_draft(author.path, text=author.last().text))
    draft = read_draft(author.path) if edited else {"server": terms.server}
    there = People.of(draft)
    whole = there.joined(people)
    if enrolment.invite and not there.parties:  # also again, as where codes ran out: all are new
        if whole.analyst is None or not draft.get("server"):
            raise OptionError(
                "--invite needs the analyst's key and server, which a code leads to. Give "
                "--analyst lab.pub and --server https://lab.example as well."
            )
        have = {*names(author.home), *(each.name for each in whole.everybody)}
        if known_here := [name for name in enrolment.invite if name in have]:
            name = known_here[0]
            raise OptionError(
                f"--invite {name}: the key of '{name}' is here already, and the round would wait "
                f"for it to come by a code. Leave it out; give {name}.pub once the others came."
            )
        invited.invite(enrolment.invite, server=str(draft["server"]), analyst=whole.analyst)
        return replace(whole, parties=()), known
    came = People(parties=tuple(invited.keys()) if edited and not there.parties else ())
    return whole.joined(came), known.joined(came)


def _bring(invited: Invitations) -> None:
    """Bring the agreement to who was invited; say to whom the server brings it no more."""
    if left := invited.tell():
        file = invited.author.path.name
        aside(
            f"The server does not bring this text to {listed(left)}: an invitation brings one, in "
            f"14 days. Send them {file}, which goes in the place of any earlier one; then each "
            f"types: cobasis go {file} data.csv"
        )


def _show(
    owner: Owner,
    author: Authorship,
    own: Identity | None,
    *,
    changed: Iterable[str] = (),
    lead: str = "",
    more: str = "",
) -> None:
    path, fields = author.path, read_draft(author.path)
    people, missing = People.of(fields), missing_fields(fields)
    digest = None if missing else read_agreement(path).agreement.digest().hex()
    features = fields.get("features", ())
    sealed = people.parties if digest and "sums" not in fields else ()
    codes = Invitations(author).codes()
    told = {
        "round": str(fields.get("round_id", "")),
        "path": path,
        "state": "complete" if digest else "draft",
        "digest": digest,
        "missing": missing,
        "changed": tuple(changed),
        "features": [each["name"] for each in features if "name" in each],
        "people": [picked(each, *PERSON) for each in people.everybody],
        "secrets": {each.name: author.secret(each.name) for each in sealed},
        "pinned": all(each.pin for each in codes),
        "invited": {} if people.parties else {each.party: each.words() for each in codes},
    }
    lead = lead or f"Wrote {path}, of round '{told['round']}'."
    if bases := [f"{each['name']}={each['base']}" for each in features if "base" in each]:
        lead += f" Left without a column, since the others tell it: {', '.join(bases)}."
    fingerprint = own.public.fingerprint if own else None
    lines = _lines(told, own=fingerprint, more=more, brought=bool(codes))
    owner.say([*wrapped(lead), *lines], command="agreement new", **told)


def _lines(told: dict[str, Any], *, own: str | None, more: str, brought: bool) -> Iterator[str]:
    for each in told["people"]:
        you = "  (you)" if each["fingerprint"] == own else ""
        yield f"  {each['role']:<8} {each['name']}{you}"
        yield f"    {each['fingerprint']}"
    if gaps := [each for each in told["missing"] if each not in BY_COMMAND]:
        yield from wrapped(f"To be filled by hand: {', '.join(gaps)}.")
    if told["invited"]:
        yield "Give each party its code, over a channel of your own. It is good once, for 14 days:"
        yield from (f"  {party}: cobasis go {code} DATA" for party, code in told["invited"].items())
        if not told["pinned"]:
            yield from wrapped(_UNPINNED)
        codes = f"{stem_of(told['path'])}{INVITES}"
        yield from wrapped(f"Give {codes} to the analyst, who puts it into the folder it serves.")
        yield f"Next, when they have typed that: cobasis agreement new {told['path']} YOURS.pub"
        return
    if told["digest"] is None:
        pubs = " *.pub --analyst lab.pub" if {*told["missing"]} & {"enrolled", "analyst"} else ""
        yield f"Next: cobasis agreement new {told['path']}{pubs}"
        return
    name = told["path"].name
    yield "Digest, which everybody signs:"
    yield f"  {told['digest']}"
    yield f"  {words_of(bytes.fromhex(told['digest']))}"
    send, then = f"Send {name} to everybody", f"Next, everybody: cobasis sign {name}"
    if brought:
        send = f"Send {name} to the analyst; the server brings it to those who were invited"
        then = f"Next: cobasis go {name} data.csv"
    elif told["secrets"]:
        yield "One file for each party, with the secret sealed to it; none for the analyst:"
        yield from wrapped(listed(each.name for each in told["secrets"].values()), lead="  ")
        send += ", and to each party its own .secret file"
    yield from wrapped(f"{more}{send}.")
    yield then
