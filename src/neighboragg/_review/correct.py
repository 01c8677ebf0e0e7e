"""correct: the table with the labels that were decided in the review, and nothing else changed."""

from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from neighboragg._core.files import check_outputs, staged_files
from neighboragg._core.packages import publish
from neighboragg._data.folder import FolderTable, move_pictures, planned_moves
from neighboragg._data.open import format_of, read_table
from neighboragg._data.source import Table
from neighboragg._review.export import export_labels
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.labels import AuditFiles, ReviewSet, check_not_input, load_review_set


@dataclass(frozen=True)
class Correction:
    """What :func:`correct` wrote."""

    output: Path
    n_changed: int
    n_dropped: int
    n_moved: int = 0
    table_changed: bool = False


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
        As for :func:`neighboragg._data.open.read_table`.
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
    A decided row is found by its contents, so the table may have been sorted since the audit, and other rows added or
    removed. If a decided row is gone, or one of its cells has changed, nothing is written.

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
    if not review_set.source:
        raise InvalidInputError(
            f"{review_path} does not say by what its rows are found in a file, as a data frame was audited.\n"
            "Hint: audit the file itself, or apply the decisions to the frame with "
            "neighboragg._review.export.corrected_labels."
        )
    entries = [
        entry
        for entry in export_labels(files.decisions, review_set)
        if entry["action"] in ("relabel", "exclude")
    ]
    now = _rows_now(data, review_set, {entry["row"] for entry in entries}, str(data.label))
    excluded = [now[entry["row"]] for entry in entries if entry["action"] == "exclude"]
    texts = {
        now[entry["row"]]: entry["decided"]
        for entry in entries
        if entry["action"] == "relabel" and entry["decided"] != entry["given"]
    }
    moves = planned_moves(data, texts) if move and isinstance(data, FolderTable) else []
    contents = data.relabeled(texts, excluded)
    with staged_files() as stage:
        stage(output).write_bytes(contents)
    move_pictures(moves)
    return Correction(output, len(texts), len(excluded), len(moves), data.digest != review_set.source)


def _rows_now(data: Table, review_set: ReviewSet, decided: Collection[int], label: str) -> dict[int, int]:
    """Where the decided rows are now; raises if one is not to be found as it was."""
    items = [item for item in review_set.items if item.row in decided]
    now = {item.row: item.row for item in items if _holds(data, item.row, item.digest)}
    if len(now) < len(items):
        free: dict[str, list[int]] = {}
        for row in sorted(set(range(len(data))) - set(now.values()), reverse=True):
            free.setdefault(data.digest_of(row), []).append(row)
        for item in items:
            if item.row in now:
                continue
            if not free.get(item.digest):
                raise InvalidInputError(
                    f"{item.title} of the audit, labeled {item.given!r}, is not in {data.name} any more, or one of its "
                    "cells has changed. Nothing was written.\n"
                    "Hint: correct the table that was audited, or audit this one."
                )
            now[item.row] = free[item.digest].pop()
    for item in items:
        if (given := str(data.labels[now[item.row]])) != item.given:
            raise InvalidInputError(
                f"{data.place_of(now[item.row])} of {data.name} is labeled {given!r} in the column {label!r}, but "
                f"{item.given!r} was reviewed.\nHint: name the label column that was audited."
            )
    return now


def _holds(data: Table, row: int, digest: str) -> bool:
    return row < len(data) and data.digest_of(row) == digest


publish(globals())
