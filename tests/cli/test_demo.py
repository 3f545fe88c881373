"""The demo, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::cobasis.errors.PrivacyWarning")
QUICK = "demo --data diabetes"


def test_the_demo_prints_its_five_numbers_a_warning_in_words_and_writes_one_page(tmp_path):
    line = [sys.executable, "-m", "cobasis", *QUICK.split(), "--anchor", "uniform"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
    for word in ("alone", "together", "consensus", "sums", "pooled", "a random turn", "A' A"):
        assert word in done.stdout
    assert "cobasis-report.html" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cobasis-report.html"]
    assert done.stderr.count("PrivacyWarning") == 1
    assert "[CB501]" in done.stderr


def test_json_is_one_object_with_the_promised_keys_and_every_option_changes_what_it_says(cobasis):
    """For the same seed numbers are the same: tests/golden."""
    options = "--parties 2 --n-components 4 --aligner kawakami --basis public --anchor public"
    words = "{parties} {n_components} {aligner} {basis} {anchor} {model} {seed}"
    for line, told in (
        ("", "4 7 odc svd isometric ridge 0"),
        (f"{options} --model rff --seed 3", "2 4 kawakami public public rff 3"),
    ):
        found = json.loads(cobasis(f"{QUICK} --json {line}").stdout)
        assert words.format_map(found) == told
        assert (found["together_consensus"] is found["sums"] is None) == bool(line)
        assert all(found[key] <= 1 for key in ("alone", "together", "pooled"))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("--data cancer --split by-label", "[CB107]", "by-label is for digits"),
        ("--split by-label --parties 40", "[CB107]", "--parties 30 or fewer"),
        ("--n-components 65", "[CB303]", "64 features"),
        ("--basis consensus --parties 2", "[CB303]", "bisector"),
        ("--model svm", "[CB401]", "stores training rows"),
        ("--data diabetes --model logistic", "[CB107]", "no family for regression"),
        ("--report nowhere/page.html", "[CB107]", "does not exist"),
    ],
)
def test_wrong_input_is_one_clear_error_and_exit_two(arguments, code, says, cobasis):
    assert cobasis.refused(f"demo {arguments}", says).endswith(code)
    assert [path.name for path in Path().iterdir()] == ["passphrase"]  # which was there
