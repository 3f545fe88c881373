"""What the analyst's commands, ``verify`` and ``inspect`` say, with ``--json`` too.

``docs/reference/json.md`` is written from these models, beside those of ``answers.py``.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cobasis.cli.answers import Answer, Part

if TYPE_CHECKING:
    from cobasis.analyst_side.receive import FileVerdict
    from cobasis.analyst_side.run import Concluded


def file_answers(files: Iterable["FileVerdict"]) -> list["FileAnswer"]:
    """Return what became of files, for ``--json``."""
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


class AuditRecordAnswer(Part):
    """What an upload says of the audit that its party made: the party's own claim."""

    policy: str
    verdict: str = Field(description="As `party audit` has it.")
    report: str = Field(description="Salted hash of the report that the party keeps.")


class FileAnswer(Part):
    """What became of one file."""

    file: str
    verdict: str = Field(description="accepted, received before or refused.")
    party: str | None
    n_rows: int | None
    code: str = Field(description="Of the refusal; empty otherwise.")
    reason: str
    audit: AuditRecordAnswer | None = Field(
        description="Of an upload; null where no audit was made, or the file is no accepted upload."
    )


class ReceiveAnswer(Answer):
    """`analyst receive`: a verdict for each file; exit code 3 where one was refused."""

    files: list[FileAnswer]
    received: list[str]
    missing: list[str]
    late: list[str] = Field(description="In, but after the run: `analyst add` takes them.")
    receipts: dict[str, str] = Field(description="The receipt of each party that is in.")
    minimum_parties: int
    deadline: str = Field(description="Empty where there is none.")


class ConsensusAnswer(Answer):
    """`analyst consensus`: the common span, sealed to each party."""

    contributors: list[str]
    missing: list[str] = Field(description="Without a proposal in it; they get the span as well.")
    files: list[FileAnswer]
    written: dict[str, str]


class FiguresAnswer(Part):
    """What the certificate says of one party."""

    smallest_cosine: float = Field(description="Between the spans of its image and the target.")
    fit_error: float = Field(description="Of its change of basis; rounding at most.")
    scale: float = Field(description="Of its rows, relative to the median party.")
    image_scale: float = Field(description="Of its anchor image, likewise.")
    residual: float = Field(description="What its fit leaves over; of unlike patients much.")
    correlation: float | None = Field(description="With its peers, the median; null if undefined.")
    evidence: str = Field(description="not a random turn or cannot tell.")


class RunAnswer(Answer):
    """`analyst run`, `analyst add`: what was trained, and one sealed return per party."""

    chance: float | None = Field(description="How far random turns' correlations spread.")
    figures: dict[str, FiguresAnswer]
    model: str | None = Field(description="The family; null for representation.")
    model_sha256: str | None = Field(description="The same at every party.")
    n_rows: int
    trained_on: list[str]
    target_carries: list[str]
    returns: dict[str, str]
    missing: list[str]
    excluded: list[str]
    before_deadline: bool = Field(description="Whether those who are missing still had time.")


class RemoveAnswer(Answer):
    """`analyst remove`: what is gone, and what is not."""

    party: str
    realigned: bool
    gone: list[str]
    not_gone: list[str]
    model_sha256: str
    trained_on: list[str]
    target_carries: list[str]
    certificate: list[str] = Field(description="Signed for programs, and in words.")
    returns: dict[str, str]


class FindingAnswer(Part):
    """One thing that was checked."""

    what: str
    name: str
    holds: bool
    code: str
    reason: str


class VerifyAnswer(Answer):
    """`verify`: everything that was checked; exit code 3 where something does not hold."""

    holds: bool
    findings: list[FindingAnswer]
    heads: dict[str, str] = Field(description="The last hash of each transcript.")


class InspectAnswer(Answer):
    """`inspect`: what a bundle says of itself."""

    path: str
    kind: str = Field(description="A sealed file, or which of those that are not sealed.")
    n_bytes: int
    n_recipients: int
    signature: str = Field(description="good, wrong, not enrolled or not checked.")
    manifest: dict[str, Any] | None = Field(description="Null without the key.")
