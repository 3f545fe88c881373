"""A round as people type it in which a ward and two laboratories hold columns of its people."""

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from experiments.studies.table_08 import BLOCKS, SMALL, TESTS, adult, in_turn, partition

from cli.round_by_commands import TERMS, write_table
from cobasis.bundle.agreement_file import read_terms, sealed_agreement
from cobasis.features.encoder import encode
from cobasis.party_side.approval import read_audit
from cobasis.protocol.secrets import public_rows_digest
from cobasis.report.audit_page import render_audit

NAMES = ("east", "north", "south", "west")
PUBS = " ".join(f"{name}.pub" for name in (*NAMES, "lab"))
HELD = {"east": ["a", "b"], "north": ["c", "sex"], "west": ["d"]}


def holding(name, columns, *, block="city", size=1, more=""):
    told = f'party = "{name}"\ncolumns = {columns}\nblock = "{block}"\nn_components = {size}\n'
    return f"\n[[holdings]]\n{told}{more}"


HOLDINGS = holding("east", HELD["east"], size=2) + "".join(
    holding(name, HELD[name], more="labels = false\n") for name in ("north", "west")
)
BESIDE = {
    name: " ".join(f"--with {other}.part" for other in HELD if other != name) for name in HELD
}


def parted(rows, folder=Path(), *, end=".csv"):
    rows.select("patient", *HELD["east"], "sick").write_csv(folder / f"east{end}")
    for seed, name in enumerate(("north", "west")):
        lab = rows.select("patient", *HELD[name]).sample(fraction=1.0, shuffle=True, seed=seed)
        lab.write_csv(folder / f"{name}{end}")


@pytest.fixture
def agreed(cobasis):
    cobasis.keys(NAMES)
    cobasis.draft(more="--basis svd --n-components 4 --holdout 0.25")
    Path("icu.toml").write_text(Path("icu.toml").read_text() + HOLDINGS)
    cobasis(f"agreement new icu.toml {PUBS} --yes")
    return cobasis


def ready(agreed):
    agreed.signed(NAMES)
    parted(pl.read_csv(write_table(Path("people.csv"), seed=1, n_rows=80)))
    write_table(Path("south.csv"), seed=2, n_rows=60)


def finished(agreed):
    ready(agreed)
    agreed.send(*NAMES)
    agreed.run()
    agreed.accept(*NAMES)


def made_parts(agreed, *names, end=".csv"):
    for name in names or ("north", "west"):
        line = f"predict icu.toml {name}{end} --part -o {name}.part"
        agreed.said(line, "sealed for your block's others", by=name)


def test_a_ward_and_laboratories_train_with_a_hospital_and_predict_together(agreed):
    agreed.said(
        "sign icu.toml --yes",
        "Who holds east: a, b; north: c, sex; west: d; others all",
        "JOINED lab puts each person's numbers beside those of east, west",
        "whose they are, as 1 number each an upload is pseudonymised",  # and no label
    )
    ready(agreed)
    order = "56 rows in the order of east, west, with a tag of whose they are"
    agreed.said("send icu.toml north.csv --dry-run", order, "24 rows that are held back")
    agreed("audit icu.toml north.csv -o audit.html")
    page, agreement = Path("audit.html").read_text("utf-8"), sealed_agreement(Path("icu.toml"))
    assert "in the clear" not in page  # the ward has the labels
    assert render_audit(read_audit(Path("audit.json"), agreement), agreement) == page
    agreed.send(*HELD)
    agreed.run("--without south")
    agreed.accept(*HELD)
    said = agreed("accept icu.toml icu.north.1-return", by="north").output
    part = agreed.json("status icu.toml", by="north")["next"]
    assert part == "cobasis predict icu.toml new.csv --part -o north.part"
    with_it = "cobasis predict icu.toml new.csv --with east.part --with west.part -o out.csv"
    assert said.endswith(
        f"Next:\n  {part}\nand with what east, west made of the same people in this way:\n"
        f"  {with_it}\n"
    )
    new = pl.read_csv(write_table(Path("people.csv"), seed=9, n_rows=200))
    parted(new, end="-new.csv")
    made_parts(agreed, *HELD, end="-new.csv")
    agreed.send("south")  # a hospital that comes late
    agreed.run("--with south --yes")
    agreed.said("verify icu.toml", "fit", by="lab")
    late = "is older than the last run, on east, north, south, west; a newer return is due"
    assert late in agreed.json("status icu.toml", by="east")["outdated"]
    agreed.accept(*NAMES)
    line = f"predict icu.toml east-new.csv {BESIDE['east']} -o out.csv"
    agreed.refused(line, "is of another model", by="east")
    made_parts(agreed, *HELD, end="-new.csv")
    for name, others in BESIDE.items():
        agreed(f"predict icu.toml {name}-new.csv {others} -o {name}-out.csv", by=name)
    ward, *labs = (pl.read_csv(f"{name}-out.csv").sort("patient") for name in HELD)
    for lab in labs:
        assert ward["prediction"].to_list() == lab["prediction"].to_list()
    right = ward.join(new, on="patient")
    assert np.mean((right["prediction"] == right["sick"]).to_numpy()) > 0.9


