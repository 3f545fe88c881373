"""The second exchange of sums: what the common model is worth on rows that were held back.

A party adds up counts, losses, and of classes a histogram of scores by label. The analyst reads
everybody's, and gives the scores the temperature of the smallest loss, with which they are
probabilities. Where it is agreed, each raw column is shuffled among a party's rows as well, and
how much worse they are predicted then is added up: the column's importance.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cobasis.linalg.arrays import Integers, Matrix
from cobasis.linalg.rng import KeyStream
from cobasis.models.chain import Chain
from cobasis.models.passes import Labels
from cobasis.protocol.totals import AnyLayout, cut, n_small, require

TEMPERATURES = np.logspace(-1, 2, 61)
"""By which scores are multiplied to become logits; twelve per cent apart."""

MOST_LOSS = 20.0
"""Where a row's logarithmic loss is cut off, so that its sum has a bound."""

N_BINS, FARTHEST = 200, 1.5
"""Of a class's score, from minus the farthest to it; what lies beyond is in the last bin."""

MOST_TIES = 0.05
"""Of pairs of two classes: with more of them in one bin, as of rare classes, no area is told."""

FEWEST_ROWS, FEWEST_OF_CLASS = 30, 10
"""A party with fewer held-back rows, or of a class that it holds, sends zeros."""

MOST_SHUFFLED, _SHUFFLES = 5_000, 5
"""Of a party's rows, spread evenly over its table; and how often each column is shuffled."""


@dataclass(frozen=True, kw_only=True)
class ScoreLayout(AnyLayout):
    """What the model is worth, then what each shuffled column costs."""

    FORMAT = "cobasis/scores/1"
    LATER = ("n_shuffled",)
    MOST_BITS = 30
    n_classes: int  # 0 of a regression
    between: tuple[float, float] | None = None  # from where to where a regression's numbers go
    n_shuffled: int = 0  # raw columns, where their importance is asked for

    @property
    def n_words(self) -> int:
        return self.n_words_of_scores + (self.n_shuffled and 1 + 2 * self.n_shuffled)

    @property
    def n_words_of_scores(self) -> int:
        """How many of them say what the model is worth; they are the first."""
        if not self.n_classes:
            return 5
        return 2 + self.n_classes + len(TEMPERATURES) + 2 * N_BINS * len(self.shown)

    @property
    def shown(self) -> range:
        """The classes whose scores have a histogram: of two classes one's is the other's."""
        return range(1 if self.n_classes == 2 else 0, self.n_classes)  # noqa: PLR2004 -- as said

    def takes(self, labels: Labels) -> bool:
        counts = np.unique(labels, return_counts=True)[1] if self.n_classes else labels[:0]
        return len(labels) >= FEWEST_ROWS and not n_small(counts, few=FEWEST_OF_CLASS)

    def added(self, outputs: Matrix, labels: Labels) -> Integers:
        if self.between is not None:
            off, told = _placed(outputs[:, 0], labels, *self.between)
            summed = np.column_stack([np.ones(len(off)), np.abs(off), off**2, told, told**2])
            return np.asarray(cut(summed, bits=self.bits).astype(np.int64).sum(axis=0))
        losses = list[int]()
        for each in TEMPERATURES:  # one at a time: together they would be 61 tables
            logits = each * outputs
            lost = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(labels)), labels]
            whole = cut(np.minimum(lost, MOST_LOSS) / MOST_LOSS, bits=self.bits)
            losses.append(int(whole.astype(np.int64).sum()))
        places = (outputs + FARTHEST) * (N_BINS / 2 / FARTHEST)
        bins = np.clip(places, 0, N_BINS - 1).astype(np.int64)
        histogram = np.zeros((len(self.shown), 2, N_BINS), dtype=np.int64)
        for table, place in zip(histogram, self.shown, strict=True):
            np.add.at(table, ((labels == place).astype(np.int64), bins[:, place]), 1)
        right = np.count_nonzero(np.argmax(outputs, axis=1) == labels)
        counts = np.bincount(labels, minlength=self.n_classes)
        return np.concatenate([[len(labels), right], counts, losses, histogram.ravel()])

    def shuffled(
        self,
        outputs: Callable[[Matrix], Matrix],
        rows: Matrix,
        *,
        labels: Labels,
        groups: Integers,  # of each encoded column the place of the raw one that it is of
        stream: KeyStream,
    ) -> Integers:
        """Add up by how much more is lost where a raw column is shuffled, and how it spreads."""
        before, found = self._lost(outputs(rows), labels), [np.array([len(rows)])]
        for each in range(self.n_shuffled):
            got, gave, here = np.zeros(len(rows)), np.zeros(len(rows)), groups == each
            for _ in range(_SHUFFLES):
                order, mixed = stream.permutation(len(rows)), rows.copy()
                mixed[:, here] = rows[order][:, here]
                more = (self._lost(outputs(mixed), labels) - before) / _SHUFFLES
                got += more
                gave[order] += more
            # A row counts as who got another's cell and as who gave its own: without the second
            # the error was four tenths too small where the column is all that tells.
            own = (got + gave) / 2
            whole = cut(np.column_stack([got, (own - own.mean()) ** 2]), bits=self.bits)
            found.append(whole.astype(np.int64).sum(axis=0))
        return np.concatenate(found)

    def _lost(self, outputs: Matrix, labels: Labels) -> Matrix:
        """Return of each row a 1 for a wrong class, or a quarter of the placed error's square."""
        if self.between is None:
            return np.asarray(np.argmax(outputs, axis=1) != labels, dtype=np.float64)
        return np.square(_placed(outputs[:, 0], labels, *self.between)[0])

    def small_cells(self, sums: Integers) -> int:
        first = 2 + self.n_classes + len(TEMPERATURES)
        cells = sums[first : self.n_words_of_scores] if self.n_classes else sums[:0]
        return n_small(cells)


