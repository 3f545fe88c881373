"""Five roles in five folders that share no path; files cross by being copied, one by one."""

import re
import shlex
import shutil
import tomllib

import numpy as np
import onnxruntime
import polars as pl
import pytest
from typer.testing import CliRunner

from answers import said_as_promised
from cli.round_by_commands import quicken
from cobasis.cli import options
from cobasis.cli.main import app
from walk.pages import PAGES, SENT, practice, steps

PARTIES = ("north", "south", "east", "late")
ROLES = (*PARTIES, "lab")
AUTHOR, ANALYST = "north", "lab"
AWAY = {"late": range(11, 13), "south": range(15, 16), "east": range(15, 16)}
"""Who has nothing to do in which steps: not in yet, and gone."""
LATE = re.compile(r"icu\.late\.\d-upload")
COME = re.compile(r"# (\S+) has come")


class World:
    """Types commands as one of the roles, in this process, and carries files between folders."""

    def __init__(self, root, *, printed=False):
        self.root, self.printed = root, printed
        self.typed, self.sent, self.answers, self.compared = [], [], [], []

    def make_folders(self):
        """Deal the rows as the tutorial does, and give everybody a passphrase."""
        self.root.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            exec(practice(), {})  # noqa: S102 -- the page's own lines
            (self.root / "practice").rename(self.root / "all")
        for role in ROLES:
            (self.root / "all" / role).rename(self.folder(role))
            (self.folder(role) / "pass").write_text(f"{role} keeps this to itself\n")
            (self.folder(role) / "pass").chmod(0o600)
            self.folder(role).chmod(0o700)

    def folder(self, role):
        return self.root / role

    def __call__(self, role, words, *, code=0):
        self.typed.append(words)
        folder = self.folder(role)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            quicken(patch, printed=self.printed)
            patch.setattr(options, "on_terminal", lambda: True)
            patch.setattr(options.Screen, "say", said_as_promised(self.answers))
            places = {"COBASIS_HOME": "home", "COBASIS_PASSPHRASE_FILE": "pass"}
            told = {name: str(folder / place) for name, place in places.items()}
            line, said = self.expanded(words, folder), self.said(role, words)
            done = CliRunner().invoke(app, line, env=told, input=said)
        assert done.exit_code == code, (role, words, done.output, done.exception)
        if words.startswith("cobasis export"):
            assert_same_predictions(self, role)
            self.compared.append(role)
        return done.output

    def said(self, role, words):
        """What a role types at a command's questions: yes, or the round's name."""
        if words.startswith(("cobasis forget", "cobasis sign")):
            text = (self.folder(role) / "icu.toml").read_text()
            return f"{tomllib.loads(text)['round_id']}\n"
        return "y\n" * len(ROLES)

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
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
                self.sent.append((role, to, path.name))

    def readers(self, role, path, whom):
        if whom == "its party":
            named = set(path.name.split(".")) & set(PARTIES)
            return [each for each in named if each != role]
        to = {"the author": [AUTHOR], "the analyst": [ANALYST]}
        to["everybody else"] = [each for each in ROLES if each != role]
        return [each for each in to[whom] if each != role]

    def walk(self, numbers, *, consensus=False, changes=(), pages=PAGES):
        """Do what the pages say in these steps; return each line that was typed, and what it said.

        Words of another round stand in the place of some, as `changes` say.
        """
        read = []
        for step in steps(pages):
            other = step.title.startswith("With a consensus basis only")
            if step.number in numbers and (consensus or not other):
                for role in self.roles_of(step):
                    for line in step.lines:
                        read += self.take(step, role, line, changes)
        return read

    def roles_of(self, step):
        if step.analyst:
            return [ANALYST]
        if step.title.startswith("One party"):
            return [AUTHOR]
        return [each for each in PARTIES if step.number not in AWAY.get(each, ())]

    def take(self, step, role, line, changes):
        words = line.words
        if role != AUTHOR and words.startswith("cobasis audit"):
            return  # every upload is audited anyway
        if role != AUTHOR and not step.analyst:
            line = line.by(role)
            words = line.words
        for old, new in changes:
            words = words.replace(old, new)
        if sent := SENT.fullmatch(words):
            what, whom, place = sent.groups()
            self.send(role, what, whom, None if LATE.fullmatch(what) else place)
        elif come := COME.fullmatch(words):  # it was held back
            (self.folder(role) / come[1]).rename(self.folder(role) / "inbox" / come[1])
        else:
            yield line, self(role, words)


def assert_same_predictions(world, role):
    """The exported file predicts from raw columns what out.csv says, to 1e-12."""
    folder = world.folder(role)
    new = pl.read_csv(folder / "new.csv")
    out = pl.read_csv(folder / "out.csv")
    assert out["patient"].to_list() == new["patient"].to_list()
    session = onnxruntime.InferenceSession((folder / f"{role}.onnx").read_bytes())
    given = {each.name: new[each.name].to_numpy()[:, None] for each in session.get_inputs()}
    label, scores = session.run(["label", "scores"], given)
    assert [("no", "yes")[each] for each in np.ravel(label)] == out["prediction"].to_list()
    told = out.select(pl.selectors.starts_with("probability_", "score_")).to_numpy()
    assert told.shape[1] in {1, 2}  # without likelihoods one for the second class
    np.testing.assert_allclose(scores[:, -told.shape[1] :], told, rtol=0, atol=1e-12)
