"""What ``--json`` prints; ``docs/reference/json.md`` is written from these models."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """An object, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    @classmethod
    def of(cls, *sources: object, **more: object) -> Self:
        """Take each field that is not given from the first source with an attribute for it."""
        called = {"round": "round_id", "exchange": "number"}  # by an agreement, and an exchange
        for source in sources:
            for name in cls.model_fields:
                if hasattr(source, word := called.get(name, name)):
                    more.setdefault(name, getattr(source, word))
        return cls.model_validate(more)


class Answer(Part):
    """What every object has."""

    command: str = Field(description="The command, such as `send`.")
    round: str | None = Field(description="The round; null where the command is about none.")


class PartyAnswer(Answer):
    """What every object of a party's command in a round has."""

    party: str

    @classmethod
    def by(cls, session: Any, *sources: object, **more: object) -> Self:  # noqa: ANN401, D102 -- as of
        return cls.of(*sources, session.agreement, party=session.name, **more)


class ColumnAnswer(Part):
    """One finding about a column."""

    column: str
    problem: str = Field(description="As on the page about features.")
    refused: bool = Field(description="Whether the agreement forbids it.")
    asked: bool = Field(description="Whether send asks if the column is right.")
    text: str


class PreviewAnswer(Part):
    """What would leave."""

    n_features: int = Field(description="Encoded columns.")
    n_components: int
    n_bytes: int = Field(description="Of all numbers; the sealed file is some kilobytes longer.")
    precision: str
    reader: str = Field(description="Who alone can open it.")
    fingerprint: str = Field(description="Of the reader's key.")
    span: str = Field(description="fresh, kept or forced.")
    leaves: list[str]
    stays: list[str]
    guarantee: str = Field(description="What the noise promises, or that there is none.")
    warnings: list[str]


class NewsAnswer(Part):
    """The analyst's news."""

    time: str = Field(description="As of when, by the analyst's clock.")
    receipts: list[str] = Field(description="SHA-256 of files that are newly countersigned.")
    without: list[str] = Field(description="Parties that the analyst goes on without.")
    removed: list[str]


class SpanAnswer(Part):
    """The common span that is kept."""

    contributors: list[str] = Field(description="Whose directions shaped it.")
    sha256: str = Field(description="Of what all parties have to have alike.")


class ScorePart(Part):
    """Figures on rows that never left."""

    n_rows: int = Field(description="Rows it was scored on.")
    together: dict[str, list[float]] = Field(description="Each measure, and its interval.")
    local: dict[str, list[float]] = Field(description="Of the local model, where it is another.")
    alone: dict[str, list[float]] = Field(description="Of a model of the party's own.")
    constant: dict[str, list[float]] = Field(description="Of the classes' shares, or the mean.")
    verdict: str | None = Field(description="better, no difference or worse than alone.")
    chosen: str | None = Field(description="Of local fits, as `judge-a-model` has them; or null.")
    remarks: list[str]


class ReturnAnswer(Part):
    """The return that is kept."""

    evidence: str = Field(description="not a random turn or cannot tell.")
    trained_on: list[str]
    target_carries: list[str] = Field(description="Whose trace the target keeps.")
    return_sha256: str
    card: Path = Field(description="The model card as a page.")
    table: Path | None = Field(
        description="The folder of a baseline or regression table; null of others."
    )
    model_sha256: str = Field(description="The same at every party; empty without a model.")
    score: ScorePart


class ForgetAnswer(Answer):
    """`forget`: what was kept of the round is destroyed."""

    time: str = Field(description="When, as the transcript says.")


class SendAnswer(PartyAnswer):
    """`send`: a sealed file."""

    exchange: int = Field(description="Which of the round's exchanges it belongs to, from 1.")
    message: str = Field(description="proposal, upload, sums or scores.")
    path: Path
    sha256: str = Field(description="Of the sealed file; the receipt names it.")
    n_bytes: int = Field(description="Of the sealed file.")
    again: bool = Field(description="The file was made before, and is the same to the last byte.")
    warnings: list[str]


