"""News: the analyst's signed word on how a round stands, for files that nobody can ask.

It holds names, times and receipts, nothing of a row; everybody in the round may read it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from cobasis.errors import BundleError, ForeignBundleError, SignatureError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.agreement_fields import Digest, Moment
from cobasis.protocol.enrolment import IdentityName, verify
from cobasis.protocol.receipts import SignedReceipt
from cobasis.strict_json import canonical_json, json_object

FORMAT = "cobasis/news/1"
MAX_BYTES = 2**24
_SIGNED = b"cobasis/news/1\0"


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

    def text(self, sign: Callable[[bytes], bytes]) -> bytes:
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
    return _SIGNED + _line(told)


def _line(told: object) -> bytes:
    return canonical_json(told) + b"\n"
