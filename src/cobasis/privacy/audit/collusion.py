"""P1 and P3: what is lost if one party helps the analyst, or the basis is stolen."""

import numpy as np

from cobasis.privacy.attacks.collusion import LeakedBasis
from cobasis.privacy.attacks.release import Recovered
from cobasis.privacy.attacks.scoring import Share, score_content, score_linkage
from cobasis.privacy.audit.grading import CONTENT, LINKAGE, Figures, Finding, graded
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.audit.words import per_cent, times


def colluded(subject: Subject) -> Finding:
    """Rebuild the rows as a party with the anchor, and an analyst with the uploads, can: P1."""
    recovered = rebuilt(subject)
    found = score_content(recovered, subject.rows)
    column, most = most_explained(recovered, subject)
    words = (
        f"If one party helps the analyst, {per_cent(found.explained.value)} of the variance of the "
        f"rows is rebuilt; {per_cent(found.cells.value)} of all values land within a tenth of "
        f"their column's range (guessing the average person: {per_cent(found.cells.chance)}). Of "
        f"the best rebuilt 1 % of people it is {per_cent(found.worst_explained)}, of the column "
        f"'{column}' {per_cent(most)}."
    )
    figures: Figures = {
        "explained": found.explained.value,
        "explained_worst_percent": found.worst_explained,
        "cells": found.cells.value,
        "cells_chance": found.cells.chance,
        "named": found.named.value,
        "named_chance": found.named.chance,
        "worst_column": column,
        "worst_column_explained": most,
    }
    grade = graded(found.explained.value, CONTENT)
    title = "Content, if one party helps the analyst"
    return Finding(id="P1", title=title, grade=grade, words=words, figures=figures)


def rebuilt(subject: Subject) -> Recovered:
    """Rebuild rows with the true basis, in the best of two ways."""
    plain = LeakedBasis(basis=subject.basis).recover(subject.release)
    mean, centre = subject.rows.mean(axis=0), subject.release.rows.mean(axis=0)
    prior, seen = subject.rows - mean, subject.release.rows - centre
    # Cov(x~)^+ F' C: the least mean squared error, with the noise inside Cov(x~)
    back = np.linalg.lstsq(seen.T @ seen, (prior @ subject.basis).T @ prior, rcond=None)[0]
    informed = Recovered(rows=mean + seen @ back, basis=subject.basis)
    return max((plain, informed), key=lambda each: explained(subject, each))


def explained(subject: Subject, recovered: Recovered) -> float:
    """Return R2: the share of the rows' variance that was rebuilt."""
    truth = subject.rows
    spread = float(((truth - truth.mean(axis=0)) ** 2).sum())
    missed = float(((truth - recovered.rows) ** 2).sum())
    return 1 - missed / spread if spread > 0 else float(missed == 0)


def linkage(subject: Subject) -> Share:
    """Link released rows with a list of these people, by the true basis."""
    listed = subject.listed
    known = Recovered(rows=listed, basis=subject.basis)
    return score_linkage(subject.release.rows, known, candidates=listed, places=subject.places)


def linked(subject: Subject) -> Finding:
    """Grade what is linked if the basis leaks: P3."""
    share = linkage(subject)
    words = (
        "Whoever has the secret basis and a list with these people on it picks the right person "
        f"{times(share.value)} (chance: {times(share.chance)}). Only noise changes this."
    )
    figures = {"linked": share.value, "chance": share.chance}
    title = "Linkage, if the secret basis leaks"
    grade = graded(share.value, LINKAGE)
    return Finding(id="P3", title=title, grade=grade, words=words, figures=figures)


def most_explained(recovered: Recovered, subject: Subject) -> tuple[str, float]:
    """Return the column of which most was rebuilt, and its R2; columns that vary only."""
    truth = subject.rows
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    missed = ((truth - recovered.rows) ** 2).sum(axis=0)
    varies = spread > 1e-12 * max(1.0, float(spread.max(initial=0.0)))
    if not varies.any():
        return "none", 0.0
    explained = np.where(varies, 1 - missed / np.where(varies, spread, 1.0), -np.inf)
    best = int(explained.argmax())
    return subject.called(best), float(explained[best])
