"""Measures what comes out at the doors, for `test_doors.py` to hold against what is recorded.

``PYTHONPATH=src:tests python -m golden.doors [uploads] [models] [demo] [refusals]`` records what is
named, or all, anew; a change that does so says why these results are others now.
"""

import json
import sys
import tempfile
import warnings
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
from sklearn import datasets
from sklearn.metrics import accuracy_score, r2_score

from cobasis import simulate
from cobasis.algorithms import AlignerName
from cobasis.algorithms.bases import BASES
from cobasis.report.comparison import compare, deal
from golden import refusals

RECORDED = Path(__file__).parent
TABLES = {
    "cancer": (datasets.load_breast_cancer, "classification"),
    "wine": (datasets.load_wine, "classification"),
    "diabetes": (datasets.load_diabetes, "regression"),
}
N_PARTIES, N_ROWS, N_NEW, N_COMPONENTS = 4, 140, 30, 6


def dealt(name):
    """A shipped table on a common scale: rows by party, and rows that nobody trained on."""
    X, y = TABLES[name][0](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[: N_ROWS + N_NEW]
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[order], y[order]
    own = [slice(i, N_ROWS, N_PARTIES) for i in range(N_PARTIES)]
    return {f"party-{i}": (X[each], y[each]) for i, each in enumerate(own)}, X[N_ROWS:], y[N_ROWS:]


def simulated(name, **options):
    told = {"n_components": N_COMPONENTS, "task": TABLES[name][1], **options}
    return simulate(dealt(name)[0], rng=np.random.default_rng(0), **told)


def scores(party, rows):
    model = party.returned.model
    return model.scores(party.transform(rows), method=model.method)


def figures(table):
    """Some entries of a Gram matrix, and a norm: no sign of a singular vector changes them."""
    gram = np.ravel(table @ table.T)
    return {"gram": gram[:: len(gram) // 7].tolist(), "norm": float(np.linalg.norm(table))}


def upload(basis):
    """What leaves two parties; a Haar basis has no free sign, so its upload's own entries too."""
    told = {"public_rows": dealt("cancer")[1]} if basis == "public" else {}
    done, found = simulated("cancer", basis=basis, model="ridge", **told), {}
    for name in ("party-0", "party-3"):
        sent = done.analyst.uploads[name]
        found[name] = {
            "shapes": [*sent.rows.shape, *sent.anchor_image.shape],
            "labels": "".join(map(str, sent.labels)),
            "anchor tag": sent.anchor_tag.hex(),
            "rows": figures(sent.rows),
            "anchor image": figures(sent.anchor_image),
            "rows in the image": figures(sent.rows @ sent.anchor_image.T),
            "entries": sent.rows[::9, ::3].tolist() if basis == "haar" else [],
        }
    return found


def model(name, family, aligner):
    """Labels and scores of one trained model, on rows that are new to all."""
    party = simulated(name, model=family, aligner=aligner).parties["party-1"]
    _, new, truth = dealt(name)
    said = party.predict(new)
    classes = TABLES[name][1] == "classification"
    numbers = np.ravel(scores(party, new) if classes else said)
    return {
        "labels": "".join(map(str, said)) if classes else "",
        "scores": numbers[::11].tolist(),
        "norm": float(np.linalg.norm(numbers)),
        "score": float((accuracy_score if classes else r2_score)(truth, said)),
    }


def demonstrated(split, seed):
    """What ``cobasis demo --split SPLIT --seed SEED --json`` says of all, and of one party."""
    data = deal("digits", n_parties=10, split=split, seed=seed)
    told = compare(data, seed=seed).told()
    own = told["per_party"]["party-2"]
    keys = ("alone", "together", "together_consensus")
    return {
        **{key: told[key] for key in (*keys, "sums", "pooled")},
        "party-2": {key: own[key] for key in (*keys, "residual", "bytes_up")},
    }


TUNED = {
    "wine": ("logistic", "ridge", "rff", "mlp", "boosted_trees"),
    "diabetes": ("ridge", "rff", "mlp", "boosted_trees"),
}
DOORS = {
    "uploads": {basis: partial(upload, basis) for basis in BASES},
    "models": {
        f"{name}, {family}, {aligner}": partial(model, name, family, aligner)
        for name, families in TUNED.items()
        for family in families
        for aligner in get_args(AlignerName)
    },
    "demo": {
        f"{split}, seed {seed}": partial(demonstrated, split, seed)
        for split in ("iid", "by-label")
        for seed in range(10)
    },
    "refusals": refusals.DOORS,
}


def recorded(door):
    return json.loads((RECORDED / f"{door}.json").read_text(encoding="utf-8"))


def record(doors):
    """Measure doors and write what comes out; each in a folder of its own, where files may lie."""
    for door in doors:
        found = {}
        for case, measure in DOORS[door].items():
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                found[case] = measure()
        text = json.dumps(found, indent=1) + "\n"
        (RECORDED / f"{door}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    record(sys.argv[1:] or DOORS)
