"""Officers: who they are in an agreement, what they approve, and what leaves with it."""

from pathlib import Path

import pytest

from cli.round_by_commands import PUBS
from cobasis.bundle.agreement_file import read_agreement


@pytest.fixture
def officers(cobasis):
    """Keys of all, and of two officers of north."""
    cobasis.keys()
    for name in ("officer", "second"):
        cobasis(f"key new {name} --approver", by=name)
    return cobasis


def test_an_officer_is_enrolled_beside_a_party_and_what_officers_file_is_signed(officers):
    one, two = "--approver north=officer.pub", "--approver north=second.pub"
    officers.draft(pubs=f"{PUBS} officer.pub", more=one)
    before = read_agreement(Path("icu.toml")).agreement
    assert [(each.party, each.name) for each in before.approvers] == [("north", "officer")]
    text = Path("icu.toml").read_text()
    text = text.replace("# [record]", "[record]").replace("# legal_basis", "legal_basis")
    Path("icu.toml").write_text(text.replace('legal_basis = ""', 'legal_basis = "art. 9(2)(j)"'))
    found = officers.json(f"agreement new icu.toml {two} --yes")
    after = read_agreement(Path("icu.toml")).agreement
    assert after.record.legal_basis == "art. 9(2)(j)"
    assert (after.record.users, before.record) == ("", None)
    assert [each.name for each in after.approvers] == ["officer", "second"]
    assert {each["name"] for each in found["people"]} >= {"officer", "second", "north", "lab"}
    assert len({before.digest(), after.digest(), after.model_copy().digest()}) == 2


def test_an_approver_is_of_a_party_has_a_key_of_its_own_and_is_named_once(officers):
    Path("copy.pub").write_text(Path("officer.pub").read_text().replace('"officer"', '"again"'))
    both = "--approver north=officer.pub --approver {}=copy.pub"
    for more, said in {
        "--approver north=north.pub": "the key of approver 'north' was made for role 'party'",
        "--approver west=officer.pub": "of 'west', which is no party",
        "--approver officer.pub": "does not say whose officer it is",
        both.format("north"): "officer, again have one and the same signing_key",
        both.format("south"): "officer, again have one and the same signing_key",
        "officer.pub": "Say of which party: --approver PARTY=officer.pub",
    }.items():
        line = f"agreement new icu.toml {PUBS} --numbers a,b --task classification --label y "
        line += "--classes 0,1 --purpose p --n-components 1 --retention-days 9 --id i --yes "
        told = " ".join(officers(line + more, code=2).stderr.split())
        assert said in told, told
        assert not Path("icu.toml").exists()
    officers("key new both --analyst --approver", code=2)
