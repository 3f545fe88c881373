"""``cobasis sign``: the terms on one screen, the secret checked, then one signature."""

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from cobasis.cli.options import AgreementFile, Owner, Yes, alone, consent, grouped, wrapped
from cobasis.errors import AgreementError, DiskError, OptionError, StepError

if TYPE_CHECKING:
    from cobasis.party_side.session import PartySession, SentSecret
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.enrolment import PublicIdentity

_TITLE, _MOST = 10, 240
"""Columns of the titles, and letters of a list before it is cut."""


@grouped
def sign(
    owner: Owner,
    agreement: AgreementFile = None,
    out: Annotated[Path | None, Option("-o", "--out", help="By default NAME.sig.")] = None,
    secret: Annotated[
        Path | None, Option(help="By default NAME.secret; the analyst has none.")
    ] = None,
    later: Annotated[
        bool, Option("--secret-later", help="Sign with the secret unchecked.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Show what is agreed, check the secret against it, and sign.

    A party's secret is opened before anything is signed, and kept in its vault. Who you are
    follows from the key in your home folder.

    Example: cobasis sign icu.toml
    """
    from cobasis.bundle.agreement_file import read_agreement
    from cobasis.disk.whole import write_whole
    from cobasis.party_side.session import keep_secret
    from cobasis.protocol.signatures import refuse_gaps, sign_agreement

    path = alone(agreement)
    found = read_agreement(path).agreement
    refuse_gaps(found)
    who = owner.who(found)
    to = out or path.with_name(f"{who.name}.sig")
    session = None if who.role == "analyst" else owner.party(path, sealed=False)
    sent = _checked(session, secret=secret, later=later)
    identity = owner.identity(who.name) if session is None else session.identity
    again = _stands(to, found, name=who.name)
    made = sign_agreement(found, name=who.name, sign=identity.sign)
    if not again:
        owner.tell(_screen(found, identity.public, secret=_of_secret(session, sent)))
        consent(f"Sign this as {who.name}?", yes=yes, what=f"'{to}'")
    if session is not None:
        if sent is not None:
            keep_secret(session, sent)
        if not session.history("signed"):
            session.transcript.append("signed", {"agreement": made.agreement})
    write_whole(to, made.text().encode(), mode=0o644)
    _say(owner, found, identity.public, to=to, again=again, maker=sent.maker if sent else "")


def _say(
    owner: Owner,
    agreement: "Agreement",
    who: "PublicIdentity",
    *,
    to: Path,
    again: bool,
    maker: str,
) -> None:
    """Say what was signed, and what comes next."""
    from cobasis.cli.answers import SignAnswer
    from cobasis.protocol.signatures import analyst_of

    told = {"digest": agreement.digest().hex(), "path": to, "again": again, "secret_from": maker}
    answer = SignAnswer.of(who, agreement, command="sign", **told)
    then = f"Next: send {to.name} to {analyst_of(agreement).name}, the analyst"
    if who.role == "analyst":
        then = "Next, when signatures have come: cobasis receive, with their folder"
    done = f"{who.name} signed this before; {to} is as it was." if again else f"Wrote {to}"
    owner.say(answer, [done, then])


def _stands(to: Path, agreement: "Agreement", *, name: str) -> bool:
    """Whether this very signature stands there; DiskError where another file is in the way."""
    from cobasis.bundle.agreement_file import line_in
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


def _checked(
    session: "PartySession | None", *, secret: Path | None, later: bool
) -> "SentSecret | None":
    """Return the secret that was sent, if it is the agreement's; None where it is kept already."""
    from cobasis.party_side.session import SUFFIX, read_secret

    if session is None:
        if secret is None and not later:
            return None
        raise OptionError(
            "you are this round's analyst, who must never have the secret. Delete it unopened."
        )
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
        "unchecked, and type sign once more with the secret before you send."
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
    for title, texts in _terms(agreement, who, secret=secret):
        for at, text in enumerate(texts):
            yield from wrapped(text, lead=f"{title if at == 0 else '':<{_TITLE}}")
    yield ""


def _terms(
    agreement: "Agreement", who: "PublicIdentity", *, secret: str
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield what is agreed, by titles."""
    from cobasis.protocol.signatures import analyst_of, signers

    dp, lab, closes = agreement.dp, analyst_of(agreement).name, agreement.closes
    yield "Purpose", [agreement.purpose]
    yield "Columns", [f"{len(agreement.columns):,}: {_cut(agreement.columns)}"]
    yield "Label", [_label(agreement)]
    yield "Leaves", _leaves(agreement)
    method = f"{agreement.basis} basis, {agreement.anchor} anchor, aligned by {agreement.aligner}"
    public = "; public rows that everybody has" if agreement.public_rows_sha256 else ""
    yield "Method", [f"{method}; numbers as {agreement.precision}{public}"]
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
    yield "Secret", [secret]
    yield "Kept", [f"uploads for {agreement.retention_days:,} days after the last one came"]
    until = "none" if closes is None else f"{closes:%d %b %Y %H:%M} UTC"
    needed, all_of = agreement.minimum_parties, len(agreement.parties)
    yield "Deadline", [f"{until}; without {needed} of the {all_of} parties nothing is run"]
    yield "Digest", [agreement.digest().hex()]


def _cut(words: Iterable[object]) -> str:
    """Return words with commas, as many as fit on some lines."""
    return textwrap.shorten(", ".join(map(str, words)), _MOST, placeholder=" and more")


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


def _model(agreement: "Agreement", lab: str) -> str:
    """Say which model is made, and who gets it."""
    if agreement.model is None:
        return f"none; {lab} returns to each party how its rows are aligned"
    others = [each for each in agreement.allowed_models if each != agreement.model]
    kinds = agreement.model + (f" (or {', '.join(others)})" if others else "")
    return f"{kinds}, trained by {lab}, who returns it to every party"
