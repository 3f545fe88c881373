"""The analyst's signed word: a receipt of one party's file, and news of how a round stands.

A receipt says that a file was taken as it was sent. Three parts have to agree before anybody can
say later what was trained on: the digest that the party wrote down, the receipt, and the analyst's
transcript, whose line the receipt names. News are for files that nobody can ask: names, times and
receipts, nothing of a row; everybody in the round may read them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from cobasis.errors import BundleError, ForeignBundleError, SignatureError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.agreement_fields import Digest, Moment
from cobasis.protocol.enrolment import IdentityName, PublicIdentity, verify
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/news/1"
MAX_BYTES = 2**24
_NEWS = b"cobasis/news/1\0"

Sign = Callable[[bytes], bytes]
"""Ed25519: 64 bytes for a message."""

_Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]
_RECEIPT, _COUNTERSIGNED = b"cobasis/receipt/1\0", b"cobasis/receipt/1/countersigned\0"


class Receipt(BaseModel):
    """What the analyst signs of a file."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    round_id: Annotated[str, Field(min_length=1, max_length=100)]
    agreement: Digest
    party: IdentityName
    analyst: IdentityName
    exchange: Annotated[int, Field(ge=1)]  # counted from 1
    file: Digest  # SHA-256 of the sealed file as it was received
    time: Moment
    # hash of the analyst's line: whoever keeps it can tell later whether that line, and every line
    # before it, is still as it was
    transcript: Digest

    def message(self) -> bytes:
        """Return the bytes that the analyst signs."""
        return _RECEIPT + canonical_json(self.model_dump())


class SignedReceipt(BaseModel):
    """A receipt with the analyst's signature, and the party's once it has checked it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    receipt: Receipt
    signature: _Signature  # the analyst's
    # the party's over receipt and signature; in the party's own transcript
    countersignature: _Signature | None = None

    def message(self) -> bytes:
        """Return the bytes that the party countersigns."""
        return _COUNTERSIGNED + bytes.fromhex(self.signature) + self.receipt.message()

    def told(self) -> dict[str, str | int]:
        """Return what a transcript says of it."""
        signatures = {"signature": self.signature, "countersignature": self.countersignature or ""}
        return {**self.receipt.model_dump(), **signatures}


def sign_receipt(receipt: Receipt, sign: Sign) -> SignedReceipt:
    """Sign a receipt as the analyst."""
    return SignedReceipt(receipt=receipt, signature=sign(receipt.message()).hex())


def countersign(signed: SignedReceipt, sign: Sign) -> SignedReceipt:
    """Countersign a receipt as the party, after `check_receipt`."""
    return signed.model_copy(update={"countersignature": sign(signed.message()).hex()})


def check_receipt(
    signed: SignedReceipt, *, analyst: PublicIdentity, agreement: str, party: str, file: str
) -> None:
    """Check that a receipt is the analyst's, and for this file."""
    receipt, name = signed.receipt, analyst.name
    right = verify(analyst, receipt.message(), signature=bytes.fromhex(signed.signature))
    if not right or receipt.analyst != name:
        raise SignatureError(
            f"this receipt for party '{party}' is not signed by analyst '{name}', so it proves "
            "nothing. Ask the analyst for it once more."
        )
    wanted = {"agreement": agreement, "party": party, "file": file}
    other = [word for word, value in wanted.items() if getattr(receipt, word) != value]
    if other:
        raise ForeignBundleError(
            f"this receipt of analyst '{name}' is for another {' and '.join(other)} than party "
            f"'{party}' asked about: it is for party '{receipt.party}' in round "
            f"'{receipt.round_id}'. Ask the analyst for the receipt of the file that was sent."
        )


def check_countersigned(signed: SignedReceipt, *, party: PublicIdentity) -> None:
    """Check that the party of a receipt countersigned it."""
    signature = bytes.fromhex(signed.countersignature or "")
    right = verify(party, signed.message(), signature=signature)
    if not right or signed.receipt.party != party.name:
        raise SignatureError(
            f"the receipt for party '{signed.receipt.party}' is not countersigned by party "
            f"'{party.name}'. Ask the party for its own transcript."
        )


class News(BaseModel):
    """How a round stands at the analyst."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    round_id: Annotated[str, Field(min_length=1, max_length=100)]
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

    def receipts_of(self, exchange: int) -> Mapping[str, SignedReceipt]:
        """Return the receipts of one exchange by party."""
        return {
            each.receipt.party: each for each in self.receipts if each.receipt.exchange == exchange
        }

    def text(self, sign: Sign) -> bytes:
        """Return the signed file: one line of canonical JSON and a line feed."""
        told = self.model_dump(mode="json")
        return _line({"format": FORMAT, "news": told, "signature": sign(_message(told)).hex()})

    @classmethod
    def from_text(cls, text: bytes, agreement: Agreement) -> Self:
        """Read news of a round, and check that its analyst signed them."""
        try:
            told = json_object(text[: MAX_BYTES + 1])
            known = told.pop("format") == FORMAT
            news = cls.model_validate_json(json.dumps(told["news"]))
            signature = bytes.fromhex(told["signature"])
            known = known and news.text(lambda _: signature) == text  # said in one way only
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise BundleError(
                f"this is no news of a round: a '{FORMAT}' file is one line of JSON with news and "
                "the analyst's signature. Ask the analyst for the newest."
            )
        if news.agreement != agreement.digest().hex():
            raise ForeignBundleError(
                f"these news are of round '{news.round_id}' under another agreement "
                f"({news.agreement[:16]}) than yours ({agreement.digest().hex()[:16]}). Ask the "
                "analyst which agreement holds."
            )
        analyst = agreement.analyst
        if analyst is None or not verify(analyst, _message(told["news"]), signature=signature):
            raise SignatureError(
                f"these news are not signed by the analyst that round '{agreement.round_id}' "
                "enrols, so they prove nothing. Ask the analyst for the newest."
            )
        return news


def _message(told: object) -> bytes:
    return _NEWS + _line(told)


def _line(told: object) -> bytes:
    return canonical_json(told) + b"\n"
