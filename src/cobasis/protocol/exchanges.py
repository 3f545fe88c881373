"""Exchanges: of which messages a round consists, in their order."""

from dataclasses import dataclass
from typing import Literal

from cobasis.algorithms.bases import BASES
from cobasis.protocol.agreement import Agreement

MessageName = Literal["proposal", "upload", "sums", "scores"]
SumsKind = Literal["sums", "scores"]
Reply = Literal["span", "return"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One message from every party to the analyst, and one back to each."""

    number: int
    message: MessageName
    reply: Reply
    masked: SumsKind | None = None  # which of the two kinds of masked sums it takes


def exchanges(agreement: Agreement, *, last: int | None = None) -> tuple[Exchange, ...]:
    """Return a round's exchanges in their order, up to one that was found to be the last."""
    if agreement.sums is not None:
        kinds: list[SumsKind] = ["sums"] * (agreement.sums.steps or 1)
        kinds += ["scores"] if agreement.sums.scores else []
        return tuple(
            Exchange(number=number, message=kind, reply="return", masked=kind)
            for number, kind in enumerate(kinds[:last], start=1)
        )
    words: list[tuple[MessageName, Reply]] = [("upload", "return")]
    if BASES[agreement.basis].exchanges > 1:
        words.insert(0, ("proposal", "span"))
    return tuple(
        Exchange(number=number, message=message, reply=reply)
        for number, (message, reply) in enumerate(words, start=1)
    )
