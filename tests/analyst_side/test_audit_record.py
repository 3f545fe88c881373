"""What a party says of its audit is shown, and no text of its choice."""

import pytest

from cobasis.analyst_side.history import UNREADABLE, audit_words
from cobasis.analyst_side.receive import FileVerdict
from cobasis.cli.receive import said_of_files

TOLD = {"policy": "cobasis/audit/1", "verdict": "pseudonymised", "report": "a" * 64}


def test_a_record_is_kept_word_by_word_and_no_audit_is_said():
    assert (audit_words(TOLD), audit_words(None)) == ([*TOLD.values()], [])
    common = {"file": "a.upload", "message": "upload"}
    taken = FileVerdict(**common, verdict="accepted", party="north", n_rows=3)
    refused = FileVerdict(file="a.upload", verdict="refused", code="CB801")
    assert "audit: none is named" in " ".join(said_of_files([taken]))
    assert "audit" not in " ".join(said_of_files([refused]))


@pytest.mark.parametrize(
    "odd", [None, 7, "", "line\nbreak", "\x1b[2Jsafe", "Protected by everything", "x" * 999]
)
def test_words_of_another_form_are_neither_kept_nor_printed(odd):
    for place, word in enumerate(TOLD):
        assert audit_words({**TOLD, word: odd})[place] == UNREADABLE
