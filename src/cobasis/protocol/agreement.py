"""The agreement: one public document that everybody signs before the round.

It holds a keyed commitment to the consortium secret, never the secret.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cobasis.algorithms.anchors import (
    FROM_PUBLIC_ROWS,
    MAX_ISOMETRIC_FEATURES,
    AnchorKind,
    anchor_gain,
)
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import BasisName, check_basis_rule
from cobasis.algorithms.concordance import Thresholds
from cobasis.algorithms.registry import AlignerName, make_aligner
from cobasis.errors import AgreementError
from cobasis.features.numeric import NumericFeature
from cobasis.models.families import ModelName, Task, family

Name = Annotated[str, Field(min_length=1, max_length=100)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Fraction = Annotated[float, Field(gt=0, lt=1)]


class _Fields(BaseModel):
    """The fields, each checked by itself; `Agreement` says what they mean."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    round_id: Name
    parties: Annotated[tuple[Name, ...], Field(min_length=1)]
    features: Annotated[tuple[NumericFeature, ...], Field(min_length=1)]
    task: Task
    classes: tuple[str, ...] | tuple[int, ...] = ()
    n_components: Annotated[int, Field(ge=1)]
    anchor: AnchorKind = "isometric"
    n_anchor_rows: Annotated[int, Field(ge=1)]
    public_rows_sha256: Digest | None = None
    basis: BasisName = "svd"
    aligner: AlignerName = "odc"
    model: ModelName | None = None
    commitment: Digest
    flag_fraction: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5
    separable_fraction: Fraction = 0.7
    scale_band: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10.0


class Agreement(_Fields):
    """What all parties and the analyst agree on before anything is sent.

    Attributes
    ----------
    round_id : str
        Unique per round; part of the anchor's tag.
    parties : tuple of str
        Everybody who may upload, late parties included.
    features : tuple of NumericFeature
        Names, order, centre and scale.
    task : {"classification", "regression", "representation"}
        What the model is for; "representation" trains none.
    classes : tuple of str or of int
        All labels that may occur; empty unless the task is classification.
    n_components : int
        l, the columns of every secret basis.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    n_anchor_rows : int
        a.
    public_rows_sha256 : str or None
        Digest of the public rows, where anchor or basis are made of them; else None.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus"}
        How parties choose their secret bases.
    aligner : {"odc", "gopp", "whitened", "imakura", "kawakami"}
        The method.
    model : str or None
        The family that the analyst trains; None for representation.
    commitment : str
        ``ConsortiumSecret.commitment(round_id)``, 64 hexadecimal digits.
    flag_fraction, separable_fraction, scale_band : float
        The numbers of the certificate's verdict. With a flag_fraction far above 1 nobody is
        ever flagged.

    Raises
    ------
    AgreementError
        A field is missing, unknown or of another type, or the fields contradict each other.

    Notes
    -----
    **Who sees what.** Public: everybody sees all of it.

    **Cost.** None.
    """

    if not TYPE_CHECKING:

        def __init__(self, **fields: object) -> None:
            """Check each field, then the fields against each other."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise AgreementError(_sentence(error)) from None
            _refuse_contradictions(self)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:  # noqa: ANN401
        """Read what ``model_dump_json`` wrote; JSON's arrays stand for tuples."""
        try:
            read = _Fields.model_validate_json(json_data, **options)
        except ValidationError as error:
            raise AgreementError(_sentence(error)) from None
        return cls(**dict(read))

    @classmethod
    def model_validate(cls, obj: object, **options: Any) -> Self:  # noqa: ANN401, ARG003
        """Check a mapping of fields, as pydantic's method of that name does."""
        return obj if isinstance(obj, cls) else cls(**dict(cast("Mapping[str, Any]", obj)))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return a copy with some fields changed, checked like a new one."""
        return type(self)(**{**dict(self), **(update or {})})

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns' names in their order."""
        return tuple(feature.name for feature in self.features)

    @property
    def thresholds(self) -> Thresholds:
        """The numbers of the certificate's verdict."""
        return Thresholds(
            flag_fraction=self.flag_fraction,
            separable_fraction=self.separable_fraction,
            scale_band=self.scale_band,
        )

    def digest(self) -> bytes:
        """Return the SHA-256 of the agreement's canonical JSON; every message names it."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        """Made once: of thousands of features, and asked for by every message."""
        return hashlib.sha256(self.model_dump_json().encode()).digest()

    def names(self, party: str) -> bool:
        """Tell whether a party is one of the agreement's.

        Parameters
        ----------
        party : str
            Its name.

        Returns
        -------
        bool
            True if `party` is in ``parties``.

        Notes
        -----
        **Who sees what.** Public.

        **Cost.** One look into a set, however many parties there are.
        """
        return party in self._members

    @cached_property
    def _members(self) -> frozenset[str]:
        return frozenset(self.parties)

    def anchor_recipe(self) -> bytes:
        """Return what determines the anchor besides the secret; the party list does not."""
        fields = [self.round_id, self.anchor, str(self.n_anchor_rows), str(len(self.features))]
        return "\0".join([*fields, self.public_rows_sha256 or ""]).encode()

    def make_aligner(self) -> Aligner:
        """Return the aligner, with the scale that the anchor's kind gives."""
        return make_aligner(self.aligner, gain=anchor_gain(self.anchor, self.n_anchor_rows))

    def opens(self, commitment: str) -> bool:
        """Whether `commitment` is the agreement's own, compared in constant time."""
        return hmac.compare_digest(commitment, self.commitment)


def _sentence(error: ValidationError) -> str:
    """Return pydantic's findings as one sentence of ours."""
    findings = [
        f"{'.'.join(str(part) for part in found['loc']) or 'agreement'}: {found['msg']}"
        for found in error.errors(include_input=False, include_url=False)
    ]
    return (
        f"the agreement has {len(findings)} field(s) that cannot stand: {'; '.join(findings[:5])}. "
        "Correct them and have the agreement signed again."
    )


def _refuse_contradictions(agreement: Agreement) -> None:
    """Raise AgreementError where two fields exclude each other."""
    n_parties, n_features = len(agreement.parties), len(agreement.features)
    check_basis_rule(agreement.basis, anchor=agreement.anchor, n_parties=n_parties)
    problems = [
        *_repeats("parties", agreement.parties),
        *_repeats("features", agreement.feature_names),
        *_repeats("classes", agreement.classes),
    ]
    if agreement.n_components > n_features:
        problems.append(f"n_components={agreement.n_components} is above the {n_features} features")
    if agreement.n_anchor_rows < agreement.n_components:
        problems.append(
            f"n_anchor_rows={agreement.n_anchor_rows} is below n_components, so images would be "
            "rank-deficient"
        )
    if agreement.anchor == "isometric":
        if agreement.n_anchor_rows < n_features:
            problems.append(
                f"an isometric anchor needs n_anchor_rows >= {n_features}, the number of features, "
                f"not {agreement.n_anchor_rows}"
            )
        if n_features > MAX_ISOMETRIC_FEATURES:
            problems.append(
                f"{n_features} features are above {MAX_ISOMETRIC_FEATURES}: use anchor='gaussian'"
            )
    needs_public = agreement.anchor in FROM_PUBLIC_ROWS or agreement.basis == "public"
    if needs_public != (agreement.public_rows_sha256 is not None):
        problems.append(
            "public_rows_sha256 goes with a public basis or a public or smote anchor, only with one"
        )
    problems += _task_problems(agreement)
    if problems:
        msg = (
            f"the agreement contradicts itself: {'; '.join(problems)}. "
            "Change one of the two fields and have it signed again."
        )
        raise AgreementError(msg)


def _task_problems(agreement: Agreement) -> list[str]:
    """Return what is wrong with classes and model for the task."""
    problems = []
    if (agreement.task == "classification") != (len(agreement.classes) > 1):
        problems.append("classification needs at least two classes, other tasks have none")
    if (agreement.task == "representation") != (agreement.model is None):
        problems.append("every task but representation names a model")
    elif agreement.model is not None:
        family(agreement.model, agreement.task)
    return problems


def _repeats(field: str, values: tuple[str, ...] | tuple[int, ...]) -> list[str]:
    """Return a problem for every value that occurs twice."""
    twice = sorted(str(value) for value, count in Counter(values).items() if count > 1)
    return [f"{field} names {', '.join(twice[:5])} more than once"] if twice else []
