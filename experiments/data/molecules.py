"""Six molecule tasks as Morgan fingerprints, dealt by label, and PubChem rows for anchors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
import numpy.typing as npt

from experiments.data.sources import Source, source, table
from experiments.harness.models import PR_AUC, ROC_AUC, Labels, Metric, Table
from experiments.harness.systems import Dealt, generator

Bits = npt.NDArray[np.uint8]

RADIUS, N_BITS = 2, 2048
SEED = 42
TRAIN, VALID, TEST = "train", "valid", "test"
METRICS: Mapping[str, Metric] = {"roc": ROC_AUC, "pr": PR_AUC}
SHARES = {TRAIN: 0.7, VALID: 0.1}  # PyTDC's defaults


@dataclass(frozen=True, kw_only=True)
class Task:
    source: Source
    smiles: str = "Drug"
    label: str = "Y"
    separator: str = "\t"  # between columns


TASKS: Mapping[str, Task] = {
    **{
        name: Task(source=source(f"tdc/{name}.tab.gz"))
        for name in ("ames", "cyp1a2_veith", "cyp2d6_veith", "cyp3a4_veith")
    },
    **{
        name: Task(
            source=source(f"tdc/{file}_moleculenet.csv.gz"),
            smiles="smiles",
            label=label,
            separator=",",
        )
        for name, file, label in (
            ("hiv", "hiv", "HIV_active"),
            ("tox21_sr-are", "tox21", "SR-ARE"),
        )
    },
}
SPLIT = source("tdc/random_split_seed42.csv.gz")
PUBCHEM = source("pubchem_random/pubchem_random25k.csv.gz")


@dataclass(frozen=True, kw_only=True)
class Molecules:
    bits: Bits  # fingerprints, zeros and ones
    labels: Labels  # zeros and ones
    smiles: tuple[str, ...]  # what they were made from
    part: npt.NDArray[np.str_]  # of the given random split: "train", "valid" or "test"
    n_dropped: int  # molecules that RDKit cannot parse


@cache
def molecules(task: str) -> Molecules:
    """Read one task; of the largest fingerprints take seven seconds."""
    given = TASKS[task]
    lines = [line for line in table(given.source, given.separator) if line[given.label]]
    labels = np.array([int(float(line[given.label])) for line in lines])
    split = [line for line in table(SPLIT) if line["dataset"] == task]
    if [int(line["y"]) for line in split] != labels.tolist():
        msg = f"the rows of {SPLIT.path} are not those of {given.source.path}: labels differ."
        raise ValueError(msg)
    bits, parsed = fingerprints([line[given.smiles] for line in lines])
    return Molecules(
        bits=bits,
        labels=labels[parsed],
        smiles=tuple(line[given.smiles] for line, kept in zip(lines, parsed, strict=True) if kept),
        part=np.array([line["split"] for line in split])[parsed],
        n_dropped=int(np.count_nonzero(~parsed)),
    )


@cache  # it takes seconds
def scaffold_parts(smiles: tuple[str, ...]) -> npt.NDArray[np.str_]:
    """Deal as PyTDC's ``create_scaffold_split``: nobody is tested on a ring system trained on."""
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


@cache
def _public_bits() -> Bits:
    lines = table(PUBCHEM)
    bits, parsed = fingerprints([line["smiles"] for line in lines])
    found: Bits = bits[np.array([line["in_task"] == "0" for line in lines])[parsed]]
    return found


def public_rows(count: int, *, rng: np.random.Generator, smaller: bool = False) -> Table:
    """Return fingerprints of random PubChem compounds that are in no task."""
    bits = _public_bits()
    if smaller:
        bits = bits[np.argsort(bits.sum(axis=1), kind="stable")[: len(bits) // 2]]
    rows: Table = bits[rng.permutation(len(bits))[:count]].astype(np.float64)
    return rows


def deal_molecules(
    task: str, *, repeat: int, by_scaffold: bool = False, validation: bool = True
) -> Dealt:
    """Deal training and validation part to four parties of one label; test on the test part."""
    found = molecules(task)
    part = scaffold_parts(found.smiles) if by_scaffold else found.part
    held, test = part != TEST if validation else part == TRAIN, part == TEST
    return Dealt(
        parties=by_label(found.bits[held], found.labels[held], rng=generator(repeat)),
        test_rows=found.bits[test].astype(np.float64),
        test_labels=found.labels[test],
        repeat=repeat,
        metrics=METRICS,
    )


def by_label(
    bits: Bits, labels: Labels, *, rng: np.random.Generator
) -> dict[str, tuple[Table, Labels]]:
    """Give two parties all rows of label 0 and two all of label 1, as equal as may be."""
    parties: dict[str, tuple[Table, Labels]] = {}
    for label in (0, 1):
        held = rng.permutation(np.flatnonzero(labels == label))
        for half, chosen in enumerate(np.array_split(held, 2)):
            rows = bits[chosen].astype(np.float64)
            parties[f"label-{label}-{half}"] = (rows, labels[chosen])
    return parties


def fingerprints(smiles: Sequence[str]) -> tuple[Bits, npt.NDArray[np.bool_]]:
    """Return Morgan fingerprints of the molecules that RDKit parses, and which of all those are."""
    from rdkit import Chem, rdBase  # noqa: PLC0415 -- an extra, for molecules only
    from rdkit.Chem import rdFingerprintGenerator  # noqa: PLC0415 -- same

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=N_BITS)
    found, parsed = [], []
    with rdBase.BlockLogs():
        for text in smiles:
            molecule = Chem.MolFromSmiles(text)
            parsed.append(molecule is not None)
            if molecule is not None:
                found.append(generator.GetFingerprintAsNumPy(molecule))
    return np.array(found, dtype=np.uint8), np.array(parsed)
