"""What a vault holds of its data sets, and the rule that a row is seen through one span only.

A proposal is a data set of its own, which has no basis: it showed directions, and no row.

Each fresh span shows the same rows from another side: of 64 features, 8 uploads of 8 components
through fresh spans give every row back exactly. So rows that were uploaded before go through the
basis that they went through then, or not at all, for as long as they live. A vault knows a row
again, without keeping it, by eight keyed bytes.
"""

import hmac
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from cobasis.errors import DifferenceError, OptionError, SpanReuseError, VaultError
from cobasis.linalg.arrays import Hidden, Mask
from cobasis.protocol.exchanges import MessageName
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from cobasis.protocol.secrets import PartyKey, SecretBasis
from cobasis.vault.records import SUFFIX, Record, Records

Fingerprints = npt.NDArray[np.uint64]  # of a table's rows; a row that occurs twice has two

Span = Literal["fresh", "kept", "forced"]
"""What a basis is: new, stored, or new though some rows were uploaded before."""

_FOLDER, _PRINTS = "datasets", ("last", "earlier", "people")
_PEOPLE = 2


_nobody = cast("Callable[[], Fingerprints]", partial(np.zeros, 0, np.uint64))


@dataclass(frozen=True, kw_only=True)
class Changes:
    same: int
    added: int
    gone: int  # a row with one corrected cell is gone and added

    @property
    def fewest(self) -> float:
        """How many came, or went, whichever are fewer; infinity where nothing changed."""
        return min((each for each in (self.added, self.gone) if each), default=math.inf)


@dataclass(frozen=True, kw_only=True)
class Charge:
    release: str  # digest of all that the noise was drawn for
    mu: float  # sensitivity over noise
    labels: float  # epsilon of a person's labels, 0 where they are public
    # promised for all uploads of a data set; each agreement's promise is kept
    lifetime_epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class SumsEntry:
    """Of what a party's sums are, and with whose they are added up."""

    participants: Sequence[str]  # a list, where it was read back
    attempt: int
    data: str  # digest of rows; behind a colon those of each column of labels, and of labels
    least: int  # of how many rows a difference of two totals has to be; 0 where noise hides it
    aggregate: bool  # whether every party's own sum is of so many rows
    content: str = ""  # digest of what left
    step: int = 1  # of those by which a regression is fitted


@dataclass(frozen=True, kw_only=True)
class UploadEntry:
    number: int  # counts all lines of the vault, from 1
    time: str
    round_id: str
    agreement: str
    message: MessageName
    upload: str  # the sealed file's digest; empty when it is not known whether it became whole
    n_rows: int
    n_components: int
    basis: str
    span: Span
    reason: str  # why it was forced
    by: str  # who answers for it
    charge: Charge | None = None
    sums: SumsEntry | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Dataset(Hidden):
    """Rows that are seen through one span, as long as they live, or of one proposal or sums."""

    name: str  # the vault's own
    basis: SecretBasis | None  # None of a proposal, and of sums
    key: PartyKey  # draws the order of rows in every round, and what is held back
    columns: str  # digest of how columns became numbers, which the basis goes with
    names: tuple[str, ...]  # of the columns; none where they are not known
    # sorted fingerprints of the last upload's rows, of those that only uploads before had, and of
    # all identifiers ever uploaded
    last: Fingerprints = field(default_factory=_nobody)
    earlier: Fingerprints = field(default_factory=_nobody)
    people: Fingerprints = field(default_factory=_nobody)
    history: tuple[UploadEntry, ...] = ()  # oldest first

    def knows(self, rows: Fingerprints, people: Fingerprints) -> Mask:
        """Tell of rows, then of people, whether they were ever uploaded through this basis."""
        known = np.isin(rows, self.last) | np.isin(rows, self.earlier)
        return np.concatenate([known, np.isin(people, self.people)])

    def uploading(self, rows: Fingerprints, *, people: Fingerprints, entry: UploadEntry) -> Self:
        left = self.last[~np.isin(self.last, rows)]
        return replace(
            self,
            last=rows,
            earlier=np.union1d(self.earlier[~np.isin(self.earlier, rows)], left),
            people=np.union1d(self.people, people),
            history=(*self.history, entry),
        )


_HISTORY = TypeAdapter(tuple[UploadEntry, ...])


def save_dataset(dataset: Dataset, records: Records) -> None:
    """Write a data set: one record, so that basis and history are of one state."""
    history = [asdict(entry) for entry in dataset.history]
    basis = {} if dataset.basis is None else {"basis": basis_columns(dataset.basis)}
    arrays: dict[str, Any] = {**basis, "key": secret_bytes(dataset.key)}
    arrays |= {each: getattr(dataset, each) for each in _PRINTS}
    about = {"columns": dataset.columns, "names": list(dataset.names), "history": history}
    records.put(f"{_FOLDER}/{dataset.name}", arrays=arrays, about=about)


