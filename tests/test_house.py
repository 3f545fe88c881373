import ast
import re
from functools import cache
from pathlib import Path

import pytest

from cobasis.cli.main import COMMANDS
from sizes import ROOT, SOURCE

FILES = sorted(
    path
    for part in ("src", "tests", "experiments", "benchmarks")
    for path in (ROOT / part).rglob("*.py")
)
MAX_FILE, MAX_FUNCTION = 400, 45
UNWANTED = re.compile(r"print|np\.random\.(?!default_rng).*")
"""Calls that no module of the package makes."""


@cache
def nodes(path: Path):
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.fixture(autouse=True, scope="module")
def forget():
    yield
    nodes.cache_clear()  # a million objects, which the collector would look at to the end


def functions(path: Path):
    """Yield every function of a file with its length, docstring not counted."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            docstring = first.end_lineno - first.lineno + 1 if has_docstring else 0
            yield node, node.end_lineno - node.lineno + 1 - docstring


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_file_fits_on_four_hundred_lines():
    assert [path for path in FILES if path.read_text("utf-8").count("\n") > MAX_FILE] == []


def test_every_function_fits_on_forty_five_lines():
    assert {
        (relative(path), node.name): length
        for path in FILES
        for node, length in functions(path)
        if length > MAX_FUNCTION
    } == {}


def test_the_length_rule_would_notice_a_long_function(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    x = 1\n" * MAX_FUNCTION)
    assert [length > MAX_FUNCTION for _, length in functions(path)] == [True]


def test_the_package_neither_prints_nor_asserts_nor_draws_from_global_state():
    assert [
        (relative(path), node.lineno)
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and UNWANTED.fullmatch(ast.unparse(node.func)))
    ] == []


# typer reads options, and scikit-learn passes fit(X, y, sample_weight), as positional parameters
OURS = [
    path for path in sorted(SOURCE.rglob("*.py")) if path.parent.name not in {"cli", "estimators"}
]


def test_functions_take_at_most_two_positional_arguments():
    many = {}
    for path in OURS:
        for node, _ in functions(path):
            if node.name.startswith("_"):
                continue  # private helpers, and Python's own methods
            every = [*node.args.posonlyargs, *node.args.args]
            given = [each.arg for each in every if each.arg not in {"self", "cls"}]
            if len(given) > 2:
                many[relative(path), node.name] = given
    assert many == {}


@pytest.mark.parametrize(
    "layer", ["protocol", "privacy", "statistics", "models", "features", "algorithms", "linalg"]
)
def test_from_the_protocol_downward_nothing_opens_a_file(layer):
    """The import contract sees modules; this sees calls that need no import of ours."""
    opens = re.compile(r"^(open|input|__import__|eval|exec|np\.(save|load|memmap|fromfile).*)$")
    paths = [*(SOURCE / layer).rglob("*.py")]
    assert paths
    for path in paths:
        calls = [ast.unparse(each.func) for each in nodes(path) if isinstance(each, ast.Call)]
        assert [name for name in calls if opens.match(name)] == []


CHANGES = re.compile(
    r"(os|fcntl|shutil|tempfile|Path)\..*|.*\.(unlink|rmdir|mkdir|touch|rename|symlink_to|hardlink_to"
    r"|chmod|write_text|write_bytes|save_file|tofile|savez|savez_compressed)|np\.save|FileIO"
)
READS = re.compile(
    r"os\.(path\..*|environ\.get|fsdecode|fsencode|fstat|getpid|cpu_count|sched_getaffinity"
    r"|urandom|strerror|read|walk|get_terminal_size|geteuid|process_cpu_count|execv)|Path\.(home|cwd)"
    r"|shutil\.disk_usage"
)


def changes_a_disk(call: ast.Call) -> bool:
    """Whether a call opens for writing, makes, renames, deletes or syncs."""
    name, told = ast.unparse(call.func), [ast.unparse(each) for each in call.args]
    if name == "open" or name.endswith(".open"):
        modes = [*told, *(ast.unparse(each.value) for each in call.keywords if each.arg == "mode")]
        return any(set(mode.strip("'")) & set("wax+") and len(mode) <= 5 for mode in modes)
    if name.endswith(".replace") and len(told) == 1 and not call.keywords:
        return True  # a path's: a text's has two
    if name == "FileIO":
        return told[1:] != ["'r'"]
    return bool(CHANGES.fullmatch(name)) and not READS.fullmatch(name)


def test_nothing_outside_the_disk_layer_writes_renames_deletes_syncs_or_locks():
    assert [
        (relative(path), node.lineno, ast.unparse(node.func))
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "disk"
        for node in nodes(path)
        if isinstance(node, ast.Call) and changes_a_disk(node)
    ] == []
    disk = [node for path in (SOURCE / "disk").glob("*.py") for node in nodes(path)]
    assert any(changes_a_disk(node) for node in disk if isinstance(node, ast.Call))


def test_no_source_file_is_excused_from_work():
    excuses = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pragma: no cover)\b")
    assert [path for path in SOURCE.rglob("*.py") if excuses.search(path.read_text("utf-8"))] == []


APART = {  # modules that one sibling alone imports, and why they are not part of it
    "analyst_side.groups": "with run, which imports it, over 400 lines",
    "analyst_side.passes": "with run, which imports it, over 400 lines",
    "cli.questions": "with agreement, which imports it, over 400 lines",
    "models.linear": "with the trainer over 400 lines",
    "models.sources": "with the trainer over 400 lines",
    "party_side.sums_audit": "with audit, which imports it, over 400 lines",
    "protocol.seeded_round": "loaded on the first use of simulate",
    "transport.server": "with web, which takes lines in and imports it, over 400 lines",
    "vault.ledger": "with the vault over 400 lines",
}


def test_a_module_that_only_a_sibling_imports_is_part_of_it():
    """Commands stand alone, one file each, which main collects; a package's face is no sibling."""
    files = [*SOURCE.rglob("*.py")]
    names = [each.parent if each.stem == "__init__" else each.with_suffix("") for each in files]
    parts = {path: name.relative_to(SOURCE).parts for path, name in zip(files, names, strict=True)}
    importers = {".".join(each): set() for each in parts.values()}
    for module in COMMANDS.values():
        importers[f"cli.{module}"].add(("cli", "main"))
    for path, mine in parts.items():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cobasis."):
                module = node.module.removeprefix("cobasis.")
                for name in {module, *(f"{module}.{each.name}" for each in node.names)}:
                    importers.get(name, set()).add(mine)
    only = {
        name
        for name, each in importers.items()
        if len(each) == 1 and min(each)[:-1] == tuple(name.split(".")[:-1])
    }
    assert {name for name in only if importers[name] != {("cli", "main")}} == set(APART)
