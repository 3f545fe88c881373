"""The ``cobasis`` command: its sub-commands, and what it does with errors."""

import sys
import warnings
from typing import Annotated, Any

import typer

from cobasis.cli.demo import demo
from cobasis.errors import CobasisError, PrivacyWarning

app = typer.Typer(
    name="cobasis",
    help="Train one model together without pooling rows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(demo)


def _print_version(asked: bool) -> None:
    """Print the version and stop, if asked to."""
    if asked:
        from cobasis import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Train one model together without pooling rows."""


def run() -> None:
    """Run the command line; an error is one message, and its exit code says whose it is."""
    warnings.showwarning = _show_warning
    try:
        app()
    except CobasisError as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(error.exit_code)


def _show_warning(*warning: Any, **where: Any) -> None:  # noqa: ANN401 -- Python's own signature
    """Print a privacy warning as a sentence, others as Python does."""
    message, category = warning[:2]
    if issubclass(category, PrivacyWarning):
        typer.echo(f"PrivacyWarning: {message}", err=True)
    else:
        _show_as_python_does(*warning, **where)


_show_as_python_does = warnings.showwarning
