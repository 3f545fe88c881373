"""The demo, as a user types it."""

import json
import warnings
from pathlib import Path

import pytest

from cobasis.cli import main
from cobasis.errors import PrivacyWarning

QUICK = "demo --data diabetes"


def test_the_demo_prints_its_five_numbers_or_one_object_and_writes_one_page(cobasis):
    """For the same seed numbers are the same: tests/golden."""
    cobasis.said(QUICK, "alone", "together", "consensus", "sums", "pooled", "a random turn")
    assert {path.name for path in Path().iterdir()} == {"cobasis-report.html", "passphrase"}
    found = json.loads(cobasis(f"{QUICK} --json --parties 3 --seed 3").stdout)
    assert "{parties} {n_components} {seed}".format_map(found) == "3 7 3"
    assert max(found[way] for way in ("together", "together_consensus", "sums", "pooled")) <= 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("--data cancer --split by-label", "[CB107]", "by-label is for digits"),
        ("--split by-label --parties 11", "[CB107]", "more than the 10 digits"),
        ("--parties 2", "[CB107]", "greater than or equal to 3"),
        ("--report nowhere/page.html", "[CB601]", "does not exist"),
    ],
)
def test_wrong_input_is_one_clear_error_and_exit_two(arguments, code, says, cobasis):
    assert cobasis.refused(f"demo {arguments}", says).endswith(code)
    assert [path.name for path in Path().iterdir()] == ["passphrase"]  # which was there


def test_a_warning_is_one_line_in_words(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # to be put back
    monkeypatch.setattr(main, "app", lambda: None)
    main.run()
    said = warnings.formatwarning("the anchor is known", PrivacyWarning, "party.py", 1)
    assert said == "PrivacyWarning: the anchor is known\n"
