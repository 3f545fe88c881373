"""The walk once more, as it is: one process per command, and a user account for each role."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from walk.pages import shows
from walk.world import ROLES, World, unasked

FIRST_USER = 61_000
ASKED = r"\[y/N\]|Type the round's name"
COBASIS = (sys.executable, "-c", "from cobasis.cli.main import run; run()")


class Accounts(World):
    """Each role is a user of its own, whose folder nobody else may enter."""

    def own(self, folder):
        folder.chmod(0o700)
        number = FIRST_USER + ROLES.index(folder.name)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, number, number)

    def carry(self, path, target):
        super().carry(path, target)
        self.own(self.root / target.relative_to(self.root).parts[0])

    def __call__(self, role, words):
        done = self.run(role, *COBASIS, *self.expanded(unasked(words), self.folder(role)))
        assert done.returncode == 0, (role, words, done.stdout, done.stderr)
        return done.stdout

    def run(self, role, *words):
        """Run a program as a role."""
        told = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        told |= {"HOME": str(self.folder(role)), "PYTHONDONTWRITEBYTECODE": "1", **self.told(role)}
        number = FIRST_USER + ROLES.index(role)
        return subprocess.run(
            words,
            cwd=self.folder(role),
            env={**told, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=number,
            group=number,
            extra_groups=(),
        )


@pytest.fixture
def world():
    """Folders that other users can reach; pytest's own ones are closed to them."""
    with tempfile.TemporaryDirectory(prefix="walk-") as root:
        Path(root).chmod(0o711)
        made = Accounts(Path(root))
        made.make_folders()
        try:
            reads = made.run("north", *COBASIS, "--version").returncode == 0
        except PermissionError:
            reads = False
        if not reads:
            pytest.skip("another user may not read this Python or this checkout")
        yield made


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_five_users_who_share_no_folder_go_through_the_whole_tutorial(world):
    read = []

    def type_line(role, words, line):
        read.append((line, world(role, words)))

    world.walk(type_line, numbers=range(1, 18))
    assert len(read) > 60
    for line, printed in read:
        if line.shown and not re.search(ASKED, line.shown):
            assert shows(line.shown, printed), f"{line.words}\n{printed}"
    for role in ROLES:
        for other in set(ROLES) - {role}:
            peek = f"open({str(world.folder(other) / 'pass')!r})"
            assert "PermissionError" in world.run(role, sys.executable, "-c", peek).stderr
