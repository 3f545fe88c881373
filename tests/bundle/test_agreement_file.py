"""The agreement's TOML: written with comments, edited without losing any, read or refused."""

import re
import tomllib
from pathlib import Path

import pytest

from cobasis import Agreement, ConsortiumSecret, NumericFeature
from cobasis.bundle.agreement_file import (
    complete,
    read_agreement,
    read_draft,
    seal,
    sealed_agreement,
    sealed_path,
    stem_of,
)
from cobasis.bundle.agreement_text import new_text
from cobasis.errors import AgreementError, UnsignedError
from cobasis.features.contract import CategoryFeature
from cobasis.protocol.agreement import missing_fields
from cobasis.protocol.dp_terms import DPTerms
from cobasis.protocol.signatures import sign_agreement
from protocol.consortium import NAMES, RANDOMISED, agree, terms
from protocol.people import ANALYST, KEYS, PEOPLE, REAL, identity

SECRET = ConsortiumSecret(bytes(32))
FEATURES = (
    NumericFeature(name="age", centre=60, scale=20, unit="years", low=0, high=120),
    NumericFeature(name='the "odd" \\ one\n', scale=1e-7, missing="fill", fill=-1e16),
    CategoryFeature(name="ward", values=("icu", "Größe", "\U0001f600"), missing="level"),
)
FILLED = dict(agree(SECRET, **REAL, features=FEATURES, n_anchor_rows=9, holdout=0.25))
BARE = {name: FILLED[name] for name in {*FILLED} - {"enrolled", "analyst", "commitment"}}
"""Of which a draft is made, while nobody is enrolled."""


def written(folder, **changes):
    path = folder / "icu.toml"
    path.write_text(new_text(BARE | changes))
    return path


def edited(path, **people):
    path.write_text(complete(path.read_text(), path=path, **people))


def whole(folder, **changes):
    path = written(folder, **changes)
    edited(path, parties=PEOPLE, analyst=ANALYST, commitment=SECRET.commitment("icu-2026"))
    return path


def signed(path, names=(*NAMES, "lab")):
    agreement = read_agreement(path).agreement
    return [sign_agreement(agreement, name=name, sign=KEYS[name].sign) for name in names]


def comments(text):
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


OTHERS = {
    "models": ("ridge", "mlp"),
    "precision": "fp32",
    "deadline": "2026-12-31T23:59:59Z",
    "scale_band": 3,
    "classes": ("no", "yes"),
    "basis": "haar",
    "dp": terms(**RANDOMISED, centre=(0.25,) * 6, adjacency="add-remove", rows_per_person=2),
}
"""Fields that `FILLED` leaves as they are by default."""


def test_an_empty_draft_has_every_field_with_a_comment_and_says_what_to_fill(tmp_path):
    path = tmp_path / "icu.toml"
    path.write_text(new_text({}))
    text = path.read_text()
    fields = set(Agreement.model_fields) - {"parties", "enrolled", "analyst", "features", "dp"}
    fields -= {"record", "approvers", "release", "sums", "outcome", "holdings", "map", "groups"}
    assert set(tomllib.loads(text)) == fields
    for name in fields:
        assert re.search(rf"^# .+\n{name} = ", text, re.MULTILINE), name
    marked = set(re.findall(r"^(\w+) = .*# <- fill in$", text, re.MULTILINE))
    missing = set(missing_fields(read_draft(path)))
    assert missing - marked == {"parties", "features", "enrolled", "analyst", "commitment"}
    assert marked <= missing
    assert "retention_days" in marked


def test_what_is_written_reads_back_as_the_same_agreement_with_a_comment_on_every_term(tmp_path):
    for changes in ({}, OTHERS, {"basis": "haar", "dp": terms()}):
        path = whole(tmp_path, **changes)
        found = read_agreement(path).agreement
        assert found == Agreement(**FILLED | changes)
        assert missing_fields(read_draft(path)) == ()
    text = path.read_text()
    assert text.startswith("# The agreement")
    for name in DPTerms.model_fields:
        assert re.search(rf"^# .+\n{name} = ", text, re.MULTILINE), name
    assert sealed_agreement(seal(path, signed(path))) == found