@dataclass(frozen=True, kw_only=True)
class Worth:
    n_rows: int  # 0 where no party has enough of them
    figures: Mapping[str, float]
    temperature: float | None = None
    # of each raw column, where asked for: by how much accuracy, or R2, falls, and the error of that
    importance: tuple[tuple[float, float], ...] = ()

    def calibrated(self, model: Chain) -> Chain:
        if self.temperature is None:
            return model
        return replace(model.rescaled(self.temperature), head="probabilities")

    def told(self) -> dict[str, float]:
        return {"rows": float(self.n_rows), **self.figures}


def worth_of(words: Integers, layout: ScoreLayout) -> Worth:
    """Read a total; MessageError where no held-back rows can add up to it."""
    words, shuffled = np.split(words, [layout.n_words_of_scores])
    if layout.between is None:
        worth, unit = _of_classes(words, layout), 1.0
    else:
        worth, unit = _of_numbers(words, layout, *layout.between)
    return replace(worth, importance=tuple(_importance(shuffled, layout, worth=worth, unit=unit)))


def _of_classes(words: Integers, layout: ScoreLayout) -> Worth:
    n_classes, unit = layout.n_classes, 1 << layout.bits
    n_rows, right = map(int, words[:2])
    counts, losses, cells = np.split(words[2:], [n_classes, n_classes + len(TEMPERATURES)])
    histogram = cells.reshape(len(layout.shown), 2, N_BINS)
    good = right <= n_rows <= layout.most_rows and words.min() >= 0
    good = good and counts.sum() == n_rows and losses.max() <= n_rows * unit
    good = good and np.array_equal(histogram.sum(axis=2)[:, 1], counts[layout.shown])
    require(good and (histogram.sum(axis=(1, 2)) == n_rows).all())
    if not n_rows:
        return Worth(n_rows=0, figures={})
    from scipy.stats import binomtest  # noqa: PLC0415 -- as above

    best = int(np.argmin(losses))
    share = binomtest(right, n_rows).proportion_ci(method="wilson")
    figures = {
        "accuracy": right / n_rows,
        "accuracy_low": float(share.low),
        "accuracy_high": float(share.high),
        "log_loss": float(losses[best]) / unit * MOST_LOSS / n_rows,
    }
    told = [_area(*each) for each in histogram if each.sum(axis=1).all()]
    areas = [area for area, ties in told if ties <= MOST_TIES]
    figures |= {"auc": float(np.mean(areas))} if areas and len(areas) == len(told) else {}
    return Worth(n_rows=n_rows, figures=figures, temperature=float(TEMPERATURES[best]))


def _area(others: Integers, own: Integers) -> tuple[float, float]:
    """Return how often a class's row has a larger score than another's, and how often a tie."""
    below, pairs = np.cumsum(others) - others / 2, own.sum() * others.sum()
    return float(own @ below / pairs), float(own @ others / pairs)


def _importance(
    words: Integers, layout: ScoreLayout, *, worth: Worth, unit: float
) -> Iterator[tuple[float, float]]:
    """Yield by how much a figure falls where each column is shuffled, and the standard error."""
    if not layout.n_shuffled:
        return
    n_rows, scale = int(words[0]), 1 << layout.bits
    sums, squares = words[1:].reshape(-1, 2).T / scale
    good = 0 <= n_rows <= worth.n_rows and bool((squares >= 0).all())
    require(good and (np.maximum(np.abs(sums), squares) <= n_rows).all())
    if n_rows:
        falls, errors = unit * sums / n_rows, 2 * unit * np.sqrt(squares) / n_rows
        yield from zip(falls.tolist(), errors.tolist(), strict=True)


def _placed(predicted: Matrix, truth: Labels, low: float, high: float) -> tuple[Matrix, Matrix]:
    """Return half the error, and the target, on the agreed range from -1 to 1."""
    placed = (np.column_stack([predicted, truth]) - low) / (high - low) * 2 - 1
    placed = np.clip(placed, -1.0, 1.0)  # predictions outside the range are at its end
    return (placed[:, 0] - placed[:, 1]) / 2, placed[:, 1]


def _of_numbers(
    words: Integers, layout: ScoreLayout, low: float, high: float
) -> tuple[Worth, float]:
    """Return the worth, and by how much R2 falls where the mean of lost squares grows by one."""
    unit, half = 1 << layout.bits, (high - low) / 2
    n_rows, rest = divmod(int(words[0]), unit)
    off, squares, sums, powers = (words[1:] / unit).tolist()
    good = not rest and 0 <= n_rows <= layout.most_rows and min(off, squares, powers) >= 0
    require(good and max(off, squares, abs(sums), powers) <= n_rows)
    if not n_rows:
        return Worth(n_rows=0, figures={}), 0.0
    spread = powers - sums**2 / n_rows
    figures = {"mae": 2 * half * off / n_rows}
    figures |= {"r2": 1 - 4 * squares / spread} if spread > 0 else {}
    return Worth(n_rows=n_rows, figures=figures), 4 * n_rows / spread if spread > 0 else 0.0
