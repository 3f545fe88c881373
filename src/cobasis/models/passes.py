"""Rows that are visited block by block, and passes over them: what every training is made of.

A pass calls one function with the rows and the number of each block, and hands back what it
returned, in the blocks' order: in threads here, in a cluster's workers elsewhere. Sums are added
in that order, so a model that is made of sums is the same wherever its rows lie.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from cobasis.errors import LabelError, NotFiniteError, OptionError, StepError
from cobasis.linalg.arrays import Array, Integers, Matrix
from cobasis.linalg.threads import in_order
from cobasis.models import ChainFamily, Estimator, ModelName, Task
from cobasis.models.chain import Affine, Chain, Held, Layer, chain_of, folded
from cobasis.models.tuning import EARLY_STOPPING_ROWS
from cobasis.progress import Report, silent

Labels = Array
Result = TypeVar("Result")

SAMPLE_ROWS = 10_000
"""Rows on which a grid is searched, by five folds."""

_ROWS_APART = 100_000
CHUNK_CELLS = 2**20
"""Numbers of the widest table that a sum is made of at a time: 8 MB stay near the processor."""


class Block(NamedTuple):
    rows: Matrix
    labels: Labels


class LabelledRows(Protocol):
    """Rows in one frame, with labels: positions of classes, or numbers."""

    n_rows: int
    n_columns: int
    n_blocks: int

    def block(self, index: int) -> Block:
        """Return one block, the same at each call; it may have no rows."""
        ...

    def sample(self, n_rows: int) -> Block:
        """Return at most so many rows, at random, however they are cut; all of them in order."""
        ...

    def only(self, blocks: Sequence[int]) -> "LabelledRows":  # noqa: ARG002 -- all of them
        """Return what another process needs to make some of the blocks, by the same numbers."""
        return self


class WholeRows(LabelledRows):
    """Rows in memory, in one block, if they can be trained on."""

    n_blocks = 1

    def __init__(
        self, rows: Matrix, labels: Labels, *, seed: int = 0, source: LabelledRows | None = None
    ) -> None:
        if len(rows) != len(labels):
            raise LabelError(
                f"rows and labels differ in number: {len(rows):,} and {len(labels):,}. Give one "
                "label for each row."
            )
        if not np.isfinite(rows).all():
            raise NotFiniteError("the rows are not all finite. Fill or drop what is missing.")
        self.n_rows, self.n_columns = len(rows), int(rows.shape[1])
        self._whole, self._seed, self._source = Block(rows, labels), seed, source

    def block(self, index: int) -> Block:  # noqa: ARG002 -- there is one
        return self._whole

    def sample(self, n_rows: int) -> Block:
        if self.n_rows <= n_rows:
            return self._whole
        if self._source is not None:
            return self._source.sample(n_rows)
        chosen = np.sort(np.random.default_rng(self._seed).permutation(self.n_rows)[:n_rows])
        return Block(self._whole.rows[chosen], self._whole.labels[chosen])


Work = Callable[[LabelledRows, int], Result]


@dataclass(frozen=True)
class Pass:
    """A pass in threads of this process; others write files, or go to other processes."""

    report: Report = silent

    def __call__(self, work: Work[Result], rows: LabelledRows, *, step: str) -> Iterator[Result]:
        """Yield ``work(rows, index)`` for each block, in order."""
        done = in_order(lambda index: work(rows, index), range(rows.n_blocks))
        for number, result in enumerate(done, 1):
            self.report(step, number, rows.n_blocks)
            yield result

    def copied(self, rows: LabelledRows) -> AbstractContextManager[LabelledRows]:
        """Give rows that need not be made again in each pass: here a single block, held."""
        if rows.n_blocks != 1 or isinstance(rows, WholeRows):
            return nullcontext(rows)
        return nullcontext(WholeRows(*rows.block(0), source=rows))

    def room(self, rows: LabelledRows) -> AbstractContextManager[str | None]:  # noqa: ARG002 -- a folder's
        """Give a folder for what training makes of rows; None where they are held in memory."""
        return nullcontext()


def chunks(block: Block, *, width: int) -> Iterator[Block]:
    """Yield some thousand rows at a time, of which a table `width` wide is to be made."""
    size = max(256, CHUNK_CELLS // width)
    for start in range(0, len(block.rows), size):
        place = slice(start, start + size)
        yield Block(block.rows[place].astype(np.float64, copy=False), block.labels[place])


class Seen(NamedTuple):
    total: Matrix
    second: Matrix
    counts: Integers


@dataclass(frozen=True, kw_only=True)
class Job:
    """Rows that a family learns from, and those that it never does, as they judge its training."""

    rows: LabelledRows
    over: Pass
    axes: Matrix  # along which they are learned
    seen: Seen
    n_classes: int  # those agreed on, some of which may have no row; 0 for regression
    present: Integers  # those that have a row
    task: Task
    seed: int
    tempered: bool
    held: Held  # what the fit finds out for a temperature
    tuned: Callable[[ModelName, Block], Estimator]  # fits a family with the best of its grid
    # of labels that are numbers: learned about zero with a spread of one
    middle: float = 0.0
    spread: float | None = None

    @property
    def classes(self) -> Labels | None:
        """The classes that rows have; None for regression."""
        return self.present if self.task == "classification" else None

    @property
    def variance(self) -> float:
        """The variance of all numbers of all rows along the axes, about their one mean."""
        # A turn leaves the sum of squares as it is. The difference cancels little: along principal
        # axes a mean far from zero lies on the first, and the numbers are not alike.
        size = self.rows.n_rows * len(self.axes)
        mean = float((self.seen.total @ self.axes).sum()) / size
        return max(float(np.trace(self.seen.second)) / size - mean**2, 0.0)

    @property
    def sample(self) -> Block:
        return self.rows.sample(SAMPLE_ROWS)

    def whole(self, name: str) -> Block:
        if self.rows.n_blocks > 1:
            raise OptionError(
                f"{name} holds all rows in memory, and {self.rows.n_rows:,} rows of "
                f"{self.rows.n_columns} columns are more than is held. Choose a family that reads "
                "them block by block: 'logistic', 'ridge', 'rff', 'mlp' or 'xgboost'."
            )
        return self.along(self.rows.block(0))

    @property
    def n_apart(self) -> int:
        n_rows = self.rows.n_rows
        return 0 if n_rows <= EARLY_STOPPING_ROWS else min(n_rows // 10, _ROWS_APART)

    def judges(self) -> Block | None:
        """Return all rows that are kept apart; None where there are none."""
        if not self.n_apart:
            return None
        apart = self.over(
            lambda _, at: self.part(at, apart=True), self.rows, step="rows to judge by"
        )
        return Block(*(np.concatenate(each) for each in zip(*apart, strict=True)))

    def part(self, index: int, *, apart: bool = False) -> Block:
        """Return a block's rows that are kept apart, or those that are learned."""
        # Drawn, since the rows of a single block lie party after party.
        block = self.rows.block(index)
        n_here, chosen = len(block.rows), np.zeros(len(block.rows), dtype=bool)
        share = min(n_here, -(-self.n_apart * n_here // max(1, self.rows.n_rows)))
        chosen[np.random.default_rng([self.seed, index]).permutation(n_here)[:share]] = True
        return self.along(Block(block.rows[chosen == apart], block.labels[chosen == apart]))

    def along(self, block: Block) -> Block:
        labels = block.labels
        labels = labels if self.spread is None else (labels - self.middle) / self.spread
        return Block(block.rows @ self.axes, labels)

    def chain(self, family: ChainFamily, layers: Sequence[Layer]) -> Chain:
        """Return a model of layers that take rows along the axes."""
        turn = Affine(weights=self.axes, offset=np.zeros(len(self.axes)))
        whole = folded([turn, *layers])
        return chain_of(family, whole, present=self.present, n_classes=self.n_classes)


def look(rows: LabelledRows, over: Pass, *, task: Task, n_classes: int | None) -> Seen:
    if not rows.n_rows:
        raise StepError("there are no rows, so nothing can be trained. Receive uploads first.")
    work = partial(_look, task=task, n_classes=n_classes)
    total, second, counts = zip(*over(work, rows, step="looking at rows"), strict=True)
    found = np.zeros(n_classes or max(map(len, counts)), dtype=np.int64)
    for each in counts:
        found[: len(each)] += each
    return Seen(total=sum(total), second=sum(second), counts=found)


def _look(rows: LabelledRows, index: int, *, task: Task, n_classes: int | None) -> Seen:
    block = rows.block(index)
    kind = block.labels.dtype.kind
    counts = np.zeros(0, dtype=np.int64)
    if task == "classification":
        strange = kind not in "iu" or (block.labels.size and int(block.labels.min()) < 0)
        counts = counts if strange else np.bincount(block.labels, minlength=n_classes or 0)
        if strange or (n_classes is not None and len(counts) > n_classes):
            raise LabelError(
                f"the labels are no positions in {n_classes or 'the'} classes: classification "
                "needs integers from 0. Number the classes, as np.unique(labels, "
                "return_inverse=True) does."
            )
    elif kind not in "iuf" or task != "regression":
        raise LabelError(
            f"labels of type {block.labels.dtype} are no numbers to learn for task='{task}'. "
            "Choose the task that the parties agreed on."
        )
    elif not np.isfinite(block.labels).all():
        raise NotFiniteError("the labels are not all finite. Drop the rows that have none.")
    total, second = block.rows.sum(axis=0, dtype=np.float64), block.rows.T @ block.rows
    return Seen(total=total, second=second, counts=counts)


def axes_of(rows: LabelledRows, seen: Seen, *, over: Pass) -> Matrix:
    """Return the principal axes of aligned rows, along which third moments are positive."""
    # The aligned frame is arbitrary, and trees depend on it; these axes follow the rows.
    _, vectors = np.linalg.eigh(seen.second)
    axes = vectors[:, ::-1]
    third = over(partial(_third, axes=axes), rows, step="principal axes")
    return axes * np.where(sum(third, start=np.zeros(len(axes))) < 0, -1.0, 1.0)


def _third(rows: LabelledRows, index: int, *, axes: Matrix) -> Matrix:
    third = np.zeros(len(axes))
    for chunk in chunks(rows.block(index), width=len(axes)):
        along = chunk.rows @ axes
        third += np.einsum("ij,ij,ij->j", along, along, along)
    return third
