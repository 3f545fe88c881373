"""What all commands share: who is meant, the passphrase, how to answer, and how to be a button."""

import inspect
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from pydantic_core import to_json
from rich import progress as bars
from rich.console import Console
from typer import Argument, Option

from cobasis.analyst_side.session import AnalystSession, session_of
from cobasis.bundle.agreement_file import read_agreement, sealed_agreement
from cobasis.bundle.envelope import plain_kind
from cobasis.cli.words import on_screen, safe
from cobasis.disk.whole import make_folder
from cobasis.errors import DiskError, IdentityError, OptionError, PassphraseError
from cobasis.keys.identity import Identity, enrolled_here, enrolled_key, key_path, load_identity
from cobasis.party_side.session import PartySession
from cobasis.progress import AGAIN, Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import signers

AgreementFile = Annotated[
    Path | None, Argument(metavar="[AGREEMENT]", help="By default the one that is here.")
]
ProxyCA = Annotated[Path | None, Option(help="Your company's inspecting proxy's certificate.")]
Folder = Annotated[Path, Argument(metavar="[FOLDER]", help="Of agreements; else this one.")]
Files = Annotated[
    list[Path] | None,
    Argument(metavar="[AGREEMENT] [FILES]...", help="By default those that lie here."),
]
Public = Annotated[Path | None, Option(help="Table of the public rows that are agreed.")]
Sensitive = Annotated[list[str] | None, Option("--sensitive", help="A sensitive column; repeat.")]
Yes = Annotated[bool, Option("--yes", help="Do not ask before something leaves.")]

Form = Mapping[str, list[str]]

PROGRESS = "COBASIS_PROGRESS"
"""Where it is set, progress is lines: what is done, how much of it, of how much, with tabs."""


@dataclass(frozen=True, kw_only=True)
class Screen:
    as_json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False

    def tell(self, lines: Iterable[str]) -> None:
        for line in lines:
            typer.echo(safe(line), err=self.as_json)

    def say(self, lines: Iterable[str], **told: object) -> None:
        """Print an answer: lines for people, or the object that docs/reference/json.md has."""
        for line in [to_json(told, inf_nan_mode="null")] if self.as_json else map(safe, lines):
            typer.echo(line)


@dataclass(frozen=True, kw_only=True)
class Home:
    home: Annotated[Path, Option(envvar="COBASIS_HOME", help="Folder of keys and vaults.")] = Path(
        "~/.cobasis"
    )
    name: Annotated[str | None, Option("--as", help="Whose key; else the one enrolled.")] = None

    def folder(self) -> Path:
        try:
            folder = self.home.expanduser()
        except RuntimeError:  # a user by number alone, as in a container
            raise IdentityError(
                "this user has no home folder that keys could lie in. Say where they lie with "
                "--home, or in COBASIS_HOME."
            ) from None
        make_folder(folder)
        return folder

    def who(self, agreement: Agreement) -> PublicIdentity:
        where = f"round '{agreement.round_id}'"
        return enrolled_here(signers(agreement), where=where, home=self.folder(), name=self.name)


@dataclass(frozen=True, kw_only=True)
class Holder(Home):
    passphrase_file: Annotated[
        Path | None,
        Option(envvar="COBASIS_PASSPHRASE_FILE", help="Holds the passphrase; else it is asked."),
    ] = None

    def passphrase(self, *, new: bool = False) -> str:
        """Return a file's first line, or what a person types; twice for a new key."""
        if self.passphrase_file is not None:
            return _first_line(self.passphrase_file)
        if not on_terminal():
            raise PassphraseError(
                "the key's passphrase is needed, and there is no terminal to ask on. Give a file "
                "that only you may read with --passphrase-file, or in COBASIS_PASSPHRASE_FILE."
            )
        return str(typer.prompt("Passphrase", hide_input=True, err=True, confirmation_prompt=new))

    def party(self, agreement: Path, *, sealed: bool = True) -> PartySession:
        """Open a party's session of a round; IdentityError for the analyst's key."""
        agreed = read_agreement(agreement).agreement
        who = self.who(agreed)
        if who.role == "analyst":
            raise IdentityError(
                f"'{who.name}' is the analyst of round '{agreed.round_id}', and this is a party's "
                "command. The analyst's are receive, run and remove."
            )
        agreed = sealed_agreement(agreement) if sealed else agreed
        return PartySession(agreement, agreed, identity=self.identity(who.name), home=self.folder())

    def analyst(self, agreement: Path, *, sealed: bool = True) -> AnalystSession:
        """Open the analyst's session of a round; IdentityError for a party's key."""
        who = self.who(read_agreement(agreement).agreement)
        if who.role != "analyst":
            raise IdentityError(
                "you are a party of this round (your key says so), and this is the analyst's "
                "command. A party's are sign, send, accept, predict, score, export and forget."
            )
        session = session_of(agreement, self.identity(who.name))
        if sealed:
            session.require_sealed()
        return session

    def key(self, name: str) -> Path:
        return key_path(self.folder(), name)

    def identity(self, name: str) -> Identity:
        return load_identity(self.key(name), passphrase=self.passphrase())

    def enrolled(self, who: PublicIdentity) -> Identity:
        """Open the key that is enrolled: the newest of its owner, or one before."""
        return enrolled_key(self.identity(who.name), who)