class DryAnswer(PartyAnswer):
    """`send --dry-run`: what would leave; exit code 2 where the table does not fit."""

    exchange: int
    message: str = Field(description="proposal, upload, sums or scores.")
    fits: bool
    n_rows: int
    n_held: int | None = Field(description="Rows that never leave; null where it does not fit.")
    findings: list[ColumnAnswer]
    problems: list[str] = Field(description="About the table as a whole; each forbids an upload.")
    preview: PreviewAnswer | None = Field(description="What would leave; null if it does not fit.")


class AcceptAnswer(PartyAnswer):
    """`accept`: what came; exit code 3 where a file was refused."""

    news: NewsAnswer | None = Field(description="The newest; null where none came.")
    span: SpanAnswer | None
    returned: ReturnAnswer | None
    refused: list[str] = Field(description="Why files were refused, with the error's code.")
    passed_over: list[str] = Field(description="Files of a folder that are not for this party.")


class ScoreAnswer(PartyAnswer):
    """`score`: what the model is worth on rows that never left."""

    score: ScorePart
    word: Path | None = Field(default=None, description="What --send wrote.")


class PredictAnswer(PartyAnswer):
    """`predict`: predictions were written; exit code 2 where rows have none."""

    path: Path
    n_rows: int = Field(description="Rows with a prediction.")
    bad: list[str] = Field(description="Cells of rows without: line, column, and what is wrong.")


class ExportAnswer(PartyAnswer):
    """`export`: a model file was written, of so many bytes."""

    path: Path
    n_bytes: int


class PersonAnswer(Part):
    """Somebody who takes part."""

    name: str
    role: str = Field(description="party, approver or analyst.")
    fingerprint: str = Field(description="To be compared over another channel.")


class KeyAnswer(PersonAnswer, Answer):
    """`key new`: the public half of a key, and where it was written."""

    path: Path = Field(description="The .pub file.")


class RevokeAnswer(PersonAnswer, Answer):
    """`key revoke`: a key, and who has signed that it is revoked in a round."""

    path: Path = Field(description="The .revocation file.")
    signed: list[str]
    stopped: bool = Field(description="Whether the round stands still from now on.")


class AgreementAnswer(Answer):
    """`agreement new`: the agreement as it was written."""

    path: Path
    state: str = Field(description="draft or complete.")
    digest: str | None = Field(description="SHA-256 that is signed; null for a draft.")
    missing: list[str] = Field(description="Fields that have to be filled before anybody signs.")
    changed: list[str] = Field(description="Lines, with + and -, since it was written before.")
    features: list[str] = Field(description="Columns that are features.")
    people: list[PersonAnswer]
    secrets: dict[str, Path] = Field(description="The sealed secret of each party.")
    invited: dict[str, str] = Field(description="One-use codes of parties that have not come.")


class SignAnswer(PersonAnswer, Answer):
    """`sign` and `approve`: one signature."""

    digest: str = Field(description="What was signed: the agreement's, or an audit's salted hash.")
    path: Path
    again: bool = Field(description="The same signature stood there before.")
    secret_from: str = Field(description="Which party made the secret; empty if none was read.")


class GoAnswer(PartyAnswer):
    """`go`: the round, as far as its last answer."""

    card: Path = Field(description="The model card as a page.")


class StandingPart(Part):
    """What is known of one party."""

    name: str
    signed: bool
    received: dict[str, str] = Field(
        description="When, by message: proposal, upload, sums, scores."
    )
    out: str = Field(description="left out, removed, or empty.")


class StatusAnswer(Answer):
    """`status`: how a round stands."""

    path: Path
    state: str = Field(description="draft, unsigned or sealed.")
    missing: list[str] = Field([], description="Of a draft: the fields to be filled.")
    name: str = Field("", description="Whose key is here; empty for nobody's.")
    role: str = Field("", description="party, analyst or empty.")
    as_of: str | None = Field(None, description="When the news were signed; null without any.")
    asked: str = Field("", description="What became of asking the server; empty without one.")
    exchange: int | None = Field(None, description="Which is open, from 1; null for none.")
    n_exchanges: int = 0
    parties: list[StandingPart] = []
    deadline: str = ""
    minimum_parties: int = 0
    waits_for: list[str] = Field([], description="In their order.")
    revoked: list[str] = Field([], description="Whose keys were revoked, so that it stands still.")
    next: str = Field(description="The command to type; empty for none.")
    now: bool = Field(description="Whether to type it now, or when others' files have come.")


