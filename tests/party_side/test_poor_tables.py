"""Tables with next to nothing in them: the same code at every door, and nothing half done."""

import numpy as np
import polars as pl
import pytest

from cobasis import Agreement, ConsortiumSecret, Party, PartyKey, numeric_features, simulate
from cobasis.bundle.uploads import UploadFile
from cobasis.errors import CobasisError
from cobasis.party_side.rows import check
from cobasis.party_side.send import send
from cobasis.party_side.session import join
from cobasis.tables import open_table
from party_side.sites import NAMES, NUMBERS, frame, ready_from

COLUMNS = {name: pl.lit(2.0) for name in NUMBERS}
TABLES = {
    "no rows": (lambda table: table[:0], "CB102"),
    "one row": (lambda table: table[:1], "CB106"),
    "all columns constant": (lambda table: table.with_columns(**COLUMNS), "CB106"),
    "a constant column": (lambda table: table.with_columns(age=COLUMNS["age"]), ""),
    "one class": (lambda table: table.with_columns(died=pl.lit(1)), ""),
}
"""What a table is made of, and the code that it is refused with, if it is."""


def poor(kind):
    """North's table, without empty cells, of numbers near zero and a label."""
    table = frame(1).with_columns(pl.col(NUMBERS).fill_null(0.0), ward=pl.lit("icu"))
    return TABLES[kind][0](table)


def arrays(table):
    return table.select(NUMBERS).to_numpy(), table["died"].to_numpy()


def party():
    secret = ConsortiumSecret()
    agreement = Agreement(
        round_id="r",
        parties=NAMES,
        features=numeric_features(NUMBERS),
        task="classification",
        classes=(0, 1),
        n_components=3,
        n_anchor_rows=4,
        model="ridge",
        label="died",
        commitment=secret.commitment("r"),
    )
    return Party("north", agreement=agreement, secret=secret, key=PartyKey())


def by_simulation(table, _):
    rows = {name: arrays(frame(at + 2)[5:]) for at, name in enumerate(NAMES)} | {
        "north": arrays(table)
    }
    simulate(rows, rng=np.random.default_rng(0), n_components=3, task="classification")


def by_party(table, _):
    party().prepare(*arrays(table))


def by_blocks(table, folder):
    north, to = party(), folder / "north.safetensors"
    rows = open_table(table, agreement=north.agreement, party="north")
    try:
        north.write(rows, to=UploadFile(to), memory=rows.memory(folder / "work"))
    except CobasisError:
        assert list(folder.iterdir()) == []
        raise


@pytest.mark.parametrize("door", [by_simulation, by_party, by_blocks])
@pytest.mark.parametrize("kind", TABLES)
def test_a_poor_table_has_one_code_in_python(kind, door, tmp_path):
    refused_or_taken(TABLES[kind][1], lambda: door(poor(kind), tmp_path))


@pytest.mark.parametrize("kind", TABLES)
def test_a_poor_table_has_the_same_code_at_the_command(kind, make):
    """Nothing is in the history, nothing in the folder where files leave from, nothing at work."""
    site, code = make(holdout=0.0), TABLES[kind][1]
    session = site.session("north")
    join(session, site.secret_file("north"))
    path, to = site.folder("north") / "poor.csv", site.folder("north") / "north.upload"
    poor(kind).write_csv(path)
    refused_or_taken(code, lambda: send(ready_from(session, path), to))
    assert to.exists() == (not code)
    assert len(session.vault.history()) == (not code)
    assert {each.name for each in session.work.iterdir()} <= {"1-upload.sent", "notes.age"}
    if kind == "one row":
        assert not check(session, path).fits


def refused_or_taken(code, act):
    if not code:
        act()
        return
    with pytest.raises(CobasisError) as refused:
        act()
    assert refused.value.code == code
    assert str(refused.value).endswith(f"[{code}]")


def test_one_class_at_all_parties_is_refused():
    rows = {name: arrays(frame(at + 1)[5:]) for at, name in enumerate(NAMES)}
    alike = {name: (table, labels * 0) for name, (table, labels) in rows.items()}
    with pytest.raises(CobasisError, match="of one class") as refused:
        simulate(alike, rng=np.random.default_rng(0), n_components=3, task="classification")
    assert refused.value.code == "CB104"
