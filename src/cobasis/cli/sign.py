"""``cobasis sign``: the terms on one screen, the secret checked, then one signature."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.cli.options import AgreementFile, Owner, Yes, alone, consent, owned, wrapped
from cobasis.errors import DiskError, OptionError, StepError

if TYPE_CHECKING:
    from cobasis.keys.identity import Identity
    from cobasis.party_side.session import PartySession, SentSecret
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.enrolment import PublicIdentity

_TITLE, _MOST = 10, 240
"""Columns of the titles, and letters of a list before it is cut."""


@owned
def sign(
    owner: Owner,
    agreement: AgreementFile = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="By default NAME.sig beside the agreement.")
    ] = None,
    secret: Annotated[
        Path | None,
        typer.Option(help="By default NAME.secret beside the agreement; the analyst has none."),
    ] = None,
    later: Annotated[
        bool, typer.Option("--secret-later", help="Sign without having checked the secret.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Show what is agreed, check the secret against it, and sign.

    A party's secret is opened before anything is signed, and kept in its vault. Who you are
    follows from the key in your home folder.

    Example: cobasis sign icu.toml
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.protocol.signatures import refuse_gaps

    path = alone(agreement)
    found = read_agreement(path).agreement
    refuse_gaps(found)
    who = owner.who(found)
    to = out or path.with_name(f"{who.name}.sig")
    if who.role == "analyst":
        if secret is not None or later:
            raise OptionError(
                f"'{who.name}' is this round's analyst, who must never have the secret. Leave out "
                "--secret and --secret-later; if the file is here, delete it unopened."
            )
        session, sent, identity = None, None, owner.identity(who.name)
    else:
        session = owner.party(path, sealed=False)
        sent, identity = _checked(session, secret=secret, later=later), session.identity
    _sign(owner, found, identity, session=session, sent=sent, to=to, yes=yes)


def _sign(
    owner: Owner,
    agreement: "Agreement",
    identity: "Identity",
    *,
    session: "PartySession | None",
    sent: "SentSecret | None",
    to: Path,
    yes: bool,
) -> None:
    """Show the terms, ask, keep the secret, and write the signature."""
    from cobasis.cli.answers import SignAnswer
    from cobasis.disk.whole import write_whole
    from cobasis.party_side.session import keep_secret
    from cobasis.protocol.signatures import sign_agreement

    who = identity.public
    again = _stands(to, agreement, name=who.name)
    made = sign_agreement(agreement, name=who.name, sign=identity.sign)
    if not again:
        for line in _screen(agreement, who, secret=_of_secret(session, sent)):
            owner.tell(line)
        consent(f"Sign this as {who.name}?", yes=yes, what=f"'{to}'")
    if session is not None:
        if sent is not None:
            keep_secret(session, sent)
        if not session.history("signed"):
            session.transcript.append("signed", {"agreement": made.agreement})
    write_whole(to, made.text().encode(), mode=0o644)
    answer = SignAnswer.of(
        who,
        command="sign",
        round=agreement.round_id,
        digest=made.agreement,
        path=str(to),
        again=again,
        secret_from="" if sent is None else sent.maker,
    )
    if who.role == "analyst":
        then = "Next, when signatures have come: cobasis receive, with their folder"
    else:
        then = f"Next: send {to.name} to {_analyst(agreement)}, the analyst"
    done = f"{who.name} signed this before; {to} is as it was." if again else f"Wrote {to}"
    owner.say(answer, lines=[done, then])


def _stands(to: Path, agreement: "Agreement", *, name: str) -> bool:
    """Whether this very signature stands there; DiskError where another file is in the way."""
    from cobasis.bundle.agreement_file import line_in
    from cobasis.errors import AgreementError
    from cobasis.protocol.signatures import Signature

    if not to.exists():
        return False
    with suppress(AgreementError):
        found = line_in(to, Signature)
        if (found.name, found.agreement) == (name, agreement.digest().hex()):
            return True
    raise DiskError(
        f"'{to}' is in the way: it is no signature of '{name}' under this text. If it is of an "
        "earlier text, nobody needs it any more. Move it away, or choose another name with -o."
    )


def _checked(session: "PartySession", *, secret: Path | None, later: bool) -> "SentSecret | None":
    """Return the secret that was sent, if it is the agreement's; None where it is kept already."""
    from cobasis.party_side.session import SUFFIX, read_secret

    beside, joined = session.path.with_name(f"{session.name}{SUFFIX}"), session.round.joined
    if secret is None and joined and session.history("joined"):
        return None
    if secret is not None or beside.exists():  # also after a kill between vault and transcript
        return read_secret(session, secret or beside)
    if later or joined:
        return None
    raise StepError(
        f"'{beside.name}' is not beside '{session.path}', so nothing was signed: whoever signs "
        "first learns too late that a secret is not the one agreed on. Ask the party that made the "
        "agreement for it, or give its place with --secret. With --secret-later you sign "
        "unchecked, and bring it before you send."
    )


