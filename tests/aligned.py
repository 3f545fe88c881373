"""Uploads on disk with an alignment, and the aligned rows that they make."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from sklearn.datasets import load_digits

from bundle.payloads import announced, put
from cobasis.bundle.uploads import open_payload
from cobasis.protocol.training import AlignedRows


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def write_upload(file, rows, labels=None):
    image = np.ones((3, rows.shape[1]), dtype=rows.dtype)
    upload = announced(file.stem, image=image, rows=rows, simulated=True)
    precision = {"float64": "fp64", "float32": "fp32"}[rows.dtype.name]
    put(replace(upload, labels=labels), file, precision=precision)
    return open_payload(file)


def rows_and_labels(n_rows=600):
    rng = np.random.default_rng(0)
    rows = (rng.exponential(size=(n_rows, 5)) - 0.8) * [4.0, 2.0, 1.0, 0.5, 0.3]
    return rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0.5).astype(np.int64)


def parties(folder, rows, labels, *, sizes, dtype="float64"):
    """Give consecutive rows to parties, each turned by a basis that its alignment undoes."""
    folder.mkdir(parents=True, exist_ok=True)
    uploads, changes, start = {}, {}, 0
    for place, size in enumerate(sizes):
        name, turn = f"p{place:02d}", rotation(rows.shape[1], place)
        held = (rows[start : start + size] @ turn).astype(dtype)
        told = None if labels is None else labels[start : start + size]
        uploads[name] = write_upload(folder / f"{name}.safetensors", held, told)
        changes[name], start = turn.T, start + size
    return uploads, SimpleNamespace(changes_of_basis=changes)


def aligned_rows(folder, rows, labels, *, n_parties=4, n_blocks=3, dtype="float64"):
    """A view of rows as a few parties' uploads, of so many blocks, or of one in memory."""
    sizes = [len(part) for part in np.array_split(rows, n_parties)]
    uploads, alignment = parties(folder / "uploads", rows, labels, sizes=sizes, dtype=dtype)
    return cut(uploads, alignment.changes_of_basis, n_blocks=n_blocks)


def cut(uploads, changes, *, n_blocks):
    rows = AlignedRows(uploads, changes)
    rows.n_blocks = n_blocks
    return rows


def digits():
    """Digits in random order and half of their pixels' size; 1,200 to fit, 597 to test."""
    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    rows, labels = rows[order] / 16, labels[order].astype(np.int64)
    return (rows[:1200], labels[:1200]), (rows[1200:], labels[1200:])
