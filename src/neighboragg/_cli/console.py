"""Options, progress bar and warnings shared by all commands."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from neighboragg.exceptions import TrustWarning

LabelColumn = Annotated[
    str | None, typer.Option(help="Name of the label column; leave it out for a folder of images.")
]
Separator = Annotated[
    str | None,
    typer.Option("--sep", help="Delimiter of a CSV file, such as ';' or tab. Default: detected."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as cp1252 or latin-1. Default: UTF-8.")
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel workbook. Default: the first.")]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--dayfirst/--no-dayfirst",
        help="Whether 03.04.2024 and 03/04/2024 are in April. Default: detected from all values.",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal mark of numbers written as text, '.' or ','. Default: detected."),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="Mark between thousands: ',', '.', ' ' or an apostrophe. Default: detected."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Work on a Dask cluster: 'local' for processes on this machine, or tcp://host:port of a scheduler."
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of threads; -1 uses every core.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output files.")]


def names_of(listed: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]


@contextmanager
def progress_bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Show progress on a terminal while the block runs, and nothing afterwards.

    Parameters
    ----------
    console : Console

    Yields
    ------
    progress : callable
        Takes the stage, how many steps are done, and how many there are.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Starting", total=None)
        yield lambda stage, done, total: bar.update(
            task, description=stage, completed=done, total=total or None
        )


@contextmanager
def warnings_printed(console: Console) -> Iterator[None]:
    """Print the warnings of the block once it has succeeded, each only once; enter it before a progress bar."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrustWarning)
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        console.print(f"Warning: {text}", style="bold yellow", soft_wrap=True, markup=False)
