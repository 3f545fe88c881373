"""How large the house is: `./run.sh check` prints it, `tests/test_size.py` holds it to its budgets.

Lines are what wc counts. Code is what is neither docstring, comment nor empty.
"""

import io
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cobasis"
WORDS = ("lines", "code", "docstrings", "comments", "files")
BETWEEN = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)  # statements


@cache
def size_of(path):
    """Count a file's lines by kind; a docstring is any string that is a statement."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = {each.start[0] for each in tokens if each.type == tokenize.COMMENT}
    told = [each for each in tokens if each.type not in (tokenize.NL, tokenize.COMMENT)]
    docstrings = set()
    for before, token, after in zip([told[-1], *told], told, told[1:], strict=False):
        alone = before.type in BETWEEN and after.type == tokenize.NEWLINE
        if token.type == tokenize.STRING and alone:
            docstrings.update(range(token.start[0], token.end[0] + 1))
    alone = {at for at in comments - docstrings if lines[at - 1].lstrip().startswith("#")}
    empty = {at for at, line in enumerate(lines, 1) if not line.strip()} - docstrings
    code = len(lines) - len(docstrings | alone | empty)
    return Counter(
        lines=len(lines), code=code, docstrings=len(docstrings), comments=len(comments), files=1
    )


def sizes(*folders, by=lambda _: "in all"):
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            found[by(path)] = found.get(by(path), Counter()) + size_of(path)
    return found


def package_of(path):
    """Return the package that a file of the source is in; of the modules beside them, the root."""
    return (*path.relative_to(SOURCE).parts[:-1], "cobasis")[0]


def whole():
    parts = {"src": (SOURCE,), "tests": (ROOT / "tests",)}
    parts["experiments and benchmarks"] = (ROOT / "experiments", ROOT / "benchmarks")
    return {name: sizes(*folders)["in all"] for name, folders in parts.items()}


def table():
    yield "".join(f"{word:>11}" for word in WORDS)
    rows = [*sorted(sizes(SOURCE, by=package_of).items()), *whole().items()]
    for name, size in rows:
        yield "".join(f"{size[word]:11,}" for word in WORDS) + f"  {name}"


if __name__ == "__main__":
    print("\n".join(table()))  # noqa: T201 -- for people
