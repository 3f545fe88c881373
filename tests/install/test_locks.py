"""The lock files: everything named by version and hash, nothing named by address."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ["requirements.lock", "requirements-test.lock", "requirements-experiments.lock"]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CORE = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["build"]]
ASKED = {
    "requirements.lock": CORE,
    "requirements-test.lock": CORE + PYPROJECT["dependency-groups"]["test"],
    "requirements-experiments.lock": CORE
    + PYPROJECT["project"]["optional-dependencies"]["experiments"],
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


@pytest.mark.parametrize("lock", LOCKS)
def test_every_entry_of_a_lock_has_one_version_and_a_hash(lock):
    pinned = re.compile(
        r"[a-z0-9-]+(\[[a-z]+\])?==[^ ]+( ; [^-]+?)?( +--hash=sha256:[0-9a-f]{64})+ *"
    )
    assert len(entries(lock)) > 30
    assert [entry for entry in entries(lock) if not pinned.fullmatch(entry)] == []


@pytest.mark.parametrize("name", ["run.sh", ".ci/run", *LOCKS])
def test_no_file_of_the_set_up_holds_an_address(name):
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_all_that_pyproject_asks_for(lock):
    versions = {}
    for name, version, _ in pins(lock):
        versions.setdefault(name, set()).add(version)
    for line in ASKED[lock]:
        asked = Requirement(line)
        locked = versions.get(canonicalize_name(asked.name), set())
        assert locked, f"{asked.name} is not in {lock}: run ./run.sh lock"
        assert all(version in asked.specifier for version in locked), (
            f"{lock} pins {asked.name} to {sorted(locked)}, pyproject asks {asked.specifier}"
        )


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_the_larger_locks_hold_the_core_lock_unchanged(lock):
    missing = pins("requirements.lock") - pins(lock)
    assert missing == set(), f"run ./run.sh lock: {lock} differs from the core"
