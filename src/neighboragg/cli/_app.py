"""The command and its subcommands."""

from typing import Annotated

import typer

import neighboragg
from neighboragg.cli._audit import audit
from neighboragg.cli._bench import bench
from neighboragg.cli._correct import correct
from neighboragg.cli._demo import demo
from neighboragg.cli._review import review

__all__ = ["app"]

VERSION = typer.Option("--version", help="Print the version and exit.")

app = typer.Typer(
    name="neighboragg",
    help="Can I trust this prediction, and can I trust this label?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, audit, review, correct):
    app.command()(command)
app.add_typer(bench, name="bench")


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, VERSION] = False) -> None:
    """Can I trust this prediction, and can I trust this label?"""
    if version:
        typer.echo(neighboragg.__version__)
        raise typer.Exit
