"""The agreement's TOML: written with comments, edited without losing any, read or refused."""

import re
import stat
import tomllib
from pathlib import Path

import pytest

from bundle.agreements import FILLED, SECRET, edited, signed, whole, written
from cobasis import Agreement
from cobasis.bundle.agreement_file import (
    complete,
    read_agreement,
    read_draft,
    seal,
    sealed_agreement,
    sealed_path,
    stem_of,
    write_agreement,
)
from cobasis.bundle.agreement_text import new_text
from cobasis.errors import AgreementError, DiskError, UnsignedError
from cobasis.protocol.agreement import missing_fields
from protocol.consortium import NAMES
from protocol.people import ANALYST, PEOPLE, identity


def comments(text):
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def test_an_empty_draft_has_every_field_with_a_comment_and_says_what_to_fill(tmp_path):
    path = tmp_path / "icu.toml"
    path.write_text(new_text({}))
    text = path.read_text()
    fields = set(Agreement.model_fields) - {"parties", "enrolled", "analyst", "features", "dp"}
    assert set(tomllib.loads(text)) == fields
    for name in fields:
        assert re.search(rf"^# .+\n{name} = ", text, re.MULTILINE), name
    marked = set(re.findall(r"^(\w+) = .*# <- fill in$", text, re.MULTILINE))
    missing = set(missing_fields(read_draft(path)))
    assert missing - marked == {"parties", "features", "enrolled", "analyst"}
    assert marked <= missing
    assert "retention_days" in marked
    assert "# [[features]]" in text
    assert "# [dp]" in text


def test_what_is_written_reads_back_as_the_same_agreement(tmp_path):
    path = whole(tmp_path)
    found = read_agreement(path).agreement
    expected = Agreement(
        **FILLED,
        parties=NAMES,
        enrolled=PEOPLE,
        analyst=ANALYST,
        commitment=SECRET.commitment("icu-2026"),
    )
    assert found == expected
    assert found.digest() == expected.digest()
    assert missing_fields(read_draft(path)) == ()


def test_every_field_survives_the_file(tmp_path):
    changes = {
        "models": ("ridge", "mlp"),
        "precision": "int8",
        "int8_range": 4,
        "id": "patient",
        "minimum_parties": 2,
        "deadline": "2026-12-31T23:59:59Z",
        "basis": "public",
        "public_rows_sha256": "ab" * 32,
        "aligner": "gopp",
        "anchor": "gaussian",
        "scale_band": 3,
        "classes": ("no", "yes"),
    }
    found = read_agreement(whole(tmp_path, **changes)).agreement
    for name, value in changes.items():
        assert getattr(found, name) == value, name


def test_the_digest_does_not_depend_on_comments_order_or_the_way_numbers_are_written(tmp_path):
    path = whole(tmp_path)
    before = read_agreement(path).agreement.digest()
    text = path.read_text()
    changed = text.replace("holdout = 0.25", "holdout = 2.5e-1 # a quarter")
    changed = changed.replace("centre = 60.0", "centre = 60").replace("# Rows of the", "# rows of")
    line = 'round_id = "icu-2026"\n'
    changed = line + changed.replace(line, "")
    assert changed != text
    path.write_text(changed)
    assert read_agreement(path).agreement.digest() == before


def test_a_time_without_quotes_is_the_same_time_in_utc(tmp_path):
    path = whole(tmp_path)
    text = path.read_text().replace('deadline = ""', "deadline = 2026-12-31T23:59:59+02:00")
    path.write_text(text)
    assert read_agreement(path).agreement.deadline == "2026-12-31T21:59:59Z"


def test_comments_of_people_survive_enrolling_committing_and_sealing(tmp_path):
    path = written(tmp_path)
    text = path.read_text()
    text = text.replace("holdout = 0.25", "holdout = 0.25  # asked for by the board")
    text = text.replace('name = "age"', '# at admission\nname = "age"  # years, not months')
    path.write_text(text + "\n# the end, says Ada\n")
    edited(path, parties=PEOPLE[:2], analyst=ANALYST)
    path.write_text(path.read_text().replace('name = "north"', 'name = "north"  # Dr. Müller'))
    before = comments(path.read_text())
    edited(path, parties=PEOPLE, commitment=SECRET.commitment("icu-2026"))
    sealed = seal(path, signed(path))
    after = comments(sealed.read_text())
    filled = " <- fill in"  # behind the commitment, until it is there
    assert before.count(filled) == 1
    assert after == [each for each in before if each != filled]
    for own in (" asked for by the board", " at admission", " years, not months", " Dr. Müller"):
        assert own in after
    assert " the end, says Ada" in after
    read_agreement(sealed).check_sealed()


