"""The ``cobasis`` command: its sub-commands, and what it does with errors."""

import resource
import warnings
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from cobasis.cli import agreement, key, options
from cobasis.cli.accept import accept
from cobasis.cli.approve import approve
from cobasis.cli.audit import audit, plan
from cobasis.cli.demo import demo
from cobasis.cli.forget import forget
from cobasis.cli.go import go
from cobasis.cli.page import page
from cobasis.cli.predict import export, predict, score
from cobasis.cli.receive import receive
from cobasis.cli.run import remove
from cobasis.cli.run import run as run_round
from cobasis.cli.send import send
from cobasis.cli.serve import serve
from cobasis.cli.sign import sign
from cobasis.cli.status import status
from cobasis.cli.verify import inspect, verify
from cobasis.cli.words import wrapped
from cobasis.errors import CobasisError, OptionError, PrivacyWarning

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it

_UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""Typer's for words that no command takes; it exports only what derives from it."""


def _say(error: CobasisError) -> None:
    """Print an error, whole where a program reads it."""
    said = f"{type(error).__name__}: {error}"
    for line in wrapped(said) if options.on_screen() else [said]:
        typer.echo(line, err=True)


class _Coded(TyperGroup):
    """Turns an error into one message, and an exit code that says whose it is."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- typer's own signature
        """Run a command."""
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # a core would hold opened secrets
        try:
            return super().invoke(ctx)
        except CobasisError as error:
            _say(error)
            raise typer.Exit(error.exit_code) from None
        except _UsageError as error:
            told = error.format_message().rstrip(".").replace("Value error, ", "")
            if told:  # of a group alone it was its help
                _say(OptionError(f"{told}. See '{error.ctx.command_path} --help'."))
            raise typer.Exit(OptionError.exit_code) from None
        except (KeyboardInterrupt, typer.Abort):  # a prompt turns the one into the other
            typer.echo("\nInterrupted. Nothing is lost: the same command goes on.", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name="cobasis",
    cls=_Coded,
    help="Train one model together without pooling rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(key.app, name="key")
app.add_typer(agreement.app, name="agreement")
for _command in (
    *(demo, sign, receive, send, run_round, accept, predict, status, audit, approve, score, export),
    *(plan, remove, forget, verify, inspect, go, serve, page),
):
    app.command()(_command)


def _print_version(asked: bool) -> None:
    if asked:
        from cobasis import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Train one model together without pooling rows."""


_show_as_python_does = warnings.showwarning


def _show_warning(*warning: Any, **where: Any) -> None:  # noqa: ANN401 -- Python's own signature
    """Print a privacy warning as a sentence, others as Python does."""
    message, category = warning[:2]
    if issubclass(category, PrivacyWarning):
        typer.echo(f"PrivacyWarning: {message}", err=True)
    else:
        _show_as_python_does(*warning, **where)


def run() -> None:
    """Run the command line; an error is one message, and its exit code says whose it is."""
    warnings.showwarning = _show_warning
    app()
