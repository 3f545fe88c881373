"""What all commands share: who is meant, the passphrase, and how answers are printed."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cobasis.errors import DiskError, OptionError, PassphraseError

if TYPE_CHECKING:
    from cobasis.cli.answers import Answer
    from cobasis.engine.progress import Report

Agreed = Annotated[Path, typer.Argument(metavar="AGREEMENT", help="The agreement's file.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of keys and vaults; else $COBASIS_HOME or ~/.cobasis."),
]
Name = Annotated[
    str | None, typer.Option("--as", help="Whose key; by default the only one that is enrolled.")
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        envvar="COBASIS_PASSPHRASE_FILE",
        show_envvar=False,
        help="Its first line is the passphrase; else $COBASIS_PASSPHRASE_FILE, else it is asked.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before something leaves.")]


def passphrase_from(file: Path | None, *, new: bool = False) -> Callable[[], str]:
    """Return what gives the passphrase when it is needed: a file's first line, or a person.

    Parameters
    ----------
    file : Path or None
        From ``--passphrase-file``.
    new : bool
        Ask twice, for a key that is being made.

    Returns
    -------
    callable
        Asked once at most.

    Raises
    ------
    PassphraseError, DiskError
        When it is called: the file is empty or cannot be read, or there is nobody to ask.
    """

    def ask() -> str:
        if file is not None:
            return _first_line(file)
        if not on_terminal():
            msg = (
                "the key's passphrase is needed, and there is no terminal to ask on. Give a file "
                "that only you may read with --passphrase-file, or in COBASIS_PASSPHRASE_FILE."
            )
            raise PassphraseError(msg)
        said: str = typer.prompt("Passphrase", hide_input=True, err=True, confirmation_prompt=new)
        return said

    return ask


def _first_line(file: Path) -> str:
    """Return a passphrase file's first line."""
    try:
        with file.open(encoding="utf-8") as lines:
            found = lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the passphrase file '{file}' cannot be read ({type(error).__name__}). Check it."
        raise DiskError(msg) from None
    if not found:
        msg = f"the first line of the passphrase file '{file}' is empty. Write it there."
        raise PassphraseError(msg)
    return found


def on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def consent(question: str, *, yes: bool, what: str) -> None:
    """Ask before something leaves; without a person or ``--yes`` it does not.

    Parameters
    ----------
    question : str
        What to ask.
    yes : bool
        Whether ``--yes`` was given.
    what : str
        What would leave.

    Raises
    ------
    OptionError
        There is nobody to ask.
    typer.Exit
        The answer was no; exit code 2.
    """
    if yes:
        return
    if not on_terminal():
        msg = (
            f"{what} was not made: nobody is here to be asked, and nothing leaves unasked. Look at "
            "what would leave, above, and run the same command with --yes."
        )
        raise OptionError(msg)
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was made.", err=True)
        raise typer.Exit(2)


@contextmanager
def progress() -> Iterator["Report"]:
    """Show progress on standard error, where somebody looks at it."""
    from cobasis.engine.progress import shown, silent

    if not sys.stderr.isatty():
        yield silent
        return
    with shown() as report:
        yield report


def say(answer: "Answer", *, as_json: bool, lines: Iterable[str]) -> None:
    """Print an answer: one JSON object, or lines for people.

    Parameters
    ----------
    answer : Answer
        The command's.
    as_json : bool
        From ``--json``.
    lines : iterable of str
        The same in words.
    """
    if as_json:
        typer.echo(answer.model_dump_json())
        return
    for line in lines:
        typer.echo(line)