def load_datasets(records: Records) -> tuple[Dataset, ...]:
    """Read every data set, the one that was uploaded last at the end."""
    found = []
    for path in (records.folder / _FOLDER).glob(f"*{SUFFIX}"):
        name = path.name.removesuffix(SUFFIX)
        record = cast("Record", records.get(f"{_FOLDER}/{name}"))  # whose file is there
        basis = record.arrays.get("basis")
        kept = Dataset(
            name=name,
            basis=None if basis is None else SecretBasis(basis, party=records.party),
            key=PartyKey(record.arrays["key"].tobytes()),
            columns=record.about["columns"],
            names=tuple(record.about["names"]),
            history=_HISTORY.validate_python(record.about["history"]),
            **{each: record.arrays[each] for each in _PRINTS},
        )
        found.append(kept)
    return tuple(sorted(found, key=lambda each: each.history[-1].number))


@dataclass(frozen=True, kw_only=True)
class Forced:
    """Why two people let leave what is blocked, such as rows seen through a second span."""

    reason: str  # it stays in the history, or in the transcript
    by: tuple[str, ...]  # at least two names

    def __post_init__(self) -> None:
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
    message: MessageName  # what is made of them
    rows: Fingerprints  # kept sorted: a vault keeps none of a table's order
    shape: tuple[int, int]  # n_features and n_components
    # of the rows' identifiers, in the order of the rows; none where the agreement has none
    people: Fingerprints = field(default_factory=_nobody)
    columns: str = ""  # digest of how columns become numbers
    names: tuple[str, ...] = ()  # of the columns
    beside: Fingerprints = field(default_factory=_nobody)  # the table's rows that do not leave
    forced: Forced | None = None  # why a fresh span is to be made whatever was uploaded before
    sums: SumsEntry | None = None  # where no row is seen through a span

    def __post_init__(self) -> None:
        order = np.argsort(self.rows, kind="stable")
        object.__setattr__(self, "rows", self.rows[order])
        if len(self.people):
            object.__setattr__(self, "people", self.people[order])


@dataclass(frozen=True, kw_only=True, repr=False)
class Choice(Hidden):
    """Which basis rows have to be uploaded through: a stored one, or one yet to be made."""

    asked: Asked
    span: Span
    # the data set's; a new one is a new data set's, if its upload begins
    key: PartyKey = field(default_factory=PartyKey)
    dataset: Dataset | None = None  # whose basis is used again
    # beside the earlier file of these rows that it differs from by the fewest, None if the first
    changes: Changes | None = None
    # share of rows whose identifier is new and whose values, which no other row has, are known
    renamed: float = 0.0


def choose_span(datasets: Sequence[Dataset], asked: Asked, *, party: str, seed: bytes) -> Choice:
    """Say which basis rows have to be uploaded through; SpanReuseError where none may be used.

    A person is known again by the identifier, a row without one by its values. Data sets that
    share no column with the table show other sides of people, and do not count.
    """
    every, names = datasets, {*asked.names}
    datasets = [x for x in every if not (names and x.names and names.isdisjoint(x.names))]
    if len(asked.people) and any(len(each.last) and not len(each.people) for each in datasets):
        raise VaultError(
            f"the vault of party '{party}' has rows that were uploaded without identifiers, so it "
            "cannot tell whether these people are among them. Use another home folder for this "
            "agreement, and leave out the rows that left before."
        )
    by = (asked.rows[:0], asked.people) if len(asked.people) else (asked.rows, asked.people)
    known = [(each, seen) for each in datasets if (seen := each.knows(*by)).any()]
    since = [compare(each.last, asked.rows) for each, _ in reversed(known)]
    choice = Choice(
        asked=asked,
        span="fresh",
        # of the same rows the same: what an audit rehearsed and rounded, the next one and `send` do
        key=PartyKey(hmac.digest(seed, asked.columns.encode() + asked.rows.tobytes(), "sha256")),
        changes=min(since, key=lambda each: each.fewest, default=None),
        renamed=_renamed(datasets, asked, [seen for _, seen in known]),
    )
    if asked.sums is not None:
        _refuse_difference(every, asked, asked.sums, party=party)
        return choice
    stored = [(each, each.basis, seen) for each, seen in known if each.basis is not None]
    if not stored:
        return choice
    if asked.forced is not None:
        return replace(choice, span="forced", key=PartyKey())
    old = np.logical_or.reduce([seen for *_, seen in stored])
    for dataset, basis, seen in reversed(stored):
        same = (basis.shape, dataset.columns) == (asked.shape, asked.columns)
        if same and bool(seen[old].all()):
            return replace(choice, span="kept", key=dataset.key, dataset=dataset)
    size = "{} features and {} component(s)".format
    sizes = " and ".join(sorted({size(*basis.shape) for _, basis, _ in stored}))
    rounds = ", ".join(dict.fromkeys(f"'{each.history[-1].round_id}'" for each, *_ in stored))
    # without a number from the rows
    raise SpanReuseError(
        f"rows of party '{party}' were uploaded before, in round {rounds}, through a basis "
        f"of {sizes}; this round asks for {size(*asked.shape)}, and no stored basis of that size, "
        "for columns that become numbers in the same way, has shown all of them. Seen through a "
        "second span, rows can be rebuilt. Agree on the same features, centres, scales and "
        "components as then, or leave those rows out; else two people answer for a second span, "
        "with a reason: --override-by, --override-reason."
    )


