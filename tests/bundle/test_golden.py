"""Bundles that an earlier version wrote are decided as they were then."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from bundle.bundles import AGE_KEYS, ENROLLED, LAB, NORTH, NOW, opened
from cobasis.bundle import messages
from cobasis.bundle.manifest import PARTS, Expected
from cobasis.disk.whole import file_digest
from cobasis.errors import CobasisError

FOLDER = Path(__file__).parent / "golden" / "1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def decided(path, into):
    by = NORTH if path.name in {"return.cb", "consensus.cb"} else LAB
    try:
        bundle = opened(path, into, by=by, signer=ENROLLED, expected=Expected(now=NOW))
    except CobasisError as error:
        return {"opened_by": by.public.name, "code": error.code}
    parts = {name: file_digest(part) for name, part in bundle.parts.items()}
    shutil.rmtree(into)
    return {
        "opened_by": by.public.name,
        "code": None,
        "digest": bundle.digest,
        "manifest": hashlib.sha256(bundle.manifest.encoded()).hexdigest(),
        "kind": bundle.manifest.kind,
        "parts": parts,
    }


def test_the_files_are_those_that_are_recorded_and_small():
    files = {path.name: path.stat().st_size for path in FOLDER.glob("*.cb")}
    assert set(files) == set(EXPECTED)
    assert max(files.values()) < 20_000
    assert {found["kind"] for found in EXPECTED.values() if not found["code"]} == set(PARTS)
    codes = {found["code"] for found in EXPECTED.values() if found["code"]}
    assert codes == {"CB801", "CB802", "CB803", "CB804", "CB806"}
    keys = json.loads((FOLDER / "keys.json").read_text(encoding="utf-8"))
    assert {name: each["age_key"] for name, each in keys.items()} == AGE_KEYS


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_golden_file_is_decided_as_recorded(tmp_path, name):
    assert decided(FOLDER / name, tmp_path / "in") == EXPECTED[name]
    assert list(tmp_path.glob("in/*")) == []


@pytest.mark.parametrize(
    ("precision", "bound"), [("fp64", None), ("fp32", None), ("fp16", None), ("int8", 4.0)]
)
def test_a_golden_upload_is_read_whatever_its_precision(tmp_path, precision, bound):
    """Only the agreement's digest may differ: fields that are added to it change it."""
    bundle = opened(
        FOLDER / f"upload-{precision}.cb", tmp_path / "in", by=LAB, expected=Expected(now=NOW)
    )
    found = messages.open_payload(bundle.parts["upload.safetensors"])
    assert (found.party, *found.rows.shape) == ("north", 12, 2)
    messages.check_precision(found, precision=precision, int8_range=bound)
    assert abs(found.rows[0:1][0, 0] - 0.12573022) < (0.02 if bound else 1e-3)
