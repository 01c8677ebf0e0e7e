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
            help="Table with a label column (CSV, JSON lines, Excel, Feather or Parquet), or a folder with one "
            "subfolder of images per class. Parquet files of any size: a folder, a quoted pattern, or an address "
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
    columns: Annotated[str, typer.Option(help="Use only these columns; separated by commas.")] = "",
    ignore: Annotated[str, typer.Option(help="Do not use these columns; separated by commas.")] = "",
    use: Annotated[
        str,
        typer.Option(
            help="Use these columns even if they look like an identifier or reveal the label; separated by commas."
        ),
    ] = "",
    text: Annotated[str | None, typer.Option(help="Column of texts to use instead of all columns.")] = None,
    image: Annotated[
        str | None,
        typer.Option(help="Column of image paths to use, relative to the folder of the table."),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            help="Vectors to use: a matrix (.npy) with one row per row of the table, or a column of vectors."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE:CALLABLE",
            help="Function that turns a list of texts (--text) or images (PIL) into an array with one row each. "
            "Without it, texts are represented by their words, and images by a small fixed descriptor, which is weak.",
        ),
    ] = None,
    proba: Annotated[
        Path | None,
        typer.Option(
            help="Out-of-fold probabilities: a table file whose header names the classes, an .npz file with proba and "
            "classes, or a .npy file with columns in the order of the sorted labels (by value if all are numbers)."
        ),
    ] = None,
    flag: Annotated[
        str,
        typer.Option(
            metavar="estimated|NUMBER|SHARE|fdr:SHARE",
            help="Labels to flag: those that are confidently wrong; a number of rows, such as 100; at most a "
            "share of the correctly labeled rows, such as 0.05; or with at most a share of false alarms among the "
            "flags, such as fdr:0.1, which needs --verified.",
        ),
    ] = "estimated",
    verified: Annotated[
        str | None,
        typer.Option(
            help="Column that marks rows whose labels were verified to be right (1, true, yes or x)."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Column that names train or test, to find copies across the split.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=2, help="Number of random rows to fit on; the fit scores all others. Default: 50,000."
        ),
    ] = None,
    n_random: Annotated[
        int, typer.Option(min=0, help="Unflagged rows to add to the review, to estimate the errors left.")
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
        sys.path.insert(0, str(Path.cwd()))  # a user's encoder is next to the data, not in a package
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
    """The rule for the text of the option."""
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
    """The by-object for the options; raises if an option would have no effect."""
    chosen = {"--text": text, "--image": image, "--embeddings": embeddings}
    named = [name for name, value in chosen.items() if value is not None]
    if len(named) > 1 or (encoder is not None and embeddings is not None):
        names = [*named, *(["--encoder"] if encoder is not None else [])]
        raise InvalidParameterError(f"{' and '.join(names)} cannot be combined.\nHint: pass one of them.")
    if (columns or use or ignore) and (named or encoder is not None):
        raise InvalidParameterError(
            f"With {(named or ['--encoder'])[0]}, columns cannot be chosen.\n"
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
    """A summary of the audit and the next commands."""
    name = shlex.quote(str(files.flagged))
    return (
        f"{found.summary()}\n\nFlagged rows: {files.flagged}\nFindings:     {files.findings}\n"
        f"Plots:        {files.plot}\nReview them:  neighboragg review {name}\n"
        f"Correct them: neighboragg correct {name}"
    )


def review(
    file: Annotated[Path, typer.Argument(help="CSV file that `neighboragg audit` wrote.")] = Path(
        "suspicious.csv"
    ),
    images: Annotated[
        Path | None,
        typer.Option(
            help="Folder that image paths are relative to. Default: the folder of the audited table."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable only from this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.")] = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Additional host name that browsers may use, for instance behind a proxy. Repeatable."
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
            help="The corrected table, in the same format. Default: 'corrected' with the suffix of the table. For "
            "several Parquet files, a folder; for a folder of images, a CSV file with the label of every image.",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="New path of the table, if it has moved since the audit.")
    ] = None,
    move: Annotated[
        bool,
        typer.Option(
            "--move",
            help="Move images to the folder of their decided label: all of them, or none if one cannot be moved.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the table with the labels decided in the review; nothing else changes."""
    done = run_correct(review, output, source=source, move=move, overwrite=overwrite)
    moved = f", {done.n_moved:,} images moved" if done.n_moved else ""
    dropped = f", {done.n_dropped:,} rows dropped" if done.n_dropped else ""
    lines = [f"{done.n_changed:,} labels changed{dropped}{moved}: {done.output}"]
    if done.source_changed:
        lines.insert(
            0, f"{done.source} has changed since the audit; decided rows were matched by their contents."
        )
    for line in lines:
        Console().print(line, soft_wrap=True, markup=False, highlight=False)
