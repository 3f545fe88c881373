"""Three groups of hospitals, each with an analyst of its own, train one model by commands."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl

from cobasis import ODC, align
from cobasis.bundle.agreement_file import sealed_agreement
from cobasis.bundle.envelope import open_bundle, write_bundle
from cobasis.bundle.folders import UploadFolder
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.round import run_sums

GROUPS = {group: [f"{group}-{at}" for at in "xyz"] for group in ("coast", "hills", "plain")}
TERMS = "--round all --id patient --model ridge --n-components 3 --basis haar " + " ".join(
    [*(f"--numbers {each}" for each in "abcdef"), *(f"--group {group}-lab.pub" for group in GROUPS)]
)
STUDY = "--label dose --task regression --retention-days 30 --purpose study --minimum-parties 3"
SUMS = "--sums maps=columns,most_rows=900,most_rows_in_all=2700,target_range=-60:60"
TRAINED = "--trained sums/sums.toml"


def sent(cobasis, file, tables, terms, *, names, by, to):
    """Who takes part signs an agreement, and sends; a group's analyst is a party of the sums."""
    pubs, folder = " ".join(f"{name}.pub" for name in names), Path(file).parent
    folder.mkdir()
    cobasis(f"agreement new {file} {pubs} --analyst {to}.pub {STUDY} {terms} --yes", by=by)
    for name in (*names, to):
        home = f"{name}-lab" if name in GROUPS else name
        cobasis(f"sign {file} --yes -o {folder}/{name}.sig", by=home)
    cobasis(f"receive {file}", by=to)
    lines = {by: f"send {file} {table} --yes --signed-by Officer" for by, table in tables.items()}
    paths = [cobasis.json(line, by=by)["path"] for by, line in lines.items()]
    cobasis(f"receive {file} {' '.join(paths)}", by=to)


def run(cobasis, group, more="", **options):
    left = "" if group == "coast" else "--without coast-x"
    return cobasis.said(f"run {group}/{group}.toml {left} {more}", by=f"{group}-lab", **options)


def trained(cobasis):
    """All nine have sent, and the analysts have exchanged references and trained on sums."""
    rng = np.random.default_rng(5)
    for group, names in GROUPS.items():
        for name in names:
            cobasis(f"key new {name}", by=name)
            rows = pl.DataFrame(rng.normal(size=(30, 7)), schema=[*"abcdef", "dose"])
            more = {"dose": pl.col("dose") + 3 * pl.col("a"), "patient": pl.int_range(30)}
            rows.with_columns(**more).write_csv(f"{name}.csv")
        cobasis(f"key new {group}-lab --analyst", by=f"{group}-lab")
        cobasis(f"key new {group}", by=f"{group}-lab")
    for group, names in GROUPS.items():
        secret = "" if group == "coast" else "--secret-of coast/coast.toml"
        told = {"names": {"coast-x", *names}, "by": "coast-x", "to": f"{group}-lab"}
        tables = {name: f"{name}.csv" for name in names}
        sent(cobasis, f"{group}/{group}.toml", tables, f"{TERMS} {secret}", **told)
        run(cobasis, group)
    away = "nothing to do now; when coast-lab.reference, plain-lab.reference lie here:"
    cobasis.said("status hills/hills.toml", away, by="hills-lab")
    for group in GROUPS:
        for other in {*GROUPS} - {group}:
            shutil.copy(f"{other}/{other}-lab.reference", group)
    for group in GROUPS:
        assert cobasis.json(f"status {group}/{group}.toml", by=f"{group}-lab")["now"]
        run(cobasis, group)
    assert "--trained" in cobasis.json("status hills/hills.toml", by="hills-lab")["next"]
    tables = {f"{group}-lab": f"{group}/{group}.round/aligned.parquet" for group in GROUPS}
    row, *columns, _ = pl.read_parquet(tables["coast-lab"]).columns
    terms = f"{SUMS} --id {row} {' '.join(f'--numbers {x}:low=-9,high=9' for x in columns)}"
    cobasis("key new top --analyst", by="top")
    sent(cobasis, "sums/sums.toml", tables, terms, names=GROUPS, by="coast-lab", to="top")
    cobasis("run sums/sums.toml", by="top")
    for group in GROUPS:
        cobasis(f"accept sums/sums.toml sums/outbox/sums.{group}.1-return", by=f"{group}-lab")


