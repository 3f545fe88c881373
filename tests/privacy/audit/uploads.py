"""Uploads to be audited, made of scikit-learn's tables and of synthetic ones."""

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from cobasis.privacy.attacks import Release
from cobasis.privacy.audit import About, Facts, Subject


def isometry(rng, n_rows, n_columns):
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


def digits(n_rows=300):
    data = load_digits()
    chosen = np.random.default_rng(7).permutation(len(data.target))[:n_rows]
    return data.data[chosen] / 16, data.target[chosen].astype(np.int64)


def cancer(n_rows=200):
    data = load_breast_cancer()
    chosen = np.random.default_rng(7).permutation(len(data.target))[:n_rows]
    rows = data.data[chosen]
    return (rows - rows.min(axis=0)) / np.ptp(rows, axis=0), data.target[chosen].astype(np.int64)


def subject(rows, labels=None, *, n_components, seed=0, noise=0.0, basis=None):
    """An upload through the leading span of its rows, turned by a rotation of its own."""
    rng = np.random.default_rng(seed)
    span = np.linalg.svd(rows, full_matrices=False)[2][:n_components].T if basis is None else basis
    turned = span @ isometry(rng, n_components, n_components)
    n_features = rows.shape[1]
    released = rows @ turned
    if noise:
        released = released + noise * rng.normal(size=released.shape)
    image = isometry(rng, n_features + 2, n_features) @ turned
    return Subject(
        rows=rows,
        release=Release(rows=released, anchor_image=image, labels=labels),
        basis=turned,
        labels=labels,
        columns=tuple(f"column {at}" for at in range(n_features)),
    )


def facts(upload, **changes):
    counts = ()
    if upload.classes is not None:
        counts = tuple(np.unique(upload.classes, return_counts=True)[1].tolist())
    told = Facts(
        n_rows=upload.rows_shape[0],
        anchor="isometric",
        basis="svd",
        task="classification" if counts else "representation",
        models=("logistic",) if counts else (),
        class_counts=counts,
    )
    return replace(told, **changes)


def about(upload, **changes):
    told = About(
        party="north",
        round_id="icu-2026",
        agreement="a" * 64,
        data_version="0123456789abcdef",
        tool_version="cobasis 0",
        time="2026-11-21T15:30:00Z",
        n_rows=upload.rows_shape[0],
        n_sampled=upload.rows_shape[0],
        n_features=upload.rows.shape[1],
        n_components=upload.rows_shape[1],
        basis="svd",
        anchor="isometric",
    )
    return replace(told, **changes)
