"""What the core weighs once installed, said in the output of every test run."""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
# The core installs without servers, trees, torch or ONNX; these stand for the four.
SERVERS = {"starlette", "uvicorn", "fastapi", "flask", "django", "tornado", "aiohttp", "sqlalchemy"}
TREES = {"xgboost", "xgboost-cpu", "lightgbm", "catboost"}
TORCH = {"torch", "tensorflow", "jax", "dask", "ray"}
ONNX = {"onnx", "onnxruntime", "protobuf"}


def runtime_dependencies(name):
    """Every installed distribution that `pip install NAME`, without extras, brings."""
    found, waiting = {}, [Requirement(name)]
    while waiting:
        asked = waiting.pop()
        key = canonicalize_name(asked.name)
        extras = {"", *asked.extras}
        if (key, *sorted(extras)) in found:
            continue
        distribution = metadata.distribution(asked.name)
        found[key, *sorted(extras)] = distribution
        for line in distribution.requires or []:
            needed = Requirement(line)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return {key[0]: distribution for key, distribution in found.items()}


def megabytes(distribution):
    """Bytes of the distribution's own files, without what Python compiles from them, / 1e6."""
    files = [file.locate() for file in distribution.files or [] if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


@pytest.fixture(scope="module")
def weights():
    found = runtime_dependencies("cobasis")
    return {name: megabytes(dist) for name, dist in found.items() if name != "cobasis"}


def test_the_core_weighs_less_than_530_megabytes(weights, capsys):
    total = sum(weights.values())
    largest = sorted(weights, key=weights.get, reverse=True)[:5]
    parts = ", ".join(f"{name} {weights[name]:.0f}" for name in largest)
    line = f"core installed: {total:.0f} MB in {len(weights)} packages; largest: {parts}"
    with capsys.disabled():  # to stderr, which reaches the screen from xdist's workers too
        print(f"\n{line}", file=sys.stderr, flush=True)  # noqa: T201
    assert all(weights[name] > 0 for name in weights)
    assert weights["scipy"] > 20, "scipy is far larger: the files were not found"
    assert total < 530


def test_the_core_brings_no_server_no_trees_no_torch_and_no_onnx(weights):
    assert set(weights) & (SERVERS | TREES | TORCH | ONNX) == set()


def test_the_weight_counts_every_dependency_that_is_named(weights):
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {canonicalize_name(Requirement(line).name) for line in named} <= set(weights)
    assert {"joblib", "pydantic-core"} <= set(weights), "dependencies of dependencies count"


def test_a_name_that_pip_may_write_in_several_ways_is_counted_once(weights):
    assert [name for name in weights if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)] == []
