"""Table 10: are two pictures of one person.

Half of the people teach a descriptor, pictures of the other half are compared: as many pairs of one
person as of two, up to {PAIRS:,} each, by cosine about the mean. CelebA: 4,361 pictures of 299
people, 128 x 128 x 3; Olivetti: 400 of 40, 64 x 64, l = 100. The descriptor is Fisherfaces (150 or
60 principal components, then linear discriminants), whose figures for originals are lower than a
network's: study `table_10_dlib` has one, and the paper's numbers. Learned in these coordinates: on
clean pictures, or on what the same party would release of the other people. *Shown the vector as a
picture* is what the paper measures: l numbers stretched to [0, 1] in a black picture, which is no
face. A figure near 0.5 in that row is **no evidence of privacy**: it says that a descriptor of
faces cannot read what is no face. What whoever holds the release can tell is in the rows *cosine*
and *learned in these coordinates*. A colluder has the basis, from the anchor. Noise: on raw pixels,
sensitivity 1, delta = 1e-3, its epsilon a label.
"""

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from experiments.data.faces import Faces, Pairs, celeba, olivetti, pairs_of
from experiments.harness.models import Labels, Table
from experiments.harness.noise import PAPERS_NOISE, PIXELS_STREAM, Singles, on_pixels, papers_scale
from experiments.harness.study import Study, Values
from experiments.harness.systems import generator, top_directions

EPSILONS = (8.0, 2.0, 0.5)
COMPONENTS = {"celeba": 300, "olivetti": 100}
DIRECTIONS = {"celeba": 150, "olivetti": 60}
PAIRS = 5000
LOADERS: dict[str, Callable[[], Faces]] = {"celeba": celeba, "olivetti": olivetti}

AS_PICTURE = "descriptor of faces, shown the vector as a picture"
COSINE = "cosine in these coordinates"
LEARNED = "descriptor learned in these coordinates"


def descriptor(rows: Singles, people: Labels, *, count: int) -> Callable[[Singles], Table]:
    """Learn Fisherfaces: principal components, then directions that tell known people apart."""
    mean = rows.mean(axis=0)
    directions = top_directions(rows - mean, min(count, *rows.shape)).astype(np.float32)
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    model.fit((rows - mean) @ directions, people)
    return lambda seen: model.transform((seen - mean) @ directions)


def run(*, data: str, repeat: int) -> Values:
    """Learn from half of the people, and compare pictures of the other half."""
    known, unknown = halves(faces := LOADERS[data](), repeat)
    rows, people = faces.scaled(unknown), faces.people[unknown]
    others, names = faces.scaled(known), faces.people[known]
    pairs = pairs_of(people, rng=generator(repeat, 8), n_each=PAIRS)
    looks = descriptor(others, names, count=DIRECTIONS[data])
    noisy = ((f"{PAPERS_NOISE}, epsilon {each:g}", seen) for each, seen in with_noise(rows, repeat))
    found = {}
    for label, seen in (("original", rows), *noisy):
        found[f"{label}/{COSINE}"] = verified(seen, pairs)
        found[f"{label}/{LEARNED}"] = verified(looks(seen), pairs)
    size = COMPONENTS[data]
    for label, basis in secret_bases(rows, repeat, size).items():
        sent, theirs = rows @ basis, others @ basis
        own = descriptor(theirs, names, count=DIRECTIONS[data])
        found[f"{label}/{AS_PICTURE}"] = verified(looks(as_picture(sent, rows)), pairs)
        found[f"{label}/{COSINE}"] = verified(sent, pairs)
        found[f"{label}/{LEARNED}"] = verified(own(sent), pairs)
        undone = verified(looks(rebuilt(sent, basis)), pairs)
        found[f"{label}/rebuilt by a colluder, {LEARNED}"] = undone
    return found


def with_noise(rows: Singles, repeat: int) -> Iterator[tuple[float, Singles]]:
    """Yield each epsilon, and pictures with the papers' noise for it."""
    for epsilon in EPSILONS:
        noisy = rows.copy()
        rng = generator(repeat, PIXELS_STREAM)
        on_pixels(noisy, noise=papers_scale(epsilon), rng=rng)
        yield epsilon, noisy


def halves(faces: Faces, repeat: int) -> tuple[Labels, Labels]:
    everybody = generator(repeat).permutation(np.unique(faces.people))
    known = np.isin(faces.people, everybody[: len(everybody) // 2])
    return np.flatnonzero(known), np.flatnonzero(~known)


def secret_bases(rows: Singles, repeat: int, size: int) -> dict[str, Singles]:
    rng = generator(repeat, 9)
    span = top_directions(cast("Table", rows), size)  # in single precision
    turn, _ = np.linalg.qr(rng.standard_normal((size, size)))
    haar, _ = np.linalg.qr(rng.standard_normal((rows.shape[1], size)))
    bases = {
        f"orthonormal basis, l = {size}": span @ turn,
        f"basis not orthonormal, l = {size}": span @ rng.random((size, size)),
        f"haar basis, l = {size}": haar,
    }
    return {label: basis.astype(np.float32) for label, basis in bases.items()}


def as_picture(sent: Singles, rows: Singles) -> Singles:
    """Stretch each vector to [0, 1] and write it into a black picture, from the top left."""
    low, high = sent.min(axis=1, keepdims=True), sent.max(axis=1, keepdims=True)
    shown = np.zeros_like(rows)
    shown[:, : sent.shape[1]] = (sent - low) / (high - low)
    return shown


def rebuilt(sent: Singles, basis: Singles) -> Singles:
    """Undo a basis as far as its span goes; by QR, since some are far from orthonormal."""
    factor, triangle = np.linalg.qr(basis.astype(np.float64))
    scores = np.linalg.solve(triangle.T, sent.T).T
    return scores.astype(np.float32) @ factor.T.astype(np.float32)


def verified(described: Singles | Table, pairs: Pairs) -> float:
    """Return the ROC-AUC of cosines about the mean, which whoever holds the rows can take."""
    centred = described - described.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = (centred @ centred.T)[pairs.first, pairs.second]
    return float(roc_auc_score(pairs.same, cosines))


STUDY = Study(
    source="ODC paper, Table 10; what a holder of the release can do is ours",
    unit="ROC-AUC",
    cells=[{"data": "celeba"}, {"data": "olivetti"}],
)
