"""Rounds of clusters and of novelty as people type them: no column of labels."""

import csv
from pathlib import Path

import numpy as np
import polars as pl

from cli.round_by_commands import NAMES, PUBS

COLUMNS = "--numbers age:centre=60,scale=20 --numbers pulse:centre=80,scale=15 --category sex=f,m"
TASKS = {
    "clustering": "--classes 1,2,3 --n-components 4 --basis haar",
    "novelty": "--n-components 2",
}


def patients(name, n_rows=80):
    rng = np.random.default_rng(NAMES.index(name))
    group = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    return pl.DataFrame(
        {
            "patient": [f"{name}-{at}" for at in range(n_rows)],
            "age": np.array([30.0, 60.0, 85.0])[group] + rng.normal(size=n_rows),
            "pulse": np.array([70.0, 110.0, 80.0])[group] + rng.normal(size=n_rows),
            "sex": rng.choice(["f", "m"], n_rows),
        }
    )


def done(cobasis, task, more=""):
    terms = f"{COLUMNS} --id patient --purpose study --task {task} {TASKS[task]}"
    cobasis.signed_on(f"{terms} --retention-days 30 --yes")
    for name in NAMES:
        patients(name).write_csv(f"{name}.csv")
    cobasis.send()
    cobasis.run(more)
    cobasis.accept()


def test_three_hospitals_get_the_clusters_of_all_patients_and_their_centres(cobasis):
    """Which are those of the pooled rows: tests/models/test_mixtures.py."""
    done(cobasis, "clustering", "--scores")
    tables = [Path(f"icu.{name}.table/clusters.csv").read_text() for name in NAMES]
    assert tables[0] == tables[1] == tables[2]
    lines = {name: cells for name, *cells in csv.reader(tables[0].splitlines())}
    assert [*lines] == ["cluster", "share of all rows", "age", "pulse", "sex=f", "sex=m"]
    cobasis("predict icu.toml north.csv -o out.csv", by="north")
    found = patients("north").with_columns(pl.read_csv("out.csv").select("prediction"))
    for cluster, centre in enumerate(map(float, lines["age"]), start=1):
        ages = found.filter(prediction=cluster)["age"]
        assert abs(ages.mean() - centre) < 1 > ages.std() / 3
    cobasis.said("score icu.toml", "is not scored")
    cobasis.said("accept icu.toml icu.north.1-return", f"age {float(lines['age'][0]):.4g}")


def test_a_party_that_lacks_a_column_is_told_no_centre_in_its_own(cobasis):
    cobasis.keys()
    columns = f"{COLUMNS.partition(' --category')[0]} --numbers sodium"
    terms = "--id patient --purpose study --task clustering --classes 1,2 --n-components 2"
    terms = f"{terms} --basis svd --retention-days 30"
    cobasis(f"agreement new icu.toml {columns} {terms} --yes")
    with Path("icu.toml").open("a") as file:
        file.write('\n[[holdings]]\nparty = "south"\ncolumns = ["age", "pulse"]\n')
    cobasis(f"agreement new icu.toml {PUBS} --yes")
    cobasis.signed()
    for name in NAMES:
        table = patients(name)
        more = [] if name == "south" else [(pl.col("age") % 7).alias("sodium")]
        table.with_columns(more).write_csv(f"{name}.csv")
    cobasis.send()
    cobasis.run()
    cobasis.accept()
    for name in NAMES:
        lines = Path(f"icu.{name}.table/clusters.csv").read_text().splitlines()
        assert [each.split(",")[0] for each in lines] == ["cluster", "share of all rows"]


def test_new_rows_get_the_share_of_rows_that_is_as_unlikely(cobasis):
    done(cobasis, "novelty")
    patients("north").with_columns(pulse=pl.lit(190.0)).write_csv("new.csv")
    cobasis("predict icu.toml new.csv -o out.csv", by="south")
    found = pl.read_csv("out.csv")
    assert found.columns == ["patient", "prediction", "model"]
    assert found["prediction"].max() < 0.05
