"""Named points between two steps on the disk, where fault tests stop the work; else nothing."""

from collections.abc import Callable

on_point: Callable[[str], None] | None = None
"""What is called with a point's name; None, always, but in tests."""


def point(name: str) -> None:
    """Pass a point.

    A test may raise here or end the process: what was written before has to be enough for a plain
    retry, and nothing half-written may be visible.
    """
    if on_point is not None:
        on_point(name)
