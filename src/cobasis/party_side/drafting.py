"""A new agreement's fields: features from a public example, and what follows."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from cobasis.errors import FeatureError
from cobasis.features.category import CategoryFeature
from cobasis.features.columns import width_of
from cobasis.features.numeric import NumericFeature
from cobasis.models.families import default_model
from cobasis.party_side.wording import Features, Missing
from cobasis.tables.sources import source_of

MAX_WORDS = 1000
_DIGITS = 3


def features_of_example(
    example: Path, *, leave_out: Iterable[str], missing: Missing = "refuse"
) -> Features:
    """Describe the columns of a public table: names, kinds, vocabularies and scales."""
    source = source_of(example, party="example")
    with source.reading():
        schema = source.frame.collect_schema()
    gone = set(leave_out)
    found: list[NumericFeature | CategoryFeature] = []
    for name, dtype in schema.items():
        if name in gone:
            continue
        column = source.collect(pl.col(name))[name]
        found.append(_number(column, missing) if dtype.is_numeric() else _words(column, missing))
    if not found:
        raise FeatureError(
            f"'{example.name}' has no column besides label and id. Give a table with features."
        )
    return tuple(found)


def _number(column: pl.Series, missing: Missing) -> NumericFeature:
    """Describe a column of numbers: its mean and spread become public constants."""
    whole = column.cast(pl.Float64).drop_nulls().drop_nans()
    mean, spread = whole.mean(), whole.std()
    centre = _short(mean) if isinstance(mean, float) else 0.0
    scale = _short(spread) if isinstance(spread, float) else 1.0
    fill = {"missing": missing, "fill": centre} if missing == "fill" else {}
    return NumericFeature(name=column.name, centre=centre, scale=scale or 1.0, **fill)  # type: ignore[arg-type]


def _words(column: pl.Series, missing: Missing) -> CategoryFeature:
    """Describe a column of words: those of the example become the vocabulary."""
    words = sorted({str(each) for each in column.drop_nulls().to_list()} - {""})
    if not 0 < len(words) <= MAX_WORDS:
        raise FeatureError(
            f"column '{column.name}' of the example has {len(words):,} different words, and a "
            f"category has 1 to {MAX_WORDS:,}. Name it as --id or --label, or leave it out."
        )
    return CategoryFeature(
        name=column.name,
        values=tuple(words),
        unknown="other",
        missing="level" if missing == "fill" else "refuse",
    )


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def labels_of_example(example: Path, label: str) -> tuple[str, ...] | tuple[int, ...]:
    """Return the classes that the label column of a public example has, sorted."""
    source = source_of(example, party="example")
    with source.reading():
        schema = source.frame.collect_schema()
    if label not in schema:
        raise FeatureError(
            f"'{example.name}' has no column '{label}' ({', '.join(schema)}). Correct --label."
        )
    found = source.collect(pl.col(label))[label].drop_nulls().unique().to_list()
    if schema[label].is_integer() or all(isinstance(each, int) for each in found):
        return tuple(sorted(int(each) for each in found))
    return tuple(sorted(str(each) for each in found))


def draft_fields(given: Mapping[str, Any], *, stem: str) -> dict[str, Any]:
    """Complete what is given of an agreement with what follows from it."""
    fields = {name: value for name, value in given.items() if value is not None}
    fields.setdefault("round_id", f"{stem}-{secrets.token_hex(4)}")
    fields.setdefault("threat_model", "semi-honest")
    task = fields.get("task")
    if task in {"classification", "regression"}:
        fields.setdefault("model", default_model(task))
        fields.setdefault("models", (fields["model"],))
    features = fields.get("features")
    if features and fields.get("anchor", "isometric") == "isometric":
        fields.setdefault("n_anchor_rows", width_of(features))
    return fields
