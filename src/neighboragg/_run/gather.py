"""Rows, labels and results gathered part by part."""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

import joblib
import numpy as np

import neighboragg
from neighboragg._core.checks import check_labels
from neighboragg._core.files import home
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import add_total, advance
from neighboragg._core.types import Array, IntArray
from neighboragg._data.arrow import as_frame, plain_columns
from neighboragg._data.parquet import PURPOSE, Part, read_part
from neighboragg._run.executor import Executor
from neighboragg.exceptions import InvalidInputError, PartsFailedError


@dataclass(frozen=True)
class _ReadRows:
    """Some columns of chosen rows of a part, by their number in all files together."""

    columns: tuple[str, ...]
    wanted: IntArray | None = None

    def __call__(self, part: Part) -> Any:
        """An Arrow table."""
        table = read_part(part, self.columns)
        return table if self.wanted is None else table.take(places_in(self.wanted, part))


def read_labels(executor: Executor, parts: Sequence[Part], label: str) -> Array:
    """The label of every row, in order."""
    tables = [plain_columns(table) for table in _in_order(executor, _ReadRows((label,)), parts)]
    labels = [labels_of(table, label, part) for table, part in zip(tables, parts, strict=True)]
    _check_types(
        tables, parts
    )  # 1 in one file and 1.0 or "1" in another would be confused or become two classes
    return np.concatenate(labels)


def read_rows(
    executor: Executor, parts: Sequence[Part], columns: tuple[str, ...], wanted: IntArray | None = None
) -> Any:
    """Columns of the rows with those numbers, which ascend, or of all, as an Arrow table."""
    arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
    tables = [plain_columns(table) for table in _in_order(executor, _ReadRows(columns, wanted), parts)]
    _check_types(tables, parts)
    return arrow.concat_tables(tables)


def labels_of(table: Any, label: str, part: Part) -> Array:
    """The labels in the table of a part; raises if one is missing."""
    column = as_frame(table.select([label]))[label]
    if (missing := column.isna()).any():
        raise InvalidInputError(
            f"The label is missing in row {part.start + int(missing.to_numpy().argmax())} of {part.file.path}.\n"
            "Hint: drop the rows without a label."
        )
    given: Array = column.to_numpy()
    try:
        if given.dtype.kind in "mM":
            raise TypeError  # in memory they may be classes; a detector or model with them could not be saved
        return check_labels(given, "the label column", "a run on files")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Column {label!r} of {part.file.path} does not contain classes, but values of the type "
            f"{table.schema.field(label).type} such as {given[0]}.\nHint: write labels as texts or whole numbers."
        ) from error


def places_in(rows: IntArray, part: Part) -> IntArray:
    """Which rows of a part are among those with the given numbers, which ascend."""
    first, last = np.searchsorted(rows, [part.first, part.first + part.stop - part.start])
    return rows[first:last] - part.first


def _check_types(tables: Sequence[Any], parts: Sequence[Part]) -> None:
    """Raise if a column is of one type in a part and of another in the first."""
    for table, part in zip(tables, parts, strict=True):
        for field, expected in zip(table.schema, tables[0].schema, strict=True):
            if field.type != expected.type:
                raise InvalidInputError(
                    f"Column {field.name!r} is of the type {field.type} in {part.file.path}, and of the type "
                    f"{expected.type} in {parts[0].file.path}.\nHint: write all files with the same types."
                )


def _in_order(executor: Executor, work: Any, parts: Sequence[Part]) -> list[Any]:
    """The results of all parts, in order; raises if any failed."""
    found: dict[int, Any] = {}
    failed: dict[str, str] = {}
    for outcome in executor.run(work, parts):
        if outcome.error is None:
            found[outcome.item.number] = outcome.value
        else:
            failed[outcome.item.place] = outcome.error
    if failed:
        place, error = min(failed.items())
        raise InvalidInputError(
            f"{len(failed)} of {len(parts)} parts cannot be read, such as {place}: {error}"
        )
    return [found[part.number] for part in parts]


def gather(
    work: Callable[[Any], dict[str, Array]],
    spans: Sequence[tuple[int, int]],
    executor: Executor,
    identity: tuple[Any, ...],
) -> list[dict[str, Array]]:
    """Compute arrays for ranges of rows, in order.

    Finished ranges are saved until all are done, to resume an interrupted run. `identity` contains everything the
    arrays depend on; if it is empty, nothing is saved.
    """
    folder = _folder_for(identity) if identity else None
    found = {span: arrays for span in spans if (arrays := _kept(folder, span)) is not None}
    missing = [span for span in spans if span not in found]
    add_total(len(missing))
    failed: dict[str, str] = {}
    for outcome in executor.run(work, missing):
        if outcome.error is not None:
            failed[f"rows {outcome.item[0]} to {outcome.item[1] - 1}"] = outcome.error
        else:
            found[outcome.item] = outcome.value
            _keep(folder, outcome.item, outcome.value)
        advance()
    if failed and folder is not None:
        raise PartsFailedError(failed, len(spans), folder)
    if failed:
        place, error = min(failed.items())
        raise InvalidInputError(f"{len(failed)} of {len(spans)} parts failed, such as {place}: {error}")
    if folder is not None:
        rmtree(folder, ignore_errors=True)
    return [found[span] for span in spans]


def _folder_for(identity: tuple[Any, ...]) -> Path | None:
    """The folder for the parts of a run; None if their identity cannot be hashed."""
    try:
        digest = joblib.hash((neighboragg.__version__, *identity), hash_name="sha1")
    except Exception:  # a callable of the user that cannot be pickled
        return None
    return home() / "audits" / digest


def _kept(folder: Path | None, span: tuple[int, int]) -> dict[str, Array] | None:
    """The arrays of a range from an earlier run; None if missing or damaged."""
    if folder is None:
        return None
    try:
        with np.load(folder / f"{span[0]}-{span[1]}.npz", allow_pickle=False) as stored:
            return dict(stored)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _keep(folder: Path | None, span: tuple[int, int], arrays: dict[str, Array]) -> None:
    """Save the arrays of a range; ignore a folder that cannot be written."""
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".{token_hex(4)}.npz"
        np.savez(partial, allow_pickle=False, **arrays)
        partial.replace(folder / f"{span[0]}-{span[1]}.npz")
