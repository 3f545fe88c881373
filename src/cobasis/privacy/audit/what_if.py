"""What would change the figures: fewer components, noise, another basis, no labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cobasis.algorithms.bases import BasisName
from cobasis.errors import OptionError
from cobasis.linalg.rng import KEY_BYTES, KeyStream
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.audit.accuracy import accuracy
from cobasis.privacy.audit.collusion import explained, linkage, rebuilt
from cobasis.privacy.audit.spans import Spans
from cobasis.privacy.audit.strangers import guessed
from cobasis.privacy.audit.subject import Facts, Subject

_ROWS, _ROWS_OF_CONTENT = 240, 1000
"""So many people are enough to compare settings: what is linked, and what is rebuilt."""

_KINDS = {"haar": "random", "public": "public rows'"}
"""Kinds of bases in words that say more."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One way in which an upload could be made.

    Attributes
    ----------
    n_components : int
        l.
    basis : str
        A kind of basis; empty for the upload's own.
    noise : float
        Standard deviation of Gaussian noise on each released number, as a share of the root mean
        square distance of released rows from their mean. No guarantee comes with it.
    labels : bool
        Whether labels are sent.
    """

    n_components: int
    basis: BasisName | Literal[""] = ""
    noise: float = 0.0
    labels: bool = True

    def told_beside(self, own: "Setting") -> str:
        """Return in words how it differs from the upload's own setting."""
        told = []
        if self.n_components != own.n_components:
            told.append(f"{self.n_components:,} component{'s' * (self.n_components > 1)}")
        told += [f"{_KINDS.get(self.basis, self.basis)} basis"] if self.basis else []
        told += [f"noise {self.noise:g}"] if self.noise else []
        told += [] if self.labels else ["no labels"]
        return ", ".join(told) or "as it is"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a setting comes to, all on the same people.

    Attributes
    ----------
    name : str
        The setting in words; ``as it is`` for the upload's own.
    setting : Setting
        Which.
    n_rows : int
        People that linkage was measured on; content and accuracy on up to 1,000.
    content : float
        R2 if one party helps the analyst.
    alone : float or None
        Linkage by an analyst with similar records, alone; None with too few rows.
    leaked : float
        Linkage if the secret basis leaks, which only noise changes.
    chance, chance_alone : float
        What guessing links, in the lists of the two.
    accuracy : float or None
        Of a ridge model of these rows alone, on the half that it was not fitted on: accuracy, or
        R2 for numbers; None without labels.
    """

    name: str
    setting: Setting
    n_rows: int
    content: float
    alone: float | None
    leaked: float
    chance: float
    chance_alone: float
    accuracy: float | None


def settings_of(
    subject: Subject, *, n_components: Sequence[int] = (), noise: Sequence[float] = ()
) -> tuple[Setting, ...]:
    """Return what to measure: as it is, then what was asked for, or the usual.

    Parameters
    ----------
    subject : Subject
        What is about to leave.
    n_components, noise : sequence
        What somebody asks for; by default half and a quarter of the components, and noise of
        0.1 and 0.4.

    Returns
    -------
    tuple of Setting
        The first is the upload as it is.

    Raises
    ------
    OptionError
        There are not so many features, or a noise is not a number from 0 to 100.

    Notes
    -----
    **Who sees what.** Sizes only.

    **Cost.** None.
    """
    own, n_features = subject.n_components, subject.rows.shape[1]
    for size in n_components:
        if not 1 <= size <= n_features:
            msg = f"n_components={size} is not from 1 to {n_features}, the features. Ask for less."
            raise OptionError(msg)
    for scale in noise:
        if not 0 < scale <= 100:  # noqa: PLR2004 -- a hundred times as long as the rows
            msg = f"noise={scale!r} is no share of the rows' length above 0. Ask for 0.1, say."
            raise OptionError(msg)
    fewer = n_components or sorted({max(1, own // 2), max(1, own // 4)} - {own}, reverse=True)
    found = [Setting(n_components=own)]
    found += [Setting(n_components=size) for size in fewer if size != own]
    found += [Setting(n_components=own, noise=scale) for scale in noise or (0.1, 0.4)]
    found.append(Setting(n_components=own, basis="haar"))
    if subject.classes is not None:
        found.append(Setting(n_components=own, labels=False))
    return tuple(found)


def effects(
    subject: Subject,
    facts: Facts,
    *,
    settings: Sequence[Setting],
    spans: Spans,
    seed: int,
) -> tuple[Effect, ...]:
    """Measure what settings come to.

    Parameters
    ----------
    subject : Subject
        What is about to leave; of large ones a random part is used.
    facts : Facts
        What is agreed.
    settings : sequence of Setting
        The first is the upload as it is; none measures nothing.
    spans : Spans
        Makes other bases.
    seed : int
        For the part, the splits, and noise.

    Returns
    -------
    tuple of Effect
        One for each setting that a party can make by itself: more components of a common span, for
        instance, it cannot.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** Two attacks and one small fit for each setting, on at most 240 rows.
    """
    part = subject.some(_ROWS_OF_CONTENT, seed=seed)
    key = np.random.default_rng(seed).bytes(KEY_BYTES)
    found = []
    for setting in settings:
        made = _made(part, setting, kind=setting.basis or facts.basis, spans=spans, key=key)
        if made is not None:
            name = setting.told_beside(settings[0])
            found.append(_measured(made, setting, name=name, task=facts.task, seed=seed))
    return tuple(found)


def _made(
    part: Subject, setting: Setting, *, kind: BasisName, spans: Spans, key: bytes
) -> Subject | None:
    """Return the upload that a setting would make; None where it cannot be made."""
    basis = spans.basis(kind, setting.n_components)
    if basis is None:
        return None
    rows = part.release.rows if basis is part.basis else part.rows @ basis
    if setting.noise:
        spread = float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()))
        rows = rows + setting.noise * spread * KeyStream(key, "audit/noise").normal(rows.shape)
    labels = part.release.labels if setting.labels else None
    return replace(part, basis=basis, release=Release(rows=rows, labels=labels))


def _measured(subject: Subject, setting: Setting, *, name: str, task: str, seed: int) -> Effect:
    """Attack one upload, and fit a model on it."""
    some = subject.some(_ROWS, seed=seed)
    leaked, alone = linkage(some), guessed(some, seed=seed, quick=True)
    return Effect(
        name=name,
        setting=setting,
        n_rows=some.n_rows,
        content=explained(subject, rebuilt(subject)),
        alone=None if alone is None else alone[1].value,
        leaked=leaked.value,
        chance=leaked.chance,
        chance_alone=0.0 if alone is None else alone[1].chance,
        accuracy=accuracy(subject, task=task, seed=seed),
    )
