"""``cobasis sign``: the terms on one screen, the secret checked, then one signature."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from typer import Option

from cobasis.bundle.agreement_file import line_in, read_agreement, sealed_path
from cobasis.bundle.seal import recipient_of
from cobasis.cli.options import AgreementFile, Owner, Yes, alone, consent, grouped
from cobasis.cli.words import PERSON, picked, wrapped
from cobasis.disk.whole import write_whole
from cobasis.errors import AgreementError, DiskError, OptionError, StepError
from cobasis.features.contract import formula_of, width_of
from cobasis.party_side.preview import leaving
from cobasis.party_side.session import SUFFIX, PartySession, SentSecret, keep_secret, read_secret
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity, Record, words_of
from cobasis.protocol.exchanges import exchanges
from cobasis.protocol.signatures import Signature, analyst_of, refuse_gaps, sign_agreement, signers
from cobasis.protocol.sums_terms import guarantee_of
from cobasis.protocol.terms import others_of

_TITLE, _MOST = 12, 240
"""Columns of the titles, and letters of a list before it is cut."""


@grouped
def sign(
    owner: Owner,
    agreement: AgreementFile = None,
    out: Annotated[Path | None, Option("-o", "--out", help="By default NAME.sig.")] = None,
    secret: Annotated[Path | None, Option(help="By default NAME.secret.")] = None,
    yes: Yes = False,
) -> None:
    """Show what is agreed, check the secret against it, and sign.

    A party's secret is opened before anything is signed, and kept in its vault. Who you are
    follows from the key in your home folder.

    Example: cobasis sign icu.toml
    """
    path = alone(agreement)
    found = read_agreement(path).agreement
    refuse_gaps(found)
    for name, each in signers(found).items():
        recipient_of(name, each.recipient)
    who = owner.who(found)
    to = out or path.with_name(f"{who.name}.sig")
    session = None if who.role == "analyst" else owner.party(path, sealed=False)
    sent = _checked(session, secret)
    maker = "" if sent is None else sent.maker
    identity = owner.enrolled(who) if session is None else session.identity
    key = "" if session is None or found.sums is None else _mask_key(session)
    made = sign_agreement(found, name=who.name, sign=identity.sign, mask_key=key)
    if not (again := _stands(to, made)):
        owner.tell(_screen(found, identity.public, maker=maker, path=path))
        consent("Type the round's name to sign", yes=yes, what=f"'{to}'", word=found.round_id)
    if session is not None:
        if sent is not None:
            keep_secret(session, sent)
        if not session.history("signed"):
            session.transcript.append("signed", {"agreement": made.agreement})
    write_whole(to, made.text().encode(), mode=0o644)
    then = f"Next: send {to.name} to {analyst_of(found).name}, the analyst"
    if session is None:
        then = "Next, when signatures have come: cobasis receive, with their folder"
    owner.say(
        [f"{who.name} signed this before; {to} is as it was." if again else f"Wrote {to}", then],
        command="sign",
        round=found.round_id,
        digest=found.digest().hex(),
        path=to,
        again=again,
        secret_from=maker,
        **picked(identity.public, *PERSON),
    )


def _mask_key(session: PartySession) -> str:
    """Return what others see of the key for masks; StepError where another one has signed."""
    key = session.round.mask_key(new=True).public
    files = map(read_agreement, filter(Path.exists, (session.path, sealed_path(session.path))))
    sealed = {x.mask_key for file in files for x in file.signatures if x.name == session.name}
    if sealed and key not in sealed:
        raise StepError(
            f"'{session.name}' signed this round with another key for its masks, which this home "
            "folder has no more: it was put back from an older copy, or forgot the round. Put the "
            "newest copy of the whole folder back; where there is none, agree on a new round."
        )
    return key


def _stands(to: Path, made: Signature) -> bool:
    """Whether this very signature stands there; DiskError where another file is in the way."""
    if not to.exists():
        return False
    with suppress(AgreementError):
        found = line_in(to, Signature)
        if (found.name, found.agreement) == (made.name, made.agreement):
            return found == made  # a home that was put back has another key for masks
    raise DiskError(
        f"'{to}' is in the way: it is no signature of '{made.name}' under this text. If it is of "
        "another round, give each a folder of its own, or choose another name with -o. If it is "
        "of an earlier text of this one, nobody needs it any more: move it away."
    )


def _checked(session: PartySession | None, secret: Path | None) -> SentSecret | None:
    """Return the secret that was sent, if it is the agreement's; None where it is kept already."""
    if session is None and secret is not None:
        raise OptionError(
            "you are this round's analyst, who must never have the secret. Delete it unopened."
        )
    if session is None or session.agreement.sums is not None:
        return None
    beside = session.path.with_name(f"{session.name}{SUFFIX}")
    if secret is None and session.round.joined and session.history("joined"):
        return None
    if secret is not None or beside.exists():  # also after a kill between vault and transcript
        return read_secret(session, secret or beside)
    if session.round.joined:
        return None
    raise StepError(
        f"'{beside.name}' is not beside '{session.path}', so nothing was signed: whoever signs "
        "first learns too late that a secret is not the one agreed on. Ask the party that made the "
        "agreement for it, or give its place with --secret."
    )