def test_comments_order_and_the_way_of_numbers_are_kept_and_no_part_of_what_is_signed(tmp_path):
    path = whole(tmp_path)
    agreed, text = read_agreement(path).agreement, written(tmp_path).read_text()
    line = 'round_id = "icu-2026"\n'
    text = line + text.replace(line, "")
    for old, new in (
        ("holdout = 0.25", "holdout = 2.5e-1  # asked for by the board"),
        ("centre = 60.0", "centre = 60"),
        ('name = "age"', '# at admission\nname = "age"  # years, not months'),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text + "\n# the end, says Ada\n")
    edited(path, parties=PEOPLE[:2], analyst=ANALYST)
    path.write_text(path.read_text().replace('name = "north"', 'name = "north"  # Dr. Müller'))
    before = comments(path.read_text())
    edited(path, parties=PEOPLE, commitment=SECRET.commitment("icu-2026"))
    sealed = seal(path, signed(path))
    assert comments(sealed.read_text()) == before
    own = {" asked for by the board", " at admission", " years, not months", " Dr. Müller"}
    assert {*own, " the end, says Ada"} < {*before}
    assert sealed_agreement(sealed) == agreed


def test_a_party_that_is_enrolled_again_has_its_new_key_in_its_old_place(tmp_path):
    """And the commitment goes: it was to a secret for those who were enrolled then."""
    path = whole(tmp_path)
    new, lab = identity("south", signing_key="ab" * 32), identity("lab2", signing_key="cd" * 32)
    edited(path, parties=[new])
    assert missing_fields(read_draft(path)) == ("commitment",)
    edited(path, analyst=lab, commitment=SECRET.commitment("icu-2026"))
    found = read_agreement(path).agreement
    assert (found.parties, found.analyst) == (NAMES, lab)
    assert found.enrolled[:2] == (PEOPLE[0], new)
    assert path.read_text().count("[analyst]") == 1


def test_sealing_takes_all_signatures_and_what_is_sealed_cannot_be_changed_unnoticed(tmp_path):
    path = whole(tmp_path)
    before = path.read_bytes()
    with pytest.raises(UnsignedError, match=r"missing: east, lab; good: 3 of 5.*\[CB311\]$"):
        seal(path, signed(path, ["north", "south", "west"]))
    assert [each.name for each in tmp_path.iterdir()] == ["icu.toml"]
    sealed = seal(path, signed(path))
    assert sealed == sealed_path(path) == tmp_path / "icu.sealed.toml"
    sealed_agreement(sealed)
    found = read_agreement(sealed)
    assert [each.name for each in found.signatures] == [*NAMES, "lab"]
    assert found.agreement.digest() == read_agreement(path).agreement.digest()
    assert path.read_bytes() == before
    assert stem_of(path) == stem_of(sealed) == "icu"
    with pytest.raises(AgreementError, match=r"was signed, and a change would make.*\[CB303\]"):
        complete(sealed.read_text(), path=sealed, parties=[identity("lyon")])
    path.write_text(path.read_text().replace("retention_days = 90", "retention_days = 900"))
    with pytest.raises(AgreementError, match="is not what stands in"):
        sealed_agreement(path)
    sealed.write_text(sealed.read_text().replace("retention_days = 90", "retention_days = 900"))
    with pytest.raises(UnsignedError, match="signed another version: north, south, east"):
        sealed_agreement(path)


def test_the_example_of_the_reference_is_an_agreement_that_lacks_signatures_only(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "reference" / "agreement.md"
    [example] = re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "icu.toml"
    path.write_text(example)
    assert missing_fields(read_agreement(path).agreement) == ()
    with pytest.raises(UnsignedError, match="missing: north, south, lab"):
        sealed_agreement(path)
