"""The agreement's fields, each checked by itself, and what follows from them alone."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.registry import AlignerName
from cobasis.features.encoding import Feature, width_of
from cobasis.models.families import ModelName, Task
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.enrolment import PublicIdentity

Name = Annotated[str, Field(min_length=1, max_length=100)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(max_length=10_000)]
Precision = Literal["fp64", "fp32", "fp16", "int8"]
DEADLINE = "%Y-%m-%dT%H:%M:%SZ"


class AgreementFields(BaseModel):
    """The fields; `cobasis.Agreement` says what they mean."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    round_id: Name
    parties: Annotated[tuple[Name, ...], Field(min_length=1)]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    task: Task
    classes: tuple[str, ...] | tuple[int, ...] = ()
    n_components: Count
    anchor: AnchorKind = "isometric"
    n_anchor_rows: Count
    public_rows_sha256: Digest | None = None
    basis: BasisName = "svd"
    aligner: AlignerName = "odc"
    model: ModelName | None = None
    models: tuple[ModelName, ...] = ()
    commitment: Digest
    scale_band: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10.0
    label: Annotated[str, Field(max_length=200)] = ""
    id: Annotated[str, Field(max_length=200)] = ""
    holdout: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    precision: Precision = "fp64"
    int8_range: Positive | None = None
    minimum_parties: Count = 1
    deadline: Annotated[str, Field(max_length=30)] = ""
    purpose: Text = ""
    threat_model: Literal["", "semi-honest"] = ""
    retention_days: Count | None = None
    enrolled: tuple[PublicIdentity, ...] = ()
    analyst: PublicIdentity | None = None
    dp: DPTerms | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the raw columns that features are made of, in their order."""
        return tuple(feature.name for feature in self.features)

    @property
    def n_features(self) -> int:
        """m: the columns of what is projected; a category has one for each of its levels."""
        return width_of(self.features)

    @property
    def allowed_models(self) -> tuple[ModelName, ...]:
        """The families that the analyst may train: ``models``, or ``model`` alone."""
        return self.models or (() if self.model is None else (self.model,))

    @property
    def closes(self) -> datetime | None:
        """When the deadline is, in UTC; None without one."""
        return (
            datetime.strptime(self.deadline, DEADLINE).replace(tzinfo=UTC)
            if self.deadline
            else None
        )
