"""What ends a round at the analyst: one sealed return for each party, then the line about them."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_json

from cobasis.algorithms.certificate import Certificate
from cobasis.analyst_side.history import RUN, Outcome
from cobasis.analyst_side.session import AnalystSession, WorkFolder
from cobasis.bundle.messages import enclose_return
from cobasis.disk.whole import file_digest, make_folder, write_whole
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.worth import Figure
from cobasis.protocol.baseline import BaselineTable
from cobasis.protocol.card import ModelCard
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.messages import Return
from cobasis.protocol.scores import Worth
from cobasis.protocol.span_lines import SpanLine
from cobasis.protocol.sums import SumsResult
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.strict_json import json_object

_NAME_DIGITS = 24


@dataclass(frozen=True, kw_only=True)
class Concluded:
    """A run, an addition or a removal that has come to its end."""

    outcome: Outcome
    files: Mapping[str, Path]  # the sealed return of each party
    written: Mapping[str, Path]  # those of them that were not there as they are
    card: ModelCard
    certificate: Certificate | None = None  # None where sums were added up
    # of families, cross-validated
    scores: Mapping[ModelName, Mapping[str, Figure | None]] = field(default_factory=dict)
    sums: SumsResult | None = None
    table: BaselineTable | None = None
    coefficients: CoefficientTable | None = None  # of sums, which all can make
    worth: Worth | None = None  # of the second exchange of sums


_NUMBERS_DEPEND_ON = ("cobasis", "numpy", "scipy", "scikit-learn")
"""Packages whose versions a model's numbers depend on, besides the uploads."""


def kept_returns(session: AnalystSession, made: Outcome) -> Mapping[str, str]:
    """Return the digests of returns that the same run has sealed; none where it is another."""
    before = session.history.outcome
    same = before is not None and made == replace(before, returns={}, time="")
    return before.returns if before is not None and same else {}


def recorded(
    session: AnalystSession,
    made: Outcome,
    *,
    sent: tuple[Mapping[str, str], Mapping[str, Path]],
    event: str,
    told: Mapping[str, Any],
    exchange: Exchange | None = None,
    **more: Any,  # noqa: ANN401 -- what is concluded besides
) -> Concluded:
    """Write the line that names the returns, unless it stands there."""
    (digests, written), exchange = sent, exchange or session.exchanges[-1]
    new = written or not kept_returns(session, made)
    # Returns come before the line that names their digests: a kill between the two leaves returns
    # that no line names, and the same command, typed again, seals others over them.
    if new or (event == RUN and told["without"] != [*session.history.without]):
        # where lost returns are sealed anew no family is scored again: what was found first stays
        if findings_of(session.work, made) is None:
            found = {
                "of": _words_of(made),
                "rows_per_feature": more.get("sums") and more["sums"].rows_per_feature,
            }
            found |= {name: more.get(name) for name in ("card", "certificate", "scores")}
            write_whole(session.work.findings, to_json(found, inf_nan_mode="null"))
        versions = [f"{each} {version(each)}" for each in _NUMBERS_DEPEND_ON]
        line = {**replace(made, returns=digests).told(), **told, "versions": versions}
        session.note(event, line)
    return Concluded(
        outcome=cast("Outcome", session.history.outcome),
        files={party: session.reply(party, exchange) for party in digests},
        written=written,
        **more,
    )


def findings_of(work: WorkFolder, made: Outcome | None) -> dict[str, Any] | None:
    """Return what was kept of a run besides its files; None where it is of another one."""
    with suppress(ValueError, OSError):
        found = json_object(work.findings.read_bytes())
        return found if made is not None and found.get("of") == _words_of(made) else None
    return None


def _words_of(made: Outcome) -> list[str]:
    """Return what tells one outcome from another."""
    return [made.model_sha256 or "", *(f"{file}  {name}" for name, file in made.uploads.items())]


def send_returns(
    session: AnalystSession,
    made: Iterable[Return],
    *,
    outcome: Outcome,
    card: ModelCard,
    others: Callable[[Return], Chain | None],
    exchange: Exchange | None = None,
) -> tuple[dict[str, str], dict[str, Path]]:
    """Seal one return for each party, and for nobody else, unless it lies there as it was kept.

    Returns the digest of each, and the paths of those that were written.
    """
    make_folder(session.outbox)
    exchange = exchange or session.exchanges[-1]
    received = session.history.taken()
    spans = {party: received[party].span for party in outcome.uploads if received[party].span}
    lines = [
        SpanLine(party=party, consensus=consensus, signature=signature)
        for party, (consensus, signature) in spans.items()
    ]
    digests, written, kept = dict[str, str](), dict[str, Path](), kept_returns(session, outcome)
    for returned in made:
        session.report("sealing returns", len(digests), len(outcome.uploads))
        party = returned.party
        path = session.reply(party, exchange)
        if party in kept and path.is_file() and file_digest(path) == kept[party]:
            digests[party] = kept[party]
            continue
        model = others(returned)
        enclosed = enclose_return(
            replace(returned, others=model, card=card.beside(model)),
            agreement=session.agreement,
            sender=session.name,
            upload=outcome.uploads[party],
            lines=lines,
        )
        digests[party] = session.seal_reply(enclosed, party=party, exchange=exchange)
        written[party] = path
    session.report("sealing returns", len(outcome.uploads), len(outcome.uploads))
    return digests, written


def name_of(words: Iterable[str]) -> str:
    """Return a short name that stands for words."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:_NAME_DIGITS]
