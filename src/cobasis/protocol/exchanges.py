"""Exchanges: what holds of each message, and of which messages a round consists, in their order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cobasis.algorithms.bases import BASES
from cobasis.protocol.agreement import Agreement

MessageName = Literal["proposal", "upload", "sums", "scores"]
Reply = Literal["span", "return"]
Answer = Literal["consensus", "return"]


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One message from every party to the analyst, and one back to each."""

    number: int = 1  # in its round
    message: MessageName  # how its file's name ends; the kind of its bundle
    sent_as: str  # the event of a party's transcript; its line has the digest under the message
    fewest: int = 3  # needed to end it: of two parties each could compute the other's span, or sums
    rows: bool = False  # whether projected rows leave, which are made once in a round
    masked: bool = False  # whether only everybody's total can be read
    held: bool = False  # whether it is made of held-back rows only
    trains: bool = True  # whether a model or a table is made of it
    reply: Reply = "return"  # how its file's name ends
    answer: Answer = "return"  # the kind of its bundle
    taken_as: str = "accepted"  # the event of a party's transcript; the digest is under the answer


EXCHANGES: Mapping[str, Exchange] = {
    each.message: each
    for each in (
        Exchange(
            message="proposal",
            sent_as="proposed",
            trains=False,
            reply="span",
            answer="consensus",
            taken_as="adopted",
        ),
        Exchange(message="upload", sent_as="prepared", fewest=1, rows=True),
        Exchange(message="sums", sent_as="summed", masked=True),
        Exchange(message="scores", sent_as="scored", masked=True, held=True, trains=False),
    )
}
"""By message; `exchanges` gives it its number in a round, and may raise how many are needed."""


def exchanges(agreement: Agreement, *, last: int | None = None) -> tuple[Exchange, ...]:
    """Return a round's exchanges in their order, up to one that was found to be the last."""
    if agreement.sums is not None:
        names = ["sums"] * (agreement.sums.steps or 1) + ["scores"] * agreement.sums.scores
    else:
        names = ["proposal"] * (BASES[agreement.basis].exchanges > 1) + ["upload"]
    found = [EXCHANGES[name] for name in names[:last]]
    return tuple(
        replace(each, number=number, fewest=max(each.fewest, agreement.minimum_parties))
        for number, each in enumerate(found, start=1)
    )
