"""The agreement: one public document that everybody signs before the round.

It holds a keyed commitment to the consortium secret, never the secret.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError

from cobasis.algorithms import AlignerName, AnchorKind, BasisName, Scale
from cobasis.algorithms.anchors import anchor_gain
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.bases import check_basis_rule
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.imakura import Imakura
from cobasis.algorithms.kawakami import Kawakami
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.whitened import Whitened
from cobasis.errors import AgreementError
from cobasis.features.contract import Feature, columns_in, interaction_problems, width_of
from cobasis.features.maps import Columns, FeatureMap, Turn, turn_of, width_under
from cobasis.features.outcome import Outcome
from cobasis.linalg.arrays import Matrix
from cobasis.models import MODELLESS, TABULAR, UNLABELLED, ModelName, Task
from cobasis.protocol.dp_terms import DPTerms, noise_problems
from cobasis.protocol.enrolment import Approver, PublicIdentity, Record, Text, enrolment_problems
from cobasis.protocol.sums_terms import NEEDED_FOR_ROWS, Release, SumsTerms, sums_problems
from cobasis.protocol.terms import Holding, holding_problems, rows_problems, task_problems
from cobasis.strict_json import IF_ANY, Worded, canonical_json

MOMENT = "%Y-%m-%dT%H:%M:%SZ"
Name = Annotated[str, Field(min_length=1, max_length=100)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=1)]
Precision = Literal["fp64", "fp32", "fp16", "int8"]
AS_IS = Columns()
_turn_of = lru_cache(maxsize=1)(turn_of)  # all parties of a process encode by one


def moment_text(moment: datetime) -> str:
    """Return a moment as all our files write it: UTC, whole seconds, ``Z`` at the end."""
    return moment.astimezone(UTC).strftime(MOMENT)


def moment_of(text: str) -> datetime:
    """Return the moment that `moment_text` wrote; ValueError for any other text."""
    with suppress(ValueError):
        moment = datetime.strptime(text, MOMENT).replace(tzinfo=UTC)
        if moment_text(moment) == text:  # strptime takes 2026-2-3T4:5:6Z as well
            return moment
    raise ValueError("it is no time in UTC like 2026-12-31T23:59:59Z")


def _server(address: str) -> str:
    """Return an address; ValueError where a request to it could be meant for another."""
    if not re.fullmatch(r"(https://[a-z0-9.-]+(:[0-9]{1,5})?)?", address):
        raise ValueError("it is no address like https://lab.example or https://lab.example:8443")
    return address


Server = Annotated[str, Field(max_length=200), AfterValidator(_server)]
Moment = Annotated[str, AfterValidator(lambda text: moment_text(moment_of(text)))]
Deadline = Annotated[str, AfterValidator(lambda text: text and moment_text(moment_of(text)))]


class Agreement(Worded):
    """What all parties and the analyst agree on before anything is sent.

    Attributes
    ----------
    round_id : str
        A name that no other round has; part of the anchor's tag.
    parties : tuple of str
        Everybody who may upload, late parties included.
    features : tuple of NumericFeature, CategoryFeature or Interaction
        Columns in their order, and how each becomes numbers; then products of them.
    purpose : str
        What the model is for and who may use it, in words.
    threat_model : {"", "semi-honest"}
        Whom the method protects from: those who keep to it and look at what they get.
    retention_days : int or None
        For how many days the analyst keeps uploads.
    deadline : str
        Until when uploads are taken, in UTC like ``2026-12-31T23:59:59Z``; empty for no limit.
    minimum_parties : int
        With fewer uploads the analyst does not run.
    fewest_rows : int
        A party with fewer rows to upload takes no part.
    server : str
        Address of the analyst's server, like ``https://lab.example``; empty where files travel
        by hand.
    task : str
        "classification", "regression", "count", "survival", "effect", "clustering", "novelty",
        "representation" or "table": what the round is for; the last two train no model.
    label : str
        The column of labels, in every party's table, of survival the time; empty without any.
    classes : tuple of str or of int
        All labels that may occur, or the clusters' names, that of the largest first; empty unless
        the task is classification, clustering, or a table in groups.
    id : str
        The column of identifiers, which are never uploaded; empty where there are none.
    model : str or None
        The family: "logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost", "kmeans", "ols",
        "gaussian_mixture", "logit", "firth", "poisson", "negative_binomial", "cox", "effect".
    models : tuple of str
        Families that the analyst may train; empty for `model` alone. No model carries rows.
    holdout : float
        The share of rows, up to 0.5, that never leaves a party and on which it scores the model.
    n_components : int
        The columns of every secret basis; fewer show less and keep less.
    n_anchor_rows : int
        Rows of the anchor; of an isometric one at least as many as encoded features.
    anchor : {"isometric", "gaussian", "uniform", "public", "smote"}
        The anchor's kind.
    basis : {"svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"}
        How parties choose their secret bases.
    aligner : {"odc", "gopp", "whitened", "imakura", "kawakami"}
        The method.
    public_rows_sha256 : str or None
        Digest of the public rows, where anchor or basis are made of them; else None.
    commitment : str
        Binds the secret without showing it: ``ConsortiumSecret.commitment(round_id)``, which
        `cobasis agreement new` writes.
    precision : {"fp64", "fp32", "fp16", "int8"}
        How numbers of an upload are written; images of the anchor are never below fp16.
    int8_range : float or None
        With int8 only: projected values lie between minus this and this.
    scale_band : float
        How many times larger or smaller than the median party's a party's rows, and its anchor
        image, may be.
    enrolled : tuple of PublicIdentity
        The parties' public keys, in the order of `parties`; empty in a simulation.
    analyst : PublicIdentity or None
        The analyst's.
    dp : DPTerms or None
        Under which guarantee rows leave, with noise; None for uploads without one.
    record : Record or None
        What officers file: controllers, legal basis, transfers and the like, in words.
    approvers : tuple of Approver
        Officers, each with the party whose files leave with their approval only.
    release : {"rows", "sums"}
        What a party's file holds: projected rows, or masked sums.
    sums : SumsTerms or None
        Of what sums are made; None where rows are sent.
    outcome : Outcome or None
        Columns beside the label, as of events, and how a regression table reads them.
    holdings : tuple of Holding
        Parties that hold some of the columns only; empty where all hold all.
    map : Columns, RandomFourier or Mixed
        What rows go through before the basis, which is then of the map's features.
    groups : tuple of PublicIdentity
        The analysts of all groups, this one's among them; empty where one analyst has all rows.

    Raises
    ------
    AgreementError
        A field is missing, unknown or of another type, or the fields contradict each other.

    Notes
    -----
    **Who sees what.** Everybody sees all of it. **Cost.** None.
    """

    what = "agreement"
    ask = "Correct them; where it was signed, sign it again."

    round_id: Name
    parties: Annotated[tuple[Name, ...], Field(min_length=1)]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    purpose: Text = ""
    threat_model: Literal["", "semi-honest"] = ""
    retention_days: Count | None = None
    deadline: Deadline = ""
    minimum_parties: Count = 1
    fewest_rows: Annotated[int, Field(ge=0), IF_ANY] = 0
    server: Annotated[Server, IF_ANY] = ""
    task: Task
    label: Annotated[str, Field(max_length=200)] = ""
    classes: tuple[str, ...] | tuple[int, ...] = ()
    id: Annotated[str, Field(max_length=200)] = ""
    model: ModelName | None = None
    models: tuple[ModelName, ...] = ()
    holdout: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    n_components: Annotated[int, Field(ge=0)] = 0
    n_anchor_rows: Annotated[int, Field(ge=0)] = 0
    anchor: AnchorKind = "isometric"
    basis: BasisName = "svd"
    aligner: AlignerName = "odc"
    public_rows_sha256: Digest | None = None
    commitment: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""
    precision: Precision = "fp64"
    int8_range: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    scale_band: Annotated[float, Field(gt=1, allow_inf_nan=False)] = 10.0
    enrolled: tuple[PublicIdentity, ...] = ()
    analyst: PublicIdentity | None = None
    dp: Annotated[DPTerms | None, IF_ANY] = None
    record: Annotated[Record | None, IF_ANY] = None
    approvers: Annotated[tuple[Approver, ...], IF_ANY] = ()
    release: Annotated[Release, Field(exclude_if=lambda release: release == "rows")] = "rows"
    sums: Annotated[SumsTerms | None, IF_ANY] = None
    outcome: Annotated[Outcome | None, IF_ANY] = None
    holdings: Annotated[tuple[Holding, ...], IF_ANY] = ()
    map: Annotated[FeatureMap, Field(exclude_if=lambda each: each == AS_IS)] = AS_IS
    groups: Annotated[tuple[PublicIdentity, ...], IF_ANY] = ()

    _held: "tuple[Agreement, Holding] | None" = PrivateAttr(None)
    _digest: bytes = PrivateAttr()
    _members: frozenset[str] = PrivateAttr()

    if not TYPE_CHECKING:

        def __init__(self, **fields: object) -> None:
            super().__init__(**fields)
            self._settle()

    def _settle(self) -> None:
        """Refuse contradictions; make once what every message asks for."""
        check_basis_rule(self.basis, anchor=self.anchor, n_parties=len(self.parties))
        kinds = [each.kind for each in self.features]
        problems = [
            *["round_id and what no file may say, as a line break"]
            * (not self.round_id.isprintable()),
            # two of them would be one file on some disks
            *_repeats("parties, in whatever case,", map(str.casefold, self.parties)),
            *_repeats("features", (each.name for each in self.features)),
            *(interaction_problems(self.features) if "interaction" in kinds else ()),
            *_repeats("classes", self.classes),
            *(sums_problems(self, self.sums) if self.release == "sums" else rows_problems(self)),
            *(holding_problems(self) if self.holdings else ()),
            *_repeats("models", self.models),
            *task_problems(self),
            *(_column_problems(self) if self.label or self.id else ()),
            *(enrolment_problems(self) if self.enrolled or self.analyst else ()),
            *(noise_problems(self, self.dp) if self.dp and not self.sums else ()),
        ]
        if problems:
            what, then = "these options contradict each other", "Change one of them."
            if self.enrolled:
                what = "the agreement contradicts itself"
                then = "Change it; where it was signed, sign it again."
            raise AgreementError(f"{what}: {'; '.join(problems)}. {then}")
        self._members = frozenset(self.parties)
        self._digest = hashlib.sha256(canonical_json(self.model_dump(mode="json"))).digest()

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> Self:  # noqa: ANN401
        """Read what ``model_dump_json`` wrote; JSON's arrays stand for tuples."""
        made = cls.__new__(cls)
        try:  # straight into `made`: __init__ would refuse the lists that JSON's parser gives
            cls.__pydantic_validator__.validate_json(json_data, self_instance=made)
        except ValidationError as error:
            raise cls._refusal(error) from None
        made._settle()  # noqa: SLF001 -- it is one of ours
        return made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """Return a copy with some fields changed, checked like a new one."""
        return type(self)(**{**dict(self), **(update or {})})

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the raw columns that features are made of, in their order."""
        return tuple(feature.name for feature in columns_in(self.features))

    @property
    def n_features(self) -> int:
        """m: the columns of what is projected; a category has one for each level but its base."""
        own = self.features
        return width_of(own) if self.map == AS_IS else width_under(self.map, own)

    @property
    def turn(self) -> Turn | None:
        """What an encoded row goes through before the basis; None where it is projected as is."""
        return None if self.map == AS_IS else _turn_of(self.map, self.features)

    def mapped(self, rows: Matrix) -> Matrix:
        """Return encoded rows as they are projected."""
        return rows if self.map == AS_IS else _turn_of(self.map, self.features).apply(rows)

    @property
    def n_inputs(self) -> int:
        """The columns of what a model takes: aligned rows, or encoded ones where sums are sent."""
        if self.sums is not None:
            return self.n_features
        return self.whole.n_components if self.holdings else self.n_components

    @property
    def tabular(self) -> bool:
        """Whether coefficients come back with their errors."""
        return self.model in TABULAR

    @property
    def horizons(self) -> tuple[float, ...]:
        """Times at which a model tells a row's share without event; an effect has a propensity."""
        return self.outcome.horizons if self.outcome and self.task == "survival" else ()

    @property
    def allowed_models(self) -> tuple[ModelName, ...]:
        """The families that the analyst may train: ``models``, or ``model`` alone."""
        return self.models or (() if self.model is None else (self.model,))

    @property
    def closes(self) -> datetime | None:
        """When the deadline is, in UTC; None without one."""
        return moment_of(self.deadline) if self.deadline else None

    def digest(self) -> bytes:
        """Return the SHA-256 of the agreement's canonical JSON; every message names it."""
        return self._digest

    def names(self, party: str) -> bool:
        """Tell whether a party is one of the agreement's, in one look however many there are."""
        return party in self._members

    @property
    def whole(self) -> "Agreement":
        """What everybody signed, of which this may be what concerns one party."""
        return self._held[0] if self._held else self

    @property
    def holding(self) -> Holding | None:
        """What is agreed of the party that this concerns, where it holds some columns only."""
        return self._held[1] if self._held else None

    @property
    def unlabelled(self) -> bool:
        """Whether the party that this concerns has no labels of its block's people."""
        return self.holding is not None and not self.holding.labels

    def held_by(self, party: str) -> "Agreement":
        """Return what concerns a party: with its own columns alone, and the digest of the whole."""
        for each in self.holdings:
            if each.party == party and self._held is None:
                held = [column for column in self.features if column.name in each.columns]
                size = each.n_components or self.n_components
                own = {"features": tuple(held), "n_components": size}
                without = {} if each.labels else {"label": "", "outcome": None}
                found = super().model_copy(update=own | without)
                found._held = self, each  # noqa: SLF001 -- it is one of ours
                return found
        return self

    def anchor_recipe(self) -> bytes:
        """Return what determines the anchor besides the secret; the party list does not."""
        fields = [self.round_id, self.anchor, self.n_anchor_rows, self.whole.n_features]
        return "\0".join(map(str, [*fields, self.public_rows_sha256 or ""])).encode()

    def make_aligner(self) -> Aligner:
        """Return the aligner, with the scale that the anchor's kind gives."""
        gain = anchor_gain(self.anchor, self.n_anchor_rows)
        scale: Scale = "measured" if gain is None else gain
        aligners: dict[AlignerName, Aligner] = {
            "odc": ODC(),
            "gopp": GOPP(),
            "whitened": Whitened(scale=scale),
            "imakura": Imakura(scale=scale),
            "kawakami": Kawakami(scale=scale),
        }
        return aligners[self.aligner]


