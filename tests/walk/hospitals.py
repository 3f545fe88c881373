"""Four real hospitals go through a round by commands; what it is worth to each, beside two others.

``PYTHONPATH=tests python -m walk.hospitals`` prints the tables that the tutorial has.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from experiments.data.hospitals import HEART_FEATURES, heart_disease_4site
from sklearn.metrics import roc_auc_score

from cli.round_by_commands import Typed
from cobasis.models.trainer import train
from cobasis.party_side.rows import gathered, open_rows
from cobasis.party_side.session import open_session

SITES = ("cleveland", "hungarian", "switzerland", "va")
WORDS = {
    "sex": ("0", "1"),
    "cp": ("1", "2", "3", "4"),
    "fbs": ("0", "1"),
    "restecg": ("0", "1", "2"),
    "exang": ("0", "1"),
    "slope": ("1", "2", "3"),
    "thal": ("3", "6", "7"),
}
NUMBERS = {  # centre, scale and unit: round figures for adults with chest pain
    "age": (55, 10, "years"),
    "trestbps": (130, 20, "mm Hg"),
    "chol": (240, 50, "mg/dl"),
    "thalach": (140, 25, "1/min"),
    "oldpeak": (1, 1, "mm"),
    "ca": (0.5, 1, "vessels"),
}
COMPONENTS = 12


@dataclass(frozen=True, kw_only=True)
class Worth:
    """Shares of right answers on the rows that a hospital held back."""

    n_rows: int
    n_held: int
    positive: float
    local: float
    together: float
    pooled: float
    constant: float


def write_tables(folder):
    """Write each hospital's table: words as words, empty cells where nothing was measured."""
    patients = heart_disease_4site()
    for site in SITES:
        chosen = patients.only([site])
        columns = {}
        for name, values in zip(HEART_FEATURES, chosen.rows.T, strict=True):
            as_word = name in WORDS
            cells = [
                None if np.isnan(v) else (str(int(v)) if as_word else float(v)) for v in values
            ]
            columns[name] = pl.Series(cells, dtype=pl.String if as_word else pl.Float64)
        number = range(1, len(chosen.labels) + 1)
        columns["row"] = [f"{site}-{at:03}" for at in number]
        columns["disease"] = ["yes" if label else "no" for label in chosen.labels]
        pl.DataFrame(columns).write_csv(folder / f"{site}.csv")


def agree(cobasis, *, basis):
    """Write the agreement as people do, by options, and have everybody sign it."""
    cobasis.keys(SITES)
    numbers = " ".join(
        f"--numbers '{name}:centre={centre},scale={scale},unit={unit}'"
        for name, (centre, scale, unit) in NUMBERS.items()
    )
    words = " ".join(f"--category {name}={','.join(each)}" for name, each in WORDS.items())
    pubs = " ".join(f"{site}.pub" for site in SITES)
    cobasis(
        f"agreement new heart.toml {pubs} --analyst lab.pub --yes {numbers} {words} --missing fill "
        "--label disease --id row --task classification --classes no,yes --model logistic "
        f"--n-components {COMPONENTS} --holdout 0.2 --basis {basis} --retention-days 90 "
        "--purpose study --minimum-parties 3",
        by=SITES[0],
    )
    for name in (*SITES, "lab"):
        cobasis("sign heart.toml --yes", by=name)
    cobasis("receive heart.toml", by="lab")


def exchange(cobasis):
    """Send everybody's next file, end the exchange, and return what `accept` said to each."""
    for site in SITES:
        assert cobasis.json(f"send heart.toml {site}.csv --dry-run", by=site)["fits"]
        cobasis(f"send heart.toml {site}.csv --signed-by officer --yes", by=site)
    cobasis("receive heart.toml", by="lab")
    written = cobasis.json("run heart.toml", by="lab")["written"]
    return {
        site: cobasis.json(f"accept heart.toml heart.news {written[site]}", by=site)
        for site in SITES
    }


