"""The ``[dp]`` table of an agreement's file: written with comments, read back, edited, refused."""

import re
import tomllib

import pytest

from bundle.agreements import signed, whole, written
from cobasis.bundle.agreement_file import read_agreement, read_draft, seal, sealed_agreement
from cobasis.bundle.agreement_text import new_text
from cobasis.errors import AgreementError, OptionError
from cobasis.party_side.draft import dp_of_words
from cobasis.protocol.agreement import missing_fields
from cobasis.protocol.dp_terms import DPTerms

NOISY = {
    "basis": "haar",
    "dp": DPTerms(
        epsilon=2,
        radius=1.5,
        centre=(0.25,) * 6,
        adjacency="add-remove",
        rows_per_person=2,
        most_rows=5000,
        labels="randomised_response",
        label_epsilon=0.5,
        lifetime_epsilon=4,
    ),
}


def test_every_term_has_a_comment_and_reads_back(tmp_path):
    path = whole(tmp_path, **NOISY)
    text = path.read_text()
    for name in DPTerms.model_fields:
        assert re.search(rf"^# .+\n{name} = ", text, re.MULTILINE), name
    found = read_agreement(path).agreement
    assert found.dp == NOISY["dp"]
    assert missing_fields(read_draft(path)) == ()
    read_agreement(seal(path, signed(path))).check_sealed()


def test_the_example_in_comments_is_a_table_once_they_are_taken_away(tmp_path):
    path = tmp_path / "icu.toml"
    path.write_text(new_text({}))
    example = path.read_text().partition("# [dp]")[2].partition("\n\n")[0]
    text = "[dp]" + "\n".join(line.removeprefix("# ") for line in example.splitlines())
    terms = tomllib.loads(text)["dp"]
    assert set(terms) == set(DPTerms.model_fields)
    given = {name: value for name, value in terms.items() if value not in ("", [])}
    assert DPTerms(**given).epsilon == 8.0


PUBLIC = {"labels": "public", "label_epsilon": None}


def test_an_empty_text_means_not_given_inside_the_table_too(tmp_path):
    plain = {"basis": "haar", "dp": NOISY["dp"].model_copy(update=PUBLIC)}
    path = whole(tmp_path, **plain)
    assert 'label_epsilon = ""' in path.read_text()
    assert read_agreement(path).agreement.dp.label_epsilon is None


def test_a_change_of_a_term_makes_all_signatures_void(tmp_path):
    path = whole(tmp_path, **NOISY)
    seal(path, signed(path))
    path.write_text(path.read_text().replace("\nepsilon = 2.0", "\nepsilon = 2.5"))
    with pytest.raises(AgreementError, match="is not what stands in"):
        sealed_agreement(path)


BAD = {
    "unknown": ("epsilon = 2.0", "epsilon = 2.0\nsigma = 1.0", "dp.sigma: Extra inputs"),
    "missing": ("radius = 1.5\n", "", "dp.radius: Field required"),
    "text": ("radius = 1.5", 'radius = "1.5"', "dp.radius: Input should be a valid number"),
    "out of range": ("epsilon = 2.0", "epsilon = 65.0", "dp.epsilon: Input should be less"),
    "no word": (
        'adjacency = "add-remove"',
        'adjacency = "remove"',
        "dp.adjacency: Input should be 'replace-one' or",
    ),
    "no table": (None, None, "dp: Input should be"),
    "a contradiction": ('\nbasis = "haar"', '\nbasis = "svd"', "rows shape that basis"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_table_that_cannot_stand_is_refused_and_the_term_named(tmp_path, what):
    before, after, reason = BAD[what]
    path = whole(tmp_path, **NOISY)
    text = path.read_text()
    if what == "no table":
        text = text[: text.index("[dp]")] + text[text.index("# ---- Parties") :]
        text = "dp = 3\n" + text
    else:
        assert text.count(before) == 1
        text = text.replace(before, after, 1)
    path.write_text(text)
    with pytest.raises(AgreementError, match=rf"{re.escape(reason)}.*\[CB303\]$"):
        read_agreement(path)


def test_a_draft_with_noise_is_written_from_words(tmp_path):
    words = "epsilon=8, radius=2,most_rows=900,labels=randomised_response,label_epsilon=1"
    terms = dp_of_words(words)
    assert terms.lifetime_epsilon == 9.0
    assert read_draft(written(tmp_path, basis="haar", dp=terms))["dp"]["radius"] == 2.0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("epsilon=8", "radius: Field required"),
        ("epsilon=x", "could not convert"),
        ("epsilon=8,radius=2,most_rows=2,sigma=1", "sigma: Extra inputs"),
        ("most_rows=1.5", "invalid literal"),
        ("epsilon", "could not convert"),
    ],
)
def test_words_that_are_no_terms_are_refused(words, reason):
    with pytest.raises(OptionError, match=rf"--dp cannot be read: {re.escape(reason)}"):
        dp_of_words(words)
