"""The demo, as a user types it."""

import contextlib
import json
import subprocess
import sys
import warnings

import pytest
from typer.testing import CliRunner

from cobasis.cli.main import app
from cobasis.errors import PrivacyWarning

QUICK = ("--data", "diabetes")


def called(*arguments: str, folder):
    """What a process would do, without the seconds that a new Python takes to import all."""
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return CliRunner().invoke(app, arguments)


def cobasis(*arguments: str, folder):
    return subprocess.run(
        [sys.executable, "-m", "cobasis", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=None,
    )


def demo_json(*arguments: str, folder):
    done = called("demo", "--json", *arguments, folder=folder)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_demo_prints_its_four_numbers_and_writes_one_page(tmp_path):
    done = cobasis("demo", *QUICK, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in (
        "alone",
        "together",
        "consensus",
        "pooled",
        "bytes up",
        "parties not a random turn, ",
    ):
        assert word in done.stdout
    assert "cobasis-report.html" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cobasis-report.html"]


def test_json_is_one_object_with_the_promised_keys(tmp_path):
    done = cobasis("demo", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    keys = {"alone", "together", "together_consensus", "pooled", "parties", "n_components"}
    assert keys | {"aligner", "anchor", "split", "seconds"} <= set(found)
    assert (found["data"], found["parties"], found["n_components"]) == ("digits", 10, 24)
    assert (found["aligner"], found["anchor"], found["split"]) == ("odc", "isometric", "iid")
    means = [found[key] for key in ("alone", "together", "together_consensus", "pooled")]
    assert all(0 <= value <= 1 for value in means)
    assert found["together"] > found["alone"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--parties", "5"), {"parties": 5}),
        (("--n-components", "4"), {"n_components": 4}),
        (("--aligner", "kawakami"), {"aligner": "kawakami"}),
        (("--anchor", "gaussian"), {"anchor": "gaussian", "together_consensus": None}),
        (("--basis", "consensus"), {"basis": "consensus"}),
        (("--basis", "public"), {"basis": "public"}),
        (("--anchor", "public"), {"anchor": "public"}),
        (("--anchor", "uniform"), {"anchor": "uniform"}),
        (("--model", "rff"), {"model": "rff"}),
        (("--seed", "3"), {"seed": 3}),
        (("--parties", "2"), {"parties": 2, "together_consensus": None}),
        (("--model", "svm", "--allow-row-carrying"), {"model": "svm"}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_every_option_changes_what_it_says(arguments, expected, tmp_path):
    found = demo_json(*QUICK, *arguments, folder=tmp_path)
    assert {key: found[key] for key in expected} == expected


def test_a_warning_of_privacy_is_said_once_and_in_words(tmp_path):
    done = cobasis("demo", *QUICK, "--anchor", "uniform", folder=tmp_path)
    assert done.stderr.count("PrivacyWarning") == 1
    assert "[CB501]" in done.stderr


def test_the_same_seed_gives_the_same_numbers(tmp_path):
    first, second, other = (demo_json(*QUICK, "--seed", s, folder=tmp_path) for s in "114")
    keys = ("alone", "together", "together_consensus", "pooled")
    assert [first[key] for key in keys] == [second[key] for key in keys]
    assert first["together"] != other["together"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--data", "cancer", "--split", "by-label"), "[CB107]", "by-label is for digits"),
        (("--parties", "40"), "[CB107]", "--parties 31 or fewer"),
        (("--split", "by-label", "--parties", "40"), "[CB107]", "--parties 30 or fewer"),
        (("--parties", "0"), "[CB107]", "nobody to hold rows"),
        (("--n-components", "65"), "[CB303]", "64 features"),
        (("--n-components", "60"), "[CB106]", "50 rows"),
        (("--basis", "consensus", "--parties", "2"), "[CB303]", "bisector"),
        (("--basis", "consensus", "--anchor", "uniform"), "[CB303]", "A' A = I"),
        (("--model", "svm"), "[CB401]", "stores training rows"),
        (("--data", "diabetes", "--model", "logistic"), "[CB107]", "no family for regression"),
        (("--report", "nowhere/page.html"), "[CB107]", "does not exist"),
        (("--report", "."), "[CB107]", "is a folder"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_wrong_input_is_one_clear_error_and_exit_two(arguments, code, says, tmp_path):
    done = called("demo", *arguments, folder=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.exit_code == 2
    assert says in last
    assert last.endswith(code)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("demo", "--aligner", "magic"), ("demo", "--magic"), ("magic",)]
)
def test_a_word_that_does_not_exist_is_refused_with_exit_two(arguments, tmp_path):
    done = called(*arguments, folder=tmp_path)
    assert done.exit_code == 2
    assert "magic" in done.stderr


def test_help_and_version_are_there(tmp_path):
    assert "--split" in cobasis("demo", "--help", folder=tmp_path).stdout
    assert cobasis("--version", folder=tmp_path).stdout.strip() == "0.1.0"
