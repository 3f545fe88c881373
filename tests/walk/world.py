"""Five roles in five folders that share no path; files cross by being copied, one by one."""

import json
import secrets
import shlex
import shutil

import pyrage
import pytest
from typer.testing import CliRunner

from cobasis.cli import agreement, options, questions
from cobasis.cli.main import app
from cobasis.keys import identity
from walk.pages import practice, steps

PARTIES = ("north", "south", "east", "late")
ROLES = (*PARTIES, "lab")
AUTHOR, ANALYST = "north", "lab"
AWAY = {"late": range(13, 17), "south": range(19, 20), "east": range(19, 20)}
"""Who has nothing to do in which steps: not in yet, and gone."""

UNLOCKED = {}


class Remembering:
    """Age files under a passphrase, without the two seconds of each.

    What was locked here is known at once. Only the first is an age file; the others are bytes that
    nobody but this process can read. test_accounts.py goes without any of this.
    """

    @staticmethod
    def encrypt(data, passphrase):
        real = not UNLOCKED
        sealed = pyrage.passphrase.encrypt(data, passphrase) if real else secrets.token_bytes(390)
        UNLOCKED[sealed, passphrase] = data
        return sealed

    @staticmethod
    def decrypt(sealed, passphrase):
        if (sealed, passphrase) not in UNLOCKED:
            UNLOCKED[sealed, passphrase] = pyrage.passphrase.decrypt(sealed, passphrase)
        return UNLOCKED[sealed, passphrase]


class Library:
    """What the keys use of pyrage."""

    passphrase = Remembering
    x25519, DecryptError, IdentityError = pyrage.x25519, pyrage.DecryptError, pyrage.IdentityError


class World:
    """Types commands as one of the roles, in this process, and carries files between folders."""

    def __init__(self, root):
        self.root = root
        self.typed = []
        self.sent = []

    def make_folders(self):
        """Deal the rows as the tutorial does, and give everybody a passphrase."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            exec(practice(), {})  # noqa: S102 -- the page's own lines
            (self.root / "practice").rename(self.root / "all")
        for role in ROLES:
            (self.root / "all" / role).rename(self.folder(role))
            (self.folder(role) / "pass").write_text(f"{role} keeps this to itself\n")
            (self.folder(role) / "pass").chmod(0o600)
            self.own(self.folder(role))

    def own(self, folder):
        """Keep others out of a folder."""
        folder.chmod(0o700)

    def folder(self, role):
        return self.root / role

    def __call__(self, role, words, *, code=0, typed="y\n"):
        """Type a line; return everything that it printed."""
        return self.invoke(role, words, code=code, typed=typed).output

    def json(self, role, words, **options):
        """Type a line with --json; return the object."""
        asks = words.split()[2] in ("propose", "prepare", "forget") and "--dry-run" not in words
        words = f"{words} --json{' --yes' if asks else ''}"
        lines = self.invoke(role, words, **options).stdout.splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])

    def invoke(self, role, words, *, code=0, typed="y\n"):
        words, _, target = words.partition(" > ")
        self.typed.append(words)
        folder = self.folder(role)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(identity, "pyrage", Library)
            for module in (options, agreement, questions):
                patch.setattr(module, "on_terminal", lambda: typed is not None)
            done = CliRunner().invoke(
                app, self.expanded(words, folder), env=self.told(role), input=typed
            )
        assert done.exit_code == code, (role, words, done.output, done.exception)
        if target:
            (folder / target).write_text(done.stdout)
        return done

    def told(self, role):
        """The environment of a role."""
        folder = self.folder(role)
        return {
            "COBASIS_HOME": str(folder / "home"),
            "COBASIS_PASSPHRASE_FILE": str(folder / "pass"),
        }

    @staticmethod
    def expanded(words, folder):
        """The words of a line as a shell gives them to a program."""
        program, *rest = shlex.split(words)
        assert program == "cobasis"
        found = []
        for word in rest:
            names = sorted(path.name for path in folder.glob(word)) if "*" in word else []
            found += names or [word]
        return found

    def send(self, role, what, whom, place):
        """Copy a file from a role's folder to that of others, as the page says."""
        for path in sorted(self.folder(role).glob(what)):
            for to in self.readers(role, path, whom):
                target = self.folder(to) / (place or "") / path.name
                self.carry(path, target)
                self.sent.append((role, to, path.name))

    def readers(self, role, path, whom):
        if whom == "its party":
            return [path.stem] if path.stem != role else []
        to = {"the author": [AUTHOR], "the analyst": [ANALYST]}
        to["everybody else"] = [each for each in ROLES if each != role]
        return [each for each in to[whom] if each != role]

    def carry(self, path, target):
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, target)

    def walk(self, type_line, *, numbers, consensus=False, changes=()):
        """Do what the pages say in these steps; `type_line(role, words, line)` types a line."""
        for step in steps():
            if step.number in numbers and (consensus or not step.for_consensus):
                for role in self.roles_of(step):
                    for line in step.lines:
                        self.take(step, role, line, type_line, changes)

    def roles_of(self, step):
        if step.page == "analyst":
            return [ANALYST]
        if step.by_one_party:
            return [AUTHOR]
        return [each for each in PARTIES if step.number not in AWAY.get(each, ())]

    def take(self, step, role, line, type_line, changes):
        """Type one line as a role, or send one file."""
        if role != AUTHOR and line.words.startswith("cobasis party audit"):
            return  # every prepare audits anyway
        if role != AUTHOR and step.page == "party":
            line = line.by(role)
        if line.sent:
            what, whom, place = line.sent
            # what comes late is not in the inbox at first
            self.send(role, what, whom, None if what == "late.upload" else place)
        elif line.words.startswith("cobasis"):
            words = line.words
            for old, new in changes:
                words = words.replace(old, new)
            type_line(role, words, line)
