"""What all commands share: who is meant, the passphrase, and how answers are printed."""

import inspect
import os
import signal
import stat
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from cobasis.errors import DiskError, IdentityError, OptionError, PassphraseError

if TYPE_CHECKING:
    from cobasis.analyst_side.session import AnalystSession
    from cobasis.cli.answers import Answer
    from cobasis.keys.identity import Identity
    from cobasis.party_side.session import PartySession
    from cobasis.progress import Report
    from cobasis.protocol.agreement import Agreement
    from cobasis.protocol.enrolment import PublicIdentity

AgreementFile = Annotated[
    Path | None, typer.Argument(metavar="[AGREEMENT]", help="By default the one that is here.")
]
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

Number = TypeVar("Number", int, float)

_OTHERS = 0o077
"""What a passphrase file's mode may not hold: anything for the group or for all."""


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Whose key and vault a command uses, and how it answers: what `owned` gives it."""

    home: Path | None
    name: str | None
    passphrase_file: Path | None
    as_json: bool

    def passphrase(self, *, new: bool = False) -> str:
        """Return a file's first line, or what a person types; twice for a new key."""
        if self.passphrase_file is not None:
            return _first_line(self.passphrase_file)
        if not on_terminal():
            raise PassphraseError(
                "the key's passphrase is needed, and there is no terminal to ask on. Give a file "
                "that only you may read with --passphrase-file, or in COBASIS_PASSPHRASE_FILE."
            )
        said: str = typer.prompt("Passphrase", hide_input=True, err=True, confirmation_prompt=new)
        return said

    def party(self, agreement: Path, *, sealed: bool = True) -> "PartySession":
        """Open the party's session of a round."""
        from cobasis.party_side.session import open_session

        return open_session(
            agreement, home=self.home, name=self.name, passphrase=self.passphrase, sealed=sealed
        )

    def analyst(
        self, agreement: Path, *, sealed: bool = True, outbox: Path | None = None
    ) -> "AnalystSession":
        """Open the analyst's session of a round; IdentityError for a party's key."""
        from cobasis.analyst_side.session import open_session

        if not self.is_analyst(agreement):
            raise IdentityError(
                "you are a party of this round (your key says so), and this is the analyst's "
                "command. A party's are sign, send, accept, predict, score, export and forget."
            )
        return open_session(
            agreement,
            home=self.home,
            name=self.name,
            passphrase=self.passphrase,
            sealed=sealed,
            outbox=outbox,
        )

    def is_analyst(self, agreement: Path) -> bool:
        """Whether the key in the home folder is that of the round's analyst."""
        from cobasis.bundle.agreement_file import read_agreement

        found = read_agreement(agreement).agreement
        return self.who(found) == found.analyst

    def key(self, name: str) -> Path:
        """Return the path of a key."""
        from cobasis.keys.at_rest import home, key_path

        return key_path(home(self.home), name)

    def identity(self, name: str) -> "Identity":
        """Open a key."""
        from cobasis.keys.at_rest import load_identity

        path = self.key(name)
        return load_identity(path, passphrase=self.passphrase())

    def who(self, agreement: "Agreement") -> "PublicIdentity":
        """Return who of a round types this: whose key is in the home folder."""
        from cobasis.keys.at_rest import enrolled_here, home

        return enrolled_here(agreement, home=home(self.home), name=self.name)

    def tell(self, line: str) -> None:
        """Say something before the answer, out of the way of --json."""
        typer.echo(line, err=self.as_json)

    def say(self, answer: "Answer", *, lines: Iterable[str]) -> None:
        """Print an answer as it was asked for."""
        say(answer, as_json=self.as_json, lines=lines)


_SHARED: dict[str, tuple[Any, object]] = {
    "home": (Home, None),
    "name": (Name, None),
    "passphrase_file": (PassphraseFile, None),
    "as_json": (AsJson, False),
}


