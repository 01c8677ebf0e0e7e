"""Parquet and Feather files, by way of Arrow: all other columns, the schema and its metadata survive."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.inputs import take_rows
from neighboragg._core.packages import import_extra
from neighboragg._data.source import Table, label_texts, position_of, replaced_values, unique_names
from neighboragg.exceptions import (
    InvalidInputError,
    InvalidParameterError,
)

PURPOSE = "Reading and writing Parquet and Feather files"


class ArrowTable(Table):
    """What Parquet and Feather share."""

    def __init__(self, path: Path, label: str | None, sep: str | None, encoding: str | None) -> None:
        self.name, self.label, self.notes = str(path), label, []
        self._path = path
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        import_extra("pandas", extra="cli", purpose="Reading a table")
        try:
            self._table = self._read()
        except (arrow.ArrowException, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            raise InvalidInputError(
                f"{path} is not a complete {self.format_name} file: {reason}\nHint: fetch or write it again."
            ) from error
        if not self._table.num_rows:
            raise InvalidInputError(f"{path} has no rows.")
        self._place = None if label is None else position_of(label, self._table.column_names, self.name)
        self._values = (
            [None] * self._table.num_rows
            if self._place is None
            else self._table.column(self._place).to_pylist()
        )
        self.labels = label_texts(self._values, self.name, label)

    format_name = "Arrow"

    @abstractmethod
    def _read(self) -> Any:
        """The Arrow table."""

    @abstractmethod
    def _write(self, table: Any) -> bytes:
        """An Arrow table as the contents of such a file."""

    @cached_property
    def frame(self) -> Any:
        """The columns beside the label."""
        table = self._table if self._place is None else self._table.remove_column(self._place)
        names = unique_names(table.column_names)
        if names != table.column_names:
            table = table.rename_columns(names).replace_schema_metadata(None)
        return table.to_pandas()

    def cells_of(self, row: int) -> list[tuple[str, Any]]:
        """The values of the columns."""
        columns = zip(self._table.column_names, self._table.columns, strict=True)
        return [(name, column[row].as_py()) for name, column in columns]

    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """The file with new labels in some rows and without some others; types and metadata stay."""
        table = self._table
        if texts and self._place is not None:
            new = replaced_values(self._values, self.labels, texts, self.name)
            column = self._relabeled_column(table.column(self._place), new)
            table = table.set_column(self._place, table.schema.field(self._place), column)
        if dropped:
            kept = np.ones(len(self), dtype=bool)
            kept[list(dropped)] = False
            table = table.take(np.flatnonzero(kept))
        return self._write(table)

    def _relabeled_column(self, column: Any, new: Mapping[int, Any]) -> Any:
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        if not arrow.types.is_dictionary(column.type):
            values = [new.get(i, value) for i, value in enumerate(self._values)]
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


class ParquetTable(ArrowTable):
    """A Parquet file."""

    suffixes = (".parquet", ".pq")
    format_name = "Parquet"

    def _read(self) -> Any:
        self._parquet = import_extra("pyarrow.parquet", extra="cli", purpose=PURPOSE)
        return self._parquet.read_table(self._path, page_checksum_verification=True)

    def _write(self, table: Any) -> bytes:
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        facts = self._parquet.ParquetFile(self._path).metadata
        group = facts.row_group(0)
        compression = {
            facts.schema.column(j).path: group.column(j).compression for j in range(group.num_columns)
        }
        sink = arrow.BufferOutputStream()
        self._parquet.write_table(table, sink, compression=compression, row_group_size=max(1, group.num_rows))
        return bytes(sink.getvalue())


class FeatherTable(ArrowTable):
    """A Feather (Arrow IPC) file."""

    suffixes = (".feather", ".arrow")
    format_name = "Feather"

    def _read(self) -> Any:
        self._feather = import_extra("pyarrow.feather", extra="cli", purpose=PURPOSE)
        return self._feather.read_table(self._path, memory_map=False)

    def _write(self, table: Any) -> bytes:
        arrow = import_extra("pyarrow", extra="cli", purpose=PURPOSE)
        sink = arrow.BufferOutputStream()
        self._feather.write_feather(table, sink)
        return bytes(sink.getvalue())


READING = "Reading Parquet files"


# More rows than any matrix library computes at once.
PADDING = 64


def as_frame(table: Any) -> Any:
    """A data frame; coded texts as texts, as the codes of one part are not those of another."""
    import_extra("pandas", extra="dask", purpose=READING)
    return plain_columns(table).to_pandas()


def as_array(table: Any) -> Any:
    """Numbers side by side; a column of vectors gives as many as these are long."""
    frame = as_frame(table)
    parts = []
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype == object:
            try:
                values = np.array([np.asarray(value, dtype=np.float64) for value in values])
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"Column {name!r} holds something else than numbers, or vectors of one length: {error}.\n"
                    "Hint: name the columns of numbers with columns=[…] (--columns)."
                ) from error
        parts.append(values.reshape(len(frame), -1))
    return np.hstack(parts)


def as_rows(table: Any) -> Any:
    """A data frame, or numbers side by side where a column holds vectors."""
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


def in_portions(ask: Callable[[Any], Any], rows: Any, n: int, size: int) -> Iterator[tuple[Any, int]]:
    """Answers for portions of exactly `size` rows and some more, filled up with rows of their own."""
    for start in range(0, n, size):
        n_real = min(size, n - start)
        yield ask(_laid_out(take_rows(rows, start + np.arange(size + PADDING) % n_real))), n_real


def _laid_out(rows: Any) -> Any:
    """The same rows in a memory order that does not depend on what they were taken from; of a single row it does."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows)
    return type(rows)({name: rows[name].array for name in rows.columns}, index=rows.index)


def choose_columns(model: Any, names: Sequence[str], where: str, keep: Sequence[str]) -> list[str]:
    """Columns that a model is asked with, where the user names none."""
    inner = getattr(model, "model", model)
    fitted = getattr(inner, "feature_names_in_", None)
    if fitted is not None:
        return [str(name) for name in fitted]
    columns = [name for name in names if name not in keep]
    wanted = getattr(inner, "n_features_in_", None)
    if wanted is not None and len(columns) not in (1, wanted):
        raise InvalidInputError(
            f"The model takes {wanted} numbers for a row, and {where} has {len(columns)} columns beside those kept.\n"
            "Hint: name the columns of numbers, or the column of vectors, with columns=[…] (--columns)."
        )
    return columns


def listed_names(given: Iterable[str] | None, name: str, owner: str) -> tuple[str, ...]:
    """Columns that a parameter lists, each once; none for None."""
    if isinstance(given, str):
        raise InvalidParameterError(
            f"The {name!r} parameter of {owner} must be a list of names of columns. Got the text {given!r} instead.\n"
            f"Hint: a list of one is [{given!r}]."
        )
    return tuple(dict.fromkeys(map(str, () if given is None else given)))


def check_kept(keep: Sequence[str], results: Collection[str]) -> None:
    """Raise if a column to keep has the name of a result."""
    if clash := [name for name in keep if name in results]:
        raise InvalidInputError(
            f"The column {clash[0]!r} cannot be kept, as results have that name.\nHint: rename it in the input."
        )
