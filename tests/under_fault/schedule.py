"""One schedule: random steps from a seed, how each has to end, and what holds after each."""

import hashlib
from contextlib import suppress
from datetime import timedelta

import numpy as np

from analyst_side.rounds import RealRound
from cobasis.analyst_side.history import RECEIVED, history_of
from cobasis.bundle.folders import FitFolder
from cobasis.disk.whole import file_digest
from cobasis.errors import CobasisError
from faults import Killed, at_call, changes, dying_after
from under_fault.simulated import FUTURE, LABELS, MINIMUM, NAMES, SIZES, START, VARIANTS, Clock

MOST_CALLS = 100
STEPS = {"deliver": 30, "receive": 18, "run": 22, "remove": 7}
STEPS |= {"replay": 6, "stranger": 3, "wait": 8, "forget": 1}
WORK = {"receive", "run", "remove", "forget"}
BAD = {"forged": "CB802", "foreign": "CB804", "spoilt": "CB306", "partial": "CB801"}


class Schedule:
    def __init__(self, cast, folder, seed):
        self.cast, self.folder, self.seed = cast, folder, seed
        self.rng = np.random.default_rng(seed)
        self.size = int(self.rng.integers(3, 6))
        self.names = NAMES[: self.size]
        agreement = cast.rounds[self.size].agreement
        self.round = RealRound(folder, agreement, cast.identities, cast.secret, cast.rows)
        self.inbox = self.round.inbox
        self.inbox.mkdir()
        self.said, self.log, self.crashes = [], [], 0
        self.lines, self.fits = (), {}
        Clock.moment = START
        cast.trainings.clear()

    def entries(self):
        return self.round.entries() if self.round.work.transcript.exists() else ()

    def history(self):
        return history_of(self.entries())

    def play(self, n_steps):
        for name in self.names:
            if self.rng.random() < 0.7:  # so that schedules of few steps come far
                self._put(name)
        for begin in (self._receive, self._run):
            if self.rng.random() < 0.8:
                begin(0)
                self._check()
        often = np.array(list(STEPS.values()))
        for _ in range(n_steps):
            step = self.rng.choice(list(STEPS), p=often / often.sum())
            at = int(self.rng.integers(1, MOST_CALLS)) if self.rng.random() < 0.3 else 0
            self.log.append((str(step), at))
            getattr(self, f"_{step}")(*([at] if step in WORK else []))
            self._check()
        self._finish()

    # ---- steps

    def _party(self):
        return str(self.rng.choice(self.names))

    def _put(self, name, variant="good", *, file=None, of=None):
        """Leave an upload in the inbox; `of` is another round's size."""
        end = "" if variant == "good" else f"-{variant}"
        path = self.inbox / (file or f"{name}{end}.upload")
        path.write_bytes(self.cast.bytes[of or self.size, name, variant])

    def _deliver(self):
        name = self._party()
        variant = str(self.rng.choice(VARIANTS, p=[0.52, *[0.08] * 6]))
        self.log.append((name, variant))
        self._put(name, variant)

    def _replay(self):
        name = self._party()
        self._put(name, file=f"again-{name}.upload")

    def _stranger(self):
        """Somebody who is enrolled in another agreement only, or a party under another one."""
        more = self.size < len(NAMES)
        name, of = (NAMES[self.size], len(NAMES)) if more else (NAMES[0], self.size - 1)
        self._put(name, file="stranger.upload", of=of)

    def _wait(self):
        Clock.moment += timedelta(hours=int(self.rng.integers(1, 60)))

    def _receive(self, at):
        before = self.history()
        found = self._done(self.round.receive, at)
        if found is None:
            return
        assert not before.forgotten
        gone = {name: before.files[1, name].file for name in before.removed}
        taken = {name: each.file for name, each in before.taken().items()}
        for each in found:
            path = self.inbox / each.file
            wanted = self._verdict(path, taken, gone)
            assert (each.code or each.verdict) == wanted, (each, wanted)
            if wanted == "accepted":
                taken[each.party] = file_digest(path)

    def _verdict(self, path, taken, gone):
        """What an upload's file has to end in; `taken` is who is in by now."""
        data = path.read_bytes()
        if path.name == "stranger.upload":
            return "CB802" if self.size < len(NAMES) else "CB804"
        digest = hashlib.sha256(data).hexdigest()
        if digest in taken.values():
            return "received before"
        name, _, variant = path.stem.removeprefix("again-").partition("-")
        if digest in gone.values():
            return "CB805"
        if variant in BAD:
            known = name in taken or name in gone
            return "CB805" if variant == "spoilt" and known else BAD[variant]
        if variant == "future" and Clock.moment + timedelta(hours=48) < START + FUTURE:
            return "CB806"
        return "CB805" if name in taken or name in gone else "accepted"

    def _run(self, at):
        """End the exchange, or take in who came late; the deadline has passed, so none waits."""
        state = self.history()
        out = [self._party()] if self.rng.random() < 0.1 else []
        again = set(state.without) - {*out, *state.removed}
        wanted = self._why_no_run(state, out, again)
        self.log.append(("run", out))
        told = {"without": out, "again": again, "confirmed": self.names}
        ran = self._done(lambda: self.round.run(**told), at, wanted)
        if ran is not None:
            assert set(ran.concluded.outcome.uploads) == set(state.taken()) - {*out}

    def _why_no_run(self, state, out, again):
        if state.forgotten:
            return "CB313"
        if set(out) & set(state.removed):
            return "CB305"
        inside = set(state.taken()) - {*out}
        if state.outcome is not None:
            return "CB305" if {*state.outcome.uploads, *again} - inside else ""
        if len(inside) >= MINIMUM:
            return ""
        away = set(self.names) - set(state.taken()) - set(state.removed) - {*out}
        return "CB314" if away else "CB305"

    def _remove(self, at):
        name, state = self._party(), self.history()
        realign = bool(self.rng.random() < 0.3)
        outcome, wanted = state.outcome, ""
        if state.forgotten:
            wanted = "CB313"
        elif name not in {*state.taken(), *state.removed}:
            wanted = "CB304"
        elif outcome is not None:
            part = name in outcome.uploads or (realign and name in outcome.target_carries)
            stay = set(outcome.uploads) - {name, *state.removed}
            wanted = "CB305" if part and len(stay) < MINIMUM else ""
        self.log.append((name, realign))
        done = self._done(lambda: self.round.remove(name, realign=realign), at, wanted)
        if done is not None:
            assert name in self.history().removed
            assert not self.round.work.payload(name).exists()

    def _forget(self, at):
        state = self.history()
        wanted = "" if state.forgotten or state.taken() else "CB305"
        done = self._done(lambda: self.round.forget(early=True), at, wanted)
        assert done is None or not list(self.round.work.path.rglob("*.safetensors"))

    def _done(self, call, at, wanted=""):
        """Do work that may be killed after its k-th call, and compare its end with what is due."""
        code, found = "", None
        with suppress(Killed), at_call(at, dying_after, counts=changes) as crash:
            try:
                found = call()
            except CobasisError as error:
                code = error.code
                self.said.append(str(error))
        killed = crash.stopped_at is not None
        self.crashes += killed
        if not wanted and code == "CB313":
            assert self.history().forgotten
        elif not killed or code:
            assert code == wanted, (code, wanted, self.said[-1:])
        return found

    # ---- invariants

    def _check(self):
        entries = self.entries()
        assert entries[: len(self.lines)] == self.lines  # nothing that was written is gone
        self.lines, state = entries, history_of(entries)
        self._check_received(state, [each.told for each in entries if each.event == RECEIVED])
        if state.outcome is not None:
            self._check_outcome(state)
        for name in LABELS:
            for counted in self.cast.trainings:
                assert counted.get(LABELS[name], 0) in {0, SIZES[name]}, "I4: lost, or twice"

    def _check_received(self, state, told):
        assert len({each["party"] for each in told}) == len(told), "I3: twice"
        whole = {
            hashlib.sha256(self.cast.bytes[self.size, each["party"], variant]).hexdigest()
            for each in told
            for variant in ("good", "second", "future")
        }
        assert {each["file"] for each in told} <= whole, "I3: not of an enrolled key"
        for name, each in state.taken().items():
            if not state.forgotten:
                assert file_digest(self.round.sealed(name)) == each.file, "I1"
                if self.round.work.payload(name).exists():
                    assert file_digest(self.round.work.payload(name)) == each.payload, "I2"
        lines = {each.hash for each in self.lines}
        told = self.round.news().receipts if (self.folder / "icu.news").exists() else ()
        assert {each.receipt.transcript for each in told} <= lines, "I2"

    def _check_outcome(self, state):
        outcome = state.outcome
        for name, upload in outcome.uploads.items():
            assert state.files[1, name].file == upload, "I5: another upload"
        assert outcome.n_rows == sum(SIZES[name] for name in outcome.uploads), "I5: rows"
        counts = {LABELS[name]: SIZES[name] for name in outcome.uploads}
        assert counts in self.cast.trainings, "I4: these rows, once each, were never trained on"
        place = self.round.work.alignments / outcome.alignment
        if place.is_dir() and not state.forgotten:
            fits = FitFolder(place)
            for name in fits:
                change = fits[name].change_of_basis.tobytes()
                assert self.fits.setdefault((outcome.alignment, name), change) == change, "I7"

    def _finish(self):
        """I8: faults stop, everybody sends again, and the round comes to its end; I6 and I9."""
        for path in self.inbox.iterdir():
            path.unlink()
        state = self.history()
        if not state.forgotten:
            for name in self.names:
                self._put(name)
            self._receive(0)
            state = self.history()
            assert set(state.taken()) == set(self.names) - set(state.removed), "I8"
            self._complete(state)
            assert not list(self.round.work.path.rglob("*.part")), "I8: left over"
        for needle in self.cast.secrets():
            for path in self.folder.rglob("*"):
                assert not path.is_file() or needle not in path.read_bytes(), (path, "I9")
        assert all("[CB" in text and "1000.0" not in text for text in self.said), "I6"

    def _complete(self, state):
        if state.outcome and (half := set(state.outcome.uploads) & set(state.removed)):
            self._done(lambda: self.round.remove(*half), 0)  # which was killed before it trained
            state = self.history()
        told = {"again": set(state.without) - set(state.removed), "confirmed": self.names}
        self._done(lambda: self.round.run(**told), 0, self._why_no_run(state, [], set()))
        if (outcome := self.history().outcome) is not None:
            kept = set(state.taken())
            assert set(outcome.uploads) == kept, "I5: not all"
            assert all(self.round.reply(name).exists() for name in kept), "I8"
