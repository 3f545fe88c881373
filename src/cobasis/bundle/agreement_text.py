"""The agreement's TOML: written anew, with what each field means, and read with its signatures."""

from collections.abc import Mapping
from typing import Any

import tomlkit
from pydantic import BaseModel

from cobasis.features.contract import NumericFeature, formula_of
from cobasis.protocol.agreement import Agreement, missing_fields
from cobasis.protocol.approval import Record
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.sums_terms import FOR_ROWS

MARK = "# <- fill in"
"""Stands behind a field that has to be filled."""

HEAD = """\
# The agreement of one cobasis round. It is public: it holds no rows and no secret.
# Everybody signs what its fields say; a change of a field makes all signatures void, a comment
# may be added at any time.
# An empty text ("") means: not given. Fields marked <- fill in are needed before anybody signs.
"""

GROUPS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "What it is for",
        {
            "round_id": "A name that no other round has.",
            "purpose": "What the model is for, and who may use it, in words.",
            "threat_model": 'Whom it protects from: "semi-honest", who keep to it and look.',
            "retention_days": "For how many days the analyst keeps uploads.",
            "deadline": 'Until when uploads are taken, in UTC: "2026-12-31T23:59:59Z".',
            "minimum_parties": "With fewer uploads the analyst does not run.",
            "fewest_rows": "A party with fewer rows to upload takes no part.",
            "server": 'The analyst\'s server, "https://lab.example"; empty: files travel by hand.',
        },
    ),
    (
        "What is learned",
        {
            "task": '"classification", "regression", "count", "survival", "effect", "clustering", '
            '"novelty"; without a model "representation", "table".',
            "label": "The column of labels, in every party's table; of survival the time.",
            "classes": "All labels that may occur, or names of clusters; all text or all integers.",
            "id": "The column of identifiers; it is never uploaded.",
            "model": 'The family: "logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost"; '
            'of rows alone "kmeans", "gaussian_mixture"; or a table: "ols", "logit", "firth", '
            '"poisson", "negative_binomial", "cox", "effect".',
            "models": "The families that the analyst may choose from; empty for model alone.",
            "holdout": "The share of rows, up to 0.5, that stays at a party, which scores on them.",
        },
    ),
    (
        "How rows are projected and aligned",
        {
            "n_components": "The columns of every secret basis; fewer show less and keep less.",
            "n_anchor_rows": "Rows of the anchor; at least the number of encoded features.",
            "anchor": 'The kind of anchor; "isometric" unless a paper is reproduced.',
            "basis": 'How parties choose their bases: "svd", "consensus", "haar", "public", ...',
            "aligner": 'The method: "odc", "gopp", "whitened", "imakura", "kawakami".',
            "public_rows_sha256": "The digest of public rows, where anchor or basis need them.",
            "commitment": "By `cobasis agreement new`; it binds the secret and does not show it.",
        },
    ),
    (
        "How numbers travel, and how far scales may differ",
        {
            "precision": 'Numbers of an upload: "fp64", "fp32", "fp16" or "int8".',
            "int8_range": "With int8 only: projected values lie between minus this and this.",
            "scale_band": "How many times larger or smaller than the median a party's rows may be.",
        },
    ),
)

FEATURES = """\
# ---- Features: one [[features]] table per column, in this order
#
# A number enters as (value - centre) / scale. Take the constants from a code book or from public
# data, never from one party's rows. unit is for people; `cobasis send` refuses values
# outside low and high; missing = "fill" lets fill stand for empty cells, else they are refused.
# source is for people as well: where the constants, or a category's words, come from.
#
# A category has a closed list of words. unknown = "other" gives all other words one level,
# missing = "level" gives empty cells one; without them such cells are refused. base is the word
# without a column of its own: every category but the first has one, else columns are dependent.
#
# A number with knots, three or more, enters as a natural cubic spline, linear beyond the outer
# ones. kind = "interaction" with of = ["age", "sex"] holds products; these tables come last.
"""

EXAMPLE = """\
# [[features]]
# name = "lactate"
# unit = "mmol/l"
# centre = 2.0
# scale = 1.5
# low = 0.0
# high = 30.0
# missing = "fill"
# fill = 1.0
#
# [[features]]
# name = "ward"
# kind = "category"
# values = ["medical", "surgical"]
# unknown = "other"
# missing = "level"
"""

