"""correct: the table with the labels that were decided in the review, and nothing else changed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

import numpy as np

from neighboragg._core.files import check_outputs, staged_files
from neighboragg._core.packages import publish
from neighboragg._data.folder import FolderSource, move_images, planned_moves
from neighboragg._data.open import Table, format_of, open_source
from neighboragg._data.parquet import check_apart
from neighboragg._data.source import Source
from neighboragg._review.export import export_labels
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.labels import AuditFiles, Origin, ReviewItem, check_not_input, load_review_set


@dataclass(frozen=True)
class Correction:
    """What :func:`correct` wrote."""

    source: str
    output: Path
    n_changed: int
    n_dropped: int
    n_moved: int = 0
    source_changed: bool = False


def correct(
    review: str | PathLike[str] = "suspicious.csv",
    output: str | PathLike[str] | None = None,
    *,
    source: Any = None,
    move: bool = False,
    overwrite: bool = False,
) -> Correction:
    """Write a copy of the audited table with the labels that were decided in the review.

    Parameters
    ----------
    review : path-like, default="suspicious.csv"
        CSV file that the audit wrote; the decisions are next to it.
    output : path-like, default=None
        The corrected copy, in the format of the table; ``corrected`` with its suffix if None. For several Parquet
        files, a new folder with a file for each of them. For a folder of images, a CSV file with the columns image,
        label and folder.
    source : path-like, list of these or Table, default=None
        Where the table is now, if it has moved since the audit.
    move : bool, default=False
        Move images of a folder to the folder of their decided label, after the output was written: all of them, or
        none if one cannot. No file is replaced, and excluded images stay.
    overwrite : bool, default=False
        Whether existing outputs may be replaced.

    Returns
    -------
    correction : Correction

    Notes
    -----
    The audit wrote down where the table is, how to read it, and which column holds the labels. A decided row is found
    by its contents, so the table may have been sorted since the audit, and other rows added or removed. If a decided
    row is gone, or one of its cells has changed, nothing is written.

    In text files (CSV, JSON lines) the decided cells are replaced in the text itself and every other byte stays as
    it is, as do byte order marks, line ends and quotes. In Parquet and Feather files all other columns, the types
    and the metadata stay, and a Parquet file without a decided row is copied byte for byte; in Excel workbooks all
    other cells stay. In a folder no image is moved unless `move` is set: where label and folder differ in the file that
    is written, the image is in the wrong folder.

    Examples
    --------
    >>> from neighboragg import correct
    >>> correct("suspicious.csv", "corrected.csv")  # doctest: +SKIP
    Correction(source='labeled.csv', output=PosixPath('corrected.csv'), n_changed=12, n_dropped=1, …)
    """
    files = AuditFiles(Path(review))
    review_path = files.existing_review()
    review_set = load_review_set(review_path)
    if (origin := Origin.read(review_set)) is None:
        raise InvalidInputError(
            f"{review_path} does not name a file to correct, as a data frame was audited.\n"
            "Hint: audit the file itself, or apply the decisions to the frame with "
            "neighboragg._review.export.corrected_labels."
        )
    given = _place(origin, files.flagged) if source is None else source
    if move and not Path(str(given)).is_dir():
        raise InvalidParameterError(
            f"{given} is a table; only images in a folder for each class are moved.\nHint: leave out --move."
        )
    if not files.decisions.exists():
        raise InvalidInputError(f"Nothing has been decided yet.\nHint: neighboragg review {review}")
    data = open_source(given if isinstance(given, Table) else Table(given, **_known_options(origin)))
    target = _checked_output(data, given, output, overwrite=overwrite)
    entries = [
        entry
        for entry in export_labels(files.decisions, review_set)
        if entry["action"] in ("relabel", "exclude")
    ]
    decided = {entry["row"] for entry in entries}
    now = _rows_now(data, [item for item in review_set.items if item.row in decided])
    excluded = [now[entry["row"]] for entry in entries if entry["action"] == "exclude"]
    texts = {
        now[entry["row"]]: entry["decided"]
        for entry in entries
        if entry["action"] == "relabel" and entry["decided"] != entry["given"]
    }
    if move and not isinstance(data, FolderSource):
        raise InvalidParameterError(f"{data.name} is not a folder of images.\nHint: leave out --move.")
    moves = planned_moves(data, texts) if move and isinstance(data, FolderSource) else []
    _write(data.relabeled(origin.label, texts, excluded), target, is_folder=data.is_many)
    move_images(moves)
    changed = data.digest != origin.digest
    return Correction(data.name, target, len(texts), len(excluded), len(moves), changed)


def _place(origin: Origin, flagged: Path) -> str | list[str]:
    """Where the table is: where it was, or next to the audit if both have moved together."""
    if isinstance(origin.path, list) or "://" in origin.path or any(sign in origin.path for sign in "*?["):
        return origin.path
    neighbor = flagged.parent / Path(origin.path).name
    if not Path(origin.path).exists():
        if neighbor.exists():
            return str(neighbor)
        raise InvalidInputError(
            f"There is no {origin.path}, which was audited.\n"
            "Hint: name its new place with --source, or source= in Python."
        )
    inside = os.path.relpath(origin.path)
    return origin.path if inside.startswith("..") else inside


def _known_options(origin: Origin) -> dict[str, Any]:
    return {name: value for name, value in origin.options.items() if name in ("sep", "encoding", "sheet")}


def _checked_output(data: Source, given: Any, output: str | PathLike[str] | None, *, overwrite: bool) -> Path:
    """Where to write; raises if that is the source itself, or exists, or has another format."""
    is_images = isinstance(data, FolderSource)
    suffix = ".csv" if is_images else "" if data.is_many else "".join(Path(data.name).suffixes[-2:])
    target = Path(f"corrected{suffix}" if output is None else output)
    if data.is_many:
        check_apart(given.path if isinstance(given, Table) else given, target)
        if target.exists() and not target.is_dir():
            raise InvalidInputError(f"The output {target} is a file.\nHint: name a folder.")
        if target.exists() and any(target.iterdir()) and not overwrite:
            raise InvalidInputError(
                f"{target} exists already.\nHint: choose another name with -o, or replace it with --overwrite."
            )
        return target
    if is_images and target.suffix.lower() != ".csv":
        raise InvalidInputError(f"The output {target} for a folder of images must end in .csv.")
    if not is_images and format_of(target) is not type(data):
        raise InvalidInputError(
            f"The output {target} must have the format of the table {data.name}, of which it is a copy.\n"
            f"Hint: -o {target.with_suffix(Path(data.name).suffix)}"
        )
    for path in data.files:
        check_not_input(Path(path), target)
    check_outputs(target, overwrite=overwrite)
    return target


def _write(contents: Iterator[tuple[str, bytes]], target: Path, *, is_folder: bool) -> None:
    """Write one file, or all files of a folder: whole or not at all."""
    if not is_folder:
        with staged_files() as stage:
            for _, raw in contents:
                stage(target).write_bytes(raw)
        return
    partial = target.resolve().with_name(f".{target.name}.{token_hex(4)}")
    try:
        for name, raw in contents:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).write_bytes(raw)
        written = {path.relative_to(partial) for path in partial.rglob("*") if path.is_file()}
        there = {path.relative_to(target) for path in target.rglob("*") if path.is_file()}
        if others := sorted(there - written):
            raise InvalidInputError(
                f"{target} contains other files, such as {others[0]}.\nHint: choose another folder with -o."
            )
        if there:
            rmtree(target)
        elif target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        rmtree(partial, ignore_errors=True)


def _rows_now(data: Source, items: Sequence[ReviewItem]) -> dict[int, int]:
    """Where the decided rows are now; raises if one is not to be found as it was."""
    there = np.sort(np.array([item.row for item in items if item.row < len(data)], dtype=np.intp))
    digests = dict(zip(there.tolist(), data.digests_of(there), strict=True))
    now = {item.row: item.row for item in items if digests.get(item.row) == item.digest}
    if len(now) < len(items):
        free: dict[str, list[int]] = {}
        every = data.digests_of(np.arange(len(data)))
        for row in sorted(set(range(len(data))) - set(now.values()), reverse=True):
            free.setdefault(every[row], []).append(row)
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
    return now


publish(globals())
