"""JSON that two readers cannot read in two ways, and that two writers write in one."""

import json
from typing import Any, NoReturn


def json_object(text: bytes) -> dict[str, Any]:
    """Parse an object in which every name stands once; ValueError says what the text is not."""
    try:
        found: object = json.loads(text.decode(), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ValueError("no JSON object with every name once") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 -- the text is wrong, not its type
    return found


def canonical_json(value: object, *, ascii_only: bool = True) -> bytes:
    """Write sorted names without spaces, as it is signed and hashed; ValueError for NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only, allow_nan=False
    ).encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse(word: str) -> NoReturn:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(word)
