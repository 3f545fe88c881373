"""Rows, bases, anchors, uploads and aligned rounds to attack, and scores of a guessed basis."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics.pairwise import cosine_similarity

from aligners import haar, key_of, make_anchor, principal_cosines
from cobasis import ODC, align
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.models.trainer import TrainedModel
from cobasis.party_side.audit import audit
from cobasis.party_side.checks import checked
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.scores import told_apart
from cobasis.privacy.audit.report import POLICY
from cobasis.privacy.audit.subject import Subject
from cobasis.vault.datasets import Asked, Choice
from models.chains import principal_axes
from protocol.consortium import NONE, SEEDED, agree


@cache
def cancer(n_rows=None):
    """Return up to 569 rows of 30 features, in [0, 1], and two labels, in no order."""
    rows, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))[:n_rows]
    return ((rows - rows.min(axis=0)) / np.ptp(rows, axis=0))[order], labels[order]


@cache
def digits(n_rows=None):
    """Return up to 1797 rows of 64 features, in [0, 1], and ten labels, in no order."""
    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))[:n_rows]
    return rows[order] / 16, labels[order]


def own_basis(rows, n_components, *, number=0):
    directions = np.linalg.eigh(rows.T @ rows)[1][:, -n_components:]
    return directions @ haar(1000 + number, n_components)


def haar_basis(n_features, n_components, *, number=0):
    stream = KeyStream(key_of(2000 + number), "tests/attacks")
    return haar_columns(stream, n_rows=n_features, n_columns=n_components)


def anchor(kind, n_rows, n_features, *, number=0, **public):
    shape = {"n_rows": n_rows, "n_features": n_features}
    return make_anchor(kind, number=3000 + number, **shape, **public).apply(np.eye(n_features))


def released(rows, basis, anchor_rows=None, *, labels=None):
    image = None if anchor_rows is None else anchor_rows @ basis
    return Release(rows=rows @ basis, anchor_image=image, labels=labels)


def subject(rows, labels=None, *, n_components, seed=0, noise=0.0):
    """An upload to be audited, through the leading span of its rows."""
    n_features, basis = rows.shape[1], own_basis(rows, n_components, number=seed)
    release = released(rows, basis, anchor("gaussian", n_features + 2, n_features), labels=labels)
    blurred = release.rows + noise * np.random.default_rng(seed).normal(size=release.rows.shape)
    return Subject(rows=rows, release=replace(release, rows=blurred), basis=basis, labels=labels)


def agreed(upload, **changes):
    """What could be agreed on where an upload is made, as far as an audit asks."""
    task = NONE if upload.classes is None else {"model": "logistic"}
    return agree(SEEDED, **{**task, **changes})


def audited(upload, *, seed=0, settings=(), n_rows=None, **changes):
    agreement, size = agreed(upload, **changes), n_rows or upload.n_rows
    asked = Asked(message="upload", rows=np.arange(size, dtype=np.uint64), shape=upload.basis.shape)
    choice, sent = Choice(asked=asked, span="fresh"), upload.release.labels
    checks = checked(agreement, choice, image=upload.release.anchor_image, sent=sent)
    about = {**ABOUT, "n_rows": size, "n_features": upload.rows.shape[1]}
    told = {"checks": checks, "about": about, "settings": settings}
    return audit(upload, agreement, rng=np.random.default_rng(seed), **told)


ABOUT = {
    "basis": "svd",
    "anchor": "isometric",
    "mapped": "",
    "policy": POLICY,
    "party": "north",
    "round_id": "icu-2026",
    "agreement": "a" * 64,
    "data_version": "0123456789abcdef",
    "tool_version": "cobasis 0",
    "time": "2026-11-21T15:30:00Z",
}


def fitted(done, estimator, *, parties=None):
    """A model of the first so many parties, in the axes that training would choose."""
    rows = np.vstack(done.aligned[:parties])
    axes = principal_axes(rows)
    labels = np.concatenate(done.labels[:parties])
    return TrainedModel(axes=axes, estimator=estimator.fit(rows @ axes, labels))


def aligned_round(data, parties, n_rows, n_components, *, shared=False):
    """Split data among parties, each with its own span, or with the first one's."""
    everything, classes = data
    order = np.random.default_rng(0).permutation(len(everything))
    parts = order[: parties * n_rows].reshape(parties, n_rows)
    rows, labels = [everything[part] for part in parts], [classes[part] for part in parts]
    bases = [
        own_basis(rows[0] if shared else table, n_components, number=number)
        for number, table in enumerate(rows)
    ]
    common = anchor("isometric", *[everything.shape[1]] * 2)
    images = {str(number): common @ basis for number, basis in enumerate(bases)}
    changes = [*align(ODC(), images).changes_of_basis.values()]
    maps = [basis @ turn for basis, turn in zip(bases, changes, strict=True)]
    aligned = [table @ each for table, each in zip(rows, maps, strict=True)]
    told = {"rows": rows, "labels": labels, "bases": bases, "changes": changes}
    return SimpleNamespace(**told, aligned=aligned, shared_map=maps[0])


def members_told(scores, members):
    """AUC, and how many members are found where one in a hundred others is taken for one."""
    bar = np.quantile(scores[~members], 0.99, method="higher")
    return told_apart(scores, members), float(np.mean(scores[members] > bar))


def span_found(guess, basis):
    """How much of the secret span lies in the one that was guessed; blindly l / m of it."""
    return float(np.sum(principal_cosines(guess, basis) ** 2) / basis.shape[1])


def entries_found(guess, basis):
    """The cosine of a guessed basis and the secret one; blindly sqrt(2 / (pi m l))."""
    return float(abs(np.sum(basis * guess)) / np.linalg.norm(basis) / np.linalg.norm(guess))


def in_order(recovered, basis):
    """Put features that were found without their names in the order that fits the truth best."""
    likeness = basis @ recovered.basis.T
    order = linear_sum_assignment(-np.abs(cosine_similarity(basis, recovered.basis)))[1]
    signs = np.where(likeness[np.arange(len(basis)), order] < 0, -1.0, 1.0)
    found = recovered.basis[order] * signs[:, np.newaxis]
    return Recovered(rows=recovered.rows[:, order] * signs, basis=found)


def directions_found(recovered, basis):
    """The mean cosine of features with those of the truth in their best order, and a blind one."""
    blind = np.zeros_like(basis)
    n_found = np.count_nonzero(np.any(recovered.basis != 0, axis=1))
    blind[:n_found] = KeyStream(bytes(32), "tests/blind").normal((n_found, basis.shape[1]))
    cosines = []
    for guess in (recovered, replace(recovered, basis=blind)):
        found = in_order(guess, basis).basis
        asked = np.any(found != 0, axis=1)
        cosines.append(float(np.mean(np.diag(cosine_similarity(found[asked], basis[asked])))))
    return tuple(cosines)
