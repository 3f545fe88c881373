"""What a child of the warm interpreter does: a command, killed at a point, or its check."""

import os
import resource
import shutil
import signal
from functools import cached_property
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from bundle.bundles import opened
from cobasis.analyst_side import training
from cobasis.analyst_side.receiving import receive
from cobasis.analyst_side.running import run
from cobasis.disk import points
from cobasis.errors import BundleError
from cobasis.party_side import desk as desk_module
from cobasis.party_side.approving import Approval, approve
from cobasis.party_side.auditing import Audited
from cobasis.party_side.joining import join
from cobasis.party_side.readying import make_ready
from cobasis.party_side.receiving import accept
from cobasis.party_side.scoring import score
from cobasis.party_side.sending import prepare
from cobasis.privacy.audit import audit
from party_side.sites import KEY, NAMES, PEOPLE, Consortium, agreed
from privacy.audit.uploads import about, facts, subject
from under_fault.checking import analyst_of, problems
from under_fault.warm import say


def unlock(patch):
    """Take keys from memory: none is encrypted, which takes seconds."""
    patch.setattr(desk_module, "load_identity", lambda path, **_: PEOPLE[path.stem])


class Site(Consortium):
    """A consortium whose agreement is read once."""

    @cached_property
    def agreement(self):
        """As it stands in the file."""
        return super().agreement


def site_at(folder):
    """The round in a folder."""
    path = Path(folder)
    lab = PEOPLE["lab"]
    return Site(root=path, identities=PEOPLE, lab=lab, agreement_path=path / "icu.toml", key=KEY)


def _audited():
    """An audit of twelve people, whose figures do not matter here."""
    rng = np.random.default_rng(0)
    some = subject(rng.normal(size=(12, 3)), n_components=2)
    report = audit(some, facts=facts(some), about=about(some), rng=rng, settings=())
    return Audited(report=report, salt=bytes(32))


def _prepare(site):
    desk, to = site.desk("north"), site.root / "north" / "north.upload"
    signed = Approval(signed_by=("A. Officer",))
    ready, found = make_ready(desk, site.table("north")), _audited()
    prepare(ready, to, allow=lambda _: approve(desk, found, approval=signed))


def _receive(site):
    receive(analyst_of(site), site.root / "inbox")


def _run(site):
    run(analyst_of(site), to=site.root / "returns")


def _parts(site):
    training.IN_MEMORY_CELLS = 10  # in this child only
    _run(site)


def _accept(site):
    accept(site.desk("north"), site.folder("returns") / "north.return")
    score(site.desk("north"))


LOADED = (onnx, onnxruntime)
"""Once, before any fork, and not in every child; neither starts a thread when it is imported."""

COMMANDS = {
    "prepare": _prepare,
    "receive": _receive,
    "run": _run,
    "parts": _parts,
    "accept": _accept,
}


def build(folder, pipe):
    """Make a folder of a round just before each command, and say which points each passes."""
    del pipe
    root = Path(folder)
    first = root / "prepare"
    first.mkdir()
    site = site_at(agreed(first).parent)
    for name in NAMES:
        join(site.desk(name), site.secret_file(name))
        site.table(name)
    site = site_at(_copy(first, root / "receive"))
    for name in NAMES:
        to = site.folder("inbox") / f"{name}.upload"
        prepare(make_ready(site.desk(name), site.table(name)), to)
    site = site_at(_copy(root / "receive", root / "run"))
    _receive(site)
    lost = site_at(_copy(root / "run", root / "parts"))
    analyst_of(lost).work.payload("south").unlink()
    site = site_at(_copy(root / "run", root / "accept"))
    _run(site)


def passed(folder, command, pipe):
    """The points that a command passes, in order."""
    del pipe
    seen = []
    points.on_point = seen.append
    COMMANDS[command](site_at(folder))
    return seen


def killed(folder, command, at, pipe):
    """Run a command, and be killed at its n-th point."""
    seen = []

    def die(name):
        seen.append(name)
        if len(seen) == at:
            say(pipe, name)
            os.kill(os.getpid(), signal.SIGKILL)

    points.on_point = die
    COMMANDS[command](site_at(folder))
    return "it lived"


def checked(folder, command, pipe):
    """What is wrong with a round after a kill: before anything is repaired."""
    del pipe
    return problems(site_at(folder), command, whole=False)


def retried(folder, command, pipe):
    """Run the same command again, and say what is wrong then."""
    del pipe
    before = problems(site_at(folder), command, whole=False)
    COMMANDS[command](site_at(folder))
    return before + problems(site_at(folder), command, whole=True)


def bombs(folder, pipe):
    """Open every bomb of a folder; the codes, and by how much memory grew at its highest."""
    del pipe
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    codes = {}
    for path in sorted(Path(folder).glob("*.bomb")):
        try:
            opened(path, Path(folder) / "in")
            codes[path.name] = "accepted"
        except BundleError as error:
            codes[path.name] = error.code
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return codes, grown * 1024, [each.name for each in (Path(folder) / "in").glob("*")]


def _copy(source, target):
    return Path(shutil.copytree(source, target))
