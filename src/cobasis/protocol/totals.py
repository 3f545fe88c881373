"""Sums over everybody's rows: what is added up, in which order, and as which integers.

For each agreed map a party makes one table Z: a column of ones, the mapped features, the targets,
every number from -1 to 1. What is summed is Z'Z, which holds the count, all sums, and all second
moments. Numbers are cut to whole multiples of 2**-bits first, so every sum is an exact integer, the
same in any order; integers of 64 bits are added modulo 2**64, under masks as in the open.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf

from cobasis.errors import MessageError, OptionError
from cobasis.features.maps import Turn
from cobasis.linalg.arrays import Integers, Matrix
from cobasis.models.passes import Block, chunks
from cobasis.strict_json import canonical_json

Words = npt.NDArray[np.uint64]

FORMAT = "cobasis/sums/1"
SIGNED_BITS, _EXACT_BITS = 62, 53
FEW = 5
"""People of a cell of a table who stand out; registers commonly forbid to publish such cells."""

ROUNDING = 1e-9
"""How far beyond 1 a number may be, and a smallest eigenvalue below zero relative to the trace."""


@dataclass(frozen=True, kw_only=True)
class AnyLayout:
    """Where each sum of a message stands."""

    FORMAT: ClassVar[str]
    LATER: ClassVar[tuple[str, ...]] = ()  # fields that are not told of while they are empty
    ELSEWHERE: ClassVar[tuple[str, ...]] = ()  # fields that the agreement's digest tells of
    MOST_BITS: ClassVar[int] = 40
    most_rows: int  # of all parties together

    @property
    def bits(self) -> int:
        """By which power of two numbers are multiplied: no total leaves 62 bits."""
        return min(self.MOST_BITS, self.free_bits)

    @property
    def free_bits(self) -> int:
        """By which power of two a number below 1 may be multiplied at most."""
        return SIGNED_BITS - (self.most_rows - 1).bit_length()

    def digest(self) -> bytes:
        """Return what all parties' masks are bound to."""
        found = {name: x for name, x in asdict(self).items() if name not in self.ELSEWHERE}
        told = {name: each for name, each in found.items() if name not in self.LATER or each}
        return hashlib.sha256(canonical_json({"format": self.FORMAT, **told})).digest()


