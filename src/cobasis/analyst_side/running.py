"""``analyst run``: from all uploads that are in to one sealed return per party."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cobasis.analyst_side.concluding import Concluded, align_anew, conclude, frozen
from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import RUN, History
from cobasis.analyst_side.keeping import refuse_forgotten, require_enough
from cobasis.analyst_side.reception import missing
from cobasis.analyst_side.training import family_of
from cobasis.errors import StepError
from cobasis.models.families import ModelName
from cobasis.progress import Report, silent
from cobasis.protocol.refusals import refuse_exclusion


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a run has made.

    Attributes
    ----------
    concluded : Concluded
        Outcome, certificate and returns.
    missing : tuple of str
        Enrolled parties without an upload.
    excluded : tuple of str
        Parties that were left out by name.
    before_deadline : bool
        Whether some are missing who still had time.
    """

    concluded: Concluded
    missing: tuple[str, ...]
    excluded: tuple[str, ...]
    before_deadline: bool


def run(
    desk: AnalystDesk,
    *,
    to: Path,
    model: ModelName | None = None,
    exclude: Iterable[str] = (),
    cluster: str | None = None,
    now: datetime | None = None,
    report: Report = silent,
) -> Ran:
    """Align, certify, train, and write one sealed return per party.

    Run it again after Ctrl-C, a kill or a full disk: what is done is not done again, and all
    returns carry the same model.
    """
    family = family_of(desk.agreement, model)
    excluded = tuple(dict.fromkeys(exclude))
    with desk.at_work() as history:
        refuse_forgotten(desk, history)
        refuse_exclusion(excluded, history.received)
        parties = tuple(name for name in sorted(history.received) if name not in excluded)
        away = missing(desk.agreement, history)
        require_enough(desk, parties, missing=(*away, *excluded))
        _refuse_other_parties(history, parties)
        if history.outcome is None:
            name, alignment = align_anew(desk, history, parties=parties, report=report)
        else:
            name, alignment = history.outcome.alignment, frozen(desk, history.outcome)
        concluded = conclude(
            desk,
            alignment,
            name=name,
            history=history,
            family=family,
            event=RUN,
            told={"excluded": list(excluded)},
            to=to,
            cluster=cluster,
            report=report,
        )
    closes = desk.agreement.closes
    early = closes is not None and (now or datetime.now(UTC)) < closes
    return Ran(
        concluded=concluded,
        missing=away,
        excluded=excluded,
        before_deadline=early and bool(away),
    )


def _refuse_other_parties(history: History, parties: tuple[str, ...]) -> None:
    """Raise StepError where returns of other parties' run are out already."""
    if history.outcome is None:
        return
    ran = set(history.outcome.uploads)
    new, gone = sorted(set(parties) - ran), sorted(ran - set(parties))
    if not new and not gone:
        return
    found = [
        *([f"{', '.join(new)} came since: cobasis analyst add"] if new else []),
        *([f"{', '.join(gone)} took part: cobasis analyst remove"] if gone else []),
    ]
    raise StepError(
        f"a run with {', '.join(sorted(ran))} was made on {history.outcome.time}, and a second one "
        f"would give everybody another target ({'; '.join(found)}). Use these commands."
    )
