"""A round as people type it: keys and agreement by commands, in one process."""

import csv
import json
import random
import shlex

import pyrage
from typer.testing import CliRunner

from cobasis.cli.main import app
from cobasis.keys import identity

NAMES = ("east", "north", "south")
COLUMNS = ("patient", "a", "b", "c", "d", "sex", "sick")


def quick_passphrases(monkeypatch):
    """Keep keys without the passphrase's two seconds, which tests/keys looks at."""
    key = pyrage.x25519.Identity.generate()

    class Quick:
        @staticmethod
        def encrypt(data, passphrase):
            return pyrage.encrypt(passphrase.encode() + b"\0" + data, [key.to_public()])

        @staticmethod
        def decrypt(data, passphrase):
            said, _, plain = pyrage.decrypt(data, [key]).partition(b"\0")
            if said != passphrase.encode():
                message = "Decryption failed"
                raise pyrage.DecryptError(message)
            return plain

    class Library:
        passphrase = Quick
        x25519, DecryptError, IdentityError = (
            pyrage.x25519,
            pyrage.DecryptError,
            pyrage.IdentityError,
        )

    monkeypatch.setattr(identity, "pyrage", Library)


def write_table(path, *, seed, n_rows=40):
    """A table of four numbers near three directions, a word, and a label."""
    draw = random.Random(seed)  # noqa: S311 -- rows of a test
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for row in range(n_rows):
            one, two, three = draw.gauss(0, 3), draw.gauss(0, 2), draw.gauss(0, 1.5)
            cells = [one, two - one, three + two, one + two + three + 0.1 * draw.gauss(0, 1)]
            label = "yes" if one + two + three > 0 else "no"
            words = [f"{cell:.4f}" for cell in cells]
            out.writerow([f"{path.stem}-{row}", *words, draw.choice("fm"), label])
    return path


class Typed:
    """Types commands in a folder; each role has its own home."""

    def __init__(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        quick_passphrases(monkeypatch)
        self.folder = folder
        (folder / "passphrase").write_text("correct horse\n")
        (folder / "passphrase").chmod(0o600)

    def __call__(self, words, *, by="north", code=0, typed=None):
        """Type a line as somebody; return what it printed."""
        home = self.folder / f"home-{by}"
        told = {
            "COBASIS_HOME": str(home),
            "COBASIS_PASSPHRASE_FILE": str(self.folder / "passphrase"),
        }
        done = CliRunner().invoke(app, shlex.split(words), env=told, input=typed)
        assert done.exit_code == code, (words, done.output, done.exception)
        return done

    def json(self, words, **options):
        """Type a line with --json; return the object."""
        lines = self(f"{words} --json", **options).stdout.splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])

    def keys(self, names=NAMES):
        for name in names:
            self(f"key new {name}", by=name)
        self("key new lab --analyst", by="lab")

    def draft(self, file="icu.toml", *, pubs="", more=""):
        """An agreement; a draft unless .pub files are given."""
        write_table(self.folder / "public.csv", seed=0)
        return self(
            f"agreement new {file} {pubs} --columns public.csv --label sick --id patient "
            "--purpose study --task classification --n-components 3 --retention-days 30 "
            f"--model ridge --models ridge,logistic --minimum-parties 2 --yes {more}"
        )

    def agreed(self, *, more=""):
        """An agreement that nobody has signed, and everybody's sealed secret."""
        self.keys()
        return self.draft(pubs=" ".join(f"{name}.pub" for name in (*NAMES, "lab")), more=more)

    def sealed(self, *, more=""):
        """Everything up to an agreement that everybody signed; all .sig files lie beside it."""
        self.agreed(more=more)
        for name in (*NAMES, "lab"):
            self("sign icu.toml --yes", by=name)
