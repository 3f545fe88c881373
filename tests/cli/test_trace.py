"""What one `prepare` passes through: a bound on files, functions and depth."""

import sys
import threading
from pathlib import Path

import cobasis
from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.cli import party_send

SOURCE = str(Path(cobasis.__file__).parent)
MOST_FILES, MOST_FUNCTIONS, MOST_DEEP = 75, 420, 18


class Trace:
    """Files and functions of the package that a call enters; names in <> are not counted."""

    def __init__(self):
        self.functions, self.depth, self.deepest = set(), 0, 0

    def __enter__(self):
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def files(self):
        return {code.co_filename for code in self.functions}

    def _see(self, frame, event, _):
        code = frame.f_code
        if not code.co_filename.startswith(SOURCE) or code.co_name.startswith("<"):
            return
        if event == "call":
            self.functions.add(code)
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
        elif event == "return":
            self.depth -= 1


def test_one_prepare_without_its_audit_passes_through_few_files_and_functions(
    tmp_path, monkeypatch
):
    typed = Typed(tmp_path, monkeypatch)
    typed.sealed()
    for name in NAMES:
        typed(f"party join icu.toml {name}.secret", by=name)
    write_table(tmp_path / "north.csv", seed=1)
    monkeypatch.setattr(party_send, "asking", lambda *_, **__: None)
    with Trace() as trace:
        typed("party prepare icu.toml north.csv -o north.upload --yes")
    assert (tmp_path / "north.upload").exists()
    assert 40 < len(trace.files) <= MOST_FILES
    assert 200 < len(trace.functions) <= MOST_FUNCTIONS
    assert 10 < trace.deepest <= MOST_DEEP
