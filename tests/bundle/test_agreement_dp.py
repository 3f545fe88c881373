"""The ``[dp]`` table of an agreement's file: written with comments, read back, edited, refused."""

import re
import tomllib

import pytest

from bundle.agreements import signed, whole
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


def test_every_term_has_a_comment_reads_back_and_is_signed_for(tmp_path):
    path = whole(tmp_path, **NOISY)
    text = path.read_text()
    for name in DPTerms.model_fields:
        assert re.search(rf"^# .+\n{name} = ", text, re.MULTILINE), name
    found = read_agreement(path).agreement
    assert found.dp == NOISY["dp"]
    assert missing_fields(read_draft(path)) == ()
    assert sealed_agreement(seal(path, signed(path))) == found
    path.write_text(text.replace("\nepsilon = 2.0", "\nepsilon = 2.5"))
    with pytest.raises(AgreementError, match="is not what stands in"):
        sealed_agreement(path)
    public = NOISY["dp"].model_copy(update={"labels": "public", "label_epsilon": None})
    path = whole(tmp_path, basis="haar", dp=public)
    assert 'label_epsilon = ""' in path.read_text()
    assert read_agreement(path).agreement.dp.label_epsilon is None


def test_the_example_in_comments_is_a_table_once_they_are_taken_away(tmp_path):
    path = tmp_path / "icu.toml"
    path.write_text(new_text({}))
    example = path.read_text().partition("# [dp]")[2].partition("\n\n")[0]
    text = "[dp]" + "\n".join(line.removeprefix("# ") for line in example.splitlines())
    terms = tomllib.loads(text)["dp"]
    assert set(terms) == set(DPTerms.model_fields)
    given = {name: value for name, value in terms.items() if value not in ("", [])}
    assert DPTerms(**given).epsilon == 8.0


BAD = {
    "unknown": ("epsilon = 2.0", "epsilon = 2.0\nsigma = 1.0", "dp.sigma: Extra inputs"),
    "missing": ("radius = 1.5\n", "", "dp.radius: Field required"),
    "out of range": ("epsilon = 2.0", "epsilon = 65.0", "dp.epsilon: Input should be less"),
    "no table": ("\n[dp]\n", "\n[[dp]]\n", "dp: Input should be"),
    "a contradiction": ('\nbasis = "haar"', '\nbasis = "svd"', "rows shape that basis"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_table_that_cannot_stand_is_refused_and_the_term_named(tmp_path, what):
    before, after, reason = BAD[what]
    path = whole(tmp_path, **NOISY)
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(AgreementError, match=rf"{re.escape(reason)}.*\[CB303\]$"):
        read_agreement(path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("epsilon=8", "radius: Field required"),
        ("epsilon=8,radius=2,most_rows=2,sigma=1", "sigma: Extra inputs"),
        ("epsilon", "could not convert"),
    ],
)
def test_terms_come_from_words_too_or_are_refused(words, reason):
    good = "epsilon=8, radius=2,most_rows=900,labels=randomised_response,label_epsilon=1"
    assert dp_of_words(good).lifetime_epsilon == 9.0
    with pytest.raises(OptionError, match=rf"--dp cannot be read: {re.escape(reason)}"):
        dp_of_words(words)
