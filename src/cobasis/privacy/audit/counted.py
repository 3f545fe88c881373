"""Whether the numbers that leave are enough to tell one record from all that are possible.

A basis of few components loses most of a record, if its columns may hold any number. Columns of
words and whole numbers hold few: one number of 53 bits tells 2^53 records from each other, and
whoever has the basis tries them all, or solves for them.
"""

from collections.abc import Iterable, Iterator
from math import floor, log2, log10

import numpy as np

from cobasis.features.contract import Column, NumericFeature, columns_in, formula_of, width_of
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.audit.subject import Subject

BITS = {"fp64": 53, "fp32": 24, "fp16": 11, "int8": 8}
"""Significant bits of a number, by the precision that is agreed."""

MOST_TRIED = 10**6  # so many valid records are tried one by one

_PEOPLE = 600
_FINE = 600
_DECIMALS, _CLOSE, _LEAST = 9, 1e-4, 1e-99


def bits_sent(subject: Subject) -> float:
    """Return how many bits of each record leave: those of its numbers that noise leaves over."""
    most, rows = BITS[subject.precision], subject.release.rows
    if not subject.noisy:
        return float(most * rows.shape[1])
    # what a number can tell through noise: half the binary logarithm of 1 + signal over noise
    exact = subject.listed @ subject.basis
    noise = np.maximum((rows - exact).var(axis=0), np.finfo(float).tiny)
    return float(np.minimum(most, np.log2(1 + exact.var(axis=0) / noise) / 2).sum())


def bits_of_record(subject: Subject) -> float:
    """Return the binary logarithm of how many records are valid."""
    return sum(log2(count) for count, _, _ in _columns(subject))


def bits_agreed(features: Iterable[Column]) -> float:
    """Return how many bits tell a record of agreed columns from all others, rows unseen."""
    # a number counts as whole units where low and high are agreed, else six scales in hundredths
    return sum(
        log2(len(each.levels))
        if each.kind == "category"
        else log2(_FINE if each.low is None or each.high is None else each.high - each.low + 1)
        for each in features
    )


def tried(subject: Subject) -> float | None:
    """Try all valid records, if one can; tell for what share of people the nearest is theirs."""
    columns = list(_columns(subject))
    curved = formula_of(subject.features) or subject.unmapped is not None
    if subject.noisy or curved or sum(log2(count) for count, _, _ in columns) > log2(MOST_TRIED):
        return None
    from scipy.spatial import KDTree  # noqa: PLC0415 -- keeps imports light

    some = subject.some(_PEOPLE, seed=0)
    made = np.zeros((1, subject.n_components))
    theirs, first = np.zeros(some.n_rows, dtype=np.intp), 0
    for count, start, step in columns:
        if step:
            values = (start + step * np.arange(round(count)))[:, np.newaxis]
            here = np.rint((some.rows[:, first] - start) / step).astype(np.intp)
        else:
            values = np.delete(np.eye(round(count)), [] if np.isnan(start) else int(start), axis=1)
            cells = some.rows[:, first : first + values.shape[1]]
            here = (cells @ values.T - values.sum(axis=1) / 2).argmax(axis=1)  # the nearest
        axes = subject.basis[first : first + values.shape[1]]
        made = (made[:, np.newaxis] + values @ axes).reshape(-1, subject.n_components)
        theirs, first = theirs * len(values) + here, first + values.shape[1]
    return float(np.mean(KDTree(made).query(some.release.rows)[1] == theirs))


def _columns(subject: Subject) -> Iterator[tuple[float, float, float]]:
    """Yield of each column how many values it may have, the first one and the step, as encoded."""
    # A column of words has no step, and its base, if any, in place of a first value. A number lies
    # on the decimals that were seen, within what was agreed and seen.
    first = 0
    numbers = [NumericFeature(name="-")] * subject.columns.shape[1]
    for feature in columns_in(subject.features or numbers):
        if feature.kind == "category":
            base = np.nan if feature.base is None else feature.levels.index(feature.base)
            yield len(feature.levels), base, 0.0
        elif feature.knots:
            yield 2 ** bits_agreed([feature]), np.nan, 0.0
        else:
            values = subject.columns[:, first] * feature.scale + feature.centre
            agreed = [each for each in (feature.low, feature.high) if each is not None]
            low, high = (find([*agreed, find(values)]) for find in (min, max))
            step, start = _step(values), float((low - feature.centre) / feature.scale)
            yield round((high - low) / step) + 1, start, step / feature.scale
        first += width_of([feature])


def _step(values: Matrix) -> float:
    """Return what the last decimal stands for; where there is none, what float64 tells apart."""
    # zeros behind the point of the largest are no digits: beside it, all would be close to 0
    first = max(0, -floor(log10(max(float(np.abs(values).max()), _LEAST))))
    for decimals in range(first, first + _DECIMALS + 1):
        scaled = values * 10.0**decimals
        if np.abs(scaled - np.rint(scaled)).max() <= _CLOSE:
            return 10.0**-decimals
    return float(np.spacing(np.abs(values).max()))
