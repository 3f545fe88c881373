"""The tutorial's pages as lists of what is typed, in order, and what they say is printed."""

import re
from dataclasses import dataclass
from pathlib import Path

from mnemonic import Mnemonic

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
PAGES, SUMS = (
    {page: (TUTORIAL / f"{page}.md").read_text("utf-8") for page in pages}
    for pages in (("party", "analyst"), ("sums",))
)

SECTION = re.compile(r"^## (\d+)\. (.+?)$(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMPT = re.compile(r"(north|lab)\$ (.*)")
SENT = re.compile(r"# send (?:each )?(\S+) to (.+?)(?: as (\S+))?$")
"""A file, to whom, and as what."""

_WORD = f"({'|'.join(Mnemonic('english').wordlist)})"
NUMBERS = (
    (r"\b[0-9a-f]{16,64}\b", "HEX"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b\d{1,2} [A-Z][a-z]{2} \d{4}( \d\d:\d\d UTC)?", "DAY"),
    (r"icu-[0-9a-f]+\b", "ROUND"),
    (rf"\b{_WORD}( {_WORD}){{7}}\b", "WORDS"),
    (r"-?\d+(,\d{3})*(\.\d+)?(e-?\d+)?", "NUMBER"),
    (r"^Note: the common model is worse.*$\n?", ""),  # which so few rows can bring about
    (r"[ \t]+", " "),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """Something that is typed, or a file that is sent, and the output that the page shows."""

    words: str
    shown: str = ""

    def by(self, role):
        """What another party types in north's place; what it reads is not on the page."""
        return Line(words=re.sub(r"\bnorth\b", role, self.words))


@dataclass(frozen=True, kw_only=True)
class Step:
    number: int
    title: str
    analyst: bool  # whether the analyst types it, or every party
    lines: tuple


def lines_of(text):
    found = []
    for block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            prompt = PROMPT.fullmatch(line)
            if prompt:
                found.append(Line(words=" ".join(prompt[2].split())))
            elif line.startswith("# "):
                found.append(Line(words=line))
            else:
                last = found.pop()
                found.append(Line(words=last.words, shown=f"{last.shown}{line}\n"))
    return tuple(found)


def steps(pages=PAGES):
    """All steps of pages, in the order in which they happen; that of sums has both roles."""
    found = [
        Step(
            number=int(number),
            title=title,
            analyst=page == "analyst" or (page == "sums" and title.startswith("The analyst")),
            lines=lines_of(section),
        )
        for page, text in pages.items()
        for number, title, section in SECTION.findall(text)
    ]
    return sorted(found, key=lambda step: step.number)


def practice():
    return re.search(r"^```python\n(.*?)^```$", PAGES["party"], re.DOTALL | re.MULTILINE)[1]


def sizes():
    row = re.compile(r"^\| `([^`]+)`(?:, `[^`]+`)? \|.*\| ([\d,]+) \|$", re.MULTILINE)
    return {
        page: {name: int(size.replace(",", "")) for name, size in row.findall(text)}
        for page, text in PAGES.items()
    }


def plain(text):
    for pattern, word in NUMBERS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines())


def shows(shown, printed):
    """Whether a page's output is what was printed, but for lines and ends left out by `...`."""
    pattern = re.escape(plain(shown)).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None
