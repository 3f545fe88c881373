"""``cobasis audit`` and ``plan``: what is measured, shown and kept for its owner only."""

import json
from pathlib import Path

import pytest

from cli.round_by_commands import TERMS, write_table

AUDIT = "audit icu.toml north.csv"
PLAN = "plan icu.toml north.csv"


@pytest.fixture
def draft(cobasis):
    cobasis.draft()
    write_table(Path("north.csv"), seed=2, n_rows=70)
    return cobasis


def test_an_audit_is_shown_written_and_kept_for_its_owner_only(sealed):
    parts = ("10 % of a column's range", "4. The model", "To be signed for: ", "change first:")
    sealed.said(f"{AUDIT} -o page.html", "Audit: Pseudonymised personal data.", *parts)
    for path in (Path("page.html"), Path("page.json")):
        assert path.stat().st_mode & 0o777 == 0o600
    assert 'class="bar"' in Path("page.html").read_text()
    assert len(json.loads(Path("page.json").read_text())["report"]["findings"]) == 13
    found = sealed.json(AUDIT)
    assert [each["name"] for each in found["effects"][:2]] == ["as it is", "1 component"]
    asked = [each["id"] for each in found["findings"] if each["action"] == "sign"]
    assert (found["to_sign"], found["blocked"], found["pages"]) == (asked, False, [])


def test_what_cannot_be_audited_or_planned_is_refused(sealed):
    Path("hair.toml").write_text("[hair]\nfactor = 2\n")
    for line, more in (
        *((AUDIT, each) for each in ("--sensitive hair", "-o page.json", "-o north.csv")),
        *((PLAN, each) for each in ("other.csv", "--mapping hair.toml")),
    ):
        sealed.refused(f"{line} {more}", "[CB107]")
    sealed.refused(f"{AUDIT} -o none/page.html", "[CB601]")


def test_a_plan_needs_a_draft_and_a_table_alone_and_public_rows_bring_a_basis(draft):
    before = sorted(Path().rglob("*"))
    words = ("6 components", "random basis", "leaked", "Always answering the most frequent")
    draft.said(PLAN, *words, "Noise with a guarantee is priced", by="nobody")
    assert sorted(Path().rglob("*")) == before
    found = draft.json(PLAN)
    assert (found["n_rows"], found["metric"]) == (70, "accuracy")
    Path("own.csv").write_text(Path("north.csv").read_text().replace("sex", "geschlecht", 1))
    Path("own.toml").write_text('[sex]\ncolumn = "geschlecht"\n')
    again = draft.json(f"{PLAN.replace('north', 'own')} --mapping own.toml")
    assert again["effects"] == found["effects"]
    assert {each["n_scored"] for each in found["effects"]} == {35}
    found = draft.json(f"{PLAN} --public public.csv")
    assert "public rows' basis" in {each["name"] for each in found["effects"]}


def test_rows_are_planned_beside_sums_whichever_the_draft_sends(draft):
    sums = "--sums maps=rff,waves=5,most_rows=100,most_rows_in_all=300"
    draft(f"agreement new sums.toml {TERMS} {sums}")
    rows, sums = draft.json(PLAN)["releases"]
    asked = draft.json("plan sums.toml north.csv")
    assert (asked["effects"], [x["release"] for x in asked["releases"]]) == ([], ["rows", "sums"])
    own = asked["releases"][1]
    assert own["n_bytes"] == 8 * 3 * 13 * 14 // 2 < sums["n_bytes"]  # a one, ten waves, two classes
    assert own["score"] == sums["score"]  # both of raw columns
    assert "(green, of 3 like you)" in own["learns"]  # 21 rows for each feature
    assert rows["n_bytes"] == 70 * (3 * 8 + 8) + 7 * 3 * 8
    assert "all labels" in rows["learns"]
    draft.said("plan sums.toml north.csv", "Rows beside sums")
    numbers = TERMS.replace("sick", "a").replace("classification", "regression")
    draft(f"agreement new ols.toml {numbers} --model ols")
    only = draft.json("plan ols.toml north.csv --public public.csv")  # nothing else may be signed
    assert [len(only[word]) for word in ("effects", "releases")] == [1, 1]


def test_a_draft_is_planned_with_its_guarantee_and_refused_by_what_it_lacks(draft):
    draft("agreement new thin.toml --numbers a,b --task representation")
    draft.refused("plan thin.toml north.csv", "draft: n_components, id, purpose")
    draft.draft("own.toml", more="--basis haar --dp epsilon=8,radius=3,most_rows=99,labels=public")
    found = draft.json("plan own.toml north.csv")
    assert found["effects"][0]["leaked"] < 0.5
    assert "Labels are public." in json.dumps(found["told"])
