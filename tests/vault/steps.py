"""Every write of a vault as a step from an old state to a new one, and what can be seen of it."""

import shutil

from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from vault.vaults import (
    NOW,
    SECRET,
    agree,
    choose,
    consensus,
    made_basis,
    open_vault,
    returned,
    table,
    upload,
)


def nothing(_):
    """The folder is not even there."""


def joined(folder):
    open_vault(folder).round(agree()).join(SECRET)


def uploaded(folder):
    upload(open_vault(folder), table())


def begun(folder):
    upload(open_vault(folder), table(), digest=None)


def whole_round(folder):
    uploaded(folder)
    record = open_vault(folder).round(agree())
    record.join(SECRET)
    record.adopt(consensus())
    record.accept(returned(model=b"the first model"))


def begin_fresh(folder):
    vault = open_vault(folder)
    vault.begin_upload(choose(vault, table()), made_basis(), agreement=agree(), time=NOW)


def begin_kept(folder):
    vault, rows = open_vault(folder), table()[5:]
    choice = choose(vault, rows)
    vault.begin_upload(choice, choice.basis, agreement=agree("second"), time=NOW)


def begin_with_noise(folder):
    terms = DPTerms(epsilon=2, radius=1, most_rows=99, labels="public", lifetime_epsilon=2)
    vault, agreement = open_vault(folder), agree("noisy", basis="haar", dp=terms)
    basis = made_basis()
    choice = choose(vault, table(seed=1))
    vault.begin_upload(choice, basis, agreement=agreement, time=NOW, release="1" * 64)


def propose(folder, round_id="icu-2026"):
    vault = open_vault(folder)
    vault.ledger.propose(choose(vault, table()).asked, agree(round_id))


STEPS = {
    "open a new vault": (nothing, open_vault),
    "join": (nothing, joined),
    "adopt": (joined, lambda folder: open_vault(folder).round(agree()).adopt(consensus())),
    "begin a fresh upload": (joined, begin_fresh),
    "begin a kept upload": (uploaded, begin_kept),
    "begin an upload with noise": (uploaded, begin_with_noise),
    "propose": (joined, propose),
    "propose again": (propose, lambda folder: propose(folder, "second")),
    "finish an upload": (begun, lambda folder: open_vault(folder).finish_upload(1, "e" * 64)),
    "accept": (joined, lambda folder: open_vault(folder).round(agree()).accept(returned())),
    "accept again": (
        whole_round,
        lambda folder: open_vault(folder).round(agree()).accept(returned()),
    ),
    "forget": (whole_round, lambda folder: open_vault(folder).forget_round(agree())),
}


def seen(folder):
    """All that a vault says, after the plain opening that a next command does."""
    vault = open_vault(folder)
    record = vault.round(agree())
    span, back = record.consensus(), record.accepted()
    return {
        "history": vault.history(),
        "bases": [basis_columns(each.basis).tobytes() for each in vault.datasets()],
        "rows": [(len(each.last), len(each.earlier)) for each in vault.datasets()],
        "left without noise": vault.ledger.spent(choose(vault, table()).asked).bare,
        "secret": secret_bytes(record.secret()) if record.joined else None,
        "consensus": span and span.rows.tolist(),
        "return": back and (back.model, back.change_of_basis.tolist()),
    }


class Trial:
    """A step in a folder that is put back before each attempt."""

    def __init__(self, name, parent):
        prepare, self.work = STEPS[name]
        self._before, self.folder = parent / "before", parent / "north"
        self._before.mkdir()
        prepare(self._before / "north")
        self.reset()
        self.old = seen(self.folder)
        self.reset()
        self.work(self.folder)
        self.new = seen(self.folder)
        self.reset()

    def reset(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        if (self._before / "north").exists():
            shutil.copytree(self._before / "north", self.folder)

    def judge(self, where):
        """Old or new, nothing half-written, and the same command again gives the new state."""
        found = seen(self.folder)
        if found not in (self.old, self.new):
            msg = f"neither the old state nor the new one after {where}"
            raise AssertionError(msg)
        left = {path.name for path in self.folder.rglob("*") if path.suffix in {".part", ".gone"}}
        if left:
            msg = f"{left} left after {where}"
            raise AssertionError(msg)
        if found == self.old:
            self.work(self.folder)
            if seen(self.folder) != self.new:
                msg = f"another state than without the fault, tried again after {where}"
                raise AssertionError(msg)
        return found == self.new
