"""A party's table held against the agreement, before anything is made of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from cobasis.features.category import CategoryFeature
from cobasis.features.checking import ColumnFinding, check
from cobasis.features.numeric import NumericFeature
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.tables.sources import Source, source_of, where_text
from cobasis.tables.streaming import word_labels

BATCH_ROWS = 2**17


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What `check_table` found."""

    n_rows: int
    findings: tuple[ColumnFinding, ...]

    @property
    def fits(self) -> bool:
        """Whether nothing was found that the agreement forbids."""
        return not any(finding.refused for finding in self.findings)


def check_table(
    table: str | Path | Any,  # noqa: ANN401 -- frames of any library
    *,
    agreement: Agreement,
    party: str,
    report: Report = silent,
) -> Checked:
    """Hold a party's table against the agreement: columns, types, words, ranges, empty cells.

    Examples
    --------
    >>> import polars as pl
    >>> from cobasis import Agreement, ConsortiumSecret, numeric_features
    >>> agreement = Agreement(
    ...     round_id="icu-2026", parties=("north",), task="representation", n_components=1,
    ...     features=numeric_features(["age", "pulse"]), n_anchor_rows=2,
    ...     commitment=ConsortiumSecret().commitment("icu-2026"))
    >>> frame = pl.DataFrame({"age": [61.5, None, 48.0], "heart rate": [80, 90, 70]})
    >>> for finding in check_table(frame, agreement=agreement, party="north").findings:
    ...     print(finding.text)
    1 of 3 cells of column 'age' are empty
    column 'pulse' is agreed on, and the table has none of that name
    column 'heart rate' is not in the agreement: it is not read, and never leaves
    """
    words = word_labels(agreement, agreement.label)
    source = source_of(
        table, party=party, features=(*agreement.features, *words), labels=agreement.label or None
    )
    with source.reading():
        schema = source.frame.collect_schema()
    n_rows = int(source.collect(pl.len()).item())
    held = (*agreement.features, *_label(agreement))
    named = [each.name for each in held if each.name in schema]
    findings = check(
        _batches(source, named, n_rows=n_rows, report=report),
        held,
        columns=schema.names(),
        used=[agreement.id] if agreement.id else [],
    )
    placed = [_placed(each, source) for each in findings]
    return Checked(n_rows=n_rows, findings=(*placed, *_whole_classes(agreement, schema)))


def _placed(finding: ColumnFinding, source: Source) -> ColumnFinding:
    """Say where a column that is no number has its first text."""
    if finding.problem != "type":
        return finding
    head, wanted = finding.text.split(", and", maxsplit=1)
    where = where_text(source, finding.column)
    return replace(finding, text=f"{head}{where}, and{wanted}")


def _label(agreement: Agreement) -> tuple[NumericFeature | CategoryFeature, ...]:
    """Return the label's column as if it were a feature: classes are a closed vocabulary."""
    if not agreement.label:
        return ()
    if agreement.task == "regression":
        return (NumericFeature(name=agreement.label),)
    classes = tuple(str(each) for each in agreement.classes)
    return (CategoryFeature.model_construct(name=agreement.label, values=classes),)


def _whole_classes(agreement: Agreement, schema: pl.Schema) -> tuple[ColumnFinding, ...]:
    """Find labels that are floats where classes are integers: whether 1.0 is 1 is not guessed."""
    name = agreement.label
    integers = agreement.classes and isinstance(agreement.classes[0], int)
    if not (name and integers and name in schema and schema[name].is_float()):
        return ()
    text = f"column '{name}' is of type {schema[name]}, and the agreed classes are integers"
    return (ColumnFinding(column=name, problem="type", refused=True, text=text),)


def _batches(
    source: Source, names: list[str], *, n_rows: int, report: Report
) -> Iterator["nw.DataFrame[Any]"]:
    """Read columns batch by batch."""
    if not names:
        return
    for first, frame in source.parts(names, n_rows=n_rows, batch=BATCH_ROWS):
        yield nw.from_native(frame)
        report("checking rows", first + frame.height, n_rows)