@dataclass(frozen=True, kw_only=True)
class Owner(Holder, Screen):
    """Whose key and vault a command uses, and how it answers."""


@dataclass(frozen=True, kw_only=True)
class Given:
    words: Annotated[
        list[Path] | None,
        Argument(metavar="[AGREEMENT] DATA", help="The party's table, CSV or Parquet."),
    ] = None

    @property
    def agreement(self) -> Path:
        return agreed(self.words)[0]

    @property
    def table(self) -> Path:
        return the_one(agreed(self.words)[1], what="a table, CSV or Parquet")


def about(session: PartySession, *, command: str) -> dict[str, Any]:
    return {"command": command, "round": session.agreement.round_id, "party": session.name}


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, for each dataclass among its parameters, an option for each field."""
    whole = inspect.signature(command)
    groups: dict[str, Any] = {
        name: each.annotation
        for name, each in whole.parameters.items()
        if is_dataclass(each.annotation)
    }
    own = [each for name, each in whole.parameters.items() if name not in groups]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = {
        each.name: inspect.Parameter(each.name, kind, default=each.default, annotation=each.type)
        for group in reversed(groups.values())
        for each in fields(group)
        if each.name not in whole.parameters
    }

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 -- whatever typer has read
        made = {
            name: group(**{each.name: given[each.name] for each in fields(group)})
            for name, group in groups.items()
        }
        command(**made, **{each.name: given[each.name] for each in own})

    vars(run)["__signature__"] = whole.replace(parameters=[*own, *shared.values()])
    return run


def _first_line(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as lines:
            mode = stat.S_IMODE(os.fstat(lines.fileno()).st_mode)
            found = lines.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DiskError(
            f"the passphrase file '{file}' cannot be read ({type(error).__name__}). Check it."
        ) from None
    # systemd gives credentials to the service alone, by an access list that reads as the group's
    given = os.environ.get("CREDENTIALS_DIRECTORY")
    others = 0o027 if given and file.parent == Path(given) else 0o077
    if mode & others:
        raise PassphraseError(
            f"the passphrase file '{file}' has mode {mode:04o}, so others than its owner can read "
            f"or change it. Run 'chmod 600 {file}'; if somebody has read it, make a new key."
        )
    if not found:
        raise PassphraseError(
            f"the first line of the passphrase file '{file}' is empty. Write it there."
        )
    return found


def on_terminal() -> bool:
    """Whether somebody can be asked; if so, Ctrl-C ends the question."""
    if sys.stdin is None or not sys.stdin.isatty():  # None where it is closed
        return False
    # polars puts a handler of its own before Python's once it has read a table, with SA_RESTART:
    # the system would go on reading the keyboard, and Python hear of Ctrl-C after the next line.
    signal.siginterrupt(signal.SIGINT, True)
    return True


def consent(question: str, *, yes: bool, what: str, word: str = "", option: str = "--yes") -> None:
    """Ask for a yes, or a word; without a person or the option nothing is done."""
    if yes:
        return
    if not on_terminal():
        raise OptionError(
            f"nothing was done: nobody is here to be asked about {what}, and nothing is done "
            f"unasked. Look at what stands above, and run the same command with {option}."
        )
    said = typer.prompt(question, err=True, default="", show_default=False) if word else ""
    if said.strip() != word if word else not typer.confirm(question, err=True):
        why = f" What was typed is not the round's name, {word}." * bool(word)
        typer.echo(f"Nothing was done.{why}", err=True)
        raise typer.Exit(2)


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    """Show a bar with the time left for every step of long work; for calls from Python as well."""
    tasks: dict[str, bars.TaskID] = {}
    columns = (*bars.Progress.get_default_columns(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, console=console or Console(stderr=True)) as bar:

        def _report(step: str, done: int, total: int) -> None:
            name = step.partition(AGAIN)[0]
            if name not in tasks:
                tasks[name] = bar.add_task(step, total=total)
            bar.update(tasks[name], completed=done, total=total, description=step)

        yield _report


def progress() -> AbstractContextManager[Report]:
    if os.environ.get(PROGRESS):
        return nullcontext(lambda *told: typer.echo("\t".join(map(str, told)), err=True))
    return shown() if on_screen() else nullcontext(silent)


def agreed(words: list[Path] | None) -> tuple[Path, list[Path]]:
    """Return the agreement and the other words: the first, or the only one in this folder."""
    words = words or []
    if words and words[0].suffix == ".toml":
        return words[0], words[1:]
    names = {path.name for path in Path().glob("*.toml") if plain_kind(path) == "agreement"}
    found = sorted(x for x in names if x.replace(".sealed.toml", ".toml") not in names - {x})
    if len(found) == 1:
        return Path(found[0]), words
    made = "none: its author makes it with cobasis agreement new icu.toml, and sends it to all"
    raise OptionError(
        f"this command is about one agreement, and here are {', '.join(found) or made}. Name its "
        f"file as the first word, like {[*found, 'icu.toml'][0]}, or go where it lies."
    )


def alone(agreement: Path | None) -> Path:
    if agreement is None:
        return agreed(None)[0]
    if agreement.suffix != ".toml":
        raise OptionError(f"'{agreement}' is no agreement, whose name ends in .toml. Name that.")
    return agreement


def the_one(words: list[Path], *, what: str) -> Path:
    """Return the only word beside the agreement; OptionError says what it should have been."""
    if len(words) == 1:
        return words[0]
    given = ", ".join(map(str, words)) or "nothing"
    raise OptionError(f"this command takes {what}, and was given {given}. Name exactly one.")


class Ask(NamedTuple):
    """A field of a form, which becomes an option, or without a dash a word."""

    option: str
    text: str
    kind: str = "text"  # check, text, or with values: choice, several, and typed, which is no field
    values: tuple[str, ...] = ()
    value: str = ""

    def words(self, form: Form) -> list[str]:
        """Return what the form says, as the command line has it."""
        given = [x for x in form.get(self.option, ()) if not self.values or x in self.values]
        if self.kind == "check":
            return [self.option] * bool(given)
        return [f"{self.option}={x}" if self.option[0] == "-" else x for x in given]


class Action(NamedTuple):
    command: Callable[..., None]
    words: tuple[str, ...]  # of the command, before those that are asked for
    asks: tuple[Ask, ...] = ()
    typed: tuple[str, ...] = ()  # names, of which one has to be typed; none: nothing is changed
    options: tuple[str, ...] = ()
    terms: tuple[tuple[str, str], ...] = ()  # what is agreed to by it, under titles
    group: str = ""  # of commands, where it stands in one

    @property
    def name(self) -> str:
        return f"{self.group} {self.command.__name__}".lstrip()

    def line(self, form: Form) -> list[str]:
        """Return the words of the command; what stands behind -- is no option."""
        options = [x for ask in self.asks if ask.option[0] == "-" for x in ask.words(form)]
        rest = [x for ask in self.asks if ask.option[0] != "-" for x in ask.words(form)]
        return [*self.name.split(), *self.options, *options, "--", *self.words, *rest]


@dataclass(frozen=True, kw_only=True)
class Topic:
    title: str
    line: str  # all of it in one
    stands: str  # another text where anything has changed
    folder: Path  # where commands run
    actions: Mapping[str, Action]
    pages: Mapping[str, Callable[..., str]]  # by what stands behind the topic in the address