def test_a_party_that_is_enrolled_again_has_its_new_key_in_its_old_place(tmp_path):
    path = whole(tmp_path)
    commitment = SECRET.commitment("icu-2026")
    new, lab = identity("south", signing_key="ab" * 32), identity("lab2", signing_key="cd" * 32)
    edited(path, parties=[new], commitment=commitment)
    found = read_agreement(path).agreement
    assert found.parties == NAMES
    assert found.enrolled[1] == new
    assert found.enrolled[0] == PEOPLE[0]
    edited(path, analyst=lab, commitment=commitment)
    assert read_agreement(path).agreement.analyst == lab
    assert path.read_text().count("[analyst]") == 1


def test_the_commitment_to_a_secret_goes_when_somebody_else_is_enrolled(tmp_path):
    path = whole(tmp_path)
    edited(path, parties=[identity("south", signing_key="ab" * 32)])
    assert missing_fields(read_draft(path)) == ("commitment",)


def test_a_key_that_was_made_for_the_other_role_is_no_partys_and_no_analysts(tmp_path):
    path = whole(tmp_path)
    wrong = [identity("south", role="analyst"), identity("lab", role="party")]
    edited(path, parties=wrong[:1], analyst=wrong[1], commitment="0" * 64)
    with pytest.raises(AgreementError, match=r"of party 'south' was made for role 'analyst'.*lab"):
        read_agreement(path)


def test_sealing_takes_all_signatures_or_says_who_is_missing_and_writes_nothing(tmp_path):
    path = whole(tmp_path)
    before = path.read_bytes()
    with pytest.raises(UnsignedError, match=r"missing: east, lab; 3 of 5.*\[CB311\]$"):
        seal(path, signed(path, ["north", "south", "west"]))
    assert [each.name for each in tmp_path.iterdir()] == ["icu.toml"]
    sealed = seal(path, signed(path))
    assert sealed == sealed_path(path) == tmp_path / "icu.sealed.toml"
    found = read_agreement(sealed)
    found.check_sealed()
    assert [each.name for each in found.signatures] == [*NAMES, "lab"]
    assert found.agreement.digest() == read_agreement(path).agreement.digest()
    assert path.read_bytes() == before
    assert stem_of(path) == stem_of(sealed) == "icu"


def test_signatures_that_lie_beside_the_agreement_count_and_nothing_is_written(tmp_path):
    path = whole(tmp_path)
    for each in signed(path, ["north", "south", "west"]):
        (tmp_path / f"{each.name}.sig").write_text(each.text())
    with pytest.raises(UnsignedError, match="missing: east, lab"):
        sealed_agreement(path)
    for each in signed(path, ["east", "lab"]):
        (tmp_path / f"{each.name}.sig").write_text(each.text())
    before = sorted(tmp_path.iterdir())
    assert sealed_agreement(path).digest() == read_agreement(path).agreement.digest()
    assert sorted(tmp_path.iterdir()) == before


def test_a_signature_that_cannot_be_read_is_named_by_its_file(tmp_path):
    path = whole(tmp_path)
    (tmp_path / "east.sig").write_text("dear north, I agree\n")
    with pytest.raises(AgreementError, match=r"east.sig' cannot be used: this is no signature"):
        sealed_agreement(path)


def test_a_sealed_agreement_cannot_be_changed_unnoticed(tmp_path):
    path = whole(tmp_path)
    sealed = seal(path, signed(path))
    with pytest.raises(AgreementError, match=r"was signed, and a change would make.*\[CB303\]"):
        complete(sealed.read_text(), path=sealed, parties=[identity("lyon")])
    path.write_text(path.read_text().replace("retention_days = 90", "retention_days = 900"))
    with pytest.raises(AgreementError, match="is not what stands in"):
        sealed_agreement(path)
    sealed.write_text(sealed.read_text().replace("retention_days = 90", "retention_days = 900"))
    with pytest.raises(UnsignedError, match="signed another version: north, south, east"):
        sealed_agreement(path)


def test_a_draft_says_what_it_lacks_before_it_is_read_as_an_agreement(tmp_path):
    path = written(tmp_path)
    match = r"still a draft: commitment, \[\[party\]\] must be filled.*\[CB303\]$"
    with pytest.raises(AgreementError, match=match):
        read_agreement(path)
    draft = read_draft(path)
    assert missing_fields(draft) == ("parties", "commitment", "enrolled", "analyst")
    assert draft["round_id"] == "icu-2026"


def test_an_edit_is_whole_or_not_at_all_and_keeps_the_files_mode(tmp_path, monkeypatch):
    path = tmp_path / "icu.toml"
    write_agreement(path, "one = 1\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o664)
    write_agreement(path, "one = 2\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o664
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(DiskError, match="No space left"):
        write_agreement(path, "one = 3\n")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["icu.toml"]


def test_the_example_of_the_reference_is_an_agreement_that_lacks_signatures_only(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "reference" / "agreement.md"
    [example] = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "icu.toml"
    path.write_text(example)
    found = read_agreement(path)
    assert missing_fields(found.agreement) == ()
    assert found.agreement.n_features == 6
    with pytest.raises(UnsignedError, match="missing: north, south, lab"):
        found.check_sealed()