def owned(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an `Owner`, made of the shared options that it does not have itself."""
    whole = inspect.signature(command)
    own = list(whole.parameters.values())[1:]
    shared = [
        inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for word, (kind, default) in _SHARED.items()
        if word not in whole.parameters
    ]

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 -- whatever typer has read
        owner = Owner(**{word: given[word] for word in _SHARED})
        command(owner, **{each.name: given[each.name] for each in own})

    vars(run)["__signature__"] = whole.replace(parameters=[*own, *shared])
    return run


def _first_line(file: Path) -> str:
    """Return a passphrase file's first line."""
    try:
        with file.open(encoding="utf-8") as lines:
            mode = stat.S_IMODE(os.fstat(lines.fileno()).st_mode)
            found = lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DiskError(
            f"the passphrase file '{file}' cannot be read ({type(error).__name__}). Check it."
        ) from None
    if os.name == "posix" and mode & _OTHERS:
        raise PassphraseError(
            f"the passphrase file '{file}' has mode {mode:04o}, so others than its owner can read "
            f"or change it. Run 'chmod 600 {file}'; if somebody has read it, make a new key."
        )
    if not found:
        raise PassphraseError(
            f"the first line of the passphrase file '{file}' is empty. Write it there."
        )
    return found


def on_screen() -> bool:
    """Whether somebody looks at standard error."""
    return sys.stderr.isatty()


def on_terminal() -> bool:
    """Whether somebody can be asked; if so, Ctrl-C ends the question.

    polars puts a handler of its own before Python's once it has read a table, with SA_RESTART: the
    system would begin to read the keyboard again, and Python would not hear of Ctrl-C before a
    line is typed.
    """
    if not sys.stdin.isatty():
        return False
    signal.siginterrupt(signal.SIGINT, True)
    return True


def consent(question: str, *, yes: bool, what: str) -> None:
    """Ask before something leaves; without a person or ``--yes`` it does not."""
    if yes:
        return
    if not on_terminal():
        raise OptionError(
            f"{what} was not made: nobody is here to be asked, and nothing leaves unasked. Look at "
            "what stands above, and run the same command with --yes."
        )
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was made.", err=True)
        raise typer.Exit(2)


def ask_round(round_id: str, *, yes: bool, what: str) -> None:
    """Have somebody type the round's name before something is destroyed."""
    if yes:
        return
    if not on_terminal():
        raise OptionError(
            f"nothing was destroyed: nobody is here to type the round's name. To destroy {what}, "
            "run the same command with --yes."
        )
    typer.echo(f"This destroys {what}.", err=True)
    typed = typer.prompt(f"Type the round's name ({round_id}) to go on", err=True)
    if typed.strip() != round_id:
        typer.echo("That is not its name. Nothing was destroyed.", err=True)
        raise typer.Exit(2)


def ask_name(question: str) -> tuple[str, ...]:
    """Ask for a name where somebody is there to be asked."""
    if not on_terminal():
        return ()
    return (typer.prompt(question, default="", show_default=False, err=True),)


@contextmanager
def progress() -> Iterator["Report"]:
    """Show progress on standard error, where somebody looks at it."""
    from cobasis.cli.bar import shown
    from cobasis.progress import silent

    if not on_screen():
        yield silent
        return
    with shown() as report:
        yield report


def say(answer: "Answer", *, as_json: bool, lines: Iterable[str]) -> None:
    """Print an answer: one JSON object, or lines for people."""
    if as_json:
        typer.echo(answer.model_dump_json())
        return
    for line in lines:
        typer.echo(line)


def agreed(words: list[Path]) -> tuple[Path, list[Path]]:
    """Return the agreement and the other words: the first, or the only one in this folder."""
    if words and words[0].suffix == ".toml":
        return words[0], words[1:]
    names = {path.name for path in sorted(Path().glob("*.toml")) if _is_agreement(path)}
    found = [
        Path(name)
        for name in sorted(names)
        if name.replace(".sealed.toml", ".toml") not in names - {name}
    ]
    if len(found) == 1:
        return found[0], words
    if not found:
        raise OptionError(
            "no agreement lies here. Put the one that its author sent here, or name its file as "
            "the first word; whoever is the author makes it: cobasis agreement new icu.toml."
        )
    here = ", ".join(path.name for path in found)
    raise OptionError(
        f"this command is about an agreement, and of those here ({here}) it cannot tell which. "
        "Name its file as the first word, like icu.toml, or type it where one agreement lies."
    )


def alone(agreement: Path | None) -> Path:
    """Return the agreement where it is the only word of a command."""
    path, more = agreed([] if agreement is None else [agreement])
    if more:
        raise OptionError(f"'{more[0]}' is no agreement, whose name ends in .toml. Give that file.")
    return path


def the_one(words: list[Path], *, what: str) -> Path:
    """Return the only word beside the agreement; OptionError says what it should have been."""
    if len(words) == 1:
        return words[0]
    given = ", ".join(map(str, words)) or "nothing"
    raise OptionError(f"this command takes {what}, and was given {given}. Name exactly one.")


def _is_agreement(path: Path) -> bool:
    """Whether a TOML file is an agreement; one that cannot be read is none."""
    from cobasis.bundle.envelope import plain_kind

    with suppress(DiskError):
        return plain_kind(path) == "agreement"
    return False


_WIDE = 79


def wrapped(text: str, *, lead: str = "") -> list[str]:
    """Return a text in lines that fit a terminal of 80 columns, indented below the first.

    Others wrote some of it: what a terminal would obey, such as an escape, stands as a question
    mark, so that nobody's words can hide or move what stands beside them.
    """
    return textwrap.wrap(
        "".join(each if each.isprintable() or each.isspace() else "?" for each in text),
        _WIDE,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )


def numbers(text: str, kind: type[Number], *, option: str) -> tuple[Number, ...]:
    """Return the numbers of an option; OptionError where it is no list of numbers."""
    try:
        return tuple(kind(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise OptionError(
            f"{option} {text} is no list of numbers. Give some like 4,8,16."
        ) from None
