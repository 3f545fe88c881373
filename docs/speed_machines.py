"""On what the page on speed was measured; `speed_figures.py` puts it there."""

# ruff: noqa: INP001 -- run by speed_figures.py, not a package

from collections.abc import Mapping
from typing import Any

Result = Mapping[str, Any]


def machines(result: Result) -> str:
    """Return on what and from which commit each section was measured."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, section in result["sections"].items():
        commits = found.setdefault(_place(section), {})
        commits.setdefault(section.get("commit", "unknown")[:10], []).append(_named(name, section))
    lines = [
        f"- {place}: " + "; ".join(f"`{key}` {', '.join(names)}" for key, names in commits.items())
        for place, commits in found.items()
    ]
    return (
        "Sections had one BLAS thread, and as many threads of ours, where no other number stands "
        f"behind their name or in a line of theirs. Seed {result['seed']}, "
        f"{result['seconds'] / 60:.0f} minutes in all. Where, and from which commit:\n\n"
        + "\n".join(lines)
    )


def _named(name: str, section: Result) -> str:
    """Return a section's name, and how many threads it had if more than one."""
    threads = section.get("machine", {}).get("blas_threads", 1)
    return name if threads == 1 else f"{name} ({threads} threads)"


def _place(section: Result) -> str:
    """Return the machine and the versions that measured a section."""
    if "machine" not in section:
        return "a machine that was not recorded"
    here = section["machine"]
    return (
        f"{here['processor']}, {here['cores']} cores, {here['memory_gib']} GiB, "
        f"{', '.join(here['blas'])}, "
        + ", ".join(f"{name} {version}" for name, version in section["versions"].items())
    )
