"""What children of the warm interpreter do: commands, with calls that fail or kill, and checks."""

import os
import resource
import shutil
import signal
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np

from bundle.bundles import opened
from cobasis.analyst_side.forget import forget as destroy
from cobasis.analyst_side.membership import remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.bundle.agreement_file import complete, text_of
from cobasis.bundle.agreement_text import new_text
from cobasis.errors import BundleError, CobasisError, WaitingError
from cobasis.party_side.accept import accept, accept_news, adopt
from cobasis.party_side.approval import Audited
from cobasis.party_side.audit import approve
from cobasis.party_side.author import Authorship, issue
from cobasis.party_side.session import forget
from cobasis.party_side.worth import score
from cobasis.privacy.audit.report import as_json
from cobasis.protocol import training
from cobasis.tables.cells import dialect_of
from faults import BROKEN, FULL, at_call, calls_of, changes, half
from party_side.sites import ENROLLED, FIELDS, NAMES, PEOPLE, Consortium, agreed, join
from privacy.attacks.constructions import audited, subject
from under_fault.checking import problems, sent, state

MOST_SECONDS = 600


def answer(pipe, job, told):
    signal.alarm(MOST_SECONDS)
    pipe.send(job(**told))


class Site(Consortium):
    @cached_property
    def agreement(self):
        return super().agreement


def site_at(folder):
    return Site(Path(folder))


def _secret(site):
    path = site.agreement_path
    before = text_of(path)
    author = Authorship(path, home=site.root)
    issue(
        author,
        text=lambda commitment="": complete(before, path=path, commitment=commitment),
        identity=PEOPLE["north"],
        key=np.random.default_rng().bytes(32),
    )


def _span(site):
    """End the first exchange; a kill may leave nothing but to wait for uploads."""
    with suppress(WaitingError):
        _run(site)


def _prepare(site):
    some = subject(np.random.default_rng(0).normal(size=(12, 3)), n_components=2)
    found = Audited(told=as_json(audited(some)), salt=bytes(32))
    site.send(allow=lambda made: approve(made.ready.session, found, signed_by=["A. Officer"]))


def _receive(site):
    receive(site.desk(), [site.root / "inbox"])


def _run(site, **options):
    run(site.desk(), **options)


def _parts(site):
    training.MOST_CELLS, training.BLOCK_BYTES = 10, 1000  # in this child only
    _run(site)


def _accept(site):
    accept(site.session(), site.reply("north"))
    score(site.session())


COMMANDS = {
    "secret": _secret,
    "join": lambda site: join(site.session(), site.root / "north" / "north.secret"),
    "propose": lambda site: site.send(to=site.root / "north" / "north.span"),
    "span": _span,
    "adopt": lambda site: adopt(site.session(), site.reply("north", 0)),
    "prepare": _prepare,
    "receive": _receive,
    "proposals": _receive,
    "receipt": lambda site: accept_news(site.session(), site.root / "icu.news"),
    "run": _run,
    "parts": _parts,
    "accept": _accept,
    "late": lambda site: _run(site, again=["east"], confirmed=["east"]),
    "remove": lambda site: remove(site.desk(), ["south"], realign=False),
    "realign": lambda site: remove(site.desk(), ["south"], realign=True),
    "destroy": lambda site: destroy(site.desk(), early=True),
    "leave": lambda site: forget(site.session()),
}


def build(folder):
    root = Path(folder)
    for command in ("secret", "join"):
        (root / command).mkdir()
    (root / "secret" / "icu.toml").write_text(new_text({**FIELDS, **ENROLLED}))  # a bare draft
    site = _joined(_agreed(root / "join"), root / "prepare")
    site = _stage(site, root / "receive")
    _sent(site, "inbox", "upload")
    _build_late(site, root / "late")
    site = _stage(site, root / "run")
    _receive(site)
    _stage(site, root / "receipt")
    lost = _stage(site, root / "parts")
    lost.desk().work.payload("south").unlink()
    site = _stage(site, root / "accept")
    _run(site)
    for command in ("remove", "realign", "destroy", "leave"):
        _stage(site, root / command)
    _accept(site_at(root / "leave"))
    _build_consensus(root)