@dataclass(frozen=True, kw_only=True)
class Layout(AnyLayout):
    """Map by map, the upper triangle of Z'Z row by row."""

    FORMAT = FORMAT
    LATER = ("bare",)
    MOST_BITS = 20
    n_features: tuple[int, ...]  # of each map, in their order
    n_targets: int
    one_hot: bool  # whether targets are a 1 for the row's class and 0 for the others
    # with noise: products of features, and of these with targets, alone; what counts people is not
    # summed, since noise on it would have to be larger
    bare: bool = False

    @property
    def bits(self) -> int:
        """Of a factor: products of two are summed."""
        return min(self.MOST_BITS, self.free_bits // 2)

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple((not self.bare) + each + self.n_targets for each in self.n_features)

    @property
    def n_words(self) -> int:
        left_out = self.n_targets * (self.n_targets + 1) // 2 if self.bare and self.one_hot else 0
        return sum(width * (width + 1) // 2 - left_out for width in self.widths)

    def places(self, width: int) -> tuple[Integers, Integers]:
        """Return rows and columns of the cells of one map's Z'Z that are summed, in their order."""
        rows, columns = np.triu_indices(width)
        if self.bare and self.one_hot:
            kept = rows < width - self.n_targets
            rows, columns = rows[kept], columns[kept]
        return rows, columns

    def added(self, rows: Matrix, targets: Matrix, *, turns: Iterable[Turn]) -> Integers:
        whole, found = Block(rows, targets), list[Integers]()
        for turn, width in zip(turns, self.widths, strict=True):
            tables = (
                ones_and(turn.apply(some), told, bits=self.bits, bare=self.bare)
                for some, told in chunks(whole, width=width)
            )
            found.append(gram(tables, width=width, bits=self.bits)[self.places(width)])
        return np.concatenate(found)

    def common(self, words: Integers, n_waves: Iterable[int]) -> tuple[float, ...]:
        """Return of each map what two rows have in common: their waves' product, on average.

        1 of a map without waves, and where nothing is counted.
        """
        found, at = list[float](), 0
        for width, half in zip(self.widths, n_waves, strict=True):
            row = words[at : at + 1 + 2 * half]  # of the ones: the count, then the sums of waves
            found.append(float(np.sum((row[1:] / row[0]) ** 2)) if half and not self.bare else 1.0)
            at += width * (width + 1) // 2
        return tuple(found)

    def tables(self, words: Integers) -> Iterator[Integers]:
        at = 0
        for width in self.widths:
            upper = self.places(width)
            table = np.zeros((width, width), dtype=np.int64)
            table[upper] = words[at : at + len(upper[0])]
            at += len(upper[0])
            yield table + np.triu(table, 1).T


def cut(numbers: Matrix, *, bits: int, out: Matrix | None = None) -> Matrix:
    """Cut numbers towards zero to multiples of 2**-bits, and return the multiples."""
    # Towards zero and not to the nearest: no row becomes longer, so a bound on its length stays.
    multiples = np.multiply(numbers, 2.0**bits, out=out)
    return np.trunc(multiples, out=multiples)


def gram(blocks: Iterable[Matrix], *, width: int, bits: int) -> Integers:
    # float64 adds integers exactly below 2**53, in whatever order BLAS adds them, and its products
    # are much faster than those of integers. So a product takes no more rows than stay below it.
    total, step = np.zeros((width, width), dtype=np.int64), 2 ** (_EXACT_BITS - 2 * bits)
    some, counted = np.zeros((width, width)), 0
    for block in blocks:
        for start in range(0, len(block), step):
            rows = block[start : start + step]
            if counted + len(rows) > step:
                total += some.astype(np.int64)
                some[:], counted = 0.0, 0
            some += rows.T @ rows
            counted += len(rows)
    total += some.astype(np.int64)
    return total


@dataclass(frozen=True, kw_only=True)
class Total:
    """What everybody's sums add up to, if it can be a total of rows at all."""

    n_rows: int  # 0 where there is noise, under which nothing is counted
    grams: tuple[Matrix, ...]  # Z'Z of each map, in Z's own units
    common: tuple[float, ...] = (1.0,)  # what two rows share under each map; 1 where untold


def checked(layout: Layout, words: Integers, *, n_waves: Sequence[int]) -> Total:
    """Return the total, or refuse what no rows can add up to; of each map the waves are told.

    A map of cosines and sines has as many of each, and the squares of a pair add up to the same
    number for every row. A mask that was left out, or put on other words, makes all numbers
    random, and these equations fail; a party that lies in its own sums is not found.
    """
    tables, unit = [*layout.tables(words)], 1 << 2 * layout.bits
    n_rows, rest = divmod(int(tables[0][0, 0]), unit)
    good = not rest and 0 < n_rows <= layout.most_rows
    targets = [each[-layout.n_targets :, [0, *range(-layout.n_targets, 0)]] for each in tables]
    good &= all(np.array_equal(each, targets[0]) for each in targets)
    good &= all(each[0, 0] == n_rows * unit for each in tables)
    if layout.one_hot:
        counts, squares = targets[0][:, 0], targets[0][:, 1:]
        good &= np.array_equal(squares, np.diag(counts)) and bool((counts >= 0).all())
        good &= int(counts.sum()) == n_rows * unit
    for table, half in zip(tables, n_waves, strict=True):
        sizes = np.diag(table).astype(np.float64) / unit
        good &= bool((sizes >= 0).all() and (sizes <= n_rows).all())
        if good and half:
            lengths = sizes[1 : 1 + half] + sizes[1 + half : 1 + 2 * half]
            lost = 4 * 2.0**-layout.bits / np.sqrt(half)  # of cutting two numbers below 1/sqrt(D/2)
            good &= bool((lengths <= n_rows / half * (1 + ROUNDING)).all())
            good &= bool((lengths >= n_rows * (1 / half - lost)).all())
        if good:  # no negative eigenvalue, to rounding: there is a root
            whole = table.astype(np.float64)
            whole[np.diag_indices(len(whole))] += ROUNDING * np.trace(whole)
            good = not dpotrf(whole)[1]
    require(good)
    grams, common = tuple(each / unit for each in tables), layout.common(words, n_waves)
    return Total(n_rows=n_rows, grams=grams, common=common)


def within(layout: Layout, words: Integers, *, noise: float) -> Total:
    """Return a total with noise, or refuse one that rows and noise cannot add up to.

    Masks that do not cancel leave numbers of 64 random bits; nothing else can be seen under noise.
    """
    grams = tuple(each / 4**layout.bits for each in layout.tables(words))
    require(all(np.abs(each).max() <= layout.most_rows + noise for each in grams))
    return Total(n_rows=0, grams=grams)


def n_small(counts: Integers, *, few: int = FEW) -> int:
    return int(np.count_nonzero((counts > 0) & (counts < few)))


def require(possible: object) -> None:
    """Refuse a total that no rows can add up to."""
    if not possible:
        raise MessageError(
            "these parties' sums add up to what no rows have: a file is of another round, attempt "
            "or roster, or holds wrong sums. Nobody can say whose it is. Ask all parties whether "
            "they signed the same roster, and begin anew."
        )


def ones_and(features: Matrix, targets: Matrix, *, bits: int, bare: bool = False) -> Matrix:
    """Return Z as whole multiples; numbers beyond 1 would break the bound on totals."""
    table = np.hstack([*([] if bare else [np.ones((len(features), 1))]), features, targets])
    return cut(bounded(table), bits=bits, out=table)


def bounded(table: Matrix) -> Matrix:
    """Return a table whose numbers are from -1 to 1 but for rounding; others have no bound."""
    largest = max(table.max(initial=0.0), -table.min(initial=0.0))
    if not largest <= 1 + ROUNDING:  # NaN is refused as well
        raise OptionError(
            "some mapped features or targets are no numbers from -1 to 1, so their sums have no "
            "bound. Agree on a low and high of each column that hold all values."
        )
    if largest > 1:  # the end of a range is 1 but for rounding
        np.clip(table, -1.0, 1.0, out=table)
    return table
