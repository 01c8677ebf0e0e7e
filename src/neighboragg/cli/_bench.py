"""`neighboragg bench`: the paper's tables and figures, and the same comparison on a user's data."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from neighboragg import bench as comparisons
from neighboragg.bench import Grid, ResultStore
from neighboragg.bench._run import Computable, file_digest

__all__ = ["bench"]

bench = typer.Typer(help="Compare trust methods: the paper's tables, or your own data.", no_args_is_help=True)

Seeds = Annotated[int, typer.Option(min=1, help="Random splits.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 takes every core that memory allows.")]
Folder = Annotated[
    Path, typer.Option("--output", "-o", help="Folder of the results; finished cells are kept there.")
]
Names = Annotated[str, typer.Option(help="Names, separated by commas; all if empty.")]
DEFAULT_FOLDER = Path("bench-results")


@bench.command()
def table1(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, bases: Names = "") -> None:
    """Three data sets × LR, RF, MLP and boosting × all methods, beside the paper's Table 1."""
    chosen = _chosen(bases, comparisons.TABLE1_BASES)
    store = _run(
        output / "tabular.jsonl",
        comparisons.plan(comparisons.TABLE1_SETS, chosen, seeds, comparisons.ALL_METHODS),
        jobs,
    )
    grids = comparisons.result_table(store.rows, comparisons.TABLE1_SETS, chosen, comparisons.TABLE1)
    grids += _summaries(store.rows, comparisons.TABLE1_SETS, chosen, comparisons.TABLE1)
    _write(output / "table1", grids, "Table 1: trust methods on tabular data")


@bench.command()
def ablation(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, bases: Names = "") -> None:
    """Seven data sets: NeighOnly, ProbOnly, Trust Score, the paper's network and the pool."""
    chosen = _chosen(bases, comparisons.PAPER_BASES)
    store = _run(
        output / "tabular.jsonl",
        comparisons.plan(comparisons.ABLATION_SETS, chosen, seeds, comparisons.ALL_METHODS),
        jobs,
    )
    sets, methods = comparisons.ABLATION_SETS, comparisons.ABLATION
    grids = comparisons.result_table(store.rows, sets, chosen, methods)
    grids += _summaries(store.rows, sets, chosen, comparisons.ALL_METHODS)
    _write(output / "ablation", grids, "Ablation on seven tabular data sets")
    for metric in ("auroc", "ap_success", "ap_error"):
        comparisons.ablation_figure(
            store.rows, sets, chosen, methods, metric, output / f"ablation_{metric}.png"
        )


@bench.command()
def sensitivity(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, most: int = 20) -> None:
    """K from 1 to 20 on CardDefault with logistic regression, as in the paper's appendix."""
    store = _run(output / "sensitivity.jsonl", comparisons.sensitivity_plan(seeds, range(1, most + 1)), jobs)
    path = output / "sensitivity.png"
    comparisons.sensitivity_figure(store.rows, comparisons.SENSITIVITY_METHODS, path)
    Console().print(f"Written: {path}")


@bench.command()
def mislabel(seeds: Seeds = 1, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER) -> None:
    """Wrong labels put in on purpose: ours against cleanlab, kNN and classifier disagreement."""
    store = _run(output / "mislabel.jsonl", comparisons.mislabel_plan(seeds), jobs)
    _write(output / "mislabel", comparisons.mislabel_grids(store.rows), "Finding wrong labels")
    path = output / "mislabel.png"
    comparisons.mislabel_figure(store.rows, comparisons.OURS, comparisons.BEST_RIVAL, path)
    Console().print(f"Written: {path}")


@bench.command()
def data(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file.")],
    label: Annotated[str, typer.Option(help="Name of the label column.")],
    seeds: Seeds = 3,
    jobs: Jobs = -1,
    output: Folder = DEFAULT_FOLDER,
    bases: Names = "LR,RF,HGB",
) -> None:
    """The same comparison on your own table."""
    comparisons.load_matrix(str(file), label)  # what is wrong with the file is told before work starts
    chosen = _chosen(bases, comparisons.TABLE1_BASES)
    store = _run(
        output / f"{file.name}.jsonl",
        comparisons.plan([str(file)], chosen, seeds, comparisons.TABLE1, label),
        jobs,
    )
    # The store may know other label columns, and earlier contents of the file.
    wanted = {"label": label, "digest": file_digest(file)}
    rows = [row for row in store.rows if {key: row.get(key) for key in wanted} == wanted]
    grids = comparisons.result_table(rows, [file.name], chosen, comparisons.TABLE1)
    grids += _summaries(rows, [file.name], chosen, comparisons.TABLE1)
    _write(output / file.name, grids, f"Trust methods on {file.name}")


def _run(path: Path, tasks: Sequence[Computable], jobs: int) -> ResultStore:
    store = ResultStore(path)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        bar = progress.add_task("cells", total=len(tasks))
        advance: Callable[[], None] = lambda: progress.advance(bar)  # noqa: E731
        comparisons.run_tasks(tasks, store, n_jobs=jobs, advance=advance)
    return store


def _summaries(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], bases: Sequence[str], methods: Sequence[str]
) -> list[Grid]:
    best = "Pool + opinions"
    return [
        comparisons.mean_table(rows, sets, bases, methods),
        comparisons.difference_table(rows, sets, bases, methods, comparisons.DEFAULT),
        comparisons.difference_table(rows, sets, bases, methods, best),
    ]


def _write(stem: Path, grids: Sequence[Grid], title: str) -> None:
    markdown = f"# {title}\n\n" + "\n".join(comparisons.to_markdown(grid) for grid in grids)
    console = Console()
    for grid in grids[-3:]:
        console.print(Markdown(comparisons.to_markdown(grid)))
    for suffix, text in ((".md", markdown), (".html", comparisons.to_html(grids, title))):
        path = stem.with_name(stem.name + suffix)
        path.write_text(text, encoding="utf-8")
        console.print(f"Written: {path}")


def _chosen(names: str, known: Sequence[str]) -> list[str]:
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}")
    return wanted
