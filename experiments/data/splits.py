"""TDC's scaffold split: nobody is tested on a ring system that a model was trained on."""

from collections.abc import Sequence
from random import Random

import numpy as np
import numpy.typing as npt

SEED = 42
TRAIN, VALID, TEST = "train", "valid", "test"
SHARES = {TRAIN: 0.7, VALID: 0.1}  # PyTDC's defaults


def scaffold_parts(smiles: Sequence[str]) -> npt.NDArray[np.str_]:
    """Say which part each molecule is in, as PyTDC's ``create_scaffold_split`` deals them."""
    from rdkit.Chem.Scaffolds import MurckoScaffold  # noqa: PLC0415 -- an extra

    groups: dict[str, list[int]] = {}
    for row, text in enumerate(smiles):
        scaffold = MurckoScaffold.MurckoScaffoldSmiles(smiles=text)  # type: ignore[no-untyped-call]
        groups.setdefault(scaffold, []).append(row)
    room = {part: int(len(smiles) * share) for part, share in SHARES.items()}
    least = min(room[VALID], len(smiles) - sum(room.values())) / 2
    large = [rows for rows in groups.values() if len(rows) > least]
    small = [rows for rows in groups.values() if len(rows) <= least]
    order = Random(SEED)  # noqa: S311 -- the split's own, no secret
    order.shuffle(large)
    order.shuffle(small)
    parts = np.full(len(smiles), TEST, dtype="<U5")
    for rows in [*large, *small]:
        part = next((each for each, left in room.items() if len(rows) <= left), TEST)
        parts[rows] = part
        if part in room:
            room[part] -= len(rows)
    return parts
