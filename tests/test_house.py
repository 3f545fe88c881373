"""The house rules that no other tool inspects."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "cobasis"
FILES = sorted(
    path
    for part in ("src", "tests", "experiments", "benchmarks")
    for path in (ROOT / part).rglob("*.py")
)
MAX_FILE, MAX_FUNCTION = 300, 45


def functions(path: Path):
    """Yield every function of a file with its length, docstring not counted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            docstring = first.end_lineno - first.lineno + 1 if has_docstring else 0
            yield node, node.end_lineno - node.lineno + 1 - docstring


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_every_file_fits_on_three_hundred_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_every_function_fits_on_forty_five_lines(path):
    long = {node.name: length for node, length in functions(path) if length > MAX_FUNCTION}
    assert long == {}


def test_the_length_rule_would_notice_a_long_function(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    x = 1\n" * MAX_FUNCTION)
    assert [length > MAX_FUNCTION for _, length in functions(path)] == [True]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=relative)
def test_the_package_neither_prints_nor_asserts_nor_draws_from_global_state(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {ast.unparse(called) for called in calls}
    assert "print" not in names
    assert not {name for name in names if re.fullmatch(r"np\.random\.(?!default_rng).*", name)}


# typer reads options, and scikit-learn passes fit(X, y, sample_weight), as positional parameters
OURS = [
    path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name not in {"cli", "estimators"}
]


@pytest.mark.parametrize("path", OURS, ids=relative)
def test_functions_take_at_most_two_positional_arguments(path):
    many = {}
    for node, _ in functions(path):
        if node.name.startswith("_"):
            continue  # private helpers, and Python's own methods
        every = [*node.args.posonlyargs, *node.args.args]
        given = [each.arg for each in every if each.arg not in {"self", "cls"}]
        if len(given) > 2:
            many[node.name] = given
    assert many == {}


@pytest.mark.parametrize(
    "layer", ["protocol", "privacy", "models", "features", "algorithms", "linalg"]
)
def test_from_the_protocol_downward_nothing_opens_a_file(layer):
    """The import contract sees modules; this sees calls that need no import of ours."""
    opens = re.compile(r"^(open|input|__import__|eval|exec|np\.(save|load|memmap|fromfile).*)$")
    for path in (SOURCE / layer).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert [name for name in calls if opens.match(name)] == []


def test_importing_cobasis_loads_nothing_heavy():
    heavy = (
        *("sklearn", "polars", "matplotlib", "onnx", "onnxruntime", "pandas", "typer", "rich"),
        "jinja2",
    )
    script = f"import sys, cobasis; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_source_file_is_excused_from_work():
    excuses = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pragma: no cover)\b")
    found = [path for path in SOURCE.rglob("*.py") if excuses.search(path.read_text("utf-8"))]
    assert found == []
