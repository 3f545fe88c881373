"""One thing that was checked, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass

from cobasis.errors import CobasisError


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was checked.

    Attributes
    ----------
    what : {"agreement", "transcript", "receipt", "upload", "payload", "return", "removal", "fit"}
        Its kind.
    name : str
        Whose, or which file.
    code, reason : str
        Why it failed; empty where it holds.
    """

    what: str
    name: str
    code: str = ""
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is as it should be."""
        return not self.code


def checked(what: str, name: str, *, by: Callable[[], object]) -> Finding:
    """Check one thing; an error of ours is what came of it."""
    try:
        by()
    except CobasisError as error:
        return Finding(what=what, name=name, code=error.code, reason=str(error.args[0]))
    return Finding(what=what, name=name)