class AuditRecordAnswer(Part):
    """What an upload says of the audit that its party made: the party's own claim."""

    policy: str
    verdict: str = Field(description="As `audit` has it.")
    report: str = Field(description="Salted hash of the report that the party keeps.")


class FileAnswer(Part):
    """What became of one file."""

    file: str
    verdict: str = Field(description="accepted, received before, passed over or refused.")
    message: str = Field(description="signature or the exchange's message; empty where it is none.")
    party: str | None
    n_rows: int | None
    code: str = Field(description="Of the refusal; empty otherwise.")
    reason: str
    audit: AuditRecordAnswer | None = Field(description="Null without one, and for other files.")


class ReceiveAnswer(Answer):
    """`receive`: a verdict for each file; exit code 3 where one was refused."""

    files: list[FileAnswer]
    agreed: list[str] = Field(description="Who has signed the agreement.")
    unsigned: list[str] = Field(description="Who has not; empty when it is sealed.")
    sealed: Path | None = Field(description="The sealed agreement; null before.")
    exchange: int = Field(description="Which exchange collects files now.")
    message: str = Field(description="What it collects: proposal, upload, sums or scores.")
    received: list[str] = Field(description="Who is in with it.")
    missing: list[str] = Field(description="Whom the analyst waits for.")
    late: list[str] = Field(description="In, but after the run: `run` takes them.")
    news: Path | None = Field(description="The signed news; null at a party.")
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
    written: dict[str, Path] = Field(description="Files that were not there as they are.")
    missing: list[str] = Field(description="Who has sent nothing.")
    without: list[str] = Field(description="Left out, until `--with`.")
    contributors: list[str] = Field([], description="Whose directions shaped the span.")
    waits: str = Field("", description="Where only lost spans were written: for what.")
    chance: float | None = Field(None, description="How far random turns' correlations spread.")
    figures: dict[str, FiguresAnswer] = Field({}, description="By party.")
    model: str | None = Field(None, description="The family; null without a model.")
    model_sha256: str | None = Field(None, description="The same at every party.")
    n_rows: int | None = None
    trained_on: list[str] = Field([])
    target_carries: list[str] = Field([])
    rows_per_feature: float | None = Field(None, description="n/D of a total; null of rows.")
    returns: dict[str, Path] = Field({}, description="The return of each party.")
    card: Path | None = Field(None, description="The model card as a page; null for spans.")
    table: Path | None = Field(None, description="The folder of a table; null of other models.")
    scores: dict[str, dict[str, list[float] | None]] = Field({}, description="By family, for whom.")


class RemoveAnswer(PartyAnswer):
    """`remove`: what is gone, and what is not."""

    realigned: bool
    gone: list[str]
    not_gone: list[str]
    model_sha256: str
    trained_on: list[str]
    target_carries: list[str]
    certificate: list[Path] = Field(description="Signed for programs, and in words.")
    written: dict[str, Path] = Field(description="The new returns.")


class CheckAnswer(Part):
    """One thing that was checked."""

    what: str
    name: str
    holds: bool
    code: str
    reason: str


class VerifyAnswer(Answer):
    """`verify`: everything that was checked; exit code 3 where something does not hold."""

    holds: bool
    findings: list[CheckAnswer]
    heads: dict[str, str] = Field(description="The last hash of each transcript.")


class InspectAnswer(Answer):
    """`inspect`: what a bundle says of itself."""

    path: Path
    kind: str = Field(description="A sealed file, or which of those that are not sealed.")
    n_bytes: int
    n_recipients: int
    signature: str = Field(description="good, wrong, not enrolled or not checked.")
    manifest: dict[str, Any] | None = Field(description="Null without the key.")