HOLDINGS = """\
# ---- Who holds some columns only: a [[holdings]] table for each such party, or none.
#
# A block's parties hold columns of the same people, whom all of them call alike in the id column.
# n_components of a block's parties add up to the agreement's; labels = false: it has no labels.
"""

_HOLDING = """\
# [[holdings]]
# party = "laboratory"
# columns = ["lactate"]
# block = "city"
# n_components = 1
# labels = false
"""

DP: Mapping[str, str] = {
    "epsilon": "Of one person's features in one upload, at most 64.",
    "delta": "At most 1 / (10 most_rows).",
    "radius": "Encoded rows are clipped to this distance from centre; take it from public rows.",
    "centre": "A number for each encoded feature, from public rows; [] for the origin.",
    "adjacency": '"replace-one": one record is another; "add-remove": one is a row of the centre.',
    "rows_per_person": "The most rows that one person has.",
    "most_rows": "The most rows that any party may upload.",
    "labels": '"public" by declaration, or "randomised_response"; "" for a representation.',
    "label_epsilon": "With randomised_response only: of one person's labels, at most 16.",
    "colluders": "Of sums only: how many parties may help the analyst, 1 or more.",
    "lifetime_epsilon": "What all uploads of one data set may spend; no later agreement raises it.",
}

SUMS: Mapping[str, str] = {
    "most_rows": "The most rows that any party may sum up.",
    "most_rows_in_all": "The most of all parties together.",
    "least_rows": "A party with fewer takes no part; 20 for each feature let a run leave one out.",
    "scores": "Whether scores on held-back rows follow, which make probabilities.",
    "importance": "Whether scores also say what each column's shuffling costs.",
    "n_bins": "Table only: bins of each number's histogram, from its low to its high.",
    "target_range": "Of numbers and counts: the target's low and high; others are refused.",
    "steps": "Logistic, Poisson and Cox tables: the most exchanges, a step in each.",
    "most_exposure": "With an exposure: the largest that a row may have.",
}

OUTCOME: Mapping[str, str] = {
    "time": "Table: the column of times, for survival curves; elsewhere they are the label.",
    "event": "Survival, table: the column that is 1 where the event was seen, 0 where not yet.",
    "entry": "Survival: the time from which a row was followed; empty for 0.",
    "stratum": "Survival: whole numbers, each with a baseline of its own.",
    "exposure": "Count: over how much time, or how many people, a row was counted.",
    "weight": "How many rows a row stands for.",
    "horizons": "Survival: times of predicted shares without event. Table: ends of mean times.",
    "grid": "Sums: where intervals of time end; all times are rounded up to these.",
    "fewest_leavers": "Table: how many of a group leave between two times of a curve, if any do.",
    "strata_by_party": "Survival: whether every party has a baseline of its own.",
    "errors": 'Standard errors: "model", "robust" of rows, or "party" of whole parties.',
    "compare_parties": "Whether everybody also sees each party's own estimates.",
    "treatment": "Effect: the column that is 1 where a row was treated, 0 where it was not.",
    "estimators": 'Effect: of "weighting", "matching", "doubly_robust", "dml"; all are told.',
    "trim": "Effect: rows whose propensity is nearer to 0 or to 1 are left out.",
    "caliper": "Effect: how far a match may be, in deviations of the propensity's logit.",
}

_DP = DPTerms(epsilon=8.0, radius=2.0, most_rows=10000, lifetime_epsilon=8.0)

NOISE = """\
# ---- Noise with a guarantee: a [dp] table, or none. It costs much of the accuracy; read
# docs/explanation/differential-privacy.md before. It takes basis = "haar" or "public".
"""

RECORD: Mapping[str, str] = {
    "controllers": "Who decides together, and by which arrangement (GDPR art. 26).",
    "contacts": "Data-protection officers and where they are reached.",
    "processor": "The contract with the analyst (art. 28).",
    "legal_basis": "Of art. 6 and, for health data, of art. 9.",
    "people": "Whose data it is, and of which kinds.",
    "users": "Who may use the model, and for what.",
    "transfers": "What leaves the European Economic Area, and on what ground; or none.",
    "security": "Measures beyond what cobasis does: rooms, accounts, deletion.",
}

