"""Five roles in five folders that share no path; files cross by being copied, one by one."""

import json
import re
import secrets
import shlex
import shutil
import tomllib

import pyrage
import pytest
from typer.testing import CliRunner

from cobasis.cli import options
from cobasis.cli.main import app
from cobasis.keys import identity
from walk.pages import practice, steps

PARTIES = ("north", "south", "east", "late")
ROLES = (*PARTIES, "lab")
AUTHOR, ANALYST = "north", "lab"
AWAY = {"late": range(11, 13), "south": range(15, 16), "east": range(15, 16)}
"""Who has nothing to do in which steps: not in yet, and gone."""
LATE = re.compile(r"icu\.late\.\d-upload")
COME = re.compile(r"# (\S+) has come")
ASKING = ("agreement", "sign", "send", "run", "forget")
"""Commands that ask a person; for a program ``--yes`` answers."""

UNLOCKED = {}


def unasked(words):
    """Return a line as a program types it: nobody is asked."""
    return f"{words} --yes" if words.split()[1] in ASKING else words


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

    def __call__(self, role, words, *, code=0, typed=None):
        """Type a line; return everything that it printed."""
        return self.invoke(role, words, code=code, typed=typed).output

    def json(self, role, words, **options):
        """Type a line with --json; return the object."""
        lines = self.invoke(role, f"{unasked(words)} --json", **options).stdout.splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])

    def invoke(self, role, words, *, code=0, typed=None):
        self.typed.append(words)
        folder = self.folder(role)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(identity, "pyrage", Library)
            patch.setattr(options, "on_terminal", lambda: typed != "")
            done = CliRunner().invoke(
                app,
                self.expanded(words, folder),
                env=self.told(role),
                input=self.said(role, words) if typed is None else typed,
            )
        assert done.exit_code == code, (role, words, done.output, done.exception)
        return done

    def said(self, role, words):
        """What a role types at a command's questions: yes, or the round's name."""
        if words.startswith("cobasis forget"):
            text = (self.folder(role) / "icu.toml").read_text()
            return f"{tomllib.loads(text)['round_id']}\n"
        return "y\n" * len(ROLES)

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
            named = set(path.name.split(".")) & set(PARTIES)
            return [each for each in named if each != role]
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
        if role != AUTHOR and line.words.startswith("cobasis audit"):
            return  # every upload is audited anyway
        if role != AUTHOR and step.page == "party":
            line = line.by(role)
        done = line.changed(changes)
        if done.sent:
            what, whom, place = done.sent
            self.send(role, what, whom, None if LATE.fullmatch(what) else place)
        elif come := COME.fullmatch(done.words):  # it was held back
            (self.folder(role) / come[1]).rename(self.folder(role) / "inbox" / come[1])
        else:
            type_line(role, done.words, line)
