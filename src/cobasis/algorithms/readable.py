"""Results that people read: one table, as text of 80 columns and as HTML."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

WIDTH = 80
MOST_ROWS = 20  # so many parties are shown; of the others it is said how many they are

_NAMES = 5


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str = ""
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    n_rows: int = 0  # of all, where not all are shown
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, ...]]:
        return [self.header, *self.rows]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What stands below the rows: what is left out, and the notes."""
        left = self.n_rows - len(self.rows)
        return ((f"And {left} parties more.",) if left > 0 else ()) + self.notes

    def text(self) -> str:
        """Write for a screen of 80 columns, or of more where names would look alike."""
        others = [[row[at] for row in self.lines] for at in range(1, len(self.header))]
        widths = [max(map(len, column)) for column in others]
        room = WIDTH - sum(widths) - 2 * len(widths)
        plain = [_plain(row[0]) for row in self.lines]
        names = [_short(each, room) for each in plain]
        if len({*names}) < len({*plain}):  # cut to their room some would look alike
            names = plain
        first = max(map(len, names))
        lines = wrap(_plain(self.title), WIDTH)
        for name, *figures in zip(names, *others, strict=True):
            written = [each.rjust(width) for each, width in zip(figures, widths, strict=True)]
            lines.append("  ".join([name.ljust(first), *written]).rstrip())
        for sentence in self.sentences:
            lines += wrap(_plain(sentence), WIDTH)
        return "\n".join(lines)

    def html(self) -> str:
        """Write for a notebook; whatever a party is called, it is text."""
        notes = "".join(f"<p>{escape(_plain(each))}</p>" for each in self.sentences)
        caption = f'<caption style="text-align: left">{escape(_plain(self.title))}</caption>'
        return f"<table>{caption}{self.body()}</table>{notes}"

    def body(self) -> str:
        heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in self.header)
        rows = "".join(
            f'<tr><th scope="row">{escape(_plain(name))}</th>'
            + "".join(f"<td>{escape(each)}</td>" for each in rest)
            + "</tr>"
            for name, *rest in self.rows
        )
        return f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>"


def _plain(text: str) -> str:
    """Replace what a terminal would obey and not show."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _short(name: str, room: int = 24) -> str:
    plain = _plain(name)
    return plain if len(plain) <= room else f"{plain[: room - 3]}..."


def named(parties: Sequence[str]) -> str:
    """Name the first five of some parties, and say how many more there are."""
    more = len(parties) - _NAMES
    return ", ".join(_short(each) for each in parties[:_NAMES]) + (
        f" and {more} more" if more > 0 else ""
    )


class Readable:
    """What shows itself: ``print`` and `summary` as text, a notebook as a table."""

    @abstractmethod
    def table(self) -> Table:
        """Say what there is to show."""

    def summary(self) -> str:
        """Return what this is in a table for people, 80 columns wide where names allow it.

        Returns
        -------
        str
            A title, one line for each of the first 20 parties, and what to make of it.

        Notes
        -----
        **Who sees what.** Names and figures, no rows and no matrices. **Cost.** None.
        """
        return self.table().text()

    def __repr__(self) -> str:
        return f"<{_plain(self.table().title).removesuffix('.')}>"

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return self.table().html()
