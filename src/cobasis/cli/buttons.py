"""What pages show and what their buttons do, apart from the extra that shows them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

Form = Mapping[str, list[str]]


class Ask(NamedTuple):
    """A field of a form, which becomes an option, or without a dash a word."""

    option: str
    text: str
    kind: str = "text"  # check, text, or with values: choice, several, and typed, which is no field
    values: tuple[str, ...] = ()
    value: str = ""

    def words(self, form: Form) -> list[str]:
        """Return what the form says, as the command line has it."""
        given = [x for x in form.get(self.option, ()) if not self.values or x in self.values]
        if self.kind == "check":
            return [self.option] * bool(given)
        return [f"{self.option}={x}" if self.option[0] == "-" else x for x in given]


class Action(NamedTuple):
    """A command as a button."""

    command: Callable[..., None]
    words: tuple[str, ...]  # of the command, before those that are asked for
    asks: tuple[Ask, ...] = ()
    typed: tuple[str, ...] = ()  # names, of which one has to be typed; none: nothing is changed
    options: tuple[str, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()  # what is agreed to by it, under titles

    def line(self, form: Form) -> list[str]:
        """Return the words of the command; what stands behind -- is no option."""
        options = [x for ask in self.asks if ask.option[0] == "-" for x in ask.words(form)]
        rest = [x for ask in self.asks if ask.option[0] != "-" for x in ask.words(form)]
        return [self.command.__name__, *self.options, *options, "--", *self.words, *rest]


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What one page is about, and what can be done."""

    title: str
    line: str  # all of it in one
    stands: str  # another text where anything has changed
    folder: Path  # where commands run
    actions: Mapping[str, Action]
    pages: Mapping[str, Callable[..., str]]  # by what stands behind the topic in the address
