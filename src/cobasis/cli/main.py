"""The ``cobasis`` command: its sub-commands, and what it does with errors."""

import resource
import sys
import warnings
from errno import EPIPE
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO, TextIOWrapper
from types import CodeType, FunctionType
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from cobasis import __version__
from cobasis.cli import words
from cobasis.disk.calls import WRITABLE
from cobasis.errors import CobasisError, DiskError, OptionError

_BESIDE = {"score": "predict", "export": "predict", "plan": "audit"}
_BESIDE |= {"remove": "run", "inspect": "verify"}
_NAMES = (
    *("demo", "sign", "receive", "send", "run", "accept", "predict", "status", "audit", "approve"),
    *("score", "export", "plan", "remove", "forget", "verify", "inspect", "go", "serve", "page"),
    *("key", "agreement"),
)
COMMANDS = {name: _BESIDE.get(name, name) for name in _NAMES}
"""The module that each command stands in, which is imported when the command is typed."""

_GROUPS = {"key": ("new", "revoke"), "agreement": ("new",)}
"""The commands that stand behind a word of their own."""

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it

_UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""Typer's for words that no command takes; it exports only what derives from it."""


def _sentence(name: str) -> str:
    """Return what a command says first of itself, from its module's code, none of which is run."""
    module = f"cobasis.cli.{COMMANDS[name]}"
    spec: Any = find_spec(module)
    parts = spec.loader.get_code(module).co_consts
    [code] = (each for each in parts if isinstance(each, CodeType) and each.co_name == name)
    return (FunctionType(code, {}).__doc__ or "").partition("\n")[0]


@cache  # to build one takes 4 ms, and a process of tests types a thousand
def _command(name: str) -> Any:  # noqa: ANN401 -- typer's own
    module = import_module(f"cobasis.cli.{COMMANDS[name]}")
    behind = _GROUPS.get(name, ())
    made = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    for each in behind or (name,):
        made.command()(getattr(module, each))
    if behind:
        made.callback()(getattr(module, name))
    return typer.main.get_command(made)


class _Commands(TyperGroup):
    """Imports the one command that is called, and turns an error into a message and exit code."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 -- typer's own signature
        for name, each in self.commands.items():
            each.short_help = _sentence(name)
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: Any) -> Any:  # noqa: ANN401 -- same
        name, _, rest = super().resolve_command(ctx, args)
        return name, _command(str(name)), rest

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- same
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # a core would hold opened secrets
        try:
            return super().invoke(ctx)
        except CobasisError as error:
            found = error
        except _UsageError as error:
            from cobasis.strict_json import in_words  # noqa: PLC0415 -- pydantic, for this alone

            told = in_words(error.format_message().rstrip("."))
            if told.startswith("Usage: "):  # of a group alone it is its help
                typer.echo(told, err=True)
                raise typer.Exit(OptionError.exit_code) from None
            end = "" if told.endswith("?") else "."
            typed = f"{ctx.command_path} {ctx.invoked_subcommand}"  # not all errors know it
            path = getattr(error.ctx, "command_path", typed)
            found = OptionError(f"{told}{end} See '{path} --help'.")
        except OSError as error:
            if error.errno == EPIPE:  # whoever reads the output has had enough
                raise
            what = f"'{error.filename}'" if error.filename else "what is printed, or a file,"
            if not error.filename:  # else Python tries it once more when it ends, and fails aloud
                sys.stdout = TextIOWrapper(BytesIO())
            told = f"{what} cannot be read or written: {error.strerror or error}. {WRITABLE}"
            found = DiskError(told)
        except (KeyboardInterrupt, typer.Abort):  # a prompt turns the one into the other
            typer.echo("\nInterrupted. Nothing is lost: the same command goes on.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        said = f"{type(found).__name__}: {found}"
        for line in words.wrapped(said) if words.on_screen() else [said]:
            typer.echo(line, err=True)
        raise typer.Exit(found.exit_code)


app = typer.Typer(
    name="cobasis",
    cls=_Commands,
    help="Train one model together without pooling rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,  # whose help leaves the lines of a paragraph as the source has them
)
for _name in COMMANDS:
    app.command(_name)(lambda: None)  # until it is typed, a name alone


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context, version: Annotated[bool, Option("--version", help="Print it.")] = False
) -> None:
    """Train one model together without pooling rows."""
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if ctx.invoked_subcommand is None:  # as after -- alone
        ctx.fail("Missing command.")


def run() -> None:
    """Run the command line; an error, or a warning, is one message, and the code says whose."""
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    app()
