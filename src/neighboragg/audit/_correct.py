"""correct: the table with the labels that were decided in the review, and nothing else changed."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from neighboragg.audit._files import AuditFiles, check_not_input
from neighboragg.exceptions import InvalidInputError
from neighboragg.review import corrected_labels, excluded_rows, load_review_set
from neighboragg.tables import check_outputs, format_of, read_table, staged_files

__all__ = ["Correction", "correct"]


@dataclass(frozen=True)
class Correction:
    """What :func:`correct` wrote.

    Parameters
    ----------
    output : Path
    n_changed : int
        Labels that differ from those of the table.
    n_dropped : int
        Rows that were excluded.
    """

    output: Path
    n_changed: int
    n_dropped: int


def correct(
    table: str | PathLike[str],
    *,
    label: str,
    review: str | PathLike[str] = "suspicious.csv",
    output: str | PathLike[str] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
) -> Correction:
    """Write a copy of a table with the labels that were decided in the review.

    Parameters
    ----------
    table : path-like
        The table that was audited.
    label : str
        Name of the label column.
    review : path-like, default="suspicious.csv"
        CSV file that the audit wrote; the decisions are beside it.
    output : path-like, default=None
        The corrected copy, in the format of the table; ``corrected`` with its suffix if None.
    sep, encoding : str, default=None
        As for :func:`neighboragg.tables.read_table`.
    overwrite : bool, default=False
        Whether an existing output may be replaced.

    Returns
    -------
    correction : Correction

    Notes
    -----
    In text files (CSV, JSON lines) the decided cells are replaced in the text itself and every other byte stays as
    it is, as do byte order marks, line ends and quotes. In Parquet and Feather files all other columns, the types
    and the metadata stay; in Excel workbooks all other cells.
    """
    table = Path(table)
    output = Path(f"corrected{''.join(table.suffixes[-2:])}" if output is None else output)
    files = AuditFiles(Path(review))
    review_path = files.existing_review()
    if format_of(output) is not format_of(table):
        raise InvalidInputError(
            f"The output {output} must have the format of the table {table}, of which it is a copy.\n"
            f"Hint: -o {output.with_suffix(table.suffix)}"
        )
    check_not_input(table, output)
    check_outputs(output, overwrite=overwrite)
    if not files.decisions.exists():
        raise InvalidInputError(f"Nothing has been decided yet.\nHint: neighboragg review {review}")
    data = read_table(table, label, sep=sep, encoding=encoding)
    review_set = load_review_set(review_path)
    decided = corrected_labels(data.labels, files.decisions, review_set)
    excluded = excluded_rows(files.decisions, review_set)
    changed = np.flatnonzero(decided != data.labels)
    contents = data.relabeled({int(row): str(decided[row]) for row in changed}, excluded.tolist())
    with staged_files() as stage:
        stage(output).write_bytes(contents)
    return Correction(output, len(changed), len(excluded))
