"""Arrow tables as frames, arrays and rows of a model, relabeled columns, and Feather files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import IntArray
from neighboragg._data.source import HeldSource
from neighboragg.exceptions import (
    InvalidInputError,
    InvalidParameterError,
)

PURPOSE = "Reading and writing Parquet and Feather files"


class FeatherSource(HeldSource):
    """A Feather (Arrow IPC) file."""

    suffixes = (".feather", ".arrow")

    def __init__(self, path: Path) -> None:
        self.name, self.notes = str(path), []
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        feather = import_extra("pyarrow.feather", extra="cli", purpose=PURPOSE)
        try:
            with path.open("rb") as file:
                self._table = feather.read_table(file, memory_map=False)
        except FileNotFoundError:
            raise
        except (arrow.ArrowException, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InvalidInputError(
                f"{path} is not a complete Feather file: {reason}\nHint: fetch or write it again."
            ) from error
        if not self._table.num_rows:
            raise InvalidInputError(f"{path} has no rows.")
        self.header = self._table.column_names

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def frame(self) -> Any:
        """All columns."""
        return typed_frame(self._table.rename_columns(self.columns))

    def values(self, column: str) -> list[Any]:
        """The values of a column."""
        return list(self._table.column(self.columns.index(self.named(column))).to_pylist())

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The values of the columns."""
        return table_cells(self._table.take(rows))

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """The file with new labels in some rows and without some others; types and metadata stay."""
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        feather = import_extra("pyarrow.feather", extra="cli", purpose=PURPOSE)
        place = self.columns.index(self.named(column))
        sink = arrow.BufferOutputStream()
        feather.write_feather(
            with_new_values(self._table, place, self.new_values(column, texts), dropped), sink
        )
        yield "", bytes(sink.getvalue())


def table_cells(table: Any) -> list[list[tuple[str, Any]]]:
    """Name and value of every cell, row by row."""
    columns = [column.to_pylist() for column in table.columns]
    return [list(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def with_new_values(table: Any, place: int, new: Mapping[int, Any], dropped: Collection[int]) -> Any:
    """The table with new values in some rows of a column, and without some rows; types and metadata stay."""
    if new:
        table = table.set_column(place, table.schema.field(place), _replaced(table.column(place), new))
    if dropped:
        table = table.take(np.setdiff1d(np.arange(table.num_rows), list(dropped)))
    return table


def _replaced(column: Any, new: Mapping[int, Any]) -> Any:
    arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
    if not arrow.types.is_dictionary(column.type):
        values = [new.get(i, value) for i, value in enumerate(column.to_pylist())]
        return arrow.chunked_array([arrow.array(values, type=column.type)])
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, arrow.ChunkedArray) else whole
    names = whole.dictionary.to_pylist()
    names += [value for value in dict.fromkeys(new.values()) if value not in names]
    codes = whole.indices.to_pylist()
    for row, value in new.items():
        codes[row] = names.index(value)
    return arrow.chunked_array(
        [
            arrow.DictionaryArray.from_arrays(
                arrow.array(codes, type=column.type.index_type),
                arrow.array(names, type=column.type.value_type),
                ordered=column.type.ordered,
            )
        ]
    )


def typed_frame(table: Any) -> Any:
    """A data frame in which whole numbers with gaps stay whole numbers, and coded texts are texts."""
    arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    table = plain_columns(table).replace_schema_metadata(None)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        gaps = arrow.types.is_integer(column.type) and column.null_count
        columns[name] = pandas.array(column.to_pylist(), dtype="Int64") if gaps else column.to_pandas()
    return pandas.DataFrame(columns)


READING = "Reading Parquet files"


def as_frame(table: Any) -> Any:
    """A data frame; coded texts are decoded, because codes differ between parts."""
    import_extra("pandas", extra="dask", purpose=READING)
    return plain_columns(table).to_pandas()


def as_array(table: Any) -> Any:
    """Numbers side by side; a column of vectors contributes all their numbers."""
    frame = as_frame(table)
    parts = []
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype == object:
            try:
                values = np.array([np.asarray(value, dtype=np.float64) for value in values])
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"Column {name!r} contains values other than numbers, or vectors of different lengths: {error}.\n"
                    "Hint: name the columns of numbers with columns=[…] (--columns)."
                ) from error
        parts.append(values.reshape(len(frame), -1))
    return np.hstack(parts)


def as_rows(table: Any) -> Any:
    """A data frame, or numbers side by side if a column contains vectors."""
    types = import_extra("pyarrow", extra="dask", purpose=READING).types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    has_vectors = any(is_kind(field.type) for field in table.schema for is_kind in lists)
    return as_array(table) if has_vectors else as_frame(table)


def plain_columns(table: Any) -> Any:
    """The table with coded columns decoded."""
    types = import_extra("pyarrow", extra="dask", purpose=READING).types
    for i, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def choose_columns(model: Any, names: Sequence[str], where: str, keep: Sequence[str]) -> list[str]:
    """Columns to pass to a model when the user names none."""
    inner = getattr(model, "model", model)
    fitted = getattr(inner, "feature_names_in_", None)
    if fitted is not None:
        return [str(name) for name in fitted]
    columns = [name for name in names if name not in keep]
    wanted = getattr(inner, "n_features_in_", None)
    if wanted is not None and len(columns) not in (1, wanted):
        raise InvalidInputError(
            f"The model takes {wanted} numbers for a row, and {where} has {len(columns)} columns besides "
            "the included ones.\n"
            "Hint: name the columns of numbers, or the column of vectors, with columns=[…] (--columns)."
        )
    return columns


def listed_names(given: Iterable[str] | None, name: str, owner: str) -> tuple[str, ...]:
    """Columns that a parameter lists, each once; empty for None."""
    if isinstance(given, str):
        raise InvalidParameterError(
            f"The {name!r} parameter of {owner} must be a list of column names. Got the text {given!r} instead.\n"
            f"Hint: a list of one is [{given!r}]."
        )
    return tuple(dict.fromkeys(map(str, () if given is None else given)))