def _of_secret(session: "PartySession | None", sent: "SentSecret | None") -> str:
    """Say what is known of the secret."""
    if sent is not None:
        return f"made by {sent.maker}; it is the one that this agreement is committed to"
    if session is None:
        return "the parties have one; you must not"
    return "checked and kept before" if session.round.joined else "not here, and not checked"


def _screen(agreement: "Agreement", who: "PublicIdentity", *, secret: str) -> Iterator[str]:
    """Yield what is signed, in lines that fit 80 columns."""
    as_what = "the analyst" if who.role == "analyst" else "a party"
    yield f"Round {agreement.round_id}, to be signed by you: {who.name}, {as_what}"
    for title, texts in (*_terms(agreement, who), ("Secret", [secret]), *_end(agreement)):
        for at, text in enumerate(texts):
            lead = f"{title if at == 0 else '':<{_TITLE}}"
            first, *rest = wrapped(text, lead=" " * _TITLE)
            yield lead + first[_TITLE:]
            yield from rest
    yield ""


def _terms(agreement: "Agreement", who: "PublicIdentity") -> Iterator[tuple[str, list[str]]]:
    """Yield what is agreed, by titles."""
    from cobasis.protocol.signatures import signers

    dp, lab = agreement.dp, _analyst(agreement)
    yield "Purpose", [agreement.purpose]
    yield "Columns", [f"{len(agreement.columns):,}: {_cut(agreement.columns)}"]
    yield "Label", [_label(agreement)]
    yield "Leaves", list(_leaves(agreement))
    yield "Method", [_method(agreement)]
    yield "To", [f"{lab}, the analyst, alone; files are sealed to this key"]
    yield "Model", [_model(agreement, lab)]
    kept = ["every row as it is, your secret basis, the secret"]
    kept += [f"column '{agreement.id}'"] if agreement.id else []
    kept += ["every column not named here"]
    if agreement.holdout:
        kept += [f"{agreement.holdout:.0%} of your rows, to score the model on"]
    yield "Stays", ["; ".join(kept)]
    noise = "none; no formal guarantee" if dp is None else dp.statement(basis=agreement.basis)
    yield "Noise", [noise]
    yield (
        "Keys",
        [
            f"{each.fingerprint}  {each.name}{'  (you)' if each == who else ''}"
            for each in signers(agreement).values()
        ],
    )


def _end(agreement: "Agreement") -> Iterator[tuple[str, list[str]]]:
    """Yield for how long, until when, and the digest."""
    yield "Kept", [f"uploads for {agreement.retention_days:,} days after the last one came"]
    closes = agreement.closes
    until = "none" if closes is None else f"{closes:%d %b %Y %H:%M} UTC"
    needed, all_of = agreement.minimum_parties, len(agreement.parties)
    yield "Deadline", [f"{until}; without {needed} of the {all_of} parties nothing is run"]
    yield "Digest", [agreement.digest().hex()]


def _analyst(agreement: "Agreement") -> str:
    """Return what the analyst is called; nobody signs before there is one."""
    return "" if agreement.analyst is None else agreement.analyst.name


def _cut(words: Iterable[object]) -> str:
    """Return words with commas, as many as fit on some lines."""
    listed = list(map(str, words))
    whole = len(listed)
    while len(", ".join(listed)) > _MOST:
        listed.pop()
    left = whole - len(listed)
    return ", ".join(listed) + (f" and {left:,} more" if left else "")


def _label(agreement: "Agreement") -> str:
    """Say what is learned."""
    if agreement.task == "representation":
        return "none; no model is trained"
    randomised = agreement.dp is not None and agreement.dp.label_epsilon is not None
    how = "changed at random" if randomised else "as it is"
    kind = "a number" if agreement.task == "regression" else f"one of {_cut(agreement.classes)}"
    return f"'{agreement.label}', {kind}; it leaves {how}"


def _leaves(agreement: "Agreement") -> Iterator[str]:
    """Yield what every party sends, exchange by exchange."""
    from cobasis.protocol.agreement import exchanges

    size, steps = agreement.n_components, exchanges(agreement)
    noise = "" if agreement.dp is None else ", with noise"
    words = {
        "proposal": f"up to {size:,} directions of the rows, through a secret anchor",
        "upload": f"each row as {size:,} numbers{noise}, in random order",
    }
    for each in steps:
        number = f"{each.number}. " if len(steps) > 1 else ""
        yield f"{number}{each.message}: {words[each.message]}"
    if agreement.dp is None:
        yield "An upload is pseudonymised personal data, not anonymous data."


def _method(agreement: "Agreement") -> str:
    """Say how rows are projected and aligned."""
    public = "; public rows that everybody has" if agreement.public_rows_sha256 else ""
    return (
        f"{agreement.basis} basis, {agreement.anchor} anchor, aligned by {agreement.aligner}; "
        f"numbers as {agreement.precision}{public}"
    )


def _model(agreement: "Agreement", lab: str) -> str:
    """Say which model is made, and who gets it."""
    if agreement.model is None:
        return f"none; {lab} returns to each party how its rows are aligned"
    others = [each for each in agreement.allowed_models if each != agreement.model]
    kinds = agreement.model + (f" (or {', '.join(others)})" if others else "")
    return f"{kinds}, trained by {lab}, who returns it to every party"
