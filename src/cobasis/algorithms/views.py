"""A mapping that reads an entry when it is asked for, and never to tell whether it is there."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, TypeVar

Value = TypeVar("Value")


class View(Mapping[str, Value], Generic[Value]):
    """A read-only mapping over known names, of which a function reads what is not held."""

    def __init__(
        self,
        names: Collection[str],
        *,
        read: Callable[[str], Value],
        held: Mapping[str, Value] | None = None,
    ) -> None:
        self._names, self._read, self._held = names, read, held or {}

    def __getitem__(self, name: str) -> Value:
        """Read one entry."""
        if name not in self._names:
            raise KeyError(name)
        return self._held[name] if name in self._held else self._read(name)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an entry, without reading it."""
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over names; nothing is read."""
        return iter(self._names)

    def __len__(self) -> int:
        """Count entries; nothing is read."""
        return len(self._names)

    def having(self, name: str, value: Value) -> "View[Value]":
        """Return a view with one entry more, or with another value of one."""
        names = {**dict.fromkeys(self._names), name: None}
        return View(names, read=self._read, held={**self._held, name: value})

    def without(self, name: str) -> "View[Value]":
        """Return a view with one entry less."""
        names = {each: None for each in self._names if each != name}
        return View(names, read=self._read, held=self._held)
