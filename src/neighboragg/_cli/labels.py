"""`neighboragg audit`, `review` and `correct`."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from neighboragg._cli.console import (
    Cluster,
    DayFirst,
    Decimal,
    Encoding,
    Jobs,
    LabelColumn,
    Overwrite,
    Separator,
    Sheet,
    Thousands,
    names_of,
    progress_bar,
    warnings_printed,
)
from neighboragg._data.open import Table
from neighboragg._review.app import review as serve_review
from neighboragg._review.correct import correct as run_correct
from neighboragg._run.executor import connect
from neighboragg.exceptions import InvalidParameterError
from neighboragg.labels import FDR, Audit, AuditFiles, Columns, Embeddings, Images, Text
from neighboragg.labels import audit as run_audit


def audit(
    source: Annotated[
        str,
        typer.Argument(
            help="Table with a label column (CSV, JSON lines, Excel, Feather or Parquet), or a folder with a folder of "
            "images for each class. Parquet files of any size: a folder of them, a pattern in quotes, or an address "
            "such as s3://…."
        ),
    ],
    label: LabelColumn = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Flagged rows as CSV; the plot and the review set go next to it."
        ),
    ] = Path("suspicious.csv"),
    columns: Annotated[
        str, typer.Option(help="Judge by these columns and no others; separated by commas.")
    ] = "",
    ignore: Annotated[str, typer.Option(help="Do not judge by these columns; separated by commas.")] = "",
    use: Annotated[
        str,
        typer.Option(
            help="Judge by these columns although they look like an identifier or give the label away; separated by "
            "commas."
        ),
    ] = "",
    text: Annotated[
        str | None, typer.Option(help="Column of texts to judge by, instead of all columns.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(help="Column of image paths to judge by, relative to the folder of the table."),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            help="Vectors to judge by: a matrix (.npy) with a row for each row of the table, or a column of vectors."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE:CALLABLE",
            help="Judge by its vectors: it takes a list of the texts of --text or of images (PIL) and returns "
            "an array, a row for each. Without it, texts are read by their words, and images by a small fixed "
            "descriptor, which is weak.",
        ),
    ] = None,
    proba: Annotated[
        Path | None,
        typer.Option(
            help="Out-of-fold probabilities: a table file whose header names the classes, an .npz file with proba and "
            "classes, or a .npy file with columns in the sorted order of the labels (by value if all are numbers)."
        ),
    ] = None,
    flag: Annotated[
        str,
        typer.Option(
            metavar="estimated|NUMBER|SHARE|fdr:SHARE",
            help="What to flag: the labels that trust is confident are wrong; a number of rows, such as 100; at most a "
            "share of the correctly labeled rows, such as 0.05; or with at most a share of false alarms among the "
            "flags, such as fdr:0.1, which needs --verified.",
        ),
    ] = "estimated",
    verified: Annotated[
        str | None,
        typer.Option(
            help="Column that marks rows whose labels are verified to be right (1, true, yes or x)."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Column that names train or test: copies across it are found.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=2, help="Rows to fit on, drawn at random; all others are scored by them. Default: 50,000."
        ),
    ] = None,
    n_random: Annotated[
        int, typer.Option(min=0, help="Rows not flagged to review too, for the errors left.")
    ] = 50,
    cluster: Cluster = None,
    jobs: Jobs = None,
    sep: Separator = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    dayfirst: DayFirst = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    overwrite: Overwrite = False,
) -> None:
    """Find suspicious labels: ranked, with the suggested label and the reasons."""
    rule = _rule(flag)
    by = _by(names_of(columns), names_of(use), names_of(ignore), text, image, embeddings, encoder)
    files = AuditFiles(output)
    files.check(source, overwrite=overwrite)
    if encoder is not None and "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # an encoder of one's own lies next to the data, not in a package
    console = Console()
    with warnings_printed(console), connect(cluster) as client, progress_bar(console) as progress:
        found = run_audit(
            Table(
                source,
                sep=sep,
                encoding=encoding,
                sheet=sheet,
                dayfirst=dayfirst,
                decimal=decimal,
                thousands=thousands,
            ),
            label,
            by=by,
            proba=proba,
            flag=rule,
            verified=verified,
            split=split,
            sample=sample,
            client=client,
            n_random=n_random,
            n_jobs=jobs,
            progress=progress,
        )
        files = found.write(output, overwrite=overwrite)
    console.print(_report(found, files), soft_wrap=True, markup=False, highlight=False)


def _rule(flag: str) -> Any:
    """What to flag, from the text of the option."""
    if flag == "estimated":
        return flag
    if flag.isdecimal() and int(flag) > 0:
        return int(flag)
    kind, _, share = flag.rpartition(":")
    with suppress(ValueError):
        if kind in ("", "fdr") and 0 < float(share) < 1:
            return FDR(float(share)) if kind else float(share)
    raise InvalidParameterError(
        "--flag must be 'estimated', a number of rows such as 100, a share of the correctly labeled rows such as "
        f"0.05, or a share of false alarms among the flags such as fdr:0.1. Got {flag!r}."
    )


def _by(
    columns: list[str],
    use: list[str],
    ignore: list[str],
    text: str | None,
    image: str | None,
    embeddings: str | None,
    encoder: str | None,
) -> Columns | Text | Images | Embeddings | None:
    """What to judge by, from the options; each of them must have a say."""
    chosen = {"--text": text, "--image": image, "--embeddings": embeddings}
    named = [name for name, value in chosen.items() if value is not None]
    if len(named) > 1 or (encoder is not None and embeddings is not None):
        names = [*named, *(["--encoder"] if encoder is not None else [])]
        raise InvalidParameterError(
            f"Labels are judged by one thing. Got {' and '.join(names)}.\nHint: pass one."
        )
    if (columns or use or ignore) and (named or encoder is not None):
        raise InvalidParameterError(
            f"With {(named or ['--encoder'])[0]}, there are no columns to choose from.\n"
            "Hint: leave out --columns, --use and --ignore."
        )
    if text is not None:
        return Text(text, encoder=encoder)
    if embeddings is not None:
        return Embeddings(embeddings)
    if image is not None or encoder is not None:
        return Images(image, encoder=encoder)
    return Columns(columns or None, use=use, ignore=ignore) if columns or use or ignore else None


def _report(found: Audit, files: AuditFiles) -> str:
    """What was found, and how to go on."""
    name = shlex.quote(str(files.flagged))
    return (
        f"{found.summary()}\n\nFlagged rows: {files.flagged}\nOther finds:  {files.findings}\n"
        f"Plots:        {files.plot}\nReview them:  neighboragg review {name}\n"
        f"Correct them: neighboragg correct {name}"
    )


def review(
    file: Annotated[Path, typer.Argument(help="CSV file that `neighboragg audit` wrote.")] = Path(
        "suspicious.csv"
    ),
    images: Annotated[
        Path | None,
        typer.Option(help="Folder that image paths are relative to; that of the audited table if not given."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name under which browsers may call too, for instance behind a proxy. Repeatable."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Review flagged labels in the browser; each decision is saved immediately, next to the file."""
    AuditFiles(file).existing_review()
    serve_review(file, images=images, host=host, port=port, allow_host=allow_host or (), browser=browser)


def correct(
    review: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV file that `neighboragg audit` wrote.")
    ] = Path("suspicious.csv"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The corrected table, in the format of the table; 'corrected' and its suffix if not given. For "
            "several Parquet files, a folder; for a folder of images, a CSV file with the label of every image.",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the table is now, if it has moved since the audit.")
    ] = None,
    move: Annotated[
        bool,
        typer.Option(
            "--move",
            help="Move images of a folder to the folder of their decided label: all, or none if one cannot.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the table with the labels that were decided in the review; nothing else changes."""
    done = run_correct(review, output, source=source, move=move, overwrite=overwrite)
    moved = f", {done.n_moved:,} images moved" if done.n_moved else ""
    dropped = f", {done.n_dropped:,} rows dropped" if done.n_dropped else ""
    lines = [f"{done.n_changed:,} labels changed{dropped}{moved}: {done.output}"]
    if done.source_changed:
        lines.insert(
            0, f"{done.source} has changed since the audit; decided rows were found by their contents."
        )
    for line in lines:
        Console().print(line, soft_wrap=True, markup=False, highlight=False)
