"""The walk once more, as it is: one process per command, and a user account for each role."""

import os
import re
import shutil
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

    def __init__(self, root):
        super().__init__(root)
        self.separate = os.geteuid() == 0

    def own(self, folder):
        folder.chmod(0o700)
        if self.separate:
            for path in (folder, *folder.rglob("*")):
                number = FIRST_USER + ROLES.index(folder.name)
                os.chown(path, number, number)

    def carry(self, path, target):
        super().carry(path, target)
        self.own(self.root / target.relative_to(self.root).parts[0])

    def __call__(self, role, words):
        done = self.run(role, *COBASIS, *self.expanded(unasked(words), self.folder(role)))
        assert done.returncode == 0, (role, words, done.stdout, done.stderr)
        self.own(self.folder(role))
        return done.stdout

    def run(self, role, *words):
        """Run a program as a role."""
        told = {"PATH": os.environ["PATH"], "HOME": str(self.folder(role)), **self.told(role)}
        told |= {word: os.environ[word] for word in ("PYTHONPATH",) if word in os.environ}
        told |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        number, account = FIRST_USER + ROLES.index(role), {}
        if self.separate:
            account = {"user": number, "group": number, "extra_groups": ()}
        return subprocess.run(
            words,
            cwd=self.folder(role),
            env=told,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **account,
        )


@pytest.fixture
def world():
    """Folders that other users can reach; pytest's own ones are closed to them."""
    root = Path(tempfile.mkdtemp(prefix="walk-"))
    root.chmod(0o711)
    made = Accounts(root)
    made.make_folders()
    try:
        separate = made.separate and made.run("north", *COBASIS, "--version").returncode == 0
    except PermissionError:
        separate = False  # another user may not read this Python or this checkout
    if not separate:  # one user, separate folders and processes
        for path in root.rglob("*"):
            os.chown(path, os.geteuid(), os.getegid())
    made.separate = separate
    yield made
    shutil.rmtree(root)


@pytest.mark.soak
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
            done = world.run(role, sys.executable, "-c", peek)
            assert ("PermissionError" in done.stderr) == world.separate
    owners = {path.stat().st_uid for path in world.root.iterdir() if path.name in ROLES}
    assert len(owners) == (len(ROLES) if world.separate else 1)
