"""The analyst's news of a round, and what may stop it: the revocation of a stolen key.

News are for files that nobody can ask: names, times and receipts, nothing of a row; everybody in
the round may read them. A revocation counts once the analyst and a party have both signed it, so
that neither whoever stole a key nor one of the two alone stops a round with it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field

from cobasis.errors import BundleError, ForeignBundleError, RevokedError, SignatureError
from cobasis.protocol.agreement import Agreement, Digest, Moment, Name
from cobasis.protocol.enrolment import IdentityName, OneLine, Signed, verify
from cobasis.protocol.signatures import Sign, SignedReceipt, analyst_of, everybody, signers
from cobasis.strict_json import IF_ANY, Strict, canonical_json, json_object

MAX_BYTES = 2**24  # of news

_FORMAT, _NEWS = "cobasis/news/1", b"cobasis/news/1\0"


class Revocation(OneLine):
    """Two people's word that somebody else may have a key of a round."""

    form = "cobasis/revocation/1"
    what = "revocation of a key"
    ask = "Ask for the .revocation file that 'cobasis key revoke' writes."

    agreement: Digest
    name: IdentityName  # whose key
    time: Moment
    signatures: dict[IdentityName, Signed]  # by who signed

    def message(self) -> bytes:
        return f"{self.form}\0".encode() + canonical_json(self.model_dump(exclude={"signatures"}))

    def signed(self, name: str, sign: Sign) -> Self:
        more = {name: sign(self.message()).hex()}
        return self.model_copy(update={"signatures": {**self.signatures, **more}})

    def holds(self, agreement: Agreement, *, name: str = "") -> bool:
        """Whether analyst and a party have signed; raise where it is of another, or forged."""
        people, known = signers(agreement), name or self.name
        if (
            self.agreement != agreement.digest().hex()
            or self.name != known
            or (known not in everybody(agreement))
        ):
            raise ForeignBundleError(
                f"this revocation is of a key of '{self.name}' under the agreement "
                f"{self.agreement[:16]}, not of '{known}' under {agreement.digest().hex()[:16]}. "
                "Each key is revoked in each round by a statement of its own: make that."
            )
        for by, signature in self.signatures.items():
            signed = bytes.fromhex(signature)
            if by not in people or not verify(people[by], self.message(), signature=signed):
                raise SignatureError(
                    f"the revocation of the key of '{self.name}' has a signature of '{by}' that is "
                    f"not made with a key that round '{agreement.round_id}' enrols under that "
                    "name, so nothing is revoked. Ask, over another channel, who made the file."
                )
        return {people[by].role for by in self.signatures} == {"analyst", "party"}


def stopped_by(
    revoked: Iterable[Revocation], agreement: Agreement, *, out: Collection[str]
) -> list[tuple[Revocation, str]]:
    """Return which revocations stop a round, and without whom it goes on: an officer's party."""
    party_of = {each.name: each.party for each in agreement.approvers}
    found = ((each, party_of.get(each.name, each.name)) for each in revoked)
    return [(each, who) for each, who in found if who not in out]


def refuse_revoked(
    revoked: Iterable[Revocation], agreement: Agreement, *, out: Collection[str]
) -> None:
    """Raise RevokedError where a key was revoked, unless its owner is out of the round."""
    within, people = stopped_by(revoked, agreement, out=out), everybody(agreement)
    told = [
        f"the key of '{each.name}' ({people[each.name].fingerprint}) was revoked in round "
        f"'{agreement.round_id}', as of {each.time}, by {' and '.join(sorted(each.signatures))}"
        for each, _ in within
    ]
    if told:
        who = dict.fromkeys(who for _, who in within)
        on = (
            f"; or the analyst goes on where all others have sent, by cobasis run --without "
            f"{' --without '.join(who)}, and behind a run by cobasis remove {' '.join(who)}"
        )
        if analyst_of(agreement).name in who:
            on = ". Without the analyst's key nobody can go on in this one"
        raise RevokedError(
            f"{'; '.join(told)}: somebody else may have it. So nothing more is sent, taken or "
            f"made. People decide: agree on a new round with a new key{on}."
        )


class News(Strict):
    passes_over = True  # the signature is over the text as it came

    round_id: Name
    agreement: Digest
    analyst: IdentityName
    time: Moment  # as of when
    agreed: tuple[IdentityName, ...]  # whose signatures under the agreement are in
    sealed: Moment | Literal[""] = ""  # when the last signature came
    receipts: tuple[SignedReceipt, ...] = ()  # in the order of exchanges and of parties
    ended: tuple[Moment, ...] = ()  # when each exchange ended, as many as have
    trained_on: tuple[IdentityName, ...] = ()  # in the last run
    without: tuple[IdentityName, ...] = ()  # whom the analyst goes on without
    removed: tuple[IdentityName, ...] = ()
    # of sums, which begin again where somebody is missing
    attempt: Annotated[int, Field(ge=1, le=255, exclude_if=lambda attempt: attempt == 1)] = 1
    # of steps: the exchange that was found to be the last
    last: Annotated[int | None, Field(ge=1), IF_ANY] = None
    # whose directions the common span holds, where receipts do not tell
    spanned: Annotated[tuple[IdentityName, ...], IF_ANY] = ()
    halted: Annotated[str, IF_ANY] = ""  # why the open exchange could not be ended, and the code
    revoked: Annotated[tuple[Revocation, ...], IF_ANY] = ()

    def refuse_revoked(self, agreement: Agreement, *, asking: str) -> None:
        """Raise RevokedError where a key was revoked whose owner is in the round, or is asking."""
        refuse_revoked(self.revoked, agreement, out={*self.without, *self.removed} - {asking})

    def receipts_of(self, exchange: int) -> Mapping[str, SignedReceipt]:
        return {
            each.receipt.party: each for each in self.receipts if each.receipt.exchange == exchange
        }

    def text(self, sign: Sign) -> bytes:
        told = self.model_dump(mode="json")
        signature = sign(_NEWS + _line(told)).hex()
        return _line({"format": _FORMAT, "news": told, "signature": signature})

    @classmethod
    def from_text(cls, text: bytes, agreement: Agreement) -> Self:
        try:
            told = json_object(text[: MAX_BYTES + 1])
            news, signature = cls.read(_line(told["news"])), bytes.fromhex(told["signature"])
            told = {"format": _FORMAT, "news": told["news"], "signature": signature.hex()}
            known = _line(told) == text  # said in one way only
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise BundleError(
                f"this is no news of a round: a '{_FORMAT}' file is one line of JSON with news and "
                "the analyst's signature. Ask the analyst for the newest, and for the version of "
                "cobasis that made it: yours may be older."
            )
        if news.agreement != agreement.digest().hex():
            raise ForeignBundleError(
                f"these news are of round '{news.round_id}' under another agreement "
                f"({news.agreement[:16]}) than yours ({agreement.digest().hex()[:16]}). Ask the "
                "analyst which agreement holds."
            )
        analyst = agreement.analyst
        if analyst is None or not verify(analyst, _NEWS + _line(told["news"]), signature=signature):
            raise SignatureError(
                f"these news are not signed by the analyst that round '{agreement.round_id}' "
                "enrols, so they prove nothing. Ask the analyst for the newest."
            )
        if not all(each.holds(agreement) for each in news.revoked):
            raise SignatureError(
                f"these news of round '{agreement.round_id}' revoke a key, and the analyst and a "
                "party have not both signed that. Nothing is revoked. Ask them what happened."
            )
        return news


def _line(told: object) -> bytes:
    return canonical_json(told) + b"\n"
