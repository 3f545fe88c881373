"""Mappings that read an entry when it is asked for, and never to tell whether it is there."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, TypeVar

Value = TypeVar("Value")


class View(Mapping[str, Value], Generic[Value]):
    """A read-only mapping over known names; its subclasses say how one entry is read."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    @abstractmethod
    def __getitem__(self, name: str) -> Value:
        """Read one entry."""

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an entry, without reading it."""
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over names; nothing is read."""
        return iter(self._names)

    def __len__(self) -> int:
        """Count entries; nothing is read."""
        return len(self._names)


class Lazy(View[Value]):
    """A mapping whose entries a function reads."""

    def __init__(self, names: Collection[str], *, read: Callable[[str], Value]) -> None:
        super().__init__(names)
        self._read = read

    def __getitem__(self, name: str) -> Value:
        """Read one entry."""
        return self._read(name)


class Overlay(Mapping[str, Value], Generic[Value]):
    """A read-only view of a mapping, with some entries added, and some taken away."""

    def __init__(
        self, below: Mapping[str, Value], changes: Mapping[str, Value | None] | None = None
    ) -> None:
        self._below = below
        self._changes = dict(changes or {})

    def changed(self, name: str, value: Value | None) -> "Overlay[Value]":
        """Return a view with one entry added, or taken away where `value` is None."""
        return Overlay(self._below, {**self._changes, name: value})

    def __getitem__(self, name: str) -> Value:
        """Read one entry."""
        if name not in self._changes:
            return self._below[name]
        value = self._changes[name]
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an entry, without reading it."""
        if name in self._changes:
            return self._changes[str(name)] is not None
        return name in self._below

    def __iter__(self) -> Iterator[str]:
        """Iterate over names: those below in their order, then those added."""
        for name in self._below:
            if self._changes.get(name, self) is not None:
                yield name
        for name, value in self._changes.items():
            if value is not None and name not in self._below:
                yield name

    def __len__(self) -> int:
        """Count entries; nothing is read, and those below are not visited."""
        changes = self._changes.items()
        added = sum((value is not None) - (name in self._below) for name, value in changes)
        return len(self._below) + added