def test_groups_predict_as_one_consortium_of_all_their_parties_would(cobasis):
    trained(cobasis)
    refuse_wrong_references(cobasis)
    kept = {group: UploadFolder(Path(f"{group}/{group}.round/payloads")) for group in GROUPS}
    uploads = {name: kept[group][name] for group, names in GROUPS.items() for name in names}
    found = align(ODC(), {name: each.anchor_image[:] for name, each in uploads.items()})
    rows = {name: uploads[name].rows[:] @ each for name, each in found.changes_of_basis.items()}
    pairs = {name: (rows[name], uploads[name].labels[:]) for name in rows}
    of = {group: zip(*map(pairs.get, names), strict=True) for group, names in GROUPS.items()}
    pooled = {group: tuple(map(np.concatenate, both)) for group, both in of.items()}
    agreement, keys = sealed_agreement(Path("sums/sums.toml")), {x: MaskKey() for x in GROUPS}
    wanted = run_sums(pooled, agreement=agreement, keys=keys).parties["hills"]
    for group, names in GROUPS.items():
        run(cobasis, group, TRAINED)
        others = ", ".join(f"the group of {other}-lab" for other in GROUPS if other != group)
        for name in names:
            came = f"{group}/{group}.news {group}/outbox/{group}.{name}.1-return"
            cobasis.said(f"accept {group}/{group}.toml {came}", f"{names[2]}, {others}.", by=name)
            cobasis(f"predict {group}/{group}.toml {name}.csv -o out.csv", by=name)
            found = np.sort(pl.read_csv("out.csv")["prediction"])  # rows were sent in another order
            np.testing.assert_allclose(found, np.sort(wanted.predict(rows[name])), rtol=1e-9)
    cobasis.refused(f"run sums/sums.toml {TRAINED}", "[CB107]", by="top")
    cobasis.refused("remove coast/coast.toml coast-z", "be taken out of a total", by="coast-lab")
    told = f"coast-x.pub coast-y.pub coast-z.pub hills-lab.pub {STUDY} {TERMS} --round b --yes"
    told += " --secret-of coast/coast.toml"
    cobasis.refused(f"agreement new x.toml {told}", "is of round 'all'", by="coast-x")


def refuse_wrong_references(cobasis):
    path, ours = Path("coast/hills-lab.reference"), cobasis.identity("coast-lab")
    whole, signer = path.read_bytes(), {"hills-lab": cobasis.public("hills-lab")}
    bundle = open_bundle(path, unseal=ours.unseal, signer=signer, into=Path("opened"))
    measured = {"format", "software", "recipients", "created", "parts"}
    good, told = bundle.manifest.model_dump(exclude=measured), bundle.manifest.told
    made = {"parts": bundle.parts, "recipients": [ours.public]}
    made["sign"] = cobasis.identity("hills-lab").sign

    def refused(words, *, code=3, more="", **changes):
        """Say so of a reference, which is signed and sealed anew where something is changed."""
        if changes:
            write_bundle(path, draft={**good, **changes}, **made)
        assert words in run(cobasis, "coast", more, code=code)

    refused("is of round 'another', not of round 'all'", round_id="another")
    terms = [each for each in told["terms"] if "features" not in each]
    refused("another features than this one", told={**told, "terms": terms})
    refused("is of kind 'proposal'", kind="proposal")
    refused("or sent, another anchor", anchor_tag="0" * 64)
    fewer = {**told, "contributors": ["hills-x", "hills-y"]}
    refused("the mark in these names is another", code=2, more=TRAINED, told=fewer)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused("[CB801]")
    for other in ("coast", "plain"):
        shutil.copy(f"coast/{other}-lab.reference", path)
        refused("[CB802]")
    path.unlink()
    refused("when hills-lab.reference lie here: cobasis run", code=0)
    refused("hills-lab.reference' cannot be read", code=2, more=TRAINED)
    path.write_bytes(whole)
