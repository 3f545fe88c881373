"""What ``plan`` measures on a party's own table: each defence's price, and rows beside sums."""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cobasis.bundle.uploads import STORED
from cobasis.errors import CobasisError, OptionError
from cobasis.features.encoder import encode
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.features.maps import turn_of, width_under
from cobasis.features.outcome import part_of
from cobasis.linalg.arrays import Hidden, Matrix, gathered
from cobasis.linalg.directions import right_singular
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.passes import Labels
from cobasis.models.trainer import train
from cobasis.party_side.draft import components_for
from cobasis.party_side.rows import public_rows_in, refuse_mapping
from cobasis.party_side.sums_draft import waves_of
from cobasis.party_side.what_if import Setting, planned
from cobasis.privacy.aggregate import OFTEN, light_of, tells_most
from cobasis.privacy.attacks import Release as Projected
from cobasis.privacy.audit.report import Effect
from cobasis.privacy.audit.subject import Subject, sample_size
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import figure_of
from cobasis.protocol.secrets import check_public_rows
from cobasis.protocol.sums_terms import Release
from cobasis.protocol.totals import Layout
from cobasis.tables.table import open_table

_SPLITS, _FEWEST = 3, 40


@dataclass(frozen=True, kw_only=True)
class Released:
    release: Release
    leaves: str
    learns: str  # the analyst, alone and with help
    n_bytes: int
    seconds: float  # of this machine, one thread
    score: float | None  # of ridge on these rows alone, on their map or on random features


WHO = "you"  # what the party is called in messages: nobody has to be enrolled to plan


@dataclass(frozen=True, kw_only=True, repr=False)
class Priced(Hidden):
    effects: tuple[Effect, ...] = ()  # the first is the agreement as it is; none of sums
    told: tuple[str, ...] = ()
    n_rows: int
    n_sampled: int  # drawn at random, and looked at
    releases: tuple[Released, ...]


def priced(
    agreement: Agreement,
    table: Path,
    *,
    mapping: TableMapping = TableMapping(),  # noqa: B008 -- frozen
    public: Path | None = None,
    report: Report = silent,
) -> Priced:
    """Measure what each defence would cost and win; nothing is written, and no key is needed.

    All rows of the table are looked at, also those that a round would hold back: which they are
    follows from a key of the vault, which is not opened here.
    """
    if agreement.task == "table" or (agreement.tabular and agreement.sums is not None):
        raise OptionError(
            "a plan weighs what a model takes, and this agreement makes a table; 'cobasis audit' "
            "says what that shows. Plan with an agreement on a model."
        )
    refuse_mapping(mapping, agreement)
    rows = open_table(table, agreement=agreement, party=WHO, mapping=mapping, report=report)
    n_rows, n_features = rows.shape
    drawn = np.random.default_rng([n_rows, n_features]).permutation(n_rows)
    places = np.sort(drawn[: sample_size(n_rows, n_features)])
    some, labels = gathered(rows.unmapped(), places), part_of(rows.labels())  # what is predicted
    labels = None if labels is None else labels[places]
    ways = (_rows,) if agreement.tabular else (_rows, _sums)
    with one_blas_thread():
        beside = tuple(each(agreement, some, labels, n_rows=n_rows) for each in ways)
    if agreement.sums is not None:
        return Priced(n_rows=n_rows, n_sampled=len(some), releases=beside)
    shown, mapped = _public_rows(public, agreement), agreement.mapped(some)
    people = Subject(  # of whom nothing was projected yet
        rows=mapped,
        release=Projected(rows=np.empty((len(some), 0))),
        basis=np.empty((n_features, 0)),
        labels=labels,
        features=agreement.features,
        public_rows=shown,
        unmapped=None if mapped is some else some,
    )
    effects, told = planned(people, own=Setting.of(agreement), task=agreement.task)
    return Priced(effects=effects, told=told, n_rows=n_rows, n_sampled=len(some), releases=beside)


