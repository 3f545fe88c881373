"""Uploads to be audited, and what is agreed of them."""

from dataclasses import replace

import numpy as np

from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.subject import Facts, Subject


def isometry(rng, n_rows, n_columns):
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


def subject(rows, labels=None, *, n_components, seed=0, noise=0.0):
    """An upload through the leading span of its rows, turned by a rotation of its own."""
    rng = np.random.default_rng(seed)
    span = np.linalg.svd(rows, full_matrices=False)[2][:n_components].T
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
        n_rows=upload.n_rows,
        anchor="isometric",
        basis="svd",
        task="classification" if counts else "representation",
        models=("logistic",) if counts else (),
        class_counts=counts,
    )
    return replace(told, **changes)


ABOUT = {
    "party": "north",
    "round_id": "icu-2026",
    "agreement": "a" * 64,
    "data_version": "0123456789abcdef",
    "tool_version": "cobasis 0",
    "time": "2026-11-21T15:30:00Z",
}
