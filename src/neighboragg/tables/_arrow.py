"""Parquet and Feather files, by way of Arrow: all other columns, the schema and its metadata survive."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg.exceptions import InvalidInputError
from neighboragg.tables._table import Table, label_texts, position_of, replaced_values, unique_names

__all__ = ["FeatherTable", "ParquetTable"]

PURPOSE = "Reading and writing Parquet and Feather files"


class ArrowTable(Table):
    """What Parquet and Feather share.

    Parameters
    ----------
    path : Path
    label : str or None
    sep, encoding : ignored
    """

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
    """A Parquet file.

    Parameters
    ----------
    path : Path
    label : str or None
    sep, encoding : ignored
    """

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
    """A Feather (Arrow IPC) file.

    Parameters
    ----------
    path : Path
    label : str or None
    sep, encoding : ignored
    """

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
