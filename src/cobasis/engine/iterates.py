"""A target that takes many passes over all images, kept on the way to it."""

import json
import time
from dataclasses import fields
from pathlib import Path

from cobasis.algorithms.base import Aligner, Target
from cobasis.algorithms.gopp import GOPP, Iterate
from cobasis.algorithms.images import Images
from cobasis.disk.tensors import read_tables, write_tables
from cobasis.errors import CobasisError

NAME = "iterate.safetensors"

SECONDS = 10.0
"""How long to iterate before it is written down: what a kill can lose, and one pass more."""


def made_target(
    aligner: Aligner, images: Images, *, folder: Path, workers: int | None = None
) -> Target:
    """Make a target; one that iterates goes on where an interrupted run of this folder was."""
    if not isinstance(aligner, GOPP):
        return aligner.target(images, workers=workers)
    file, written = folder / NAME, time.monotonic()

    def keep(reached: Iterate) -> None:
        nonlocal written
        if time.monotonic() - written >= SECONDS:
            _write(file, reached)
            written = time.monotonic()

    return aligner.target(images, workers=workers, since=_read(file), keep=keep)


def _write(file: Path, reached: Iterate) -> None:
    """Replace the file, whole or not at all."""
    state = {each.name: getattr(reached, each.name) for each in fields(reached)}
    tables = {name: state.pop(name) for name in ("mean", "ahead")}
    write_tables(file, tables, metadata={"state": json.dumps(state)})


def _read(file: Path) -> Iterate | None:
    """Return what was kept; None where there is nothing that can be read."""
    try:
        tables, header = read_tables(file)
        state = json.loads(header.metadata["state"])
        return Iterate(mean=tables["mean"], ahead=tables["ahead"], **state)
    except (CobasisError, KeyError, TypeError, ValueError):
        return None