def go_through(folder, patch, *, basis):
    """Go through a whole round; return what the return said to each hospital."""
    cobasis = Typed(folder, patch)
    write_tables(folder)
    agree(cobasis, basis=basis)
    if basis == "consensus":
        exchange(cobasis)
    said = {site: told["returned"] for site, told in exchange(cobasis).items()}
    for site in SITES:
        cobasis(f"predict heart.toml {site}.csv -o {site}.out.csv", by=site)
    return said


def encoded(folder, site):
    """A hospital's rows and labels in numbers; which left, and which are like none that left."""
    desk = open_session(
        folder / "heart.toml",
        home=folder / f"home-{site}",
        name=site,
        passphrase=lambda: "correct horse",
    )
    rows = open_rows(desk, folder / f"{site}.csv")
    left = ~rows.held
    return gathered(rows.table), rows.table.labels(), left, ~np.isin(rows.marks, rows.marks[left])


def worth(folder):
    """What three models are worth to each hospital, and the AUC over all held rows of two."""
    sites = {site: encoded(folder, site) for site in SITES}
    sent = [(rows[left], labels[left]) for rows, labels, left, _ in sites.values()]
    pooled = fitted(*(np.concatenate(each) for each in zip(*sent, strict=True)))
    found, truth, scores = {}, [], {"together": [], "pooled": []}
    for site, (rows, labels, left, held) in sites.items():
        out = pl.read_csv(folder / f"{site}.out.csv").filter(pl.Series(held))
        right = {
            "together": np.array([("no", "yes").index(word) for word in out["prediction"]]),
            # a patient held back whose row is the twin of one that left is no news to anybody
            "local": fitted(rows[~held], labels[~held]).predict(rows[held]),
            "pooled": pooled.predict(rows[held]),
            "constant": np.full(held.sum(), round(labels[left].mean())),
        }
        shares = {name: float(np.mean(each == labels[held])) for name, each in right.items()}
        share = float(labels.mean())
        found[site] = Worth(n_rows=len(rows), n_held=int(held.sum()), positive=share, **shares)
        truth.append(labels[held])
        scores["together"].append(out["score_yes"].to_numpy())
        scores["pooled"].append(pooled.scores(rows[held], method="predict_proba")[:, 1])
    areas = {
        name: float(roc_auc_score(np.concatenate(truth), np.concatenate(each)))
        for name, each in scores.items()
    }
    return found, areas


def fitted(rows, labels):
    return train(rows, labels, model="logistic", task="classification", seed=0, aligned=False)


def table(n_rounds):
    """Return the tutorial's table: means over rounds with keys of their own."""
    means = {}
    for basis in ("svd", "consensus"):
        for _ in range(n_rounds):
            with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
                go_through(Path(name), patch, basis=basis)
                found, areas = worth(Path(name))
                patch.chdir(Path(__file__).parent)
            for site, each in found.items():
                means.setdefault((site, basis), []).append(each)
            means.setdefault(("area", basis), []).append(areas)
    return means


def lines(means):
    """Return the table as Markdown."""
    named = ("hospital", "patients", "with disease", "constant", "alone", "**together**")
    yield f"| {' | '.join(named)} | consensus | pooled |"
    yield "|---" * 8 + "|"

    def mean(site, basis, word):
        return 100 * np.mean([getattr(each, word) for each in means[site, basis]])

    for site in SITES:
        first = means[site, "svd"][0]
        cells = [f"{mean(site, 'svd', word):.1f} %" for word in ("constant", "local")]
        cells.append(f"**{mean(site, 'svd', 'together'):.1f} %**")
        cells.append(f"{mean(site, 'consensus', 'together'):.1f} %")
        cells.append(f"{mean(site, 'svd', 'pooled'):.1f} %")
        yield f"| {site} | {first.n_rows} | {100 * first.positive:.1f} % | {' | '.join(cells)} |"


if __name__ == "__main__":
    import sys

    made = table(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    told = [*lines(made)]
    for basis in ("svd", "consensus"):
        areas = made["area", basis]
        told += [
            f"{basis}: { ({w: round(float(np.mean([a[w] for a in areas])), 3) for w in areas[0]}) }"
        ]
    sys.stdout.write("\n".join(told) + "\n")
