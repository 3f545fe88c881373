"""What ends a round at the analyst: one sealed return for each party, then the line about them."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_json

from cobasis.algorithms.certificate import Certificate
from cobasis.analyst_side.history import RUN, Outcome
from cobasis.analyst_side.session import AnalystSession, WorkFolder
from cobasis.bundle.messages import enclose
from cobasis.bundle.transcript import Fact
from cobasis.disk.whole import file_digest, write_whole
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.worth import Figure
from cobasis.protocol.baseline import BaselineTable
from cobasis.protocol.card import ModelCard
from cobasis.protocol.exchanges import Exchange
from cobasis.protocol.messages import Return
from cobasis.protocol.signatures import SpanLine
from cobasis.protocol.sums import SumsResult
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.strict_json import json_object

_NUMBERS_DEPEND_ON = ("cobasis", "numpy", "scipy", "scikit-learn")  # besides the uploads


@dataclass
class Conclusion:
    session: AnalystSession = field(repr=False)
    outcome: Outcome  # without returns until their line is written
    exchange: Exchange
    told: Mapping[str, Fact]  # in that line, besides
    card: ModelCard
    certificate: Certificate | None = None  # None where sums were added up
    # of families, cross-validated
    scores: Mapping[ModelName, Mapping[str, Figure | None]] = field(default_factory=dict)
    sums: SumsResult | None = None
    table: BaselineTable | CoefficientTable | None = None  # of sums, which all can make
    digests: dict[str, str] = field(default_factory=dict)  # of the sealed returns, by party
    written: dict[str, Path] = field(default_factory=dict)  # those that were not there as they are

    @property
    def files(self) -> Mapping[str, Path]:
        """The sealed return of each party."""
        return {party: self.session.reply(party, self.exchange) for party in self.digests}

    @cached_property
    def kept(self) -> Mapping[str, str]:
        """Digests of returns that the same run has sealed; none where it is another."""
        before = self.session.history.outcome
        same = before is not None and self.outcome == replace(before, returns={})
        return before.returns if before is not None and same else {}

    def send(
        self, made: Iterable[Return], *, others: Callable[[Return], Chain | None] = lambda _: None
    ) -> None:
        """Seal returns, each to its party alone, unless they lie there as they were kept."""
        session, uploads = self.session, self.outcome.uploads
        received = session.history.taken()
        spans = {party: received[party].span for party in uploads if received[party].span}
        lines = tuple(
            SpanLine(party=party, consensus=consensus, signature=signature)
            for party, (consensus, signature) in spans.items()
        )
        for returned in made:
            session.report("sealing returns", len(self.digests), len(uploads))
            party = returned.party
            path, kept = session.reply(party, self.exchange), self.kept.get(party)
            if kept is not None and path.is_file() and file_digest(path) == kept:
                self.digests[party] = kept
                continue
            model = others(returned)
            enclosed = enclose(
                replace(returned, others=model, card=self.card.beside(model)),
                agreement=session.agreement,
                sender=session.name,
                told={"upload": uploads[party]},
                lines=lines,
            )
            self.digests[party] = session.seal(enclosed, path, to=[session.enrolled[party]])
            self.written[party] = path
        session.report("sealing returns", len(uploads), len(uploads))

    def record(self) -> None:
        """Write the line that names the returns, unless it stands there."""
        session, made = self.session, self.outcome
        new = self.written or not self.kept
        # Returns come before the line that names their digests: a kill between the two leaves
        # returns that no line names, and the same command, typed again, seals others over them.
        if new or self.told["without"] != [*session.history.without]:
            # where lost returns are sealed anew no family is scored again: the first scores stay
            if findings_of(session.work, made) is None:
                found: dict[str, Any] = {"card": self.card, "certificate": self.certificate}
                found |= {"scores": self.certificate and self.scores, "of": _words_of(made)}
                found["rows_per_feature"] = self.sums and self.sums.rows_per_feature
                write_whole(session.work.findings, to_json(found, inf_nan_mode="null"))
            versions = [f"{each} {version(each)}" for each in _NUMBERS_DEPEND_ON]
            line = replace(made, returns=self.digests).told()
            session.note(RUN, {**line, **self.told, "versions": versions})
        self.outcome = cast("Outcome", session.history.outcome)


def findings_of(work: WorkFolder, made: Outcome | None) -> dict[str, Any] | None:
    with suppress(ValueError, OSError):
        found = json_object(work.findings.read_bytes())
        return found if made is not None and found.get("of") == _words_of(made) else None
    return None


def _words_of(made: Outcome) -> list[str]:
    return [made.model_sha256, *(f"{file}  {name}" for name, file in made.uploads.items())]


def name_of(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]
