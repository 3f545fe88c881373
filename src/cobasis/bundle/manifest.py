"""What a bundle says of itself: signed, checked field by field, and never believed unsigned."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cobasis.errors import BundleError, OptionError
from cobasis.protocol.agreement_fields import Digest, Moment, moment_text
from cobasis.protocol.enrolment import IdentityName, field_findings
from cobasis.strict_json import canonical_json, json_object

MAX_RATIO = 1000
"""A part of more than a megabyte may not be this many times larger than it is stored."""

SLACK = 2**20

Kind = Literal["upload", "return", "proposal", "consensus", "receipt", "secret"]


class PartRule(NamedTuple):
    """Whether a part has to be there, and how many bytes it may have."""

    required: bool
    max_bytes: int


_TABLE = 2**30 + 2**16

PARTS: dict[Kind, dict[str, PartRule]] = {
    "upload": {"upload.safetensors": PartRule(required=True, max_bytes=2**44)},
    "return": {
        "fit.safetensors": PartRule(required=True, max_bytes=2**31 + 2**16),
        "model.safetensors": PartRule(required=False, max_bytes=2**28),
    },
    "proposal": {"span.safetensors": PartRule(required=True, max_bytes=_TABLE)},
    "consensus": {"span.safetensors": PartRule(required=True, max_bytes=_TABLE)},
    "receipt": {"receipt.json": PartRule(required=True, max_bytes=2**20)},
    "secret": {"secret.bin": PartRule(required=True, max_bytes=2**12)},
}
"""By kind: which parts there are. No bundle names anything else."""


class Part(BaseModel):
    """One file inside a bundle."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z0-9_.]{1,64}$")]
    n_bytes: Annotated[int, Field(ge=1, lt=2**48)]
    sha256: Digest  # of the plain bytes
    stored_bytes: Annotated[int, Field(ge=1, lt=2**48)]  # of its zstd frame


def part_problem(kind: Kind, parts: Sequence[Part]) -> str:
    """Return what is wrong with the list of parts, or nothing."""
    rules = PARTS[kind]
    names = [part.name for part in parts]
    lacking = sorted(name for name, rule in rules.items() if rule.required and name not in names)
    if len(set(names)) < len(names) or set(names) - set(rules):
        return f"a bundle of kind '{kind}' has other parts than {', '.join(rules)}"
    if lacking:
        return f"a bundle of kind '{kind}' has to have a part {', '.join(lacking)}"
    for part in parts:
        most = min(rules[part.name].max_bytes, MAX_RATIO * part.stored_bytes + SLACK)
        if part.n_bytes > most:
            return (
                f"its part {part.name} is to grow from {part.stored_bytes:,} to {part.n_bytes:,} "
                f"bytes, and {most:,} are the most that are read"
            )
    return ""


FORMAT: Literal["cobasis/bundle/1"] = "cobasis/bundle/1"
MAX_MANIFEST = 2**20


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


Words = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Told = bool | Whole | Number | Words | list[Words]
"""What may stand behind a word of `told`."""


class Manifest(BaseModel):
    """What a bundle says of itself; the signature is over it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    format: Literal["cobasis/bundle/1"] = FORMAT
    kind: Kind
    software: Annotated[Words, Field(max_length=100)]
    round_id: Annotated[Words, Field(min_length=1, max_length=100)]
    agreement: Digest  # its SHA-256
    sender: IdentityName
    recipients: Annotated[tuple[IdentityName, ...], Field(min_length=1, max_length=2000)]
    anchor_tag: Digest | None = None  # where it belongs to an anchor
    simulated: bool = False
    created: Moment  # by the sender's clock
    parts: Annotated[tuple[Part, ...], Field(min_length=1, max_length=8)]
    # row counts, dtypes, evidence: for people and for checks
    told: Annotated[
        dict[Annotated[str, Field(pattern="^[a-z0-9_]{1,64}$")], Told], Field(max_length=100)
    ] = Field(default_factory=dict)
    audit: dict[str, Any] | None = None
    dp: dict[str, Any] | None = None  # the record of noise

    def encoded(self) -> bytes:
        """Return the canonical JSON: sorted names, no spaces, UTF-8."""
        return canonical_json(self.model_dump(), ascii_only=False)


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What the maker of a bundle has to say; the rest of the manifest follows from the parts."""

    kind: Kind
    round_id: str
    agreement: str
    sender: str
    anchor_tag: str | None = None
    simulated: bool = False
    told: Mapping[str, Any] = field(default_factory=dict)
    audit: Mapping[str, Any] | None = None
    dp: Mapping[str, Any] | None = None


def signed_message(manifest: bytes) -> bytes:
    """Return what a bundle's signature is over."""
    return FORMAT.encode() + b"\0" + hashlib.sha256(manifest).digest()


def read_manifest(text: bytes, *, what: str) -> Manifest:
    """Check a manifest's text; it is believed when its signature was checked, and not before."""
    try:
        json_object(text)
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        places = [
            ".".join(map(str, each["loc"]))[:80] for each in error.errors(include_input=False)
        ]
        problem = f"its manifest's {', '.join(sorted(set(places))[:5])} cannot stand"
    except ValueError:
        problem = "its manifest is no JSON object with every name once"
    else:
        problem = part_problem(manifest.kind, manifest.parts)
        if not problem:
            return manifest
    raise BundleError(f"{what} cannot be used: {problem}. Ask its sender for a new one.")


def make_manifest(
    draft: Draft, *, parts: tuple[Part, ...], recipients: tuple[str, ...], created: datetime
) -> Manifest:
    """Return the manifest of a draft and its measured parts."""
    try:
        manifest = Manifest(
            **{name: getattr(draft, name) for name in ("kind", "round_id", "agreement", "sender")},
            software=_software(),
            recipients=recipients,
            anchor_tag=draft.anchor_tag,
            simulated=draft.simulated,
            created=moment_text(created),
            parts=parts,
            told={**draft.told},
            audit=None if draft.audit is None else {**draft.audit},
            dp=None if draft.dp is None else {**draft.dp},
        )
        length = len(manifest.encoded())
    except ValidationError as error:
        problem = "; ".join(field_findings(error, whole="manifest")[:5])
    except (TypeError, ValueError) as error:
        problem = f"audit or dp is not JSON: {error}"
    else:
        problem = part_problem(manifest.kind, manifest.parts)
        if length > MAX_MANIFEST:
            problem = f"its manifest has {length:,} bytes, at most {MAX_MANIFEST:,} are read"
        if not problem:
            return manifest
    raise OptionError(
        f"no reader would take this bundle of kind '{draft.kind}': {problem}. Change that."
    )


def _software() -> str:
    """Return the name and version of this package."""
    from importlib.metadata import version  # noqa: PLC0415 -- 20 ms, only when one is written

    return f"cobasis {version('cobasis')}"
