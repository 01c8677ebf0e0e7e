"""`neighboragg audit`, `review` and `correct`."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from neighboragg._cli.console import (
    CacheFolder,
    Encoding,
    LabelColumn,
    Overwrite,
    Separator,
    names_of,
    progress_bar,
    warnings_printed,
)
from neighboragg._data.parquet import holds_parquet
from neighboragg._review.app import review as serve_review
from neighboragg._review.correct import correct as run_correct
from neighboragg._run.executor import connect
from neighboragg.exceptions import InvalidParameterError
from neighboragg.labels import Audit, AuditFiles, audit_files
from neighboragg.labels import audit as run_audit


def audit(
    file: Annotated[
        str,
        typer.Argument(
            help="Table with a label column (CSV, JSON lines, Parquet, Feather or Excel), or a folder of pictures "
            "with a folder for each class. Parquet files larger than memory: a folder of them, a pattern in quotes, an "
            "address such as s3://…, or a file with --sample-rows or --cluster."
        ),
    ],
    label: LabelColumn = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Flagged rows as CSV; plots and the review set go beside.")
    ] = Path("suspicious.csv"),
    columns: Annotated[
        str, typer.Option(help="Judge by these columns and no others; separated by commas.")
    ] = "",
    exclude: Annotated[str, typer.Option(help="Do not judge by these columns; separated by commas.")] = "",
    keep: Annotated[
        str,
        typer.Option(
            help="Judge by these columns though they look like an identifier or give the label away; separated by "
            "commas."
        ),
    ] = "",
    text: Annotated[
        str | None, typer.Option(help="Column of texts to judge by, instead of all columns.")
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Vectors to judge by: a matrix (.npy) with a row for each row of the table, or a column of vectors."
        ),
    ] = None,
    proba: Annotated[
        Path | None,
        typer.Option(
            help="Out-of-fold probabilities: a table file whose header names the classes, an .npz file with proba and "
            "classes, or a .npy file with columns in the sorted order of the labels (by value if all are numbers)."
        ),
    ] = None,
    classes: Annotated[
        str, typer.Option(help="Classes of the columns of --proba, separated by commas.")
    ] = "",
    image: Annotated[
        str | None,
        typer.Option(
            help="Column of image paths, relative to the table: shown in the review, and judged by unless there are "
            "--embeddings."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE:CALLABLE",
            help="Judge by its vectors: it takes a list of the texts of --text or of pictures (PIL images) and returns "
            "an array, a row for each. Without it, texts are read by their words, and pictures by a small fixed "
            "descriptor, which is weak.",
        ),
    ] = None,
    cache: CacheFolder = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Keep no vectors, and take none that are kept.")
    ] = False,
    skip_unreadable: Annotated[
        bool,
        typer.Option("--skip-unreadable", help="Go on without pictures that cannot be read, and name them."),
    ] = False,
    split: Annotated[
        str | None, typer.Option(help="Column that says train or test: copies across it are found.")
    ] = None,
    flag: Annotated[
        str,
        typer.Option(
            metavar="estimated|NUMBER|SHARE",
            help="What to flag: the labels that trust is confident are wrong; a number of rows, such as 100; or at "
            "most a share of the correctly labeled rows, such as 0.05.",
        ),
    ] = "estimated",
    sample: Annotated[
        int | None, typer.Option(min=2, help="Judge this many rows drawn at random, instead of all.")
    ] = None,
    n_random: Annotated[
        int | None,
        typer.Option(min=0, help="Rows not flagged to review too, for the errors left; 50 if not given."),
    ] = None,
    sample_rows: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Read Parquet files part by part, and judge all rows against this many drawn at random; 50,000 for a "
            "folder or a pattern.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Read Parquet files on a Dask cluster: 'local' for processes on this machine, or tcp://host:port of "
            "a scheduler."
        ),
    ] = None,
    part_rows: Annotated[
        int, typer.Option(min=1, help="Most rows of Parquet files in memory at a time, for each process.")
    ] = 65_536,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Threads; -1 takes every core.")] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    overwrite: Overwrite = False,
) -> None:
    """Find suspicious labels: ranked, with the suggested label and the reasons."""
    rule = _rule(flag)
    if sample_rows is not None or cluster is not None or holds_parquet(file):
        _refuse_for_large_files(
            "needs all rows in memory, so not for Parquet files that are read part by part",
            {
                "--text": text,
                "--embeddings": embeddings,
                "--proba": proba,
                "--classes": classes or None,
                "--image": image,
                "--encoder": encoder,
                "--split": split,
                "--flag": flag if isinstance(rule, int) else None,
                "--sample": sample,
            },
        )
        _refuse_for_large_files(
            "does nothing for Parquet files that are read part by part",
            {
                "--n-random": n_random,
                "--sep": sep,
                "--encoding": encoding,
                "--skip-unreadable": skip_unreadable or None,
                "--cache": cache,
                "--no-cache": no_cache or None,
            },
        )
        if label is None:
            raise InvalidParameterError(
                "A table needs the name of its label column.\nHint: --label name, or label= in Python."
            )
        console = Console()
        with warnings_printed(console), connect(cluster) as client, progress_bar(console) as progress:
            large = audit_files(
                file,
                output,
                label=label,
                flag=rule,
                columns=names_of(columns) or None,
                exclude=names_of(exclude),
                keep=names_of(keep),
                sample_rows=sample_rows or 50_000,
                client=client,
                part_rows=part_rows,
                n_jobs=jobs,
                random_state=seed,
                overwrite=overwrite,
                progress=progress,
            )
        said = f"{large.summary()}\n\nFlagged rows: {large.flagged}\nAll rows:     {large.judged.path}"
        console.print(said, soft_wrap=True, markup=False, highlight=False)
        return
    AuditFiles(output).check(file, overwrite=overwrite)
    if encoder is not None and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # an encoder of one's own lies beside the data, not in a package
    console = Console()
    with warnings_printed(console), progress_bar(console) as progress:
        found = run_audit(
            Path(file),
            label=label,
            flag=rule,
            columns=names_of(columns) or None,
            exclude=names_of(exclude),
            keep=names_of(keep),
            text=text,
            embeddings=embeddings,
            proba=proba,
            classes=names_of(classes) or None,
            image=image,
            encoder=encoder,
            cache=not no_cache and (cache or True),
            skip_unreadable=skip_unreadable,
            split=split,
            sample=sample,
            n_random=50 if n_random is None else n_random,
            sep=sep,
            encoding=encoding,
            random_state=seed,
            n_jobs=jobs,
            progress=progress,
        )
        files = found.write(output, overwrite=overwrite)
    console.print(_report(found, files, Path(file), image), soft_wrap=True, markup=False, highlight=False)


def _refuse_for_large_files(why: str, given: dict[str, Any]) -> None:
    """Raise if an option is given that would be ignored."""
    if named := [name for name, value in given.items() if value is not None]:
        raise InvalidParameterError(
            f"{named[0]} {why}.\nHint: leave it out; or pass one file, without --sample-rows and --cluster."
        )


def _rule(flag: str) -> str | int | float:
    """What to flag, from the text of the option."""
    if flag == "estimated":
        return flag
    if flag.isdecimal() and int(flag) > 0:
        return int(flag)
    with suppress(ValueError):
        if 0 < float(flag) < 1:
            return float(flag)
    raise InvalidParameterError(
        f"--flag must be 'estimated', a number of rows such as 100, or a share of the correctly labeled rows such as "
        f"0.05. Got {flag!r}."
    )


def _report(found: Audit, files: AuditFiles, table: Path, image: str | None) -> str:
    """What was found, and how to go on."""
    pictures = table if table.is_dir() else table.parent
    shown = image is not None or table.is_dir()
    elsewhere = shown and files.flagged.parent.resolve() != pictures.resolve()
    folder = f" --images {shlex.quote(str(pictures))}" if elsewhere else ""
    return (
        f"{found.summary()}\n\nFlagged rows: {files.flagged}\nOther finds:  {files.findings}\n"
        f"Plots:        {files.plot}\n"
        f"Review them:  neighboragg review {files.flagged}{folder}"
    )


def review(
    file: Annotated[Path, typer.Argument(help="CSV file that `neighboragg audit` wrote.")],
    images: Annotated[
        Path | None,
        typer.Option(help="Folder that image paths are relative to; that of the file if not given."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name under which browsers may call too, for instance behind a proxy. Repeatable."
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Review flagged labels in the browser; each decision is saved immediately, beside the file."""
    serve_review(
        AuditFiles(file).existing_review(),
        host=host,
        port=port,
        open_browser=browser,
        image_root=images,
        allow_hosts=allow_host or (),
    )


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
