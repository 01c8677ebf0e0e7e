"""`neighboragg score` and `compare`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from neighboragg._cli.console import cells_bar, names_of, progress_bar, warnings_printed
from neighboragg._run.executor import connect
from neighboragg.trust import compare as run_comparison
from neighboragg.trust import score as run_score


def score(
    model: Annotated[Path, typer.Argument(help="Saved model.")],
    source: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Parquet files with new rows: files, folders, patterns in quotes, or addresses such as s3://….",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="New folder for the results, or a file that ends with .parquet."),
    ],
    columns: Annotated[
        str,
        typer.Option(
            help="Columns to ask the model with, separated by commas; those it was fitted on if not given."
        ),
    ] = "",
    keep: Annotated[str, typer.Option(help="Columns to have in the output too, such as an identifier.")] = "",
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Work on a Dask cluster: 'local' for processes on this machine, or tcp://host:port of a scheduler."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of --cluster local; one for each core if not given.")
    ] = None,
    memory: Annotated[
        str, typer.Option(help="Memory of each process of --cluster local, e.g. '4 GB'.")
    ] = "auto",
    part_rows: Annotated[
        int, typer.Option(min=1, help="Most rows in memory at a time, for each process or thread.")
    ] = 65_536,
    batch_rows: Annotated[int, typer.Option(min=1, help="Rows that the model is asked for together.")] = 4096,
    trusted: Annotated[
        str, typer.Option(help="Further types that the saved classifier may contain, separated by commas.")
    ] = "",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Threads without a cluster; -1 takes every core.")
    ] = None,
) -> None:
    """Score new rows: label, probability, trust and familiarity; stopped, the same command goes on where it was."""
    console = Console()
    with (
        warnings_printed(console),
        connect(cluster, n_workers=workers, memory=memory) as client,
        progress_bar(console) as progress,
    ):
        written = run_score(
            model,
            source,
            output,
            columns=names_of(columns) or None,
            keep=names_of(keep),
            client=client,
            part_rows=part_rows,
            batch_rows=batch_rows,
            n_jobs=jobs,
            trusted=names_of(trusted),
            progress=progress,
        )
    console.print(str(written), soft_wrap=True, markup=False, highlight=False)


def compare(
    source: Annotated[Path, typer.Argument(help="Table: CSV, JSON lines, Parquet, Feather or Excel.")],
    label: Annotated[str, typer.Option(help="Name of the label column.")],
    bases: Annotated[
        str, typer.Option(help="Base classifiers, separated by commas: LR, RF, MLP or HGB.")
    ] = "LR,RF,HGB",
    splits: Annotated[int, typer.Option(min=1, help="Random splits.")] = 3,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; -1 takes every core, one if not given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all tables to this name with .md and .html as well."),
    ] = None,
) -> None:
    """Compare trust methods on your own table."""
    console = Console()
    with warnings_printed(console), cells_bar(console) as progress:
        found = run_comparison(
            source, label=label, bases=names_of(bases), n_splits=splits, n_jobs=jobs, progress=progress
        )
    for grid in found.summaries():
        console.print(Markdown(grid.to_markdown()))
    for path in [] if output is None else found.write(output):
        console.print(f"Written: {path}", soft_wrap=True, markup=False, highlight=False)
