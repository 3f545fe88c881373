"""Whose results a folder holds, so that nobody's run goes on with another's."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cobasis.disk.whole import write_whole
from cobasis.errors import AnotherRunError, DiskError

NAME = "run.json"
_LISTED = 5


def claim(folder: Path, *, method: object, states: Mapping[str, str]) -> None:
    """Write down whose run a folder holds; refuse it when it holds another's."""
    ours = {
        "format": "cobasis/alignment/1",
        "method": describe(method),
        "parties": [[party, state] for party, state in states.items()],
    }
    path = folder / NAME
    if is_claimed(folder):
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            difference = _difference(theirs, ours)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DiskError(
                f"'{path}' is damaged or cannot be read. Delete the folder, and start again."
            ) from error
        if difference:
            raise AnotherRunError(
                f"'{folder}' holds the results of another run: {difference}. Going on would mix "
                "the two. Choose another folder, or delete this one to start anew."
            )
        return
    text = json.dumps(ours, ensure_ascii=False, indent=0)
    write_whole(path, text.encode())


def is_claimed(folder: Path) -> bool:
    """Tell whether a folder says whose run it holds."""
    return (folder / NAME).exists()


def describe(method: object) -> str:
    """Return a dataclass's name and settings; of an array, its shape and what it hashes to."""
    if not is_dataclass(method):
        return repr(method)
    settings = [f"{each.name}={_setting(getattr(method, each.name))}" for each in fields(method)]
    return f"{type(method).__name__}({', '.join(settings)})"


def _setting(value: object) -> str:
    """Return a setting in words; an array's own words leave out most of it."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return f"array{value.shape} {content[:16]}"


def _difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Say in words what two runs do not share; nothing when they are one."""
    if theirs == ours:
        return ""
    if theirs["format"] != ours["format"]:
        return f"its format is {theirs['format']!r}, not {ours['format']!r}"
    if theirs["method"] != ours["method"]:
        return f"it was made by {theirs['method']}, not {ours['method']}"
    before, now = dict(theirs["parties"]), dict(ours["parties"])
    differences = {
        "are new": [party for party in now if party not in before],
        "are gone": [party for party in before if party not in now],
        "sent another file since": [p for p in now if p in before and now[p] != before[p]],
    }
    found = [f"{_named(some)} {what}" for what, some in differences.items() if some]
    return "; ".join(found) or "its parties came in another order"


def _named(parties: list[str]) -> str:
    """Return "party 'north', 'south' and 7 more"."""
    more = len(parties) - _LISTED
    names = ", ".join(f"'{party}'" for party in parties[:_LISTED])
    return f"party {names}" + (f" and {more:,} more" if more > 0 else "")
