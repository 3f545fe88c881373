"""``cobasis demo``: the whole round on real data, how these are dealt, and beside what."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cobasis.algorithms.anchors import AnchorKind
from cobasis.algorithms.bases import BasisName
from cobasis.algorithms.options import AlignerName
from cobasis.errors import OptionError
from cobasis.models.families import ModelName

if TYPE_CHECKING:
    from rich.console import Console

    from cobasis.report.comparison import Comparison, Dealt, Settings

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cobasis.features.numeric import NumericFeature, numeric_features
from cobasis.linalg.arrays import Matrix
from cobasis.models.families import Task
from cobasis.report.comparison import Dealt, Labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.utils import Bunch

DataName = Literal["digits", "cancer", "diabetes"]
Split = Literal["iid", "by-label"]


def demo(
    data: Annotated[DataName, typer.Option(help="Data set.")] = "digits",
    parties: Annotated[
        int | None, typer.Option(help="How many; by default 10 for digits, else 4.")
    ] = None,
    split: Annotated[Split, typer.Option(help="How rows are dealt; by-label: digits.")] = "iid",
    n_components: Annotated[
        int | None, typer.Option(help="Columns of a basis; by default 24, 10, 7.")
    ] = None,
    aligner: Annotated[AlignerName, typer.Option(help="Method.")] = "odc",
    anchor: Annotated[AnchorKind, typer.Option(help="Anchor.")] = "isometric",
    basis: Annotated[BasisName, typer.Option(help="Secret basis.")] = "svd",
    model: Annotated[
        ModelName | None, typer.Option(help="Family; by default logistic, or ridge.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For rows, keys and folds.", min=0, max=2**32 - 1)] = 0,
    report: Annotated[Path, typer.Option(help="Where the page goes.")] = Path(
        "cobasis-report.html"
    ),
    allow_row_carrying: Annotated[
        bool, typer.Option("--allow-row-carrying", help="Accept svm, which stores rows.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a whole round on real data: alone, together, with a consensus basis, pooled.

    Parties draw secret bases and build uploads.
    The analyst aligns, certifies, trains and returns.
    Each party predicts one common test set with its own basis.

    Example: cobasis demo --split by-label --json
    """
    from cobasis.models.families import default_model
    from cobasis.report.comparison import Settings

    if report.is_dir() or not report.parent.is_dir():
        raise OptionError(
            f"--report {report} is a folder, or in one that does not exist. Name a file."
        )
    table = load(data)
    n_parties = table.parties if parties is None else parties
    dealt = deal(table, n_parties=n_parties, split=split, seed=seed)
    settings = Settings(
        n_components=table.n_components if n_components is None else n_components,
        aligner=aligner,
        anchor=anchor,
        basis=basis,
        model=model or default_model(table.task),
        seed=seed,
        allow_row_carrying=allow_row_carrying,
    )
    _show(_compared(dealt, settings, report), report, as_json=as_json)


def _compared(dealt: "Dealt", settings: "Settings", report: Path) -> "Comparison":
    """Run the comparison and write its page, saying what is being done."""
    from rich.console import Console

    from cobasis.disk.whole import write_whole
    from cobasis.report.comparison import compare
    from cobasis.report.page import render

    with Console(stderr=True).status("starting") as status:
        found = compare(dealt, settings, progress=status.update)
        status.update("writing the report")
        write_whole(report, render(found).encode())
    return found


def _show(found: "Comparison", report: Path, *, as_json: bool) -> None:
    """Print what was found, as JSON or as a table."""
    from rich.console import Console

    from cobasis.report.page import as_json as to_json

    if as_json:
        typer.echo(json.dumps({**to_json(found), "report": str(report)}, indent=2))
    else:
        _print(found, report, Console())


def _print(found: "Comparison", report: Path, console: "Console") -> None:
    """Print scores per party and on average, the certificate, traffic and time."""
    from rich.table import Table as RichTable

    from cobasis.report.page import means

    def shown(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{100 * value:.1f}" if found.metric == "accuracy" else f"{value:.3f}"

    unit = "accuracy in %" if found.metric == "accuracy" else "R2"
    table = RichTable(title=f"{found.data.name}, split {found.data.split}: {unit} on the test set")
    for column in ("party", "alone", "together", "consensus", "pooled", "bytes up", "bytes down"):
        table.add_column(column, justify="left" if column == "party" else "right")
    consensus = found.consensus or {}
    for name, traffic in found.round.traffic.items():
        table.add_row(
            name + (" (one class)" if name in found.one_class else ""),
            shown(found.alone[name]),
            shown(found.together[name]),
            shown(consensus.get(name)),
            shown(found.pooled),
            f"{traffic.up:,}",
            f"{traffic.down:,}",
        )
    table.add_section()
    table.add_row("mean", *(shown(value) for value in means(found).values()), "", "")
    console.print(table)
    if found.consensus_refusal:
        console.print(f"No consensus basis: {found.consensus_refusal}", highlight=False)
    certificate = found.round.analyst.certificate
    console.print(f"Certificate: {certificate.headline}.", highlight=False, soft_wrap=True)
    console.print(f"Took {found.seconds:.1f} s. Report: {report}", highlight=False, soft_wrap=True)


ROWS_OF_EACH_LABEL = 25
PUBLIC_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class Table:
    """One data set with the numbers that the demo runs with.

    Attributes
    ----------
    name, task : str
        What it is called and what it is for.
    rows, labels : ndarray of shape (n_rows, n_features) and (n_rows,)
        As published.
    features : tuple of NumericFeature
        Centre and scale, standing in for what a consortium would take from a code book.
    parties, rows_each, n_components : int
        Defaults.
    """

    name: str
    task: Task
    rows: Matrix
    labels: Labels
    features: tuple[NumericFeature, ...]
    parties: int
    rows_each: int
    n_components: int


def load(name: DataName) -> Table:
    """Load one of the three data sets."""
    return {"digits": _digits, "cancer": _cancer, "diabetes": _diabetes}[name]()


def _digits() -> Table:
    """Load 1,797 handwritten digits; a pixel is a count from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    features = numeric_features(bunch.feature_names, centre=8.0, scale=16.0)
    return _table("digits", bunch, features, parties=10, rows_each=50, n_components=24)


def _cancer() -> Table:
    """Load 569 breast tumours; the whole table's mean and deviation stand in for a code book."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    features = numeric_features(
        bunch.feature_names, centre=bunch.data.mean(axis=0), scale=bunch.data.std(axis=0)
    )
    return _table("cancer", bunch, features, parties=4, rows_each=25, n_components=10)