def _screen(agreement: Agreement, who: PublicIdentity, *, maker: str, path: Path) -> Iterator[str]:
    yield from wrapped(f"Sign for {who.name}?   round {agreement.round_id}")
    secret = f"made by {maker}; it is the one that this agreement is committed to"
    last = [("Secret", secret)] if maker else []
    last += [("Whole text", f"cobasis inspect {path}")]
    for title, text in (*terms_of(agreement, who), *last):
        yield from wrapped(text, lead=f"{title:<{_TITLE}} ")
    yield ""


def terms_of(agreement: Agreement, who: PublicIdentity) -> Iterator[tuple[str, str]]:
    agreement = agreement.held_by(who.name)
    lab, closes = analyst_of(agreement), agreement.closes
    record, dp = agreement.record or Record(), agreement.dp
    labels = "changed at random" if dp and dp.label_epsilon is not None else "IN THE CLEAR"
    labels = labels if agreement.label else ""
    yield "Digest", words_of(agreement.digest())
    yield "Purpose", agreement.purpose
    law = "; ".join(filter(str.strip, (record.legal_basis, record.processor)))
    yield "Basis in law", law or "not stated"
    yield "Columns", _columns(agreement)
    yield from _held(agreement, lab.name)
    if formula := formula_of(agreement.features):
        yield "Formula", formula
    if agreement.turn is not None:
        made = f"{agreement.n_features:,} numbers, of which the basis makes what leaves"
        yield "Map", f"{agreement.map.kind}: at each party a row first becomes {made}"
    for at, text in enumerate(filter(None, _leaves(agreement))):
        yield "" if at else "LEAVES", text
    yield from (("To", f"{lab.name}: only it can open"), ("Its key", lab.fingerprint))
    yield from _sight(agreement, lab.name, labels)
    if labs := [f"{each.name} {each.fingerprint}" for each in agreement.groups if each != lab]:
        text = "see what your group is aligned to, and no row; sums of all groups make the model, "
        text += f"which all parties get. A party of any group could help {lab.name}"
        yield "Groups", f"{', '.join(labs)}: these {text}"
    others = (f"{each.name} {each.fingerprint}" for each in agreement.enrolled if each != who)
    yield "Others get", f"{_model(agreement)}: {_cut(others)}"
    held = f", {100 * agreement.holdout:.0f} % of rows held back" if agreement.holdout else ""
    own = "your basis, the secret" if agreement.sums is None else "your labels and own sums"
    yield "Stays", f"raw rows, {own}{held}, every column not named here"
    yield "Noise", guarantee_of(agreement) or "none: no formal guarantee"
    kept = f"{agreement.retention_days:,} days ({lab.name}'s word, no proof)"
    until = "" if closes is None else f"; files are taken until {closes:%d %b %Y %H:%M} UTC"
    fewest = max(each.fewest for each in exchanges(agreement))
    needed = f"{fewest} of {len(agreement.parties)} parties are needed"
    if agreement.fewest_rows:
        needed += f", each with {agreement.fewest_rows:,} rows or more"
    yield "Kept", f"{kept}{until}; {needed}"
    officers = _cut(
        f"{each.party}'s {each.name} {each.fingerprint}" for each in agreement.approvers
    )
    typed = "no officer's key is agreed on; a name that is typed proves no person"
    yield "Approval", f"{officers}, before each file leaves" if officers else typed


