"""Named points between two steps on the disk, where fault tests stop the work; else nothing."""

from collections.abc import Callable

on_point: Callable[[str], None] | None = None
"""What is called with a point's name; None, always, but in tests."""


def point(name: str) -> None:
    """Pass a point.

    Parameters
    ----------
    name : str
        The command and what has just been done: ``prepare.named``.

    Notes
    -----
    A test may raise here or end the process: what was written before has to be enough for a plain
    retry, and nothing half-written may be visible.

    **Who sees what.** Nothing is written.

    **Cost.** None.
    """
    if on_point is not None:
        on_point(name)
