"""`neighboragg correct`: the table with the labels that were decided in the review."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from neighboragg.audit import correct as run_correct
from neighboragg.cli._options import Encoding, LabelColumn, Overwrite, Separator

__all__ = ["correct"]


def correct(
    file: Annotated[
        Path, typer.Argument(help="The labeled table, or the folder of pictures, that was audited.")
    ],
    label: LabelColumn = None,
    suspicious: Annotated[
        Path, typer.Option("--review", help="CSV file that `neighboragg audit` wrote.")
    ] = Path("suspicious.csv"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The corrected table, in the format of the table; 'corrected' and its suffix. For a folder, a CSV "
            "file with the label of every picture.",
        ),
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    overwrite: Overwrite = False,
    move: Annotated[
        bool,
        typer.Option(
            "--move",
            help="Move pictures of a folder to the folder of their decided label: all, or none if one cannot.",
        ),
    ] = False,
) -> None:
    """Write the table with the labels that were decided in the review; nothing else changes."""
    done = run_correct(
        file,
        label=label,
        review=suspicious,
        output=output,
        sep=sep,
        encoding=encoding,
        overwrite=overwrite,
        move=move,
    )
    moved = f", {done.n_moved:,} pictures moved" if done.n_moved else ""
    dropped = f", {done.n_dropped:,} rows dropped" if done.n_dropped else ""
    if done.table_changed:
        changed = f"{file} has changed since the audit; decided rows were found by their contents."
        Console().print(changed, soft_wrap=True, markup=False, highlight=False)
    Console().print(
        f"{done.n_changed:,} labels changed{dropped}{moved}: {done.output}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )
