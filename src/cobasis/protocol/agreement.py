"""The agreement: one public document that everybody signs before the round.

It holds a keyed commitment to the consortium secret, never the secret.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import PrivateAttr, ValidationError

from cobasis.algorithms.anchors import anchor_gain
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.imakura import Imakura
from cobasis.algorithms.kawakami import Kawakami
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.whitened import Whitened
from cobasis.errors import AgreementError
from cobasis.protocol.agreement_fields import AgreementFields, refuse_contradictions
from cobasis.protocol.enrolment import field_findings
from cobasis.strict_json import canonical_json

if TYPE_CHECKING:
    from cobasis.algorithms import Scale


class Agreement(AgreementFields):
    """What all parties and the analyst agree on before anything is sent.

    Attributes
    ----------
    round_id : str
        Unique per round; part of the anchor's tag.
    parties : tuple of str
        Everybody who may upload, late parties included.
    features : tuple of NumericFeature or CategoryFeature
        Columns in their order, and how each becomes numbers.
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
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their secret bases.
    aligner : {"odc", "gopp", "whitened", "imakura", "kawakami"}
        The method.
    model : str or None
        The family that the analyst trains; None for representation.
    models : tuple of str
        The families that it may train; empty for `model` alone. None may carry rows.
    commitment : str
        ``ConsortiumSecret.commitment(round_id)``, 64 hexadecimal digits.
    scale_band : float
        How many times larger or smaller than the median party's a party's rows, and its anchor
        image, may be.
    label, id : str
        The columns of labels, and of identifiers, which are never uploaded; empty where a
        simulation needs none.
    holdout : float
        The share of rows, up to 0.5, that never leaves a party and on which it scores the model.
    precision : {"fp64", "fp32", "fp16", "int8"}
        How numbers of an upload are written; images of the anchor are never below fp16.
    int8_range : float or None
        With int8 only: projected values lie between minus this and this.
    minimum_parties : int
        With fewer uploads the analyst does not run.
    deadline : str
        Until when uploads are taken, in UTC like ``2026-12-31T23:59:59Z``; empty for no limit.
    purpose : str
        What the model is for and who may use it, in words.
    threat_model : {"", "semi-honest"}
        Whom the method protects from: those who keep to it and look at what they get.
    retention_days : int or None
        For how long the analyst keeps uploads.
    enrolled : tuple of PublicIdentity
        The parties' public keys, in the order of `parties`; empty in a simulation.
    analyst : PublicIdentity or None
        The analyst's.
    dp : DPTerms or None
        Under which guarantee rows leave, with noise; None for uploads without one.

    Raises
    ------
    AgreementError
        A field is missing, unknown or of another type, or the fields contradict each other.

    Notes
    -----
    **Who sees what.** Public: everybody sees all of it.

    **Cost.** None.
    """

    _members: frozenset[str] = PrivateAttr()
    _digest: bytes = PrivateAttr()
    """Made once: of thousands of features, and asked for by every message."""

    if not TYPE_CHECKING:

        def __init__(self, **fields: object) -> None:
            """Check each field, then the fields against each other."""
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise AgreementError(_sentence(error)) from None
            refuse_contradictions(self)
            self._members = frozenset(self.parties)
            told = self.model_dump(mode="json")
            if self.dp is None:  # as before there was such a field
                del told["dp"]
            self._digest = hashlib.sha256(canonical_json(told)).digest()

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:  # noqa: ANN401
        """Read what ``model_dump_json`` wrote; JSON's arrays stand for tuples."""
        try:
            read = AgreementFields.model_validate_json(json_data, **options)
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

    def digest(self) -> bytes:
        """Return the SHA-256 of the agreement's canonical JSON; every message names it."""
        return self._digest

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

    def anchor_recipe(self) -> bytes:
        """Return what determines the anchor besides the secret; the party list does not."""
        fields = [self.round_id, self.anchor, str(self.n_anchor_rows), str(self.n_features)]
        return "\0".join([*fields, self.public_rows_sha256 or ""]).encode()

    def make_aligner(self) -> Aligner:
        """Return the aligner, with the scale that the anchor's kind gives."""
        if self.aligner == "odc":
            return ODC()
        if self.aligner == "gopp":
            return GOPP()
        gain = anchor_gain(self.anchor, self.n_anchor_rows)
        scale: Scale = "measured" if gain is None else gain
        if self.aligner == "whitened":
            return Whitened(scale=scale)
        return Imakura(scale=scale) if self.aligner == "imakura" else Kawakami(scale=scale)


def _sentence(error: ValidationError) -> str:
    """Return pydantic's findings as one sentence of ours."""
    findings = field_findings(error, whole="agreement")
    return (
        f"the agreement has {len(findings)} field(s) that cannot stand: {'; '.join(findings[:5])}. "
        "Correct them; where it was signed, have it signed again."
    )
