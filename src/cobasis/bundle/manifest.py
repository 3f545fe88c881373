"""What a bundle says of itself, never believed unsigned, and what it has to be: ours, and new."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import AfterValidator, Field, FiniteFloat, ValidationError, model_validator

from cobasis.errors import BundleError, ClockError, ForeignBundleError, OptionError
from cobasis.protocol.agreement import Digest, Moment, moment_of, moment_text
from cobasis.protocol.enrolment import IdentityName
from cobasis.protocol.exchanges import Answer, MessageName
from cobasis.protocol.signatures import SpanLine
from cobasis.strict_json import Strict, canonical_json, findings

Kind = Literal[MessageName, Answer, "receipt", "secret", "part"]

_TABLE = 2**30 + 2**16

PARTS: dict[Kind, dict[str, int]] = {
    "upload": {"upload.safetensors": 2**44},
    "sums": {"sums.safetensors": 2**35},
    "scores": {"sums.safetensors": 2**28},
    "return": {
        "fit.safetensors": 2**31 + 2**16,
        "model.safetensors": 2**28,
        "others.safetensors": 2**28,
        "total.safetensors": 2**28,
        "card.json": 2**20,
    },
    "proposal": {"span.safetensors": _TABLE},
    "consensus": {"span.safetensors": _TABLE},
    "receipt": {"receipt.json": 2**20},
    "secret": {"secret.bin": 2**12},
    "part": {"part.parquet": 2**34},
}
"""By kind: which parts there are, and how many bytes each may have. No bundle names others."""


class Part(Strict):
    name: Annotated[str, Field(pattern=r"^[a-z0-9_.]{1,64}$")]
    n_bytes: Annotated[int, Field(ge=1, lt=2**48)]
    sha256: Digest


FORMAT: Literal["cobasis/bundle/1"] = "cobasis/bundle/1"
MAX_MANIFEST = 2**20


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("not printable")
    return text


Words = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Told = bool | Whole | FiniteFloat | Words | list[Words]  # what may stand behind a word of `told`


class Manifest(Strict):
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
    history: Digest | None = None  # keyed head of all that its sender ever sent
    # an upload's own about the common span; a return's of all that it was trained on
    lines: Annotated[tuple[SpanLine, ...], Field(max_length=2000)] = ()
    audit: dict[str, Any] | None = None
    dp: dict[str, Any] | None = None  # the record of noise

    @model_validator(mode="after")
    def _refuse_what_no_reader_takes(self) -> Self:
        rules, names = PARTS[self.kind], [part.name for part in self.parts]
        if len(set(names)) < len(names) or set(names) - set(rules):
            raise ValueError(f"it has other parts than {', '.join(rules)}")
        for part in self.parts:
            if part.n_bytes > (most := rules[part.name]):
                raise ValueError(f"{part.name} has {part.n_bytes:,} bytes, {most:,} are the most")
        if (length := len(self.encoded())) > MAX_MANIFEST:
            raise ValueError(f"of its {length:,} bytes {MAX_MANIFEST:,} are read")
        return self

    def encoded(self) -> bytes:
        return canonical_json(self.model_dump(), ascii_only=False)


def signed_message(manifest: bytes) -> bytes:
    return FORMAT.encode() + b"\0" + hashlib.sha256(manifest).digest()


def read_manifest(text: bytes, *, what: str) -> Manifest:
    """Check a manifest's text; it is believed when its signature was checked, and not before."""
    try:
        return Manifest.read(text)
    except ValueError as error:
        refuse(what, f"its manifest cannot stand: {'; '.join(findings(error)[:5]):.500}")


def refuse(what: str, reason: str) -> NoReturn:
    raise BundleError(f"{what} cannot be used: {reason}. Ask its sender for a new one.")


def make_manifest(**fields: Any) -> Manifest:  # noqa: ANN401 -- all but the software
    from importlib.metadata import version  # noqa: PLC0415 -- 20 ms, only when one is written

    try:
        return Manifest(**fields, software=f"cobasis {version('cobasis')}")
    except ValidationError as error:
        raise OptionError(
            f"no reader would take this {fields['kind']}, for its manifest cannot stand: "
            f"{'; '.join(findings(error)[:5])}. Change that."
        ) from None


MAX_AHEAD = timedelta(hours=48)  # by how much a sender's clock may be fast

_SAYS = {
    "round_id": "is of round '{}', not of round '{}'",
    "agreement": "is of this round, but its agreement is another ({:.16}) than this one ({:.16})",
    "kind": "is of kind '{}', and kind '{}' is expected",
}


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a bundle has to be; None is not checked."""

    kind: Kind | None = None
    round_id: str | None = None
    agreement: str | None = None
    recipient: str | None = None  # who has to be among those it is for
    now: datetime | None = None  # by whose clock the future begins; the computer's by default

    def check(self, manifest: Manifest, *, what: str) -> None:
        for name, words in _SAYS.items():
            wanted, found = getattr(self, name), getattr(manifest, name)
            if wanted not in {None, found}:
                raise ForeignBundleError(
                    f"{what} {words.format(found, wanted)}. Look whether the files were mixed up, "
                    "or ask for the right one."
                )
        if self.recipient is not None and self.recipient not in manifest.recipients:
            raise ForeignBundleError(
                f"{what} is for {', '.join(manifest.recipients[:5])}, not for '{self.recipient}'; "
                "somebody passed it on. Ask its sender for your own."
            )
        if manifest.simulated:
            raise ForeignBundleError(
                f"{what} is drawn from a seed, and does not belong here. Simulation and real "
                "rounds do not mix; ask its sender for the right one."
            )
        now = self.now or datetime.now(UTC)
        if moment_of(manifest.created) > now + MAX_AHEAD:
            raise ClockError(
                f"{what} says that it was made on {manifest.created}, more than 48 hours after "
                f"now, {moment_text(now)}. One of the two clocks is wrong. Correct the clock and "
                "make the bundle anew."
            )
