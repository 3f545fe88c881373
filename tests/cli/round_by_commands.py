"""A round as people type it: keys and agreement by commands, in one process."""

import csv
import json
import random
import shlex
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyrage
from matplotlib.figure import Figure
from typer.main import get_command
from typer.testing import CliRunner

from cobasis.bundle.transcript import verify_transcript
from cobasis.cli import options
from cobasis.cli.main import COMMANDS, app
from cobasis.keys import identity
from cobasis.models import FAMILIES
from cobasis.privacy.audit import attackers
from cobasis.protocol.enrolment import PublicIdentity
from keys.quick import under_passphrase

NAMES = ("east", "north", "south")
KEPT = tempfile.TemporaryDirectory(prefix="cobasis-keys-")  # to make each anew takes minutes
PUBS = "east.pub north.pub south.pub lab.pub"
COLUMNS = ("patient", "a", "b", "c", "d", "sex", "sick")
TERMS = (
    "--columns public.csv --i-may-publish --label sick --id patient --purpose study "
    "--task classification --retention-days 30"
)


class Library:
    """What the keys use of pyrage, without the two seconds that tests/keys looks at."""

    passphrase = SimpleNamespace(encrypt=under_passphrase, decrypt=pyrage.passphrase.decrypt)
    x25519, DecryptError, IdentityError = pyrage.x25519, pyrage.DecryptError, pyrage.IdentityError


def quicken(patch, *, printed=False, tuned=False):
    """Spare what others look at: slow keys, tuned models, audits' best guess, printed charts."""
    patch.setattr(identity, "pyrage", Library)
    for name, row in () if tuned else FAMILIES.items():
        middle = {option: values[len(values) // 2 :][:1] for option, values in row.grid.items()}
        patch.setitem(FAMILIES, name, replace(row, grid=middle))
    if not printed:
        patch.setattr(attackers, "_SPLITS", 1)
        chart = {"svg": "<svg/>", "png": b""}
        patch.setattr(Figure, "savefig", lambda _, to, **how: to.write(chart[how["format"]]))


def commands():
    for name in COMMANDS:
        _, command, _ = get_command(app).resolve_command(None, [name])
        inner = getattr(command, "commands", {})
        yield from {f"{name} {word}": each for word, each in inner.items()}.items()
        if not inner:
            yield name, command


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

    def __init__(self, folder, monkeypatch, *, tuned=False):
        monkeypatch.chdir(folder)
        quicken(monkeypatch, tuned=tuned)
        # as it is, whatever a fixture of the whole module has put in its place
        monkeypatch.setattr(options, "load_identity", identity.load_identity)
        self.folder = folder
        (folder / "passphrase").write_text("correct horse\n")
        (folder / "passphrase").chmod(0o600)

    def __call__(self, words, *, by="north", code=0, typed=None):
        """Type a line as somebody; return what it printed, whatever its code where that is None."""
        home = self.folder / f"home-{by}"
        secret = self.folder / "passphrase"
        told = {"COBASIS_HOME": str(home), "COBASIS_PASSPHRASE_FILE": str(secret)}
        done = CliRunner().invoke(app, shlex.split(words), env=told, input=typed)
        assert code in {None, done.exit_code}, (words, done.output, done.exception)
        return done

    def said(self, words, *wanted, **options):
        """Type a line that is answered with all these words; return all it says, in a line."""
        told = " ".join(self(words, **options).output.split())
        assert [each for each in wanted if each not in told] == [], told
        return told

    def refused(self, words, *wanted, by="north", code=2):
        return self.said(words, *wanted, by=by, code=code)

    def identity(self, name):
        said = (self.folder / "passphrase").read_text().strip()
        path = self.folder / f"home-{name}" / "keys" / f"{name}.key"
        return identity.load_identity(path, passphrase=said)

    def public(self, name):
        return PublicIdentity.from_text((self.folder / f"{name}.pub").read_text())

    def events(self, name):
        found = (self.folder / f"home-{name}").glob("transcripts/*/*/transcript.jsonl")
        return [each.event for path in found for each in verify_transcript(path)]

    def edit(self, old, new, *, file="icu.toml"):
        """Put something else into a file by hand; return the text that it had."""
        text = (self.folder / file).read_text()
        assert old in text
        (self.folder / file).write_text(text.replace(old, new))
        return text

    def json(self, words, **options):
        lines = self(f"{words} --json", **options).stdout.splitlines()
        assert len(lines) == 1, lines
        return json.loads(lines[0])

    def keys(self, names=NAMES, officers=()):
        for words in (*names, *(f"{name} --approver" for name in officers), "lab --analyst"):
            name = words.split()[0]
            home, kept = self.folder / f"home-{name}", Path(KEPT.name, words)
            if not kept.exists():
                self(f"key new {words}", by=name)
                shutil.copytree(home, kept)
                shutil.copy(f"{name}.pub", kept)
            shutil.copytree(kept, home, dirs_exist_ok=True)
            (home / f"{name}.pub").replace(self.folder / f"{name}.pub")

    def draft(self, file="icu.toml", *, pubs="", more="", asked="--yes", **options):
        write_table(self.folder / "public.csv", seed=0)
        return self(
            f"agreement new {file} {pubs} {TERMS} --n-components 3 --model ridge "
            f"--models ridge,logistic --minimum-parties 2 {asked} {more}",
            **options,
        )

    def agreed(self, *, more=""):
        self.keys()
        return self.draft(pubs=PUBS, more=more)

    def sealed(self, *, more=""):
        self.agreed(more=more)
        self.signed()
        self.tables()

    def signed(self, names=NAMES):
        """Everybody signs, and the analyst receives; what the first is shown, in a line."""
        said = [self.said("sign icu.toml --yes", by=name) for name in (*names, "lab")]
        self("receive icu.toml", by="lab")
        return said[0]

    def signed_on(self, terms, officers=()):
        self.keys(officers=officers)
        self(f"agreement new icu.toml {PUBS} {terms}")
        return self.signed()

    def tables(self):
        for seed, name in enumerate(NAMES, start=1):
            write_table(self.folder / f"{name}.csv", seed=seed, n_rows=60)

    def send(self, *names, more=""):
        (self.folder / "inbox").mkdir(exist_ok=True)
        for name in names or NAMES:
            line = f"send icu.toml {name}.csv --yes --signed-by Officer {more}"
            path = Path(self.json(line, by=name)["path"])
            shutil.copy(path, self.folder / "inbox" / path.name)

    def run(self, more="", **options):
        self("receive icu.toml inbox", by="lab")
        return self(f"run icu.toml {more}", by="lab", **options)

    def accept(self, *names):
        for path in sorted((self.folder / "outbox").iterdir()):
            name = path.name.split(".")[1]
            if name in (names or NAMES):
                shutil.copy(path, self.folder)
                self(f"accept icu.toml icu.news {path.name}", by=name)
