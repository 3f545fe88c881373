"""Help is there at once: what computes is loaded by the command that computes."""

import subprocess
import sys

import pytest

HEAVY = {  # pydantic is not among them: typer takes it for an option's default
    *("numpy", "scipy", "polars", "narwhals", "sklearn", "matplotlib", "jinja2"),
    *("cryptography", "safetensors", "cobasis.protocol.agreement"),
    "cobasis.cli.answers",
}


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("demo", "--help")])
def test_help_loads_nothing_that_computes(words):
    script = (
        "import atexit, sys\natexit.register(lambda: print(*sys.modules))\n"
        f"sys.argv[1:] = {list(words)!r}\nfrom cobasis.cli.main import run\nrun()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[-1].split()
    assert "cobasis.cli.main" in loaded
    assert HEAVY & set(loaded) == set()
