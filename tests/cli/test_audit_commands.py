"""``cobasis audit``, and what ``send`` does with what it finds."""

import json

import pytest

from cli.round_by_commands import Typed, write_table
from cobasis.bundle.transcript import verify_transcript


@pytest.fixture(scope="module")
def cobasis(tmp_path_factory):
    """A sealed round; north's secret lies beside its agreement."""
    folder = tmp_path_factory.mktemp("round")
    with pytest.MonkeyPatch.context() as patch:
        typed = Typed(folder, patch)
        typed.sealed()
        write_table(folder / "north.csv", seed=2, n_rows=60)
        yield typed


def test_the_page_and_its_figures_are_written_for_their_owner_only(cobasis):
    said = cobasis("audit icu.toml north.csv -o page.html").stdout
    assert said.startswith("Audit: Pseudonymised personal data. Treat as personal data.")
    for word in ("4. The model you get back", "To be signed for: ", "What would change it:"):
        assert word in said
    for name in ("page.html", "page.json"):
        assert (cobasis.folder / name).stat().st_mode & 0o777 == 0o600
    assert "<svg" in (cobasis.folder / "page.html").read_text()
    found = json.loads((cobasis.folder / "page.json").read_text())
    assert len(found["findings"]) == 13


def test_json_has_findings_and_effects_of_what_was_asked(cobasis):
    found = cobasis.json("audit icu.toml north.csv --n-components 1,2 --noise 0.3")
    names = [each["name"] for each in found["effects"]]
    assert names[:4] == ["as it is", "1 component", "2 components", "noise 0.3"]
    assert found["to_sign"] == [
        each["id"] for each in found["findings"] if each["action"] == "sign"
    ]
    assert not found["blocked"]
    assert found["pages"] == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("--n-components 4,many", "CB107"),
        ("--n-components 99", "CB107"),
        ("--noise -1", "CB107"),
        ("--sensitive hair", "CB107"),
        ("-o none/page.html", "CB601"),
        ("-o page.json", "CB107"),
        ("-o north.csv", "CB107"),
    ],
)
def test_what_cannot_be_asked_is_refused(cobasis, more, code):
    assert f"[{code}]" in cobasis(f"audit icu.toml north.csv {more}", code=2).stderr


def test_an_upload_is_signed_or_does_not_leave_and_inspect_shows_what_travels(cobasis):
    line = "send icu.toml north.csv -o north.upload --yes"
    refused = cobasis(line, code=2)
    assert "[CB512]" in refused.stderr
    assert not (cobasis.folder / "north.upload").exists()
    assert "Audit: Pseudonymised" in cobasis(f"{line} --signed-by Officer").stdout
    seen = cobasis("inspect north.upload --as lab --agreement icu.toml", by="lab").stdout
    assert "audit: policy cobasis/audit/1, report " in seen
    assert "verdict pseudonymised" in seen
    told = next((cobasis.folder / "home-north" / "transcripts").rglob("*.jsonl"))
    events = {each.event: each.told for each in verify_transcript(told).entries}
    assert events["audited"]["signed_by"] == ["Officer"]
    write_table(cobasis.folder / "north.csv", seed=2, n_rows=61)
    assert "Blocked: H4" in cobasis("audit icu.toml north.csv").stdout
    assert cobasis.json("audit icu.toml north.csv")["blocked"]
