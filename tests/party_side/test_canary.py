"""Marked values of rows, anchor, basis and secret are in no byte that leaves, or stays, plain."""

import traceback

import numpy as np
import polars as pl
import pytest

from cobasis.errors import CobasisError
from cobasis.linalg.arrays import gathered
from cobasis.party_side.rows import open_rows
from cobasis.party_side.send import send
from faults import Killed, at_call, dying_after
from party_side.sites import NAMES, NUMBERS, frame, ready_from

WORD = "CANARY-PATIENT"


def canaries(site, name, *, basis=None):
    """Every number of X, A, F and the secret as bytes, and as a person would read it."""
    session = site.session(name)
    rows = gathered(open_rows(session, site.table(name)).table)
    anchor = site.secret.anchor(site.agreement).apply(np.eye(8))
    tables = [rows[:, :4], anchor, *([] if basis is None else [basis.project(np.eye(8))])]
    numbers = np.unique(np.concatenate([each.ravel() for each in tables]))
    numbers = numbers[(np.abs(numbers) > 1e-12) & (np.abs(numbers) != 1)]
    marks = {number.tobytes() for number in numbers}
    words = {repr(float(number))[:12].encode() for number in numbers if len(repr(number)) > 12}
    secrets = {site.key, site.key.hex().encode(), WORD.encode()}
    return marks | words | secrets


def hits(data, marks):
    return [mark for mark in marks if mark in data]


@pytest.fixture
def marked(make):
    """Consensus, so that both files leave; one id that would be recognised."""
    site = make(basis="consensus")
    for at, name in enumerate(NAMES, start=1):
        table = frame(at).with_columns(patient=pl.lit(WORD) + pl.int_range(120).cast(pl.String))
        table.write_csv(site.folder(name) / "data.csv")
        site.joined(name)
    return site


def test_no_marked_value_is_in_any_byte_that_leaves_or_that_is_kept(marked, capfd):
    site, left = marked, {}
    proposals = []
    for name in NAMES:
        to = site.folder(name) / f"{name}.span"
        site.send(name, to=to)
        proposals.append(site.proposal(name, to))
        left[to] = b"".join(each.read_bytes() for each in site.opened(name, to).parts.values())
    span = site.analyst_of({}).consensus(proposals)
    for name in NAMES:
        site.session(name).round.adopt(span)
        to = site.send(name).path
        bundle = site.opened(name, to)
        left[to] = bundle.manifest.encoded() + bundle.parts["upload.safetensors"].read_bytes()
    told = capfd.readouterr()
    for name in NAMES:
        basis = site.session(name).vault.upload_of(site.agreement)[0].basis
        marks = canaries(site, name, basis=basis)
        row = gathered(open_rows(site.session(name), site.table(name)).table)[7]
        assert len(hits(b"x" + row.tobytes(), marks)) >= len(NUMBERS)  # the search would find it
        assert hits(f"the value {row[0]!r} of {WORD}7".encode(), marks)
        seen = [path.read_bytes() + plain for path, plain in left.items()]
        kept = [path for path in site.home(name).rglob("*") if path.is_file()]
        assert {path.suffix for path in kept} == {".age", ".jsonl", ".sent"}
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
        seen += [path.read_bytes() for path in kept]
        for data in (*seen, told.out.encode(), told.err.encode()):
            assert hits(data, marks) == []


def on_call(folder, kind):
    return lambda call, _, path: (path.parent.name, call) == (folder, kind)


def test_no_marked_value_is_in_a_traceback_or_an_error(site):
    to, told = site.send().path, []
    marks = canaries(site, "north")
    for folder, kind in (("datasets", "open"), ("datasets", "replace"), (to.parent.name, "open")):
        session = site.session()
        with at_call(1, dying_after, counts=on_call(folder, kind)):
            try:
                send(ready_from(session, site.table("north")), to)
            except Killed as error:
                frames = traceback.walk_tb(error.__traceback__.tb_next)  # but for this one
                lines = traceback.StackSummary.extract(frames, capture_locals=True)
                told.append("".join(lines.format()).encode())
    assert all(b"session = <PartySession, hidden>" in each for each in told)
    seventh = pl.when(pl.int_range(120) == 5).then(7).otherwise("died")
    for bad in ({"died": seventh}, {"age": pl.lit(1.0) / 0}, {"pulse": pl.lit("fast")}):
        path = site.folder("north") / "bad.csv"
        frame(1).with_columns(**bad).write_csv(path)
        with pytest.raises(CobasisError) as error:
            site.send(table=path)
        told.append("".join(traceback.format_exception(error.value)).encode())
    assert len(told) == 6
    assert [hits(each, marks) for each in told] == [[]] * 6
