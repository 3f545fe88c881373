"""How the analyst's commands print files and runs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cobasis.analyst_side.receive import FileVerdict
    from cobasis.analyst_side.run import Concluded
    from cobasis.cli.analyst_answers import FileAnswer, RunAnswer


def file_answers(files: Iterable["FileVerdict"]) -> list["FileAnswer"]:
    """Return what became of files, for ``--json``."""
    from cobasis.cli.analyst_answers import AuditRecordAnswer, FileAnswer

    return [
        FileAnswer.of(each, audit=None if each.audit is None else AuditRecordAnswer.of(each.audit))
        for each in files
    ]


def said_of_files(files: Iterable["FileVerdict"]) -> list[str]:
    """Return what became of files, for people."""
    lines = []
    for each in files:
        rows = "" if each.n_rows is None else f", {each.n_rows:,} rows"
        what = f"{each.file}: {each.verdict}"
        told = f" ({each.party}{rows})" if each.party else f": {each.reason} [{each.code}]"
        lines.append(what + told)
    return lines


def said_of_audits(files: Iterable["FileVerdict"]) -> list[str]:
    """Return, for each upload that is in, what its party said of an audit, for people."""
    lines = []
    for each in files:
        if each.party is None:
            continue
        told = (
            f"{each.audit.verdict}, policy {each.audit.policy}" if each.audit else "none is named"
        )
        lines.append(f"Audit by {each.party}: {told}")
    return lines


def certified(
    concluded: "Concluded",
    *,
    command: str,
    round_id: str,
    missing: Iterable[str] = (),
    excluded: Iterable[str] = (),
    before_deadline: bool = False,
) -> tuple["RunAnswer", list[str]]:
    """Return what was certified and trained, for ``--json`` and for people."""
    from cobasis.cli.analyst_answers import FiguresAnswer, RunAnswer

    outcome, certificate = concluded.outcome, concluded.certificate
    figures = {name: FiguresAnswer.of(each) for name, each in certificate.parties.items()}
    answer = RunAnswer(
        command=command,
        round=round_id,
        chance=certificate.chance,
        figures=figures,
        model=outcome.family,
        model_sha256=outcome.model_sha256,
        n_rows=outcome.n_rows,
        trained_on=list(outcome.uploads),
        target_carries=list(outcome.target_carries),
        returns={name: str(path) for name, path in concluded.files.items()},
        missing=list(missing),
        excluded=list(excluded),
        before_deadline=before_deadline,
    )
    return answer, [*certificate.summary().splitlines(), *_lines(answer)]


def _lines(answer: "RunAnswer") -> list[str]:
    lines = []
    if answer.model is not None:
        lines += [
            f"Trained {answer.model} on {answer.n_rows:,} rows of {', '.join(answer.trained_on)}.",
            f"SHA-256 of the model, the same for all: {answer.model_sha256}",
        ]
    lines.append(f"The target descends from {', '.join(answer.target_carries)}.")
    return [*lines, *(f"Wrote {path}" for path in answer.returns.values())]