@pytest.mark.filterwarnings("ignore:anchor='public'")
def test_public_rows_have_all_columns_whoever_holds_some(agreed):
    known = pl.read_csv(write_table(Path("known.csv"), seed=3, n_rows=7)).drop("patient", "sick")
    columns = read_terms(Path("icu.toml")).features
    digest = public_rows_digest(encode(known, columns, party="everybody"))
    agreed.edit('anchor = "isometric"', 'anchor = "public"')
    agreed.edit('public_rows_sha256 = ""', f'public_rows_sha256 = "{digest}"')
    agreed(f"agreement new icu.toml {PUBS} --yes")
    ready(agreed)
    for name in ("north", "south"):
        agreed.refused(f"send icu.toml {name}.csv --public-rows known.csv", "H1", by=name)


def test_a_block_scores_on_people_whom_all_of_it_held_back(agreed):
    finished(agreed)
    told = {
        "east": "holds some columns of its people, and the model takes all: those of north, west",
        "north": "east has your people's labels, and scores with your part of those who",
        "south": "rows that never left",
    }
    for name, words in told.items():
        agreed.said(f"accept icu.toml icu.{name}.1-return", words, by=name)
    for name in ("north", "west"):
        agreed.said(f"predict icu.toml --part -o {name}.part", "24 people's parts", by=name)
        agreed(f"predict icu.toml {name}.csv --part -o {name}-all.part", by=name)
    everybody = BESIDE["east"].replace(".part", "-all.part")
    agreed(f"predict icu.toml east.csv {everybody} -o out.csv", by="east")
    rows = pl.read_csv("east.csv")
    # the rule, by the identifier alone: another would send in one round who stayed in another
    digests = (hashlib.sha256(f"cobasis/1/side\0{x}".encode()).digest() for x in rows["patient"])
    kept = pl.Series([int.from_bytes(x[:8], "little") < 0.25 * 2**64 for x in digests])
    right = rows["sick"] == pl.read_csv("out.csv")["prediction"]
    score = f"score icu.toml {BESIDE['east']}"
    found = agreed.json(score, by="east")["score"]
    assert found["n_rows"] == kept.sum() == 24
    assert found["together"]["accuracy"][0] == pytest.approx(right.filter(kept).mean())
    assert found["alone"]["accuracy"][0] < 1  # of the ward's columns
    agreed.said(f"{score} --send --yes", "Wrote icu.east.word", by="east")
    agreed.refused(score, "holds no part of other parties' people", by="south")
    for name in HELD:  # somebody who came later is nobody who was held back, whatever the rule says
        own = pl.read_csv(f"{name}.csv")
        more = own.head(9).with_columns(patient=pl.Series(map("came-{}".format, range(9))))
        pl.concat([own, more]).write_csv(f"{name}.csv")
    agreed.said("predict icu.toml --part -o north.part", "24 people's parts")
    assert found["together"] == agreed.json(score, by="east")["score"]["together"]
    Path("north.csv").unlink()
    agreed.refused("predict icu.toml --part -o south.csv", "a table of yours")
    nobody = "there is nobody who was held back. Name a table"
    agreed.refused("predict icu.toml --part -o gone.part", nobody)


def test_a_part_is_for_its_block_its_people_and_keys_in_force_and_for_no_whole_row(agreed):
    finished(agreed)
    predict = "predict icu.toml east.csv -o out.csv"
    made_parts(agreed)
    halves = ("", "--with north.part", "--explain", f"--part {BESIDE['east']}", "--part --explain")
    lines = ("score icu.toml", "export icu.toml --surrogate east.csv", "export icu.toml")
    for line in (*(f"{predict} {half}" for half in halves), *lines):
        agreed.refused(line, "those of north, west are needed as well", by="east")
    line = f"predict icu.toml -o out.csv {BESIDE['east']}"
    agreed.refused(line, "takes a table of new rows", by="east")
    agreed.refused("predict icu.toml south.csv --part -o out.csv", "holds no part", by="south")
    whole = pl.read_csv("north.csv")

    def refused(part, *words, code=2):
        line = f"predict icu.toml east.csv --with {part}.part --with west.part -o out.csv"
        agreed.refused(line, *words, by="east", code=code)

    for rows, words in (
        (whole.head(70), "lacks 10 of 80 people"),
        (pl.concat([whole, whole.head(1)]), "1 more than once"),
    ):
        rows.write_csv("some.csv")
        agreed("predict icu.toml some.csv --part -o north.part")
        refused("north", words)
    assert not list(Path().rglob("part.parquet"))  # nothing plain is left
    agreed("predict icu.toml west.csv --part -o again.part", by="west")
    refused("again", "of west was given twice")
    agreed.refused("accept icu.toml north.part", "is a part from 'north'", by="east", code=3)
    agreed("predict icu.toml east.csv --part -o own.part", by="east")
    pl.read_csv("east.csv").write_csv("plain.part")
    for part in ("own", "plain"):
        refused(part, code=3)
    for by in ("south", "lab"):
        agreed("key revoke icu.toml north --yes", by=by)
    agreed("accept icu.toml icu.news", by="east")
    for more in ("--part -o east.part", f"{BESIDE['east']} -o out.csv"):
        agreed.refused(f"predict icu.toml east.csv {more}", "[CB315]", by="east")
    assert not Path("east.part").exists()


