"""Six molecule tasks as Morgan fingerprints, dealt by label, and PubChem rows for anchors."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from experiments.data.sources import Source, cached, read_verified
from experiments.data.splits import TEST, TRAIN, scaffold_parts
from experiments.harness.models import Labels, Table
from experiments.harness.systems import Dealt

Bits = npt.NDArray[np.uint8]

RADIUS, N_BITS = 2, 2048

PACKED = (
    "packed by Python's gzip.GzipFile(filename='', mode='wb', fileobj=file, compresslevel=9, "
    "mtime=0)"
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """Where one task's molecules and labels are."""

    source: Source
    smiles: str = "Drug"
    label: str = "Y"
    delimiter: str = "\t"  # between columns


def _tdc(name: str, digest: str) -> Task:
    origin = f"{name}.tab of Therapeutics Data Commons (columns Drug_ID, Drug, Y), {PACKED}"
    return Task(source=Source(path=f"tdc/{name}.tab.gz", sha256=digest, origin=origin))


def _moleculenet(file: str, digest: str, label: str) -> Task:
    origin = f"{file}.csv of MoleculeNet (columns smiles, {label}), {PACKED}"
    source = Source(path=f"tdc/{file.lower()}_moleculenet.csv.gz", sha256=digest, origin=origin)
    return Task(source=source, smiles="smiles", label=label, delimiter=",")


TASKS: Mapping[str, Task] = {
    "ames": _tdc("ames", "89941358fc929256463c20334112989af9a177b3815d345189da1caf7722fec8"),
    "cyp1a2_veith": _tdc(
        "cyp1a2_veith", "5539521534f63a23db20eaf55e75a4b33accc2e7992904d739a29103738f2b31"
    ),
    "cyp2d6_veith": _tdc(
        "cyp2d6_veith", "6cdfdf325cf503b30d94caff2b9842d77436ed2524a8077db5491b6998ab1a44"
    ),
    "cyp3a4_veith": _tdc(
        "cyp3a4_veith", "b473ffa85584dbc9805bcfce5030bb2532b262f600feb345e5d41dd435524abc"
    ),
    "hiv": _moleculenet(
        "HIV", "de3269599432c7153a8124b32f54407f758d7b454c14f773da86357a0e403a43", "HIV_active"
    ),
    "tox21_sr-are": _moleculenet(
        "tox21", "5693b7e7c1369c3b39bc30be88a49e4052003d365ce72aa7b35350e41d81e57e", "SR-ARE"
    ),
}

SPLIT = Source(
    path="tdc/random_split_seed42.csv.gz",
    sha256="7563cd634d40fb3c2cea94156cc16711728a3d2915758119fa300eafb0ca2f07",
    origin=(
        "PyTDC's get_split(method='random', seed=42, frac=[0.7, 0.1, 0.2]) of the six tasks as a "
        f"CSV file with columns dataset, row, y and split (train, valid, test), {PACKED}"
    ),
)

PUBCHEM = Source(
    path="pubchem_random/pubchem_random25k.csv.gz",
    sha256="8af3938e82dd2ff4ea17334ba73da3839e98a868b5c431220a4443661139afa9",
    origin=(
        "CID-SMILES_random_25K.tsv of MRCToxBioinformatics/Compound_bacteria_screen_chemical_space "
        "(25,000 random lines of PubChem's CID-SMILES) as a CSV file with columns cid, smiles, "
        "in_task (1 where its canonical SMILES occurs in a task) and rdkit_ok (1 where RDKit "
        f"parses it), {PACKED}"
    ),
)


@dataclass(frozen=True, kw_only=True)
class Molecules:
    """One task."""

    bits: Bits  # fingerprints, zeros and ones
    labels: Labels  # zeros and ones
    smiles: Sequence[str]  # what they were made from
    part: npt.NDArray[np.str_]  # of the given random split: "train", "valid" or "test"
    n_dropped: int  # molecules that RDKit cannot parse


