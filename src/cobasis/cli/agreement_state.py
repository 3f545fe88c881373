"""How an agreement's file stands, as four commands print it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cobasis.cli.options import say
from cobasis.errors import UnsignedError

if TYPE_CHECKING:
    from cobasis.bundle.agreement_reading import AgreementFile
    from cobasis.cli.analyst_answers import AgreementAnswer, PersonAnswer


def show_state(path: Path, *, command: str, as_json: bool) -> None:
    """Print how an agreement's file stands.

    Parameters
    ----------
    path : Path
        The file.
    command : str
        What is printed as the command.
    as_json : bool
        As an object.
    """
    answer = _answer(path, command)
    lines = [f"{path}: round '{answer.round}', {answer.state}"]
    if answer.missing:
        lines.append(f"To be filled before anybody signs: {', '.join(answer.missing)}")
    if answer.digest:
        lines.append(f"Digest, which is signed: {answer.digest}")
    lines += [
        f"  {each.role:<8} {each.name:<20} {each.fingerprint}"
        + ("  signed" if each.signed else "  not signed")
        for each in answer.people
    ]
    if answer.unsigned and answer.state == "complete":
        lines.append(answer.unsigned)
    say(answer, as_json=as_json, lines=lines)


def _answer(path: Path, command: str) -> "AgreementAnswer":
    from cobasis.bundle.agreement_file import read_agreement, read_draft
    from cobasis.cli.analyst_answers import AgreementAnswer

    draft = read_draft(path)
    round_id = str(draft.fields.get("round_id", ""))
    if draft.missing:
        return AgreementAnswer(
            command=command,
            round=round_id,
            path=str(path),
            state="draft",
            digest=None,
            missing=list(draft.missing),
            unsigned="",
            people=_enrolled(draft.fields),
        )
    found = read_agreement(path)
    unsigned = ""
    try:
        found.check_sealed()
    except UnsignedError as error:
        unsigned = str(error.args[0])
    return AgreementAnswer(
        command=command,
        round=round_id,
        path=str(path),
        state="complete" if unsigned else "sealed",
        digest=found.agreement.digest().hex(),
        missing=[],
        unsigned=unsigned,
        people=_people(found),
    )


def _enrolled(fields: Mapping[str, Any]) -> list["PersonAnswer"]:
    """Return who stands in a draft, for fingerprints to be compared; nobody can have signed."""
    from pydantic import ValidationError

    from cobasis.cli.analyst_answers import PersonAnswer
    from cobasis.protocol.enrolment import PublicIdentity

    people = [("party", each) for each in fields.get("enrolled", [])]
    people += [("analyst", each) for each in [fields.get("analyst")] if each]
    try:
        return [
            PersonAnswer(name=who.name, role=role, fingerprint=who.fingerprint, signed=False)
            for role, who in ((role, PublicIdentity.model_validate(each)) for role, each in people)
        ]
    except ValidationError:  # written by hand; whoever signs is told what is wrong
        return []


def _people(file: "AgreementFile") -> list["PersonAnswer"]:
    """Return everybody who has to sign, and who has."""
    from cobasis.cli.analyst_answers import PersonAnswer
    from cobasis.protocol.enrolment import verify
    from cobasis.protocol.signatures import PREFIX, signers

    message = PREFIX + file.agreement.digest()
    given = {each.name: bytes.fromhex(each.signature) for each in file.signatures}
    return [
        PersonAnswer(
            name=name,
            role="party" if name in file.agreement.parties else "analyst",
            fingerprint=who.fingerprint,
            signed=name in given and verify(who, message, signature=given[name]),
        )
        for name, who in signers(file.agreement).items()
    ]
