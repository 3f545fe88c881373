"""The page about ``--json`` is what the models say, and has every command that takes it."""

import runpy
from pathlib import Path

from typer.main import get_command

from cobasis.cli.main import app

ROOT = Path(__file__).parents[2]


def test_the_json_page_is_what_the_models_say():
    written = runpy.run_path(str(ROOT / "docs" / "make_json_reference.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"]()


def test_every_command_with_json_is_on_the_page():
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    commands = {
        (f"{group} " if group else "") + name
        for group, found in {"": get_command(app), **get_command(app).commands}.items()
        for name, each in getattr(found, "commands", {}).items()
        if any("--json" in option.opts for option in each.params)
    } - {"demo"}
    assert len(commands) >= 15
    assert {name for name in commands if f"`{name}" not in page} == set()
