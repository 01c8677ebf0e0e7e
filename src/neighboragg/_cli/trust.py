"""`neighboragg score` and `compare`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from neighboragg._cli.console import (
    DayFirst,
    Decimal,
    Overwrite,
    Thousands,
    names_of,
    progress_bar,
    warnings_printed,
)
from neighboragg._data.open import Table
from neighboragg._run.executor import connect
from neighboragg.trust import compare as run_comparison
from neighboragg.trust import score as run_score


def score(
    model: Annotated[Path, typer.Argument(help="Saved model.")],
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Parquet files with new rows: files, folders, quoted patterns, or addresses such as s3://….",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the results, or a file that ends with .parquet."),
    ],
    include: Annotated[
        str,
        typer.Option(help="Columns to copy to the output, such as an identifier; separated by commas."),
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            help="Columns to pass to the model, separated by commas; by default the columns it was fitted on."
        ),
    ] = "",
    trusted: Annotated[
        str, typer.Option(help="Additional types that the saved classifier may contain, separated by commas.")
    ] = "",
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Work on a Dask cluster: 'local' for processes on this machine, or tcp://host:port of a scheduler."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of threads without a cluster; -1 uses every core."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Score new rows: predicted label, probability, trust and familiarity. Rerun to resume an interrupted run."""
    console = Console()
    with (
        warnings_printed(console),
        connect(cluster) as client,
        progress_bar(console) as progress,
    ):
        written = run_score(
            model,
            source,
            output,
            include=names_of(include),
            columns=names_of(columns) or None,
            client=client,
            n_jobs=jobs,
            trusted=names_of(trusted),
            overwrite=overwrite,
            progress=progress,
        )
    console.print(str(written), soft_wrap=True, markup=False, highlight=False)


def compare(
    data: Annotated[Path, typer.Argument(help="Table: CSV, JSON lines, Parquet, Feather or Excel.")],
    label: Annotated[str, typer.Option(help="Name of the label column.")],
    estimators: Annotated[
        str, typer.Option(help="Classifiers, separated by commas: LR, RF, MLP or HGB.")
    ] = "LR,RF,HGB",
    splits: Annotated[int, typer.Option(min=1, help="Random splits.")] = 3,
    dayfirst: DayFirst = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of processes; -1 uses every core. Default: 1."),
    ] = None,
) -> None:
    """Compare trust methods on your own table."""
    console = Console()
    with warnings_printed(console), progress_bar(console) as progress:
        found = run_comparison(
            Table(data, dayfirst=dayfirst, decimal=decimal, thousands=thousands),
            label=label,
            estimators=names_of(estimators),
            splits=splits,
            n_jobs=jobs,
            progress=progress,
        )
    console.print(str(found), soft_wrap=True, markup=False, highlight=False)