def _public_rows(public: Path | None, agreement: Agreement) -> Matrix | None:
    """Read public rows on the agreed scale; where the round names some, exactly those."""
    shown = public_rows_in(public, agreement, party=WHO)
    if shown is not None and agreement.public_rows_sha256 is None:
        return agreement.mapped(encode(shown, agreement.features, party=WHO))
    if shown is not None or agreement.basis == "public":
        return check_public_rows(shown, agreement, party=WHO)
    return None


def _rows(agreement: Agreement, some: Matrix, labels: Labels | None, *, n_rows: int) -> Released:
    usual = max(components_for(agreement.features, width=agreement.n_features, precision="fp64"))
    mapped, (row, image) = agreement.mapped(some), map(np.dtype, STORED[agreement.precision])
    size = min(agreement.n_components or usual, *mapped.shape)
    started, labelled = perf_counter(), labels is not None
    projected = mapped @ right_singular(mapped).directions[:, :size]
    spent = perf_counter() - started
    seen = "alone: who resembles whom" + ", and all labels" * labelled
    return Released(
        release="rows",
        leaves=f"{n_rows:,} rows of {size:,} numbers" + ", each with its label" * labelled,
        learns=f"{seen}; if one party helps: most of a record",
        n_bytes=n_rows * (row.itemsize * size + 8 * labelled)
        + (agreement.n_anchor_rows or agreement.n_features) * image.itemsize * size,
        seconds=spent * n_rows / len(some),
        score=_score(projected, labels, agreement),
    )


def _sums(agreement: Agreement, some: Matrix, labels: Labels | None, *, n_rows: int) -> Released:
    features, terms, parties = agreement.features, agreement.sums, len(agreement.parties)
    maps = waves_of(features) if terms is None else terms.maps
    layout = Layout(
        n_features=tuple(width_under(each, features) for each in maps),
        n_targets=len(agreement.classes) or 1,
        one_hot=bool(agreement.classes),
        most_rows=n_rows,
        bare=terms is not None and agreement.dp is not None,
    )
    common, started = list[float](), perf_counter()
    for each in maps:
        turn = turn_of(each, features)
        mapped = turn.apply(some)
        mapped.T @ mapped
        waves = mapped[:, : 2 * turn.n_waves].mean(axis=0)
        common.append(float(waves @ waves) if turn.n_waves else 1.0)
    spent, at = perf_counter() - started, tells_most(layout.n_features, common)
    width = layout.n_features[at]
    light = light_of(parties * n_rows / width, common=common[at])
    seen = f"alone: the total, and {OFTEN[light]} who is in it ({light}, of {parties} like you)"
    widest = max(layout.n_features)
    return Released(
        release="sums",
        leaves=f"{layout.n_words:,} sums, masked, of maps of up to {widest:,} features",
        learns=f"{seen}; if all help: your own sums, {n_rows / width:.3g} rows a feature",
        n_bytes=8 * layout.n_words,
        seconds=spent * n_rows / len(some),
        score=_score(agreement.mapped(some), labels, agreement),
    )


def _score(rows: Matrix, labels: Labels | None, agreement: Agreement) -> float | None:
    """Train ridge on random features of half of the rows, score it on the others: thrice."""
    task, found = agreement.task, []
    if labels is None or len(rows) < _FEWEST:
        return None
    rng, how = np.random.default_rng(len(rows)), dict[str, Any](task=task, seed=0, aligned=False)
    how["model"] = "rff" if agreement.turn is None else "ridge"
    for _ in range(_SPLITS):
        fitted, held = np.split(rng.permutation(len(rows)), [len(rows) // 2])
        try:
            model = train(rows[fitted], labels[fitted], **how)
        except (CobasisError, ValueError):  # of one class, or too few
            return None
        found.append(figure_of(labels[held], model.predict(rows[held]), task=task))
    return float(np.mean(found))