def test_nobody_of_a_block_that_lacks_one_counts_as_in_or_late_or_gets_a_model(agreed):
    agreed.edit("minimum_parties = 2", "minimum_parties = 1")
    agreed(f"agreement new icu.toml {PUBS} --yes")
    ready(agreed)
    agreed.send("east", "south", "west")
    agreed("receive icu.toml inbox", by="lab")
    assert "1 needed, 1 in" in agreed("status icu.toml", by="lab").output
    agreed.run("--without north --yes")
    assert "after the last run" not in agreed("status icu.toml", by="lab").output
    assert agreed.json("status icu.toml", by="lab")["waits_for"] == []
    assert agreed.json("receive icu.toml inbox", by="lab")["late"] == []
    agreed.send("north")
    agreed.run("--with north --yes")
    agreed("remove icu.toml north", by="lab")
    assert [path.name for path in Path("outbox").glob("*-return")] == ["icu.south.1-return"]


def test_the_pages_example_can_be_agreed_on(cobasis):
    page = Path(__file__).parents[2] / "docs/how-to/other-columns.md"
    first, tables, last = page.read_text(encoding="utf-8").split("```")[1:6:2]
    cobasis.keys(("ward", "lab-north", "valley"))
    rest = "--classes 0,1 --minimum-parties 2 --retention-days 30 --purpose study --yes"
    typed = first.removeprefix("sh\ncobasis ").replace("\\\n", "")
    cobasis(f"{typed} {rest}", by="ward")
    with Path("icu.toml").open("a", encoding="utf-8") as file:
        file.write(tables.removeprefix("toml"))
    pubs = "ward.pub lab-north.pub valley.pub lab.pub"
    cobasis(last.removeprefix("sh\ncobasis ").replace("*.pub", pubs).strip() + " --yes", by="ward")


@pytest.mark.soak  # 70 seconds
@pytest.mark.data("adult")
def test_ten_blocks_of_table_8_predict_by_commands_as_in_its_study(cobasis):
    split = in_turn(partition(adult(), repeat=0, n_blocks=BLOCKS, n_tests=TESTS))
    names = np.array([f"x{column}" for column in range(split.test_rows.shape[1])])
    words, text, parties = np.array(["low", "high"]), "", []
    table = pl.DataFrame(split.test_rows, schema=[*names]).with_row_index("patient")
    table.with_columns(sick=words[split.test_labels]).write_csv("public.csv")
    for block, (rows, labels) in [*split.parties.items()][:10]:
        people = pl.DataFrame(rows, schema=[*names]).with_row_index("patient")
        for held, name in zip(split.halves, (f"{block}-a", f"{block}-b"), strict=True):
            people.select("patient", *names[held], sick=words[labels]).write_csv(f"{name}.csv")
            text += holding(name, names[held].tolist(), block=block, size=SMALL)
            parties.append(name)
    cobasis.keys(parties)
    terms = f"{TERMS} --model mlp --holdout 0 --basis svd --n-components {2 * SMALL} --yes"
    cobasis(f"agreement new icu.toml {terms}")
    Path("icu.toml").write_text(Path("icu.toml").read_text() + text)
    pubs = " ".join(f"{name}.pub" for name in (*parties, "lab"))
    cobasis(f"agreement new icu.toml {pubs} --yes", by=parties[0])
    cobasis.signed(parties)
    cobasis.send(*parties)
    cobasis.run("--no-scores")
    cobasis.accept(*parties[:2])
    cobasis("predict icu.toml public.csv --part -o b.part", by=parties[1])
    cobasis("predict icu.toml public.csv --with b.part -o out.csv", by=parties[0])
    found = pl.read_csv("out.csv").sort("patient")["prediction"].to_numpy()
    assert np.mean(found == words[split.test_labels]) > 0.82  # parties alone: 0.80
