"""``python -m cobasis``."""

from cobasis.cli.main import run

run()
