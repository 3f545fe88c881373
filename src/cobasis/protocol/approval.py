"""What officers need of an agreement: what a record of processing asks for, and who approves."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from cobasis.protocol.enrolment import IdentityName, PublicIdentity
from cobasis.strict_json import Strict

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

Text = Annotated[str, Field(max_length=10_000)]


class Record(Strict):
    """What officers file of a round, in words: the ``[record]`` table; empty is not stated.

    Purpose, columns, recipients and retention are the agreement's own fields.
    """

    controllers: Text = ""
    contacts: Text = ""
    processor: Text = ""
    legal_basis: Text = ""
    people: Text = ""
    users: Text = ""
    transfers: Text = ""
    security: Text = ""


class Approver(PublicIdentity):
    """Whose approval a party's files need: an officer's key, beside the party's name."""

    party: IdentityName

    @property
    def public(self) -> PublicIdentity:
        """The officer's .pub file, whose fingerprint is compared."""
        return PublicIdentity(**self.model_dump(exclude={"party"}))

    @property
    def fingerprint(self) -> str:
        return self.public.fingerprint


def officers_of(agreement: "Agreement", party: str) -> dict[str, Approver]:
    """Return who approves a party's files, by name; nobody where it needs no approval."""
    return {each.name: each for each in agreement.approvers if each.party == party}


def enrolment_problems(agreement: "Agreement") -> Iterator[str]:
    names = tuple(each.name for each in agreement.enrolled)
    if names and names != agreement.parties:
        yield f"enrolled are {', '.join(names)}, the parties are {', '.join(agreement.parties)}"
    roles = {"party": agreement.enrolled, "approver": agreement.approvers}
    roles["analyst"] = () if agreement.analyst is None else (agreement.analyst,)
    for wanted, found in roles.items():
        for each in found:
            if each.role != wanted:
                yield f"the key of {wanted} '{each.name}' was made for role '{each.role}'"
    for officer in agreement.approvers:
        if officer.party not in agreement.parties:
            yield f"approver '{officer.name}' is of '{officer.party}', which is no party"
    everybody = [each for found in roles.values() for each in found]
    for field in ("name", "signing_key", "recipient"):
        owners = Counter(getattr(each, field) for each in everybody)
        shared = [each.name for each in everybody if owners[getattr(each, field)] > 1]
        if shared:
            yield f"{', '.join(shared)} have one and the same {field}"
