"""Which parts a bundle has, by its kind, and how large each may be."""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

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

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Part(BaseModel):
    """One file inside a bundle.

    Attributes
    ----------
    name : str
        One of the names that `PARTS` gives for the bundle's kind.
    n_bytes : int
        How many bytes it has.
    sha256 : str
        Of these bytes, 64 hexadecimal digits.
    stored_bytes : int
        How many bytes its zstd frame has.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z0-9_.]{1,64}$")]
    n_bytes: Annotated[int, Field(ge=1, lt=2**48)]
    sha256: Digest
    stored_bytes: Annotated[int, Field(ge=1, lt=2**48)]


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
