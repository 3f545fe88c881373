import os
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CORE = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["build"]]
ASKED = {
    "requirements.lock": CORE,
    "requirements-test.lock": CORE + PYPROJECT["dependency-groups"]["test"],
    "requirements-experiments.lock": CORE
    + PYPROJECT["project"]["optional-dependencies"]["experiments"],
}
EXTRAS = {
    canonicalize_name(Requirement(each).name)
    for extra in PYPROJECT["project"]["optional-dependencies"].values()
    for each in extra
}


def entries(lock):
    """Each requirement of a lock, with the lines that belong to it joined."""
    return (ROOT / lock).read_text().replace("\\\n", " ").splitlines()


def pins(lock):
    """What a lock pins: (name, version, marker), once per Python it is for."""
    found = set()
    for entry in entries(lock):
        requirement = Requirement(entry.split(" --hash")[0])
        (version,) = requirement.specifier
        name = canonicalize_name(requirement.name)
        found.add((name, version.version, str(requirement.marker)))
    return found


@pytest.mark.parametrize("lock", ASKED)
def test_a_lock_pins_by_hash_all_that_pyproject_asks_for_and_the_core_unchanged(lock):
    pinned = re.compile(
        r"[a-z0-9-]+(\[[a-z]+\])?==[^ ]+( ; [^-]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    )
    assert len(entries(lock)) > 30
    assert [entry for entry in entries(lock) if not pinned.fullmatch(entry)] == []
    versions = {}
    for name, version, _ in pins(lock):
        versions.setdefault(name, set()).add(version)
    for asked in map(Requirement, ASKED[lock]):
        locked = versions.get(canonicalize_name(asked.name), set())
        assert locked, f"{asked.name} is not in {lock}: run ./run.sh lock"
        assert all(version in asked.specifier for version in locked), (asked, locked)
    missing = pins("requirements.lock") - pins(lock)
    assert missing == set(), f"run ./run.sh lock: {lock} differs from the core"


def test_the_scripts_may_be_executed_and_no_file_of_the_set_up_holds_an_address():
    assert all(os.access(ROOT / name, os.X_OK) for name in ("run.sh", ".ci/run"))
    for name in ("run.sh", ".ci/run", *ASKED):
        assert "://" not in (ROOT / name).read_text()


def runtime_dependencies(name):
    found, waiting = {}, [Requirement(name)]
    while waiting:
        asked = waiting.pop()
        extras = {"", *asked.extras}
        key = (canonicalize_name(asked.name), *sorted(extras))
        if key in found:
            continue
        found[key] = metadata.distribution(asked.name)
        for needed in map(Requirement, found[key].requires or []):
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return {key[0]: distribution for key, distribution in found.items()}


def test_the_core_weighs_less_than_510_megabytes_and_brings_no_extra(capsys):
    found = runtime_dependencies("cobasis")
    weights = {}  # of each distribution's own files, without what Python compiles from them
    for name, distribution in found.items():
        files = [file.locate() for file in distribution.files or [] if file.suffix != ".pyc"]
        weights[name] = sum(file.stat().st_size for file in files if file.is_file()) / 1e6
    del weights["cobasis"]
    total = sum(weights.values())
    largest = sorted(weights, key=weights.get, reverse=True)[:5]
    parts = ", ".join(f"{name} {weights[name]:.0f}" for name in largest)
    line = f"core installed: {total:.0f} MB in {len(weights)} packages; largest: {parts}"
    with capsys.disabled():  # to stderr, which reaches the screen from xdist's workers too
        print(f"\n{line}", file=sys.stderr, flush=True)  # noqa: T201
    assert weights["scipy"] > 20, "scipy is far larger: the files were not found"
    assert total < 510
    assert set(weights) & EXTRAS == set()
    dependencies = PYPROJECT["project"]["dependencies"]
    assert {canonicalize_name(Requirement(each).name) for each in dependencies} <= set(weights)
    assert {"joblib", "pydantic-core"} <= set(weights), "dependencies of dependencies count"