def _diabetes() -> Table:
    """Load 442 patients; published centred, each column of length 1."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes()
    features = numeric_features(bunch.feature_names, scale=1 / np.sqrt(len(bunch.data)))
    return _table("diabetes", bunch, features, parties=4, rows_each=40, n_components=7)


def _table(
    name: str,
    bunch: "Bunch",
    features: tuple[NumericFeature, ...],
    *,
    parties: int,
    rows_each: int,
    n_components: int,
) -> Table:
    """Put a scikit-learn data set into our own table."""
    return Table(
        name=name,
        task="regression" if name == "diabetes" else "classification",
        rows=bunch.data,
        labels=bunch.target,
        features=features,
        parties=parties,
        rows_each=rows_each,
        n_components=n_components,
    )


def deal(table: Table, *, n_parties: int, split: Split, seed: int) -> Dealt:
    """Deal a data set out to parties; what is left is the one common test set.

    Parameters
    ----------
    table : Table
        From `load`.
    n_parties : int
        At least 1.
    split : {"iid", "by-label"}
        ``by-label``: party i holds 25 rows of each of two labels, i and i + 1 of a random
        cycle; digits only.
    seed : int
        For the order of rows and labels.

    Returns
    -------
    Dealt
        Parties' rows, the test set, and public rows set aside from neither.

    Raises
    ------
    OptionError
        More parties than rows, or a split that the data set does not have.

    Notes
    -----
    **Who sees what.** Simulation only.

    **Cost.** None.
    """
    if n_parties < 1:
        raise OptionError(f"--parties {n_parties} leaves nobody to hold rows. Use 1 or more.")
    rng = np.random.default_rng(seed)
    dealers: dict[Split, Callable[[], list[Labels]]] = {
        "iid": lambda: _iid(table, n_parties, rng),
        "by-label": lambda: _by_label(table, n_parties, rng),
    }
    dealt = dealers[split]()
    rest = np.setdiff1d(np.arange(len(table.rows)), np.concatenate(dealt))
    public, test = np.split(rng.permutation(rest), [PUBLIC_ROWS])
    return Dealt(
        name=table.name,
        task=table.task,
        split=split,
        features=table.features,
        rows={
            f"party-{number}": (table.rows[chosen], table.labels[chosen])
            for number, chosen in enumerate(dealt, start=1)
        },
        test_rows=table.rows[test],
        test_labels=table.labels[test],
        public_rows=table.rows[public],
    )


def _iid(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    """Deal rows out in random order."""
    _refuse_too_many(table, n_parties, table.rows_each, len(table.rows) - 2 * PUBLIC_ROWS)
    order = rng.permutation(len(table.rows))[: n_parties * table.rows_each]
    return np.split(order, n_parties)


def _by_label(table: Table, n_parties: int, rng: np.random.Generator) -> list[Labels]:
    """Deal each party two labels that are neighbours in a random cycle of labels."""
    if table.name != "digits":
        raise OptionError(
            f"--split by-label is for digits; {table.name} has too few labels for parties that "
            "each hold two. Use --data digits, or --split iid."
        )
    cycle = rng.permutation(np.unique(table.labels))
    counts = np.unique(table.labels, return_counts=True)[1]
    often = -(-n_parties // len(cycle)) * 2 * ROWS_OF_EACH_LABEL
    if often > counts.min():
        most = int(counts.min() // (2 * ROWS_OF_EACH_LABEL)) * len(cycle)
        raise OptionError(
            f"--parties {n_parties} would need {often} rows of one digit, and there are only "
            f"{counts.min()} of some. Use --parties {most} or fewer."
        )
    waiting = {label: rng.permutation(np.flatnonzero(table.labels == label)) for label in cycle}
    dealt = []
    for number in range(n_parties):
        taken = []
        for label in (cycle[number % len(cycle)], cycle[(number + 1) % len(cycle)]):
            rows, waiting[label] = np.split(waiting[label], [ROWS_OF_EACH_LABEL])
            taken.append(rows)
        dealt.append(np.concatenate(taken))
    return dealt


def _refuse_too_many(table: Table, n_parties: int, rows_each: int, available: int) -> None:
    """Raise OptionError where parties would take the rows that the test needs."""
    if n_parties * rows_each > available:
        raise OptionError(
            f"--parties {n_parties} of {rows_each} rows each need {n_parties * rows_each} rows, "
            f"and {table.name} has {available} to deal out. "
            f"Use --parties {available // rows_each} or fewer."
        )
