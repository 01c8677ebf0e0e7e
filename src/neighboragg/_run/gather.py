"""Rows and labels gathered from many Parquet files, part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from neighboragg._core.checks import check_integer, check_labels
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, ArrayLike, IntArray
from neighboragg._data.arrow import as_frame, listed_names, plain_columns
from neighboragg._data.parquet import PURPOSE, Part, column_names, cut, find_files, first_with_rows, read_part
from neighboragg._run.executor import Executor, executor_for
from neighboragg.exceptions import InvalidInputError


@dataclass(frozen=True)
class _ReadRows:
    """Some columns of those rows of a part that are wanted, by their number in all files together."""

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
    _check_types(tables, parts)  # 1 in one file and 1.0 or "1" in another would be mixed up, or two classes
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
    """The labels in the table of a part, none of which may be missing."""
    column = as_frame(table.select([label]))[label]
    if (missing := column.isna()).any():
        raise InvalidInputError(
            f"There is no label in row {part.start + int(missing.to_numpy().argmax())} of {part.file.path}.\n"
            "Hint: drop the rows without a label."
        )
    given: Array = column.to_numpy()
    try:
        if given.dtype.kind in "mM":
            raise TypeError  # in memory they may be classes; a detector or model with them could not be saved
        return check_labels(given, "the label column", "a run on files")
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Column {label!r} of {part.file.path} holds no classes, but values of the type "
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
    """What comes of all parts, in their order; raises if any failed."""
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


def take_rows(
    source: Any,
    rows: int | ArrayLike,
    *,
    columns: Sequence[str] | None = None,
    client: Any = None,
    part_rows: int = 65_536,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Any:
    """Read some rows of Parquet files of any size."""
    check_integer(part_rows, "part_rows", "take_rows", minimum=1)
    files = find_files(source)
    wanted = _wanted(rows, sum(file.rows for file in files), random_state)
    names = listed_names(columns, "columns", "take_rows") or tuple(column_names(first_with_rows(files)))
    parts = cut(files, part_rows)
    needed = [part for part in parts if len(places_in(wanted, part))]
    frame = as_frame(read_rows(executor_for(client, n_jobs), needed or parts[:1], names, wanted))
    return frame.set_index(wanted)


def _wanted(rows: int | ArrayLike, n_rows: int, random_state: int) -> IntArray:
    """Numbers of rows, ascending."""
    if isinstance(rows, bool | Integral):
        n_wanted = min(check_integer(rows, "rows", "take_rows", minimum=1), n_rows)
        return np.sort(np.random.default_rng(random_state).choice(n_rows, n_wanted, replace=False))
    given = np.asarray(rows)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
        raise InvalidInputError(
            f"The 'rows' parameter of take_rows must be a number of rows, or a list of whole numbers of rows. "
            f"Got an array of {given.dtype} of shape {given.shape}.\n"
            "Hint: np.flatnonzero(mask) gives the numbers of the rows of a mask."
        )
    wanted = np.unique(given).astype(np.int64)
    if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < n_rows:
        raise InvalidInputError(f"There are {n_rows} rows. Got the numbers {wanted[0]} to {wanted[-1]}.")
    return wanted