OFFICERS = """\
# ---- What officers file: a [record] table, or none. It is signed with all the rest, and
# `cobasis audit` shows it; what is empty is not stated.
"""

PEOPLE = """\
# ---- Parties, officers whose approval a party's files need, and analyst: written by
# `cobasis agreement new`, from .pub files.
"""


def new_text(fields: Mapping[str, Any]) -> str:
    """Return a commented agreement."""
    lines, sums = [HEAD], fields.get("sums")
    if sums is not None:
        lines += ["# What a party's file holds: masked sums, and no row.", 'release = "sums"', ""]
    for title, group in GROUPS if sums is None else GROUPS[:2]:
        lines += [f"# ---- {title}", ""]
        for name, comment in group.items():
            if sums is None or name not in FOR_ROWS:
                lines += [f"# {comment}", _field(name, fields), ""]
    lines += [FEATURES]
    features = fields.get("features") or ()
    lines += [f"# Formula: {formula}\n"] if (formula := formula_of(features)) else []
    lines += [_table("[[features]]", _told(each)) for each in features] or [EXAMPLE]
    if sums is None:
        holdings = [_table("[[holdings]]", _told(each)) for each in fields.get("holdings") or ()]
        lines += [HOLDINGS, *(holdings or [_HOLDING])]
    else:
        told = {name: each for name in SUMS if (each := getattr(sums, name)) is not None}
        lines += ["# ---- What is summed: an agreed map of each row, over all rows", ""]
        lines += [_table("[sums]", told, words=SUMS)]
        lines += [_table("[[sums.maps]]", each.model_dump()) for each in sums.maps]
    if (outcome := fields.get("outcome")) is not None:
        lines += ["# ---- What is known of a row beside its label", ""]
        lines += [_table("[outcome]", outcome, words=_words_of(fields))]
    for lead, title, words, example in (
        (NOISE, "[dp]", DP, _DP),
        (OFFICERS, "[record]", RECORD, Record()),
    ):
        given = fields.get(title.strip("[]"))
        text = _table(title, given or example, words=words)
        lines += [lead, text if given else "".join(f"# {x}\n" for x in text.splitlines())]
    lines += [PEOPLE]
    people = {"[[party]]": fields.get("enrolled"), "[[approver]]": fields.get("approvers")}
    people |= {"[analyst]": [fields["analyst"]] if fields.get("analyst") else None}
    lines += [_table(title, x.model_dump()) for title, some in people.items() for x in some or ()]
    return "\n".join(lines)


def _words_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the terms of an outcome that the task has, or that are not as by default."""
    given = fields["outcome"].model_dump(exclude_defaults=True)
    others = {"Survival", "Count", "Effect"} - {str(fields.get("task")).capitalize()}
    return {
        name: words
        for name, words in OUTCOME.items()
        if name in given or words.partition(":")[0] not in others
    }


def _field(name: str, fields: Mapping[str, Any]) -> str:
    """Return one line, marked where the field has to be filled."""
    missing = name in missing_fields(fields)
    value = fields.get(name, None if missing else Agreement.model_fields[name].default)
    mark = f"  {MARK}" if missing else ""
    return f"{name} = {toml(value)}{mark}"


def _told(told: BaseModel) -> dict[str, object]:
    """Return the fields of one table of several; what is as by default is left out."""
    always = {"centre", "scale"} if isinstance(told, NumericFeature) else {"kind"}
    return {
        name: value
        for name, field in type(told).model_fields.items()
        if (value := getattr(told, name)) != field.default or name in always or field.is_required()
    }


def _table(
    title: str, told: Mapping[str, object] | BaseModel, *, words: Mapping[str, str] | None = None
) -> str:
    """Return a table: all that is told, or what there are words for, each behind its comment."""
    lines, given = [title], told if isinstance(told, Mapping) else vars(told)
    for name in given if words is None else words:
        if name in given:
            lines += [f"# {words[name]}"] if words else []
            lines += [f"{name} = {toml(given[name])}"]
    return "\n".join([*lines, ""])


def toml(value: object) -> str:
    """Return a value as TOML writes it; nothing as an empty text."""
    return tomlkit.item("" if value is None else value).as_string()
