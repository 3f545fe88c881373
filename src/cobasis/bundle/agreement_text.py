"""The agreement's TOML: written anew, with what each field means, and read with its signatures."""

import re
import textwrap
from collections.abc import Mapping
from functools import cache
from inspect import cleandoc
from typing import Any

import tomlkit
from pydantic import BaseModel

from cobasis.features.contract import NumericFeature, formula_of
from cobasis.features.outcome import Outcome
from cobasis.protocol.agreement import Agreement, missing_fields
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.enrolment import Record
from cobasis.protocol.sums_terms import FOR_ROWS, SumsTerms
from cobasis.protocol.terms import FOR_TASKS

_WIDE = 96

HEAD = """\
# The agreement of one cobasis round. It is public: it holds no rows and no secret.
# Everybody signs what its fields say; a change of a field makes all signatures void, a comment
# may be added at any time.
# An empty text ("") means: not given. Fields marked <- fill in are needed before anybody signs.
"""

_TABLES = {"parties", "features", "enrolled", "analyst", "dp", "record", "approvers", "release"}
_TABLES |= {"sums", "outcome", "holdings", "map", "groups"}
"""Fields that stand in tables behind all others, or in a line of their own."""

FEATURES = """\
# ---- Features: one [[features]] table per column, in this order
#
# A number enters as (value - centre) / scale: take these constants from a code book or from public
# data, never from one party's rows. A category has a closed list of words, and all but the first
# category a base, the word without a column of its own. Tables of kind = "interaction" come last.
# Examples stand in docs/reference/agreement.md, all terms in docs/reference/features.md.
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


def new_text(fields: Mapping[str, Any]) -> str:
    lines, sums = [HEAD], fields.get("sums")
    if sums is not None:
        lines += ["# What a party's file holds: masked sums, and no row.", 'release = "sums"', ""]
    for name, means in words_of(Agreement).items():
        if name not in _TABLES and (sums is None or name not in FOR_ROWS):
            lines += [*_comment(means), _field(name, fields), ""]
    lines += [FEATURES]
    features = fields.get("features") or ()
    lines += [f"# Formula: {formula}\n"] if (formula := formula_of(features)) else []
    lines += [_table("[[features]]", _told(each)) for each in features]
    if sums is None:
        lines += ["# ---- Who holds some columns only: see docs/how-to/other-columns.md", ""]
        lines += [_table("[[holdings]]", _told(each)) for each in fields.get("holdings") or ()]
        lines += ["# ---- Which map rows go through first: see docs/reference/features.md", ""]
        lines += [_table("[map]", fields["map"].model_dump())] if "map" in fields else []
    else:
        said = {name: each for name, each in words_of(SumsTerms).items() if name != "maps"}
        terms = {name: each for name in said if (each := getattr(sums, name)) is not None}
        lines += ["# ---- What is summed: an agreed map of each row, over all rows", ""]
        lines += [_table("[sums]", terms, words=said)]
        lines += [_table("[[sums.maps]]", each.model_dump()) for each in sums.maps]
    if (outcome := fields.get("outcome")) is not None:
        lines += ["# ---- What is known of a row beside its label", ""]
        given, said = outcome.model_dump(exclude_defaults=True), words_of(Outcome)
        said = {x: said[x] for x in said if x in given or fields.get("task") in FOR_TASKS[x]}
        lines += [_table("[outcome]", outcome, words=said)]
    lines += ["# ---- Noise, at a price: see docs/explanation/differential-privacy.md", ""]
    lines += [_table("[dp]", dp, words=words_of(DPTerms))] if (dp := fields.get("dp")) else []
    record = _table("[record]", fields.get("record") or Record(), words=RECORD)
    as_remark = "".join(f"# {line}\n" for line in record.splitlines())
    lines += ["# ---- What officers file, and `cobasis audit` shows: signed with all the rest", ""]
    lines += [record if fields.get("record") else as_remark]
    lines += ["# ---- People: written by `cobasis agreement new`, from .pub files", ""]
    people = {"[[party]]": fields.get("enrolled"), "[[approver]]": fields.get("approvers")}
    people |= {"[analyst]": [fields["analyst"]] if fields.get("analyst") else None}
    lines += [_table(title, x.model_dump()) for title, some in people.items() for x in some or ()]
    return "\n".join(lines)


@cache
def words_of(kind: type[BaseModel]) -> dict[str, str]:
    """Return what a class's docstring says of each field, and what that may be."""
    listed = cleandoc(kind.__doc__ or "").partition("\n----------\n")[2].partition("\n\n")[0]
    found = dict.fromkeys(kind.model_fields, "")  # docstrings may be stripped
    for names, may_be, text in re.findall(r"^(.+) : (.+)((?:\n {4}.+)+)", listed, re.MULTILINE):
        choices = re.search("{(.*)}", may_be)
        also = f" One of {choices[1]}." if choices else ""
        said = " ".join(f"{text}{also}".replace("`", "").split())
        found |= dict.fromkeys(names.split(", "), said)
    return found


def _comment(text: str) -> list[str]:
    lines = textwrap.wrap(text.replace("None", '""'), _WIDE, break_on_hyphens=False)
    return [f"# {each}" for each in lines]


def _field(name: str, fields: Mapping[str, Any]) -> str:
    missing = name in missing_fields(fields)
    value = fields.get(name, None if missing else Agreement.model_fields[name].default)
    mark = "  # <- fill in" if missing and name != "commitment" else ""  # which a command fills
    return f"{name} = {toml(value)}{mark}"


def _told(told: BaseModel) -> dict[str, object]:
    """Return the fields of one table of several; what is as by default is left out."""
    always = {"centre", "scale"} if isinstance(told, NumericFeature) else {"kind"}
    said = {*told.model_dump(exclude_defaults=True)} | always
    return {name: value for name, value in told if name in said}


def _table(
    title: str, told: Mapping[str, object] | BaseModel, *, words: Mapping[str, str] | None = None
) -> str:
    """Return a table: all that is told, or what there are words for, each behind its comment."""
    lines, given = [title], told if isinstance(told, Mapping) else vars(told)
    for name in given if words is None else words:
        if name in given:
            lines += _comment(words[name]) if words else []
            lines += [f"{name} = {toml(given[name])}"]
    return "\n".join([*lines, ""])


def toml(value: object) -> str:
    return tomlkit.item("" if value is None else value).as_string()