@cache
def molecules(task: str) -> Molecules:
    """Read one task; the first time, its fingerprints take up to half a minute."""
    given = TASKS[task]
    lines = [line for line in _lines(given.source, given.delimiter) if line[given.label]]
    labels = np.array([int(float(line[given.label])) for line in lines])
    split = [line for line in _lines(SPLIT) if line["dataset"] == task]
    if [int(line["y"]) for line in split] != labels.tolist():
        msg = f"the rows of {SPLIT.path} are not those of {given.source.path}: labels differ."
        raise ValueError(msg)
    make = partial(fingerprints, [line[given.smiles] for line in lines])
    bits, parsed = _unpacked(cached(f"{task}-morgan{RADIUS}-{N_BITS}", make, given.source))
    return Molecules(
        bits=bits[parsed],
        labels=labels[parsed],
        smiles=[line[given.smiles] for line, kept in zip(lines, parsed, strict=True) if kept],
        part=np.array([line["split"] for line in split])[parsed],
        n_dropped=int(np.count_nonzero(~parsed)),
    )


@cache
def _by_scaffold(task: str) -> npt.NDArray[np.str_]:
    """Return each molecule's part in TDC's scaffold split, which takes seconds to make."""
    return scaffold_parts(molecules(task).smiles)


@cache
def _public_bits() -> Bits:
    lines = _lines(PUBCHEM)
    make = partial(fingerprints, [line["smiles"] for line in lines])
    bits, parsed = _unpacked(cached(f"pubchem-morgan{RADIUS}-{N_BITS}", make, PUBCHEM))
    found: Bits = bits[parsed & np.array([line["in_task"] == "0" for line in lines])]
    return found


def public_rows(count: int, *, rng: np.random.Generator, smaller: bool = False) -> Table:
    """Return fingerprints of random PubChem compounds that are in no task."""
    bits = _public_bits()
    if smaller:
        bits = bits[np.argsort(bits.sum(axis=1), kind="stable")[: len(bits) // 2]]
    rows: Table = bits[rng.permutation(len(bits))[:count]].astype(np.float64)
    return rows


def deal_molecules(
    task: str, *, rng: np.random.Generator, by_scaffold: bool = False, validation: bool = True
) -> Dealt:
    """Deal training and validation part to four parties of one label; test on the test part."""
    found = molecules(task)
    part = _by_scaffold(task) if by_scaffold else found.part
    held, test = part != TEST if validation else part == TRAIN, part == TEST
    return Dealt(
        parties=by_label(found.bits[held], found.labels[held], rng=rng),
        test_rows=found.bits[test].astype(np.float64),
        test_labels=found.labels[test],
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


def fingerprints(smiles: Sequence[str]) -> Bits:
    """Return Morgan fingerprints, eight bits a byte, and in a last byte whether RDKit parses."""
    from rdkit import Chem, rdBase  # noqa: PLC0415 -- an extra, for molecules only
    from rdkit.Chem import rdFingerprintGenerator  # noqa: PLC0415 -- same

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=N_BITS)
    found = np.zeros((len(smiles), N_BITS // 8 + 1), dtype=np.uint8)
    with rdBase.BlockLogs():
        for row, text in zip(found, smiles, strict=True):
            molecule = Chem.MolFromSmiles(text)
            if molecule is not None:
                row[:-1] = np.packbits(generator.GetFingerprintAsNumPy(molecule))
                row[-1] = 1
    return found


def _unpacked(kept: npt.NDArray[np.generic]) -> tuple[Bits, npt.NDArray[np.bool_]]:
    table = kept.astype(np.uint8)
    return np.unpackbits(table[:, :-1], axis=1), table[:, -1].astype(np.bool_)


def _lines(source: Source, delimiter: str = ",") -> list[dict[str, str]]:
    text = io.StringIO(read_verified(source).decode())
    lines: Iterable[dict[str, str]] = csv.DictReader(text, delimiter=delimiter)
    return list(lines)
