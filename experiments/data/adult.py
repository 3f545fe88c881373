"""UCI Adult: 48,842 persons, both files merged, as numbers in [0, 1]."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data.sources import read_verified, source
from experiments.harness.models import Labels, Table
from experiments.harness.systems import Dealt, generator

SOURCES = (source("adult/adult.data.gz"), source("adult/adult.test.gz"))
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    "native_country",
)
HALVES = (COLUMNS[:7], COLUMNS[7:])  # of a vertical partition: 50 and 58 columns of numbers
NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
"""The others are words: one column of 0 and 1 for each word, "?" (not known) being one."""


@dataclass(frozen=True, kw_only=True)
class Persons:
    rows: Table
    labels: Labels  # 1 for an income above 50,000
    columns: tuple[str, ...]  # which of `COLUMNS` each feature is of

    def held(self, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.isin(self.columns, list(columns))


@cache
def adult() -> Persons:
    """Return all persons: numbers by minimum and maximum of all, words as 0 and 1."""
    lines = b"\n".join(map(read_verified, SOURCES)).decode("ascii").splitlines()
    return as_numbers([line.split(", ") for line in lines if line.count(",") == len(COLUMNS)])


def as_numbers(persons: Sequence[Sequence[str]]) -> Persons:
    """Return persons as features, in the order of their columns."""
    fields = dict(zip((*COLUMNS, "income"), zip(*persons, strict=True), strict=True))
    tables: list[Table] = []
    columns: list[str] = []
    for name in COLUMNS:
        values = np.array(fields[name])
        if name in NUMBERS:
            numbers = values.astype(np.float64)
            low, high = numbers.min(), numbers.max()
            tables.append(((numbers - low) / max(high - low, 1))[:, None])
        else:
            tables.append((values[:, None] == np.unique(values)).astype(np.float64))
        columns += [name] * tables[-1].shape[1]
    labels = np.array([income.startswith(">") for income in fields["income"]])
    return Persons(rows=np.hstack(tables), labels=labels.astype(np.int64), columns=tuple(columns))


@dataclass(frozen=True, kw_only=True)
class Partitioned(Dealt):
    """Persons in blocks, with all features; two parties hold a block, half of the features each."""

    halves: Sequence[npt.NDArray[np.bool_]]  # which features each party of a block holds


def partition(persons: Persons, *, repeat: int, n_blocks: int, n_tests: int) -> Partitioned:
    """Deal persons at random: a test set, and blocks of the same size from the rest."""
    order = generator(repeat).permutation(len(persons.labels))
    test, rest = order[:n_tests], order[n_tests:]
    size = len(rest) // n_blocks
    blocks = {f"block-{n:03d}": rest[n * size : (n + 1) * size] for n in range(n_blocks)}
    how: Any = {"repeat": repeat, "halves": [persons.held(half) for half in HALVES]}
    rows, labels = persons.rows, persons.labels
    return Partitioned.of(rows.__getitem__, labels, held=blocks, test=test, **how)