def _agreed(folder, **changes):
    site = site_at(agreed(folder, **changes).parent)
    for name in NAMES:
        site.secret_file(name)
        site.table(name)
    return site


def _stage(site, folder):
    return site_at(shutil.copytree(site.root, folder))


def _joined(site, folder):
    site = _stage(site, folder)
    for name in NAMES:
        join(site.session(name), site.root / name / f"{name}.secret")
    return site


def _sent(site, folder, kind):
    for name in NAMES:
        site.send(name, to=site.folder(folder) / f"{name}.{kind}")


def _build_late(site, folder):
    """Two have run, and the third comes late: it is received, and has no part yet."""
    site = _stage(site, folder)
    late = site.root / "east.upload"
    (site.root / "inbox" / "east.upload").rename(late)
    _receive(site)
    run(site.desk(), without=["east"])
    late.rename(site.root / "inbox" / "east.upload")
    _receive(site)


def _build_consensus(root):
    (root / "other").mkdir()
    site = _joined(_agreed(root / "other", basis="consensus"), root / "propose")
    site = _stage(site, root / "proposals")
    _sent(site, "inbox", "span")
    site = _stage(site, root / "span")
    _receive(site)
    _span(_stage(site, root / "adopt"))
    shutil.rmtree(root / "other")


def called(folder, command):
    """A command that nothing disturbs: its calls, those that change the disk, what it leaves."""
    made = []

    def noted(*call):
        made.append(call[0])
        return changes(*call)

    calls = calls_of(lambda: COMMANDS[command](site_at(folder)), counts=noted)
    return len(made), [name for name, _ in calls], state(site_at(folder))


def killed(folder, command, at, within):
    def die(real, told):
        with suppress(OSError):
            half(real, told) if within else real(*told)
        os.kill(os.getpid(), signal.SIGKILL)

    with at_call(at, die, counts=changes):
        COMMANDS[command](site_at(folder))


def retried(folder, command, wanted):
    """Type a command again; what was wrong before, and is not as `wanted` after it."""
    if before := [*problems(site_at(folder), command, whole=False)]:
        return before
    first = sent(site_at(folder))
    COMMANDS[command](site_at(folder))
    site = site_at(folder)
    found, again = state(site), sent(site)
    wrong = [*problems(site, command, whole=True), *(found - wanted), *(wanted - found)]
    return wrong + [f"another {path.name}" for path in first if again[path] != first[path]]


def failing(stage, command, act, wanted, step):
    """Let every call fail in turn, or each so many, in a fresh copy; what was wrong."""
    full = act == "full"
    number, failed, coded, wrong = 1 + step // 2 if full else step, 0, 0, []
    while True:
        place, found = _copied(stage), []
        with at_call(number, FULL if full else BROKEN) as clock:
            try:
                COMMANDS[command](site_at(place))
            except CobasisError as error:
                coded += 1
                found += [] if error.code else [repr(error)]
            except Exception as error:  # noqa: BLE001 -- a traceback is what may not be
                found.append(repr(error))
        if clock.stopped_at is None:
            return failed, coded, wrong
        try:
            found += retried(place, command, wanted)
        except CobasisError as error:
            found.append(repr(error))
        wrong += [(number, clock.stopped_at, each) for each in found]
        number, failed = number + step, failed + 1


def _copied(stage):
    """Always the same place: copies are made one after the other."""
    place = Path(f"{stage}-failing")
    shutil.rmtree(place, ignore_errors=True)
    dialect_of.cache_clear()  # a command is a process of its own, which has seen no file yet
    return shutil.copytree(stage, place)


def bombs(folder):
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
