"""A regression table by steps, as people type it, with files and by one command."""

import re
import shutil
from pathlib import Path

import pytest

from cli.round_by_commands import NAMES, PUBS, write_table
from transport.serving import World

COLUMNS = "--numbers a:low=-20,high=20 --category sex=f,m"  # centred on its range
SUMS = "--sums most_rows=300,most_rows_in_all=900"
TERMS = (
    f"{COLUMNS} --label sick --classes no,yes --id patient --purpose study --retention-days 30 "
    f"--task classification --model logit --holdout 0 {SUMS} --yes"
)


def begun(cobasis, terms=TERMS):
    """Everybody signs and has a table; what the first is shown."""
    for seed, name in enumerate(NAMES):
        write_table(Path(f"{name}.csv"), seed=seed, n_rows=200)
    return cobasis.signed_on(terms)


def test_a_table_takes_as_many_exchanges_as_steps_and_is_printed_on_all_sides(cobasis):
    assert "up to 8 times 13 sums over your rows" in begun(cobasis)
    number, said = 0, ""
    while "Logistic regression: 600 rows" not in said:
        number += 1
        told = cobasis.json("status icu.toml")
        assert (told["exchange"], told["n_exchanges"]) == (number, 8)
        assert told["next"] == "cobasis send icu.toml data.csv"
        cobasis.send()
        said = cobasis.run().output
        assert f"Ends exchange {number} of 8: sums -> return" in said
        for name in NAMES:
            shutil.copy(f"outbox/icu.{name}.{number}-return", ".")
            cobasis("accept icu.toml", by=name)
        for line in ("predict icu.toml north.csv -o out.csv", "score icu.toml north.csv"):
            if number == 1:  # a step is not predicted with
                cobasis.refused(line, "no estimate yet")
    assert 3 < number < 8
    ended = cobasis.json("status icu.toml")
    assert (ended["exchange"], ended["n_exchanges"]) == (None, number)
    assert ended["next"] == "cobasis predict icu.toml new.csv -o out.csv"
    assert cobasis.json("status icu.toml", by="lab")["waits_for"] == []
    assert Path("icu.table/coefficients.html").exists()
    assert "All encoded columns left" not in Path("icu.card.html").read_text("utf-8")
    table = [line for line in said.splitlines() if line.startswith(("(intercept)", "a ", "sex=m"))]
    again = cobasis(f"accept icu.toml icu.north.{number}-return").output
    assert len(table) == len({*table} & {*again.splitlines()}) == 3  # everybody's is the analyst's
    assert "nobody is new" in cobasis("run icu.toml", by="lab").output
    cobasis.refused("send icu.toml north.csv --yes", "the round has ended")
    cobasis("predict icu.toml north.csv -o out.csv")
    cobasis.edit("f,", "0,", file="north.csv")
    cobasis.edit("m,", "Mme,", file="north.csv")
    why = "words that are not agreed (agreed: 'f', 'm')", "No row fits: 'cobasis send --dry-run'"
    assert "Mme" not in cobasis.refused("predict icu.toml north.csv -o none.csv", *why)
    cobasis.refused("send icu.toml north.csv --dry-run", "200 cells; found: ", "'Mme'")


def test_a_party_sees_whether_its_table_can_be_summed_before_anybody_signs(cobasis):
    cobasis.keys()
    cobasis(f"agreement new icu.toml {PUBS} {TERMS}")
    write_table(Path("north.csv"), seed=0, n_rows=200)
    line = "send icu.toml north.csv --dry-run"
    cobasis.said(line, "fits the agreement", "13 sums over 200 rows")
    cobasis(f"agreement new few.toml {PUBS} {TERMS.replace('most_rows=300', 'most_rows=199')}")
    why = "does not fit the agreement", "takes 0 to 199"
    cobasis.refused(line.replace("icu", "few"), *why)


def test_importance_is_agreed_on_by_words_and_printed_on_all_sides(cobasis):
    asked = f"{SUMS},maps=columns,scores=yes,importance=yes"
    terms = TERMS.replace("--model logit --holdout 0", "--holdout .4").replace(SUMS, asked)
    assert "what shuffling each column costs" in begun(cobasis, terms)
    for number in (1, 2):
        cobasis.send()
        said = cobasis.run().output
        for name in NAMES:
            shutil.copy(f"outbox/icu.{name}.{number}-return", ".")
            told = cobasis(f"accept icu.toml icu.{name}.{number}-return", by=name).output
    [shown] = re.findall("By how much accuracy falls.*\n +a .*\n +sex .*\n", said)
    assert shown in told
    assert '<th scope="row">a</th>' in Path("icu.card.html").read_text("utf-8")
    ended = cobasis.json("run icu.toml", by="lab")
    assert f"{ended['importance']['a'][0]:.4f}" in shown
    assert f"On {ended['worth']['rows']:.0f} rows that all parties held back" in said


@pytest.mark.soak
def test_steps_go_round_by_one_command(tmp_path, monkeypatch):
    world, signed = World(tmp_path, monkeypatch, terms="", agreed=TERMS), "--signed-by Officer"
    for seed, name in enumerate(NAMES):
        write_table(tmp_path / name / "data.csv", seed=seed, n_rows=200)
    world.worker().step()
    with world.serving(), world.working():
        for name in NAMES:
            world.go(name, f"--wait 0 {signed}", code=4)
        world.sealed()
        left = set(NAMES)
        while left:  # the answer comes while the last of them waits
            for name in sorted(left):
                code = world.go(name, f"--wait {5 * (name == max(left))} {signed}", code=None)
                assert code.exit_code in {0, 4}
                left -= set() if code.exit_code else {name}
    status = world.typed.json(f"status {NAMES[0]}/icu.toml", by=NAMES[0])
    assert status["exchange"] is None
    assert status["n_exchanges"] < 8


def test_a_home_from_before_it_signed_is_told_that_its_key_for_masks_is_gone(cobasis):
    cobasis.keys()
    cobasis(f"agreement new icu.toml {PUBS} {TERMS}")
    shutil.copytree("home-north", "before")
    for name in (*NAMES, "lab"):
        cobasis("sign icu.toml --yes", by=name)
    first = Path("north.sig").read_text()
    assert "as it was" in cobasis("sign icu.toml --yes").stdout
    shutil.rmtree("home-north")
    shutil.copytree("before", "home-north")
    assert "Wrote north.sig" in cobasis("sign icu.toml --yes").stdout
    assert Path("north.sig").read_text() != first
    Path("north.sig").write_text(first)
    cobasis("receive icu.toml", by="lab")
    cobasis.refused("sign icu.toml --yes", "put back from an older copy", "[CB305]")
    assert Path("north.sig").read_text() == first
