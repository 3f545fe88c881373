"""Which files of the evaluation data are not there, and where each is to be had."""

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments import data
from experiments.data.sources import Source


def told(missing: Mapping[str, list[str]]) -> list[str]:
    """Return what to say about missing files, each once.

    A cell stops at the first file that it misses; whoever gets that one needs its neighbours too,
    so that all that are absent from the same folder are named.

    Parameters
    ----------
    missing : mapping of str to list of str
        What cells said, and the studies that need it.
    """
    where = os.environ.get("COBASIS_DATA")
    known = {source.path: source for source in sources()}
    folders = {path.split("/")[0] for path in known for said in missing if said.startswith(path)}
    absent = [
        source
        for path, source in known.items()
        if path.split("/")[0] in folders and not (where and (Path(where) / path).is_file())
    ]
    rest = [said for said in missing if not said.startswith(tuple(known))]
    lines = [f"{said} Needed by {', '.join(missing[said])}." for said in rest]
    if absent:
        count = "1 file" if len(absent) == 1 else f"{len(absent)} files"
        needed_by = dict.fromkeys(name for said in missing for name in missing[said])
        lines.append(
            f"The folder that COBASIS_DATA names ({where or 'not set'}) lacks {count}, "
            f"needed by {', '.join(needed_by)}. To be put there, and where from:"
        )
        lines += [f"  {source.path}: {source.origin}" for source in absent]
    return lines


def sources() -> Iterator[Source]:
    """Yield every file that a loader knows."""
    for module in pkgutil.iter_modules(data.__path__):
        for value in vars(importlib.import_module(f"{data.__name__}.{module.name}")).values():
            yield from _within(value)


def _within(value: object) -> Iterator[Source]:
    if isinstance(value, Source):
        yield value
    elif isinstance(value, Mapping):
        yield from _within(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _within(each)
