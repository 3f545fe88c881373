"""Agreements on disk that cannot be read: the line, or the field, that is wrong."""

import os

import pytest

from bundle.agreements import whole
from cobasis.bundle.agreement_file import complete, read_agreement, read_draft
from cobasis.errors import AgreementError, AgreementFileError

BAD_TOML = {
    "a bracket": ("holdout = 0.25", "holdout = [", r"line \d+: "),
    "no quotes": ('label = "died"', "label = died", r"line \d+: Invalid value"),
    "a field twice": ('label = "died"', 'label = "died"\nlabel = "y"', "Cannot overwrite"),
    "deep": ("classes = [0, 1]", "classes = " + "[" * 5000, "nested too deeply"),
    "cut off": ("# ---- Features", '"', r"line \d+: "),
}


@pytest.mark.parametrize("kind", BAD_TOML)
@pytest.mark.parametrize(
    "use", [read_agreement, read_draft, lambda path: complete(path.read_text(), path=path)]
)
def test_a_file_that_is_no_toml_is_refused_with_the_line(kind, use, tmp_path):
    path = whole(tmp_path)
    old, new, match = BAD_TOML[kind]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    before = path.read_bytes()
    with pytest.raises(AgreementFileError, match=rf"icu.toml.*{match}.*\[CB312\]$") as caught:
        use(path)
    assert caught.value.exit_code == 2
    assert path.read_bytes() == before


def test_the_line_is_the_one_that_is_wrong(tmp_path):
    path = whole(tmp_path)
    lines = path.read_text().splitlines()
    at = lines.index('label = "died"')
    lines[at] = "label = died"
    path.write_text("\n".join(lines))
    with pytest.raises(AgreementFileError, match=rf"line {at + 1}: "):
        read_agreement(path)
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(AgreementFileError, match="line 2: it is no UTF-8 text"):
        read_agreement(path)


BAD_FIELDS = {
    "an unknown field": ("holdout =", "hold_out =", "hold_out: Extra inputs"),
    "parties by hand": ('id = ""', 'parties = ["a"]', r"the parties are the \[\[party\]\] tables"),
    "an unknown kind": ('kind = "category"', 'kind = "word"', "features.2: "),
    "a party too few fields": ("recipient = ", "recipients = ", "recipient"),
    "one party as a table": ("[[party]]", "[[partei]]", "still a draft"),
}


@pytest.mark.parametrize("kind", BAD_FIELDS)
def test_a_field_that_cannot_stand_is_an_agreement_error_that_names_it(kind, tmp_path):
    path = whole(tmp_path)
    old, new, match = BAD_FIELDS[kind]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(AgreementError, match=rf"{match}(?s:.*)\[CB303\]$"):
        read_agreement(path)


@pytest.mark.parametrize(
    "table", ["signature = 3", "[[signature]]\nname = 'x'", "[signature]\nname = 'x'"]
)
def test_signatures_of_another_form_are_refused(table, tmp_path):
    path = whole(tmp_path)
    text = path.read_text()
    path.write_text(f"{table}\n{text}" if table.startswith("sig") else f"{text}\n{table}\n")
    with pytest.raises(AgreementError, match=r"signature.*\[CB303\]$"):
        read_agreement(path)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.toml"
    path.touch()
    os.truncate(path, 2**40)
    with pytest.raises(AgreementFileError, match="has 1,099,511,627,776 bytes"):
        read_agreement(path)
