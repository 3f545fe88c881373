"""Rows, bases and anchors that the attacks on the construction are tried on."""

import warnings
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

from aligners import haar, key_of
from cobasis.algorithms.anchors import draw_anchor
from cobasis.errors import PrivacyWarning
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.attacks.release import Release


@cache
def cancer():
    """Return 569 rows of 30 features, in [0, 1], and two labels, in an order of no meaning."""
    data = load_breast_cancer()
    rows = (data.data - data.data.min(axis=0)) / np.ptp(data.data, axis=0)
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order], data.target[order]


@cache
def digits():
    """Return 1797 rows of 64 features, in [0, 1], and ten labels, in an order of no meaning."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.data))
    return data.data[order] / 16, data.target[order]


def own_basis(rows, n_components, *, number=0):
    """Return V_i E_i."""
    directions = np.linalg.eigh(rows.T @ rows)[1][:, -n_components:]
    return directions @ haar(1000 + number, n_components)


def haar_basis(n_features, n_components, *, number=0):
    stream = KeyStream(key_of(2000 + number), "tests/attacks")
    return haar_columns(stream, n_rows=n_features, n_columns=n_components)


def anchor(kind, n_rows, n_features, *, number=0, **public):
    """Return A as rows."""
    key = key_of(3000 + number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        drawn = draw_anchor(kind, key=key, n_rows=n_rows, n_features=n_features, **public)
    return drawn.apply(np.eye(n_features))


def released(rows, basis, anchor_rows=None, *, labels=None):
    image = None if anchor_rows is None else anchor_rows @ basis
    return Release(rows=rows @ basis, anchor_image=image, labels=labels)