def _sight(agreement: Agreement, lab: str, labels: str) -> Iterator[tuple[str, str]]:
    seen, helped = "who resembles whom, duplicates, outliers", "A PARTY HELPS"
    what = "most of a record; your audit will say how much"
    if agreement.n_components == agreement.n_features:
        what = "EVERY RECORD EXACTLY, for all columns leave"
    elif agreement.turn is not None and agreement.n_components >= width_of(agreement.features):
        what = "EVERY RECORD, nearly, for it can solve for the columns"
    if agreement.dp is not None:
        seen, what = "rows with noise", "a record with noise, within what Noise promises"
    seen += f", all labels {labels}" if labels else ""
    if agreement.sums is not None:
        seen, helped = "everybody's total, and nobody's row or sums", "ALL OTHERS HELP"
        if agreement.sums.steps:
            seen = "everybody's totals; several totals of few rows can give these rows"
        elif agreement.sums.n_bins is not None:
            seen = "everybody's total, cells of few people and of one included"
        what = "your own sums; your audit will say of how many rows for each feature"
    yield f"{lab} sees", seen
    yield f"IF {helped} {lab.upper()}:", what


def _cut(words: Iterable[object]) -> str:
    text = ""
    for each in words:  # no more than are shown: the words of a fingerprint take 20 ms
        text = " ".join(f"{text}, {each}".removeprefix(", ").split())
        if len(text) > _MOST:
            return text[:_MOST].rpartition(", ")[0] + " and more"
    return text


def _columns(agreement: Agreement) -> str:
    words = sum(hasattr(each, "values") for each in agreement.features)
    kinds = {"numbers": len(agreement.columns) - words, "words": words}
    told = ", ".join(f"{count:,} of {kind}" for kind, count in kinds.items() if count)
    label = f"label '{agreement.label}' ({_cut(agreement.classes) or 'a number'})"
    label = label if agreement.label else "no label"
    beside = {} if agreement.outcome is None else agreement.outcome.columns
    label += "".join(f", {role} '{name}'" for role, name in beside.items())
    return f"{told}: {_cut(agreement.columns)}; {label}; '{agreement.id}' never leaves"


def _held(agreement: Agreement, lab: str) -> Iterator[tuple[str, str]]:
    if agreement.holdings:
        told = (f"{each.party}: {_cut(each.columns)}" for each in agreement.holdings)
        yield "Who holds", f"{'; '.join(told)}; others all"
    if others := others_of(agreement):
        text = f"{lab} puts each person's numbers beside those of {_cut(others)}, and knows by a "
        text += "tag that they are of the same people; with their help, whose each row is"
        yield "JOINED", f"{text}. '{agreement.id}' stays"


def _leaves(agreement: Agreement) -> Iterator[str]:
    steps, row = exchanges(agreement), "no row" if agreement.sums else ""
    told = {each.message: leaving(agreement, each.message) for each in steps}
    if agreement.sums is not None and agreement.sums.steps:
        yield f"up to {len(steps)} times {told['sums'].leaves[0]}"
        steps = ()
    for each in steps:
        number = f"{each.number}. {each.message}: " if len(steps) > 1 else ""
        yield number + told[each.message].leaves[0]
    few = [] if agreement.dp else [text for each in told.values() for text in each.warnings]
    yield "; ".join(filter(None, (row, *few)))


def _model(agreement: Agreement) -> str:
    if agreement.model is None:
        rows = "no model, only how their rows are aligned"
        return "the baseline table of all rows, and no model" if agreement.sums else rows
    others = [each for each in agreement.allowed_models if each != agreement.model]
    found = f"the model, {agreement.model}" + (f" (or {', '.join(others)})" if others else "")
    alone = agreement.outcome is not None and agreement.outcome.compare_parties
    return found + (", and EACH PARTY'S OWN ESTIMATES" if alone else "")