NEEDED_TO_SIGN = ("id", "purpose", "threat_model", "retention_days", "enrolled", "analyst")
"""What a simulation does without, and nobody puts a name under."""


def missing_fields(agreement: Agreement | Mapping[str, object]) -> tuple[str, ...]:
    """Return which fields have to be filled before anybody may sign."""
    fields, known = dict(agreement), Agreement.model_fields.items()
    needed = [name for name, field in known if field.is_required()]
    needed += NEEDED_FOR_ROWS if fields.get("release", "rows") == "rows" else ["sums"]
    needed += NEEDED_TO_SIGN
    task = said if isinstance(said := fields.get("task"), str) else None  # a file may say anything
    needed += [] if task in MODELLESS | UNLABELLED else ["label"]
    needed += [] if task in MODELLESS else ["model"]
    needed += ["classes"] if task in {None, "classification", "clustering"} else []
    return tuple(name for name in needed if not fields.get(name))


def _column_problems(agreement: Agreement) -> Iterator[str]:
    others = {} if agreement.outcome is None else agreement.outcome.columns
    for role, name in (("label", agreement.label), ("id", agreement.id), *others.items()):
        if name and name in agreement.columns:
            yield f"the {role} column '{name}' is also a feature"
    if agreement.id and agreement.id in {agreement.label, *others.values()}:
        yield f"the column '{agreement.id}' is both label and id, and an id is never uploaded"
    if agreement.label and agreement.task in UNLABELLED:
        yield f"task='{agreement.task}' has no label column"


def _repeats(field: str, values: Iterable[str] | Iterable[int]) -> Iterator[str]:
    if twice := sorted(str(value) for value, count in Counter(values).items() if count > 1):
        yield f"{field} names {', '.join(twice[:5])} more than once"
