"""The command and its subcommands."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

import neighboragg
from neighboragg._cli.demo import demo
from neighboragg._cli.labels import audit, correct, review
from neighboragg._cli.trust import compare, score

VERSION = typer.Option("--version", help="Print the version and exit.")

INTERRUPTED = 130


def interruptible(command: Callable[..., None]) -> Callable[..., None]:
    """The command; an interrupt from the keyboard ends it with one line."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None

    return run


app = typer.Typer(
    name="neighboragg",
    help="Can I trust this prediction, and can I trust this label?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, score, compare, audit, review, correct):
    app.command()(interruptible(command))


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, VERSION] = False) -> None:
    """Can I trust this prediction, and can I trust this label?"""
    if version:
        typer.echo(neighboragg.__version__)
        raise typer.Exit
