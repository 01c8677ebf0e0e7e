"""correct: the table with the labels that were decided in the review, and nothing else changed."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from neighboragg.audit._files import AuditFiles, check_not_input
from neighboragg.audit._moves import move_pictures, planned_moves
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.review import ReviewSet, corrected_labels, excluded_rows, load_review_set
from neighboragg.tables import FolderTable, check_outputs, format_of, read_table, staged_files

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
    n_moved : int, default=0
        Pictures that were moved to another folder.
    """

    output: Path
    n_changed: int
    n_dropped: int
    n_moved: int = 0


def correct(
    table: str | PathLike[str],
    *,
    label: str | None = None,
    review: str | PathLike[str] = "suspicious.csv",
    output: str | PathLike[str] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
    move: bool = False,
) -> Correction:
    """Write a copy of a table with the labels that were decided in the review.

    Parameters
    ----------
    table : path-like
        The table that was audited, or the folder of pictures.
    label : str, default=None
        Name of the label column, which a table needs and a folder has not.
    review : path-like, default="suspicious.csv"
        CSV file that the audit wrote; the decisions are beside it.
    output : path-like, default=None
        The corrected copy, in the format of the table; ``corrected`` with its suffix if None. For a folder
        of pictures, a CSV file with the columns image, label and folder; ``corrected.csv`` if None.
    sep, encoding : str, default=None
        As for :func:`neighboragg.tables.read_table`.
    overwrite : bool, default=False
        Whether an existing output may be replaced.
    move : bool, default=False
        Move pictures of a folder to the folder of their decided label, after the output was written: all of them, or
        none if one cannot. No file is replaced, and excluded pictures stay.

    Returns
    -------
    correction : Correction

    Notes
    -----
    In text files (CSV, JSON lines) the decided cells are replaced in the text itself and every other byte stays as
    it is, as do byte order marks, line ends and quotes. In Parquet and Feather files all other columns, the types
    and the metadata stay; in Excel workbooks all other cells. In a folder no picture is moved unless asked: where label
    and folder differ in the file that is written, the picture is in the wrong folder.
    """
    table = Path(table)
    is_folder = table.is_dir()
    if label is None and not is_folder:
        raise InvalidParameterError(
            "A table needs the name of its label column.\nHint: --label name, or label= in Python."
        )
    if move and not is_folder:
        raise InvalidParameterError(
            f"{table} is a table; only pictures in a folder for each class are moved.\nHint: leave out --move."
        )
    suffix = ".csv" if is_folder else "".join(table.suffixes[-2:])
    output = Path(f"corrected{suffix}" if output is None else output)
    files = AuditFiles(Path(review))
    review_path = files.existing_review()
    if is_folder:
        if output.suffix.lower() != ".csv":
            raise InvalidInputError(f"The output {output} for a folder of pictures must end in .csv.")
    elif format_of(output) is not format_of(table):
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
    if isinstance(data, FolderTable):
        _check_same_pictures(data, review_set)
    decided = corrected_labels(data.labels, files.decisions, review_set)
    excluded = excluded_rows(files.decisions, review_set)
    texts = {int(row): str(decided[row]) for row in np.flatnonzero(decided != data.labels)}
    moves = planned_moves(data, texts) if move and isinstance(data, FolderTable) else []
    contents = data.relabeled(texts, excluded.tolist())
    with staged_files() as stage:
        stage(output).write_bytes(contents)
    move_pictures(moves)
    return Correction(output, len(texts), len(excluded), len(moves))


def _check_same_pictures(data: FolderTable, review_set: ReviewSet) -> None:
    """Raise if pictures were added, removed or moved since the audit, so that rows are other pictures now."""
    n, now = review_set.n_rows, dict(enumerate(data.pictures))
    for item in review_set.items:
        if len(data) != n or now[item.row] != item.content.get("image"):
            raise InvalidInputError(
                f"{data.name} is not as it was in the audit: it had {n:,} pictures, with {item.content.get('image')} "
                f"in place {item.row}; it has {len(data):,} now, with {now.get(item.row, 'none')} there.\n"
                "Hint: bring back the pictures that were moved, or audit the folder again."
            )
