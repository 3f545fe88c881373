"""What a party says of its audit is shown, and no text of its choice."""

import pytest

from cobasis.analyst_side.history import UNREADABLE, audit_record, audit_words
from cobasis.analyst_side.inbox import FileVerdict
from cobasis.cli.analyst_answers import said_of_files

TOLD = {"policy": "cobasis/audit/1", "verdict": "pseudonymised", "report": "a" * 64}


def test_a_record_is_kept_word_by_word():
    words = audit_words(TOLD)
    record = audit_record(words)
    assert (record.policy, record.verdict, record.report) == tuple(words) == tuple(TOLD.values())


def test_no_audit_is_none_and_said():
    assert audit_record(audit_words(None)) is None
    verdict = FileVerdict(
        file="a.upload", verdict="accepted", message="upload", party="north", n_rows=3
    )
    assert "audit: none is named" in " ".join(said_of_files([verdict]))


def test_a_refused_file_says_nothing_of_an_audit():
    verdict = FileVerdict(file="a.upload", verdict="refused", code="CB801")
    assert "audit" not in " ".join(said_of_files([verdict]))


@pytest.mark.parametrize(
    "odd", [None, 7, "", "line\nbreak", "\x1b[2Jsafe", "Protected by everything", "x" * 999]
)
def test_words_of_another_form_are_neither_kept_nor_printed(odd):
    for word in TOLD:
        found = audit_words({**TOLD, word: odd})
        assert found[list(TOLD).index(word)] == UNREADABLE
    assert audit_words({}) == [UNREADABLE] * 3
