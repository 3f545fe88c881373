"""The rule that a row is seen through one span only, for as long as it lives.

Each fresh span shows the same rows from another side: of 64 features, 8 uploads of 8 components
through fresh spans give every row back exactly. So rows that were uploaded before go through the
basis that they went through then, or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from cobasis.errors import OptionError, SpanReuseError
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.secrets import PartyKey, SecretBasis
from cobasis.vault.datasets import Dataset
from cobasis.vault.fingerprints import Changes, Fingerprints, compare

_PEOPLE = 2


@dataclass(frozen=True, kw_only=True)
class Forced:
    """Why two people let leave what is blocked, such as rows seen through a second span."""

    reason: str  # it stays in the history, or in the transcript
    by: tuple[str, ...]  # at least two names

    def __post_init__(self) -> None:
        """Refuse an empty reason, and a single name."""
        names = {" ".join(name.split()).casefold() for name in self.by} - {""}
        if not self.reason.strip() or len(names) < _PEOPLE:
            raise OptionError(
                f"what is blocked was to leave with {len(names)} name(s) and "
                f"{'a' if self.reason.strip() else 'no'} reason. It takes {_PEOPLE} different "
                "people who answer for it, and why: --override-by NAME --override-by NAME "
                "--override-reason TEXT."
            )


@dataclass(frozen=True, kw_only=True, repr=False)
class Asked(Hidden):
    """What a span was chosen for."""

    rows: Fingerprints  # fingerprints, kept sorted
    shape: tuple[int, int]  # n_features and n_components
    # fingerprints of identifiers; none where the agreement has none
    people: Fingerprints = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    columns: str = ""  # digest of how columns become numbers
    forced: Forced | None = None  # why a fresh span is to be made whatever was uploaded before

    def __post_init__(self) -> None:
        """Sort the rows: a vault keeps none of a table's order."""
        object.__setattr__(self, "rows", np.sort(self.rows))


@dataclass(frozen=True, kw_only=True, repr=False)
class Fresh(Hidden):
    """A basis is to be made as the agreement says."""

    asked: Asked
    key: PartyKey = field(default_factory=PartyKey)  # new: the data set's, if its upload begins
    over_old_rows: bool  # some of the rows were uploaded before, and `asked` says who forced it


@dataclass(frozen=True, kw_only=True, repr=False)
class Kept(Hidden):
    """A stored basis is to be used again."""

    asked: Asked
    dataset: Dataset
    changes: Changes  # since that data set's last upload

    @property
    def basis(self) -> SecretBasis:
        """The stored one."""
        return self.dataset.basis

    @property
    def key(self) -> PartyKey:
        """The stored one."""
        return self.dataset.key


@dataclass(frozen=True, kw_only=True)
class Refused:
    """No basis may be used for these rows."""

    reason: str  # without a number from the rows

    def refuse(self) -> NoReturn:
        """Raise SpanReuseError."""
        raise SpanReuseError(self.reason)


def choose_span(datasets: Sequence[Dataset], asked: Asked, *, party: str) -> Fresh | Kept | Refused:
    """Say which basis rows have to be uploaded through."""
    known = [dataset.knows(asked.rows, asked.people) for dataset in datasets]
    nobody = np.zeros(len(asked.rows) + len(asked.people), dtype=bool)
    old = np.logical_or.reduce([nobody, *known])
    if not old.any() or asked.forced is not None:
        return Fresh(asked=asked, over_old_rows=bool(old.any()))
    for dataset, seen in zip(reversed(datasets), reversed(known), strict=True):
        same = (dataset.basis.shape, dataset.columns) == (asked.shape, asked.columns)
        if same and bool(seen[old].all()):
            changes = compare(dataset.last, asked.rows)
            return Kept(asked=asked, dataset=dataset, changes=changes)
    return Refused(reason=_reason(datasets, [bool(seen.any()) for seen in known], asked, party))


def _reason(datasets: Sequence[Dataset], shares: Sequence[bool], asked: Asked, party: str) -> str:
    """Say why no stored basis fits."""
    features, components = asked.shape
    stored = [each for each, shared in zip(datasets, shares, strict=True) if shared]
    sizes = " and ".join(sorted({_size(*each.basis.shape) for each in stored}))
    rounds = ", ".join(dict.fromkeys(f"'{each.history[-1].round_id}'" for each in stored))
    return (
        f"rows of party '{party}' were uploaded before, in round {rounds}, through a basis of "
        f"{sizes}; this round asks for {_size(features, components)}, and no stored basis of that "
        "size, for columns that become numbers in the same way, has shown all of them. Seen "
        "through a second span, rows can be rebuilt. Agree on the same features and components as "
        "then, or leave those rows out; else two people answer for a second span, with a reason: "
        "--override-by, --override-reason."
    )


def _size(n_features: int, n_components: int) -> str:
    return f"{n_features} features and {n_components} components"