def _refuse_difference(
    datasets: Sequence[Dataset], asked: Asked, sums: SumsEntry, *, party: str
) -> None:
    """Raise DifferenceError where a total, beside an earlier one, would show a few rows or a party.

    Somebody who has both totals subtracts them; what is left is of the rows that came or went, and
    of the parties that did. People are compared whatever columns they are seen by, for two totals
    have the label in common; values where the columns are those of then.
    """
    people = np.unique(asked.people)
    for dataset in datasets if sums.least else ():
        entry, before = dataset.history[-1], dataset.history[-1].sums
        alike = {*dataset.names} == {*asked.names}
        named = len(people) and len(dataset.people)
        found = [compare(dataset.people, people)] if named else []
        if alike:
            values = compare(dataset.last, asked.rows)
            # Some of others' rows have values of then by chance; nearly all do if they are renamed.
            nearly = 10 * values.same >= 9 * max(len(dataset.last), len(asked.rows))
            found += [values] if nearly or not named or found[0].same else []
        if before is None or not any(each.same for each in found):
            continue
        fewest, problem = min(each.fewest for each in found), ""
        if fewest < sums.least:
            problem = f"rows came, went or changed since, fewer than {sums.least:,}"
        elif alike and fewest == math.inf and _relabelled(before.data, sums.data):
            problem = "labels of the same rows changed since"
        elif {*before.participants} != {*sums.participants} and not sums.aggregate:
            problem = (
                f"then with {', '.join(before.participants)} and now with "
                f"{', '.join(sums.participants)}, and the agreement's least_rows is below "
                f"{sums.least:,}"
            )
        if problem:
            raise DifferenceError(
                f"party '{party}' sent sums of these rows on {entry.time}, in round "
                f"'{entry.round_id}': {problem}. Whoever has both totals subtracts them, and what "
                "is left shows these people or that party. Give the table of then, or agree on "
                f"least_rows of {sums.least:,} or more, which all parties have."
            )


def _relabelled(before: str, now: str) -> bool:
    """Whether labels of one column changed; of a column with another name nothing is known."""
    then, said = (
        dict(each.partition("=")[::2] for each in told.partition(":")[2].split(";"))
        for told in (before, now)
    )
    return any(said.get(column, labels) != labels for column, labels in then.items())


def _renamed(datasets: Sequence[Dataset], asked: Asked, old: Sequence[Mask]) -> float:
    """Return which share of rows has a new identifier, and values that were uploaded before.

    Zero where rows have no identifiers: what is known by its values is old then. Values that
    several rows of the table share are nobody's, and do not count.
    """
    values, counts = np.unique(np.append(asked.rows, asked.beside), return_counts=True)
    alone = np.isin(asked.rows, values[counts == 1])
    by_values = [dataset.knows(asked.rows, asked.people[:0]) for dataset in datasets]
    nobody = np.zeros(len(asked.rows), dtype=bool)
    seen, known = (np.logical_or.reduce([nobody, *each]) for each in (by_values, old))
    return float(np.sum(seen & ~known & alone) / max(1, len(asked.rows)))


def compare(before: Fingerprints, after: Fingerprints) -> Changes:
    values, place = np.unique(np.concatenate([before, after]), return_inverse=True)
    one, other = (
        np.bincount(each, minlength=len(values)) for each in np.split(place, [len(before)])
    )
    same = int(np.minimum(one, other).sum())
    return Changes(same=same, added=len(after) - same, gone=len(before) - same)
