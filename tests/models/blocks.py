"""Rows in blocks of any size, in memory."""

from dataclasses import dataclass

import numpy as np

from cobasis.models.passes import Block, Threads, WholeRows, axes_of, look


@dataclass(frozen=True)
class Cut:
    """Rows cut at some places; a block may have none."""

    rows: np.ndarray
    labels: np.ndarray
    cuts: tuple

    @property
    def n_rows(self):
        return len(self.rows)

    @property
    def n_columns(self):
        return self.rows.shape[1]

    @property
    def n_blocks(self):
        return len(self.cuts) + 1

    def block(self, index):
        here = slice([0, *self.cuts][index], [*self.cuts, self.n_rows][index])
        return Block(self.rows[here], self.labels[here])

    def sample(self, n_rows):
        return WholeRows(self.rows, self.labels).sample(n_rows)

    def only(self, blocks):  # noqa: ARG002 -- everything is here
        return self


class Counted(Threads):
    """Passes that are counted by what they do."""

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "steps", [])

    def __call__(self, work, rows, *, step):
        self.steps.append(step)
        return super().__call__(work, rows, step=step)


def principal_axes(rows):
    """The axes of one table."""
    source = WholeRows(rows, np.zeros(len(rows)))
    seen = look(source, Threads(), task="regression", n_classes=None)
    return axes_of(source, seen, over=Threads())
