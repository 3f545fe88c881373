"""Bundles that an earlier version wrote are decided as they were then."""

import json
from pathlib import Path

import pytest

from bundle.bundles import AGE_KEYS, ENROLLED, LAB, NORTH, opened
from bundle.golden_files import NOW, decided, make
from cobasis.bundle import messages
from cobasis.bundle.manifest import PARTS, Expected

FOLDER = Path(__file__).parent / "golden" / "1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


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
    assert not (tmp_path / "in").exists()


@pytest.mark.parametrize(
    ("precision", "bound"), [("fp64", None), ("fp32", None), ("fp16", None), ("int8", 4.0)]
)
def test_a_golden_upload_is_read_whatever_its_precision(tmp_path, precision, bound):
    """Only the agreement's digest may differ: fields that are added to it change it."""
    bundle = opened(
        FOLDER / f"upload-{precision}.cb", tmp_path / "in", by=LAB, expected=Expected(now=NOW)
    )
    found = messages.open_payload(bundle.parts["upload.safetensors"])
    assert (found.party, found.n_rows, found.n_components) == ("north", 12, 2)
    messages.check_precision(found, precision=precision, int8_range=bound)
    assert abs(found.row_block(0, 1)[0, 0] - 0.12573022) < (0.02 if bound else 1e-3)


def test_a_golden_return_has_its_fit_and_its_model(tmp_path):
    bundle = opened(FOLDER / "return.cb", tmp_path / "in", by=NORTH, expected=Expected(now=NOW))
    assert bundle.manifest.told["evidence"] == "cannot tell"
    assert (bundle.manifest.sender, bundle.manifest.recipients) == ("lab", ("north",))
    assert ENROLLED["lab"] == LAB.public
    assert set(bundle.parts) == {"fit.safetensors", "model.safetensors"}


def test_golden_files_of_today_would_be_decided_the_same(tmp_path):
    """What `make` writes now differs in its seals, its software and agreement, in nothing else."""
    (tmp_path / "now").mkdir()
    make(tmp_path / "now")
    written = json.loads((tmp_path / "now" / "expected.json").read_text(encoding="utf-8"))
    assert {name: (each["code"], each.get("kind")) for name, each in written.items()} == {
        name: (each["code"], each.get("kind")) for name, each in EXPECTED.items()
    }
