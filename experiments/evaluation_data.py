"""Evaluation data in its original formats, from the folder that COBASIS_DATA names.

No data is part of this project. Each file is checked against its SHA-256; where one is
missing, the message says where it is to be had and what to call it.
"""

import csv
import gzip
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file: where it lies under COBASIS_DATA, its digest, and where it comes from."""

    path: str
    sha256: str
    origin: str


AMES = Source(
    path="tdc/ames.tab.gz",
    sha256="89941358fc929256463c20334112989af9a177b3815d345189da1caf7722fec8",
    origin=(
        "the AMES task of Therapeutics Data Commons (PyTDC: single_pred.Tox(name='AMES')), its "
        "ames.tab with columns Drug_ID, Drug and Y, compressed with gzip -9 -n"
    ),
)
SPLIT = Source(
    path="tdc/random_split_seed42.csv.gz",
    sha256="7563cd634d40fb3c2cea94156cc16711728a3d2915758119fa300eafb0ca2f07",
    origin=(
        "PyTDC's get_split(method='random', seed=42, frac=[0.7, 0.1, 0.2]) written as a CSV file "
        "with columns dataset, row, y and split, compressed with gzip -9 -n"
    ),
)


class MissingDataError(FileNotFoundError):
    """An evaluation file that is not there, or is not the one that was measured."""


def read_verified(source: Source) -> str:
    """Return the text of a compressed file after checking its SHA-256."""
    folder = os.environ.get("COBASIS_DATA")
    path = Path(folder or ".") / source.path
    if folder is None or not path.is_file():
        msg = (
            f"{source.path} is not in the folder that COBASIS_DATA names ({folder or 'not set'}). "
            f"Get {source.origin}, and put it there under that name."
        )
        raise MissingDataError(msg)
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != source.sha256:
        msg = (
            f"{path} has SHA-256 {found}, expected {source.sha256}: it is another version, and "
            f"figures would not compare. Get {source.origin}."
        )
        raise MissingDataError(msg)
    return gzip.decompress(content).decode()


@dataclass(frozen=True, kw_only=True)
class Molecules:
    """Fingerprints of shape (n_rows, n_bits) and binary labels, for training and testing."""

    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    test_rows: npt.NDArray[np.float64]
    test_labels: npt.NDArray[np.int64]


def ames(*, n_bits: int = 2048, radius: int = 2) -> Molecules:
    """Load AMES as Morgan fingerprints, with TDC's own random split (training and testing)."""
    table = list(csv.DictReader(io.StringIO(read_verified(AMES)), delimiter="\t"))
    split = [
        line["split"]
        for line in csv.DictReader(io.StringIO(read_verified(SPLIT)))
        if line["dataset"] == "ames"
    ]
    bits = _fingerprints([line["Drug"] for line in table], n_bits=n_bits, radius=radius)
    labels = np.array([int(float(line["Y"])) for line in table])
    train, test = (np.array([part == name for part in split]) for name in ("train", "test"))
    return Molecules(
        rows=bits[train], labels=labels[train], test_rows=bits[test], test_labels=labels[test]
    )


def _fingerprints(smiles: list[str], *, n_bits: int, radius: int) -> npt.NDArray[np.float64]:
    """Return Morgan fingerprints as rows of zeros and ones."""
    from rdkit import Chem, rdBase  # noqa: PLC0415 -- an extra, for this experiment only
    from rdkit.Chem import rdFingerprintGenerator  # noqa: PLC0415 -- same

    rdBase.DisableLog("rdApp.*")
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    found = [generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(text)) for text in smiles]
    return np.array(found, dtype=np.float64)
