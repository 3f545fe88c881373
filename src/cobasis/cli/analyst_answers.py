"""What the analyst's commands, ``verify`` and ``inspect`` say, with ``--json`` too.

``docs/reference/json.md`` is written from these models, beside those of ``answers.py``.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cobasis.cli.answers import Answer, Part
from cobasis.cli.options import wrapped

if TYPE_CHECKING:
    from cobasis.algorithms.certificate import Certificate
    from cobasis.analyst_side.receive import FileVerdict
    from cobasis.analyst_side.run import Concluded


def said_of_files(files: Iterable["FileVerdict"]) -> list[str]:
    """Return what became of files, and what parties say of their audits, for people."""
    lines, before = [], []
    for each in files:
        if each.verdict == "received before" and each.message != "upload":
            before.append(each.file)
            continue
        told = [f"{each.message} of {each.party}"] if each.party else [each.reason]
        told += [f"{each.n_rows:,} rows"] if each.n_rows else []
        if each.message == "upload":
            told.append(f"audit: {_audited(each)}")
        code = f" [{each.code}]" if each.code else ""
        lines += wrapped(f"{each.verdict}: {', '.join(told)}{code}", lead=f"{each.file}  ")
    return [*lines, *(wrapped(f"received before: {', '.join(before)}") if before else [])]


def _audited(each: "FileVerdict") -> str:
    return f"{each.audit.verdict} by {each.audit.policy}" if each.audit else "none is named"


def certified(concluded: "Concluded", **shared: Any) -> tuple["RunAnswer", list[str]]:  # noqa: ANN401 -- fields of the answer
    """Return what was certified and trained, for ``--json`` and for people."""
    outcome, certificate = concluded.outcome, concluded.certificate
    answer = RunAnswer(
        **shared,
        chance=certificate.chance,
        figures={name: FiguresAnswer.of(each) for name, each in certificate.parties.items()},
        model=outcome.family,
        model_sha256=outcome.model_sha256,
        n_rows=outcome.n_rows,
        trained_on=list(outcome.uploads),
        target_carries=list(outcome.target_carries),
        returns={name: str(path) for name, path in concluded.files.items()},
    )
    lines = []
    if answer.model is not None:
        lines += [
            *wrapped(
                f"Model: {answer.model}, trained on {answer.n_rows:,} rows of "
                f"{', '.join(answer.trained_on)}."
            ),
            "SHA-256 of the model, the same for all:",
            f"  {answer.model_sha256}",
        ]
    lines += wrapped(f"The target descends from {', '.join(answer.target_carries)}.")
    return answer, [*_certificate(certificate), *lines]


def _certificate(certificate: "Certificate") -> list[str]:
    """Return the certificate's figures as a table that fits a terminal."""
    width = min(26, max(5, *map(len, certificate.parties)))
    lines = wrapped(f"Certificate: {certificate.headline}.")
    lines.append(f"  {'party':<{width}} residual   scale  cosine  correl.  evidence")
    for name, each in certificate.parties.items():
        seen = "-" if each.correlation is None else f"{each.correlation:.2f}"
        lines.append(
            f"  {name:<{width}} {each.residual:8.4f} {each.scale:7.2f} {each.smallest_cosine:7.3f}"
            f" {seen:>8}  {each.evidence}"
        )
    return lines


class AuditRecordAnswer(Part):
    """What an upload says of the audit that its party made: the party's own claim."""

    policy: str
    verdict: str = Field(description="As `audit` has it.")
    report: str = Field(description="Salted hash of the report that the party keeps.")


class FileAnswer(Part):
    """What became of one file."""

    file: str
    verdict: str = Field(description="accepted, received before, passed over or refused.")
    message: str = Field(description="signature, proposal or upload; empty where it is none.")
    party: str | None
    n_rows: int | None
    code: str = Field(description="Of the refusal; empty otherwise.")
    reason: str
    audit: AuditRecordAnswer | None = Field(
        description="Of an upload; null where no audit was made, or the file is no accepted upload."
    )


class ReceiveAnswer(Answer):
    """`receive`: a verdict for each file; exit code 3 where one was refused."""

    files: list[FileAnswer]
    agreed: list[str] = Field(description="Who has signed the agreement.")
    unsigned: list[str] = Field(description="Who has not; empty when it is sealed.")
    sealed: str | None = Field(description="The sealed agreement; null before.")
    exchange: int = Field(description="Which exchange collects files now.")
    message: str = Field(description="What it collects: proposal or upload.")
    received: list[str] = Field(description="Who is in with it.")
    missing: list[str] = Field(description="Whom the analyst waits for.")
    late: list[str] = Field(description="In, but after the run: `run` takes them.")
    news: str | None = Field(description="The signed news; null at a party.")
    minimum_parties: int
    deadline: str = Field(description="Empty where there is none.")


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
    """`run`: what was made, and one sealed file per party."""

    exchange: int = Field(description="Which exchange it ended, or had ended.")
    written: dict[str, str] = Field(description="Files that were not there as they are.")
    missing: list[str] = Field(description="Who has sent nothing.")
    without: list[str] = Field(description="Left out, until `--with`.")
    contributors: list[str] = Field(default=[], description="Whose directions shaped the span.")
    waits: str = Field(default="", description="Where only lost spans were written: for what.")
    chance: float | None = Field(
        default=None, description="How far random turns' correlations spread."
    )
    figures: dict[str, FiguresAnswer] = Field(default={}, description="By party.")
    model: str | None = Field(default=None, description="The family; null without a model.")
    model_sha256: str | None = Field(default=None, description="The same at every party.")
    n_rows: int | None = None
    trained_on: list[str] = Field(default=[])
    target_carries: list[str] = Field(default=[])
    returns: dict[str, str] = Field(default={}, description="The return of each party.")


class RemoveAnswer(Answer):
    """`remove`: what is gone, and what is not."""

    party: str
    realigned: bool
    gone: list[str]
    not_gone: list[str]
    model_sha256: str
    trained_on: list[str]
    target_carries: list[str]
    certificate: list[str] = Field(description="Signed for programs, and in words.")
    written: dict[str, str] = Field(description="The new returns.")


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
