"""What ``audit --json`` and ``plan --json`` print."""

from pathlib import Path

from pydantic import Field

from cobasis.cli.answers import Answer, Part, PartyAnswer


class FindingAnswer(Part):
    """One line of an audit."""

    id: str = Field(description="P1 to P6, S1 to S3, H1 to H6, D1.")
    title: str
    grade: str = Field(description="green, amber, red, or told for a figure without a bound.")
    action: str = Field(description="none, sign or block.")
    words: str
    figures: dict[str, float | int | str | None] = Field(description="Shares are from 0 to 1.")


class EffectAnswer(Part):
    """What a setting would come to."""

    name: str
    content: float = Field(description="Share of the variance rebuilt, if one party helps.")
    whole: str = Field(description="Whether whole records are: red for yes, amber, green for no.")
    alone: float | None = Field(description="Right person picked by an analyst alone.")
    leaked: float = Field(description="Right person picked, if the secret basis leaks.")
    accuracy: float | None = Field(description="Of a simple model; R2 for a regression.")
    accuracy_least: float | None = Field(description="Of three splits.")
    accuracy_most: float | None
    n_scored: int = Field(description="People whom a split was scored on.")


class AuditAnswer(PartyAnswer):
    """`audit`: what an upload would give away."""

    policy: str
    verdict: str = Field(description="pseudonymised, aggregate or differentially-private.")
    verdict_words: str
    sentences: list[str]
    blocked: bool
    to_sign: list[str] = Field(description="Findings that somebody has to sign for.")
    findings: list[FindingAnswer]
    effects: list[EffectAnswer]
    untested: list[str]
    report_sha256: str = Field(description="The salted hash that would travel.")
    report_path: Path = Field(description="The whole report and its salt, at the party.")
    pages: list[Path] = Field(description="Files that -o wrote.")


class ReleaseAnswer(Part):
    """Rows, or sums, of this table."""

    release: str = Field(description="rows or sums.")
    leaves: str
    learns: str = Field(description="What the analyst learns, alone and with help.")
    n_bytes: int
    seconds: float = Field(description="Of one thread of this machine.")
    score: float | None = Field(description="Of random features and ridge on these rows alone.")


class PlanAnswer(Answer):
    """`plan`: what each defence would cost and win."""

    n_rows: int
    n_sampled: int = Field(description="Rows, drawn at random, that were looked at.")
    metric: str = Field(description="accuracy, r2, or empty without labels.")
    effects: list[EffectAnswer] = Field(description="The first is the agreement as it is.")
    releases: list[ReleaseAnswer] = Field(description="As agreed, the other one as by default.")
    told: list[str] = Field(description="Rules, what was left out and why, in words.")
    page: str = Field(description="The file that -o wrote; empty without one.")
