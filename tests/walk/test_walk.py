import re
from pathlib import Path

import pytest

from answers import promised
from cli.round_by_commands import commands
from cobasis.protocol.enrolment import words_of
from walk.conftest import LAST
from walk.pages import PAGES, shows, sizes, steps
from walk.world import ANALYST, AUTHOR, PARTIES, ROLES

ROOT = Path(__file__).parents[2]
CROSSING = {
    *(".toml", ".pub", ".sig", ".secret", ".news", ".txt"),
    *(".1-proposal", ".1-span", ".1-upload", ".1-return", ".2-upload", ".2-return"),
}


def test_every_line_of_the_tutorial_prints_what_the_page_shows(walked, agreed):
    shown = [(line, printed) for line, printed in (*walked.read, *agreed.read) if line.shown]
    assert len(shown) > 30
    for line, printed in shown:
        assert shows(line.shown, printed), f"{line.words}\n{printed}"
    # which sees another word, and how many there are
    assert shows("In: a, b\n...\nMissing: 3\n", "In: a, b\nx\ny\nMissing: 4\n")
    assert not shows("In: a, b\n...\nMissing: 3\n", "In: a, c\nx\ny\nMissing: 4\n")
    assert [shows("zoo " * 8, "able " * count) for count in (7, 8, 9)] == [False, True, False]
    digest, words = re.search(r"^  ([0-9a-f]{64})\n  (.+)$", PAGES["party"], re.MULTILINE).groups()
    assert words == words_of(bytes.fromhex(digest))  # on the pages
    assert [f"Digest       {words}\n" in page for page in PAGES.values()] == [True, True]


def test_the_tutorial_types_every_command(walked, agreed):
    typed = {tuple(words.split()[1:4]) for words in (*walked.typed, *agreed.typed)}
    typed |= {tuple(line.words.split()[1:4]) for step in steps() for line in step.lines}
    elsewhere = {("demo",), ("approve",), ("go",), ("serve",), ("page",), ("key", "revoke")}
    every = {tuple(words.split()) for words, _ in commands()} - elsewhere
    assert len(every) > 15
    assert [each for each in every if not {words[: len(each)] for words in typed} & {each}] == []


def test_files_are_as_large_as_the_page_says(walked, agreed):
    told = [(AUTHOR, name, size) for name, size in sizes()["party"].items()]
    told += [(ANALYST, name, size) for name, size in sizes()["analyst"].items()]
    for role, name, size in told:
        world = agreed if name.endswith(("-proposal", "-span")) else walked
        found = (world.folder(role) / name).stat().st_size
        # who is held back is drawn anew, and whether what suits a party is a mix of two models
        step = 4096 if "-upload" in name else 1.2 * size if name.endswith(".onnx") else 0
        assert found == pytest.approx(size, rel=0.25, abs=step), (role, name, found)


def test_only_the_named_files_cross_and_no_secret_goes_to_the_analyst(walked, agreed):
    for world in (walked, agreed):
        assert {Path(name).suffix for _, _, name in world.sent} <= CROSSING
        assert not [each for each in world.sent if each[1] == ANALYST and ".secret" in each[2]]
        from_parties = {Path(name).suffix for role, to, name in world.sent if to == ANALYST}
        uploads = {".1-upload", ".1-proposal", ".2-upload"}
        assert from_parties <= {".toml", ".pub", ".sig", *uploads}
        assert all(world.folder(role).stat().st_mode & 0o077 == 0 for role in ROLES)


def accepted(world):
    found = [each for each in world.answers if each["command"] == "accept"]
    return [each["returned"] for each in found if each["returned"]]


def test_all_parties_have_the_same_model_and_everything_verifies_at_all_of_them(agreed):
    models = [found["model_sha256"] for found in accepted(agreed)]
    assert len({*models[:3]}) == len({*models[3:]}) == 1
    assert models[0] != models[-1]
    ran = [found["model_sha256"] for found in agreed.answers if found["command"] == "run"]
    assert [each for each in ran if each][:1] == models[:1]
    found = [found for found in agreed.answers if found["command"] == "verify"]
    assert len(found) == len(PARTIES) + 1
    assert all(each["holds"] for each in found)
    assert {each["what"] for each in found[-1]["findings"]} >= {"transcript", "receipt", "fit"}


def test_exported_files_predict_what_predict_does(walked, agreed):
    assert [*walked.compared] == [*agreed.compared] == ["north", "south", "east"]


def test_the_reference_promises_what_programs_get_of_commands_and_of_no_others(walked, agreed):
    told = {each["command"] for each in (*walked.answers, *agreed.answers)} | {"forget"}
    titles = [title for title, *_ in promised()]
    # send has two, sign and approve one; go, key revoke and demo are typed in other tests
    assert len(told) == len(titles) - 4


def test_after_the_end_of_retention_nobody_is_added_or_removed(world):
    told = world.walk([LAST])
    assert all(shows(line.shown, printed) for line, printed in told if line.shown)
    assert len(told) == len(PARTIES) + 1
    assert "[CB305]" in world("north", "cobasis predict icu.toml new.csv -o new.out.csv", code=2)
    assert "[CB313]" in world("lab", "cobasis remove icu.toml late", code=2)
    assert not list(world.folder("lab").rglob("*.safetensors"))
