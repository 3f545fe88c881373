import shutil
import tempfile
from pathlib import Path
from threading import Thread

import pytest

from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from cobasis.vault import records
from cobasis.vault.ledger import spent_on
from faults import FULL, deaths, failures
from vault.vaults import (
    NORTH,
    SECRET,
    agree,
    choose,
    consensus,
    open_vault,
    propose,
    returned,
    table,
    upload,
)

NOISE = DPTerms(epsilon=2, radius=1, most_rows=99, labels="public", lifetime_epsilon=2)
NOISY = agree("noisy", basis="haar", dp=NOISE)


def of_round(folder):
    return open_vault(folder).round(agree())


def begun(folder, rows=None, **options):
    upload(open_vault(folder), table() if rows is None else rows, digest=None, **options)


def whole_round(folder):
    upload(open_vault(folder), table())
    record = of_round(folder)
    record.join(SECRET)
    record.adopt(consensus())
    record.accept(returned(model=b"the first model"))


def proposed(folder, round_id="icu-2026"):
    propose(open_vault(folder), table(), agreement=agree(round_id))


def joined(folder):
    of_round(folder).join(SECRET)


def uploaded(folder):
    upload(open_vault(folder), table())


STEPS = {
    "open a new vault": (id, open_vault),
    "join": (id, joined),
    "adopt": (joined, lambda folder: of_round(folder).adopt(consensus())),
    "begin a fresh upload": (joined, begun),
    "begin a kept upload": (
        uploaded,
        lambda folder: begun(folder, table()[5:], agreement=agree("second")),
    ),
    "begin an upload with noise": (
        uploaded,
        lambda folder: begun(folder, table(seed=1), agreement=NOISY, release="1" * 64),
    ),
    "propose": (joined, proposed),
    "propose again": (proposed, lambda folder: proposed(folder, "second")),
    "finish an upload": (begun, lambda folder: open_vault(folder).finish_upload(1, "e" * 64)),
    "accept": (joined, lambda folder: of_round(folder).accept(returned())),
    "accept again": (whole_round, lambda folder: of_round(folder).accept(returned())),
    "forget": (whole_round, lambda folder: of_round(folder).forget()),
}


def seen(folder):
    """All that a vault says, after the plain opening that a next command does."""
    vault = open_vault(folder)
    record = vault.round(agree())
    span, back = record.consensus(), record.accepted()
    spent = [spent_on(vault.datasets(), choose(vault, table(seed=at)).asked) for at in (0, 1)]
    return {
        "history": vault.history(),
        "bases": [each.basis and basis_columns(each.basis).tobytes() for each in vault.datasets()],
        "rows": [(len(each.last), len(each.earlier)) for each in vault.datasets()],
        "spent": [(each.bare, each.charges) for each in spent],
        "secret": secret_bytes(record.secret()) if record.joined else None,
        "consensus": span and span.rows.tolist(),
        "return": back and (back.model, back.change_of_basis.tolist()),
    }


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_fails_or_dies_at_any_call_leaves_the_old_state_or_the_new_one(name, in_memory):
    """Nothing is half-written, and the same command again gives the new state."""
    (prepare, step), parent = STEPS[name], Path(tempfile.mkdtemp(dir=in_memory))
    before, folder = parent / "before", parent / "north"

    def reset():
        shutil.rmtree(folder, ignore_errors=True)
        if before.exists():
            shutil.copytree(before, folder)

    def done():
        step(folder)
        return seen(folder)

    prepare(before)
    reset()
    old, new = seen(folder), done()
    reset()
    for trials in (enumerate(failures(FULL, lambda: step(folder))), deaths(lambda: step(folder))):
        calls, states = set(), []
        for where, call in trials:
            found = seen(folder)
            assert found in (old, new), (where, call)
            left = {path.name for path in folder.rglob("*") if path.suffix in {".part", ".gone"}}
            assert not left, (where, call)
            assert found == new or done() == new, (where, call)
            states.append(found == new)
            calls.add(call)
            reset()
        assert {"fsync", "replace"} <= calls
        assert any(states)


def test_what_a_command_keeps_while_the_vault_is_sealed_anew_stays(tmp_path):
    joined(tmp_path / "vault")
    of_round(tmp_path / "vault").accept(returned(model=b"the first model"))
    writer, at_work = of_round(tmp_path / "vault"), []

    def reseal(plain):
        if b"the first model" in plain:
            at_work.append(Thread(target=lambda: writer.accept(returned(model=b"the second"))))
            at_work[0].start()
            at_work[0].join(0.3)  # it waits, or has written what is about to be written over
        return NORTH.seal_for_self(plain)

    records.seal_anew(tmp_path / "vault", seal=reseal, unseal=NORTH.unseal_own)
    at_work[0].join()
    assert of_round(tmp_path / "vault").accepted().model == b"the second"
