"""People with awkward columns, in a frame, and a table of them beside what raw columns give."""

import numpy as np
import pandas as pd
from lifelines.datasets import load_lung, load_rossi

from cli.round_by_commands import NAMES
from cobasis import simulate
from cobasis.features.contract import CategoryFeature, NumericFeature
from cobasis.features.encoder import encode
from cobasis.features.outcome import ROLES, Outcome, record_type
from cobasis.statistics.coefficients import table_of
from cobasis.statistics.regression import fit_regression

WARD = CategoryFeature(name="ward", values=("icu", "surgery", "other"), base="icu")
FEATURES = (
    NumericFeature(name="age", centre=60, scale=15),
    NumericFeature(name="income", centre=4e4, scale=1.3e4),
    NumericFeature(name="protein", centre=0.004, scale=0.0007),
    WARD,
)


def people(n=600):
    rng = np.random.default_rng(3)
    raw = pd.DataFrame(
        {
            "age": rng.normal(58, 14, n),
            "income": rng.lognormal(10.5, 0.4, n),
            "protein": rng.normal(0.004, 0.0008, n),
            "ward": rng.choice(WARD.values, n),
        }
    )
    line = 0.03 * (raw.age - 60) + 2e-5 * (raw.income - 4e4) + 0.6 * (raw.ward == "surgery")
    line = np.asarray(line + 300 * (raw.protein - 0.004))
    exposure = rng.uniform(0.5, 4, n)
    rate = np.exp(0.4 + 0.5 * line) * exposure
    time, end = rng.exponential(np.exp(3 - line)), rng.uniform(5, 60, n)
    labels = pd.DataFrame(
        {
            "number": 5 + 2 * line + rng.normal(size=n) * (1 + (line > 0)),
            "class": (rng.logistic(size=n) < line - 0.5).astype(float),
            "count": rng.poisson(rate).astype(float),
            "counts": rng.poisson(rate * rng.gamma(1.5, 1 / 1.5, n)).astype(float),
            "time": np.minimum(time, end),
            "days": np.ceil(np.minimum(time, end)),
            "event": (time <= end).astype(float),
            "exposure": exposure,
            "weight": rng.choice([1.0, 2.0, 3.0], n),
            "share": rng.uniform(0.2, 3, n),
            "stratum": rng.integers(0, 3, n).astype(float),
            "zero": 0.0,
        }
    )
    labels["entry"] = labels.time * rng.choice([0, 0.3, 0.6], n)
    labels["owner"] = [f"party-{at:02d}" for at in rng.integers(0, 12, n)]
    return raw, labels


def dataset(name):
    """Frank's lung or Rossi's prison data: features, raw columns and labels."""
    table = load_lung().dropna() if name == "lung" else load_rossi()
    time, event = ("time", "status") if name == "lung" else ("week", "arrest")
    raw = table.drop(columns=[time, event]).astype(float).reset_index(drop=True)
    features = [
        NumericFeature(name=each, centre=round(raw[each].median()), scale=float(raw[each].std()))
        for each in raw
    ]
    told = {"days": table[time].to_numpy(float), "event": table[event].to_numpy(float)}
    return features, raw, pd.DataFrame(told | {"owner": np.arange(len(raw)) % 12})


def in_three(rows, labels, **told):
    """A round of three hospitals, to which rows are dealt one by one."""
    dealt = {name: (rows[at::3], labels[at::3]) for at, name in enumerate(NAMES)}
    return simulate(dealt, rng=np.random.default_rng(0), **told)


def turns(width, kind):
    rng = np.random.default_rng(5)
    first, second = (np.linalg.qr(rng.normal(size=(width, width)))[0] for _ in range(2))
    return first if kind == "orthogonal" else (first * np.geomspace(0.3, 4, width)) @ second


def records(labels, value="value", **roles):
    """Labels as they travel: one array, or records where more than one column is told."""
    found = np.zeros(len(labels), dtype=record_type(roles))
    for role, column in {"value": value, **roles}.items():
        found[role] = labels[column]
    return found if roles else found["value"]


def fitted(
    raw, labels, value, *, model, features=FEATURES, kind="invertible", digits=float, **told
):
    """Return the fit on aligned rows, and their turn; roles and options of Outcome as `told`."""
    roles = {role: name for role, name in told.items() if role in ROLES}
    encoded = encode(raw, features, party="pooled").astype(digits).astype(float)
    turn = turns(encoded.shape[1], kind)
    fit = fit_regression(
        encoded @ turn,
        records(labels, value, **roles),
        model=model,
        outcome=Outcome(**told),
        owners=labels.owner.to_numpy(),
    )
    return fit, turn


def table(raw, labels, value, *, features=FEATURES, **told):
    fit, turn = fitted(raw, labels, value, features=features, **told)
    return table_of(fit, turn=turn, features=features, horizons=told.get("horizons", ()))


def columns(raw):
    words = [f"ward={each}" for each in ("surgery", "other")] if "ward" in raw else []
    found = raw.drop(columns="ward", errors="ignore").astype(float)
    return found.assign(**{name: (raw.ward == name[5:]).astype(float) for name in words})


def gap(made, estimates, covariance, p=None):
    """Largest relative gap of estimates, errors, p-values, and covariances that are told."""
    errors = np.sqrt(np.diag(covariance))
    told = np.array([(line.estimate, line.standard_error, line.p) for line in made.lines]).T
    apart = np.abs((made.covariance - covariance) / np.outer(errors, errors))
    right = np.array([estimates, errors, told[2] if p is None else p])
    return max(np.abs(told / right - 1).max(), np.nanmax(apart))
