"""`python -m benchmarks`: the paper's tables and figures next to ours, and every script of this folder."""

import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

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

from benchmarks import paper
from benchmarks import shift as shifts
from benchmarks.runs import Results
from neighboragg._cli.console import progress_bar

__all__ = ["bench", "main"]

bench = typer.Typer(help="Run a benchmark: the paper's tables and ours.", no_args_is_help=True)

Seeds = Annotated[int, typer.Option(min=1, help="Random splits.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 takes every core that memory allows.")]
Folder = Annotated[
    Path, typer.Option("--output", "-o", help="Folder of the results; finished cells are kept there.")
]
Names = Annotated[str, typer.Option(help="Names, separated by commas; all if empty.")]
DEFAULT_FOLDER = Path("bench-results")


@contextmanager
def cells_bar(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for a known number of cells, as a function of those done and all."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        bar = progress.add_task("cells", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@bench.command()
def table1(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, bases: Names = "") -> None:
    """Three data sets × LR, RF, MLP and boosting × all methods, beside the paper's Table 1."""
    chosen = _chosen(bases, paper.TABLE1_BASES)
    with cells_bar(Console()) as progress:
        results = paper.table1(output, bases=chosen, n_splits=seeds, n_jobs=jobs, progress=progress)
    _show(results, output / "table1")


@bench.command()
def table2(
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the methods.")] = 5,
    output: Folder = DEFAULT_FOLDER,
    sets: Annotated[str, typer.Option(help="Data sets, separated by commas; all if empty.")] = "",
    arch: Annotated[
        str | None, typer.Option(help="Network for all sets: cnn, resnet20, resnet18 or resnet50.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Length of the training.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=100, help="Number of training and of test images to use.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="A method to compute; may be repeated. All by default.")
    ] = None,
) -> None:
    """MNIST, Fashion-MNIST and CIFAR-10 × all methods on networks trained here, beside the paper's Table 2."""
    from benchmarks import images  # PyTorch takes a while to import

    console = Console()
    chosen = _chosen(sets, tuple(images.TABLE2_SETS))
    if unknown := [name for name in method or () if name not in images.IMAGE_METHODS]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(map(repr, images.IMAGE_METHODS))}.")
    with progress_bar(console) as progress:
        results = images.table2(
            output,
            sets=chosen,
            methods=method or images.IMAGE_METHODS,
            architecture=arch,
            epochs=epochs,
            limit=limit,
            n_seeds=seeds,
            progress=progress,
        )
    _show(results, output / "table2")


@bench.command()
def ablation(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, bases: Names = "") -> None:
    """Seven data sets: NeighOnly, ProbOnly, Trust Score, the paper's network and the pool."""
    chosen = _chosen(bases, paper.PAPER_BASES)
    with cells_bar(Console()) as progress:
        results = paper.ablation(output, bases=chosen, n_splits=seeds, n_jobs=jobs, progress=progress)
    _show(results, output / "ablation")


@bench.command()
def sensitivity(seeds: Seeds = 5, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER, most: int = 20) -> None:
    """K from 1 to 20 on CardDefault with logistic regression, as in the paper's appendix."""
    with cells_bar(Console()) as progress:
        path = paper.sensitivity(output, most=most, n_splits=seeds, n_jobs=jobs, progress=progress)
    Console().print(f"Written: {path}")


@bench.command()
def mislabel(seeds: Seeds = 1, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER) -> None:
    """Labels made wrong on purpose: ours against cleanlab, kNN and classifier disagreement."""
    with cells_bar(Console()) as progress:
        results = paper.label_noise(output, n_splits=seeds, n_jobs=jobs, progress=progress)
    _show(results, output / "mislabel")


@bench.command()
def shift(seeds: Seeds = 3, jobs: Jobs = -1, output: Folder = DEFAULT_FOLDER) -> None:
    """Rows unlike those seen: unknown and rare classes, noise, rotation, other groups of people."""
    with cells_bar(Console()) as progress:
        results = shifts.shift(output, n_splits=seeds, n_jobs=jobs, progress=progress)
    _show(results, output / "shift")


def _show(results: Results, stem: Path) -> None:
    console = Console()
    for grid in results.summaries():
        console.print(Markdown(grid.to_markdown()))
    for path in results.write(stem):
        console.print(f"Written: {path}")


def _chosen(names: str, known: Sequence[str]) -> list[str]:
    wanted = [name.strip() for name in names.split(",") if name.strip()] or list(known)
    for name in wanted:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}")
    return wanted


def main() -> None:
    """Run a subcommand, or a script of this folder by its name, with the arguments that follow."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name.isidentifier() and (Path(__file__).parent / f"{name}.py").is_file() and not name.startswith("_"):
        sys.argv = sys.argv[1:]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    else:
        bench()


if __name__ == "__main__":
    main()
