"""Parquet files: find the files of a source, read them in parts, and write them with new labels."""

import glob
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, IntArray
from neighboragg._data.arrow import plain_columns, table_cells, typed_frame, with_new_values
from neighboragg._data.source import Source, label_texts, replaced_values
from neighboragg.exceptions import InvalidInputError

# Buffer per column: without it, whole columns of a row group would be in memory.
BUFFER_NBYTES = 2**20


def open_parquet(path: str, filesystem: Any, purpose: str, *, called: str | None = None) -> Any:
    """Open a file, which must be complete; `called` is its name in messages, if another."""
    arrow = import_extra("pyarrow", extra="dask", purpose=purpose)
    parquet = import_extra("pyarrow.parquet", extra="dask", purpose=purpose)
    name = called or path
    try:
        return parquet.ParquetFile(
            path,
            filesystem=filesystem,
            buffer_size=BUFFER_NBYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    except FileNotFoundError as error:
        raise InvalidInputError(f"There is no file {name}.") from error
    except (arrow.ArrowException, OSError) as error:
        raise _incomplete(name, error) from error


def _incomplete(name: str, error: Exception) -> InvalidInputError:
    reason = str(error).strip().splitlines()[0]
    return InvalidInputError(
        f"{name} is not a complete Parquet file: {reason}\nHint: wait until it is written, or write it again."
    )


PURPOSE = "Reading Parquet files"
SUFFIXES = (".parquet", ".pq")
FIRST_PART = "part-00000.parquet"
FOOTER_NBYTES = 2**16


@dataclass(frozen=True)
class InputFile:
    """A Parquet file and its state at the start of a run."""

    path: str
    rows: int
    size: int
    modified: int
    footer: str

    @classmethod
    def of(cls, path: str) -> "InputFile":
        """Record the state of a file; raises if it is incomplete."""
        with _open(path) as file:
            rows = file.metadata.num_rows
        filesystem, place = _filesystem(path)
        info = filesystem.get_file_info(place)
        with filesystem.open_input_file(place) as stream:
            stream.seek(max(0, info.size - FOOTER_NBYTES))
            footer = hashlib.sha256(stream.read()).hexdigest()
        return cls(path, rows, info.size, int(info.mtime_ns or 0), footer)

    def check_unchanged(self) -> None:
        """Raise if the file has changed since the run began."""
        try:
            now = InputFile.of(self.path)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.path} has changed since the run began: {error}") from error
        if now != self:
            changed = [
                f"{name} was {before}, is {after}"
                for (name, before), after in zip(asdict(self).items(), asdict(now).values(), strict=True)
                if before != after and name != "footer"
            ]
            raise InvalidInputError(
                f"{self.path} has changed since the run began ({'; '.join(changed) or 'its content'}).\n"
                "Hint: do not write to files while they are read; results of the old and the new file must not be "
                "mixed, so start again with a new output folder."
            )


@dataclass(frozen=True)
class Part:
    """Some rows of a file, and the number of the part in the whole."""

    number: int
    file: InputFile
    start: int
    stop: int
    first: int
    """Number of its first row in all files together."""

    @property
    def name(self) -> str:
        """File in which the result is written."""
        return f"part-{self.number:05d}.parquet"

    @property
    def place(self) -> str:
        """Name of the part in messages."""
        return f"{self.file.path}, rows {self.start} to {self.stop - 1}"


def find_files(source: Any) -> list[InputFile]:
    """The Parquet files of a path, folder, pattern, address or a list of these, in order."""
    files = [InputFile.of(path) for path in list_files(source)]
    if not sum(file.rows for file in files):
        raise InvalidInputError(f"{_named(_given(source))} does not contain any rows.")
    return files


def first_with_rows(files: Sequence[InputFile]) -> InputFile:
    """The first file with rows, whose columns represent all files."""
    return next(file for file in files if file.rows)


def list_files(source: Any, *, output: str | PathLike[str] | None = None) -> list[str]:
    """The Parquet files of a source, in the order in which their rows are counted."""
    if output is not None:
        check_apart(source, output)
    paths = [path for one in _given(source) for path in _paths(one)]
    if not paths:
        raise InvalidInputError("The list of input files is empty.")
    if len(set(paths)) < len(paths):
        twice = min(path for path in paths if paths.count(path) > 1)
        raise InvalidInputError(f"{twice} is among the input files twice.")
    return paths


def holds_parquet(folder: Path) -> bool:
    """Whether a folder holds Parquet files."""
    return any(_is_data(file.relative_to(folder)) for file in folder.rglob("*"))


def check_apart(source: Any, output: str | PathLike[str]) -> None:
    """Raise if the output lies within the source, because the next run would read its own results."""
    path = Path(output).resolve()
    written = [path, path / FIRST_PART]
    if path.suffix.lower() in SUFFIXES:
        written.append(path.with_name(f"{path.name}.parts") / FIRST_PART)
    for one in _given(source):
        if any(_takes_in(one, file) for file in written):
            raise InvalidInputError(
                f"The output {path} lies in the input {one}, which would then contain its own results.\n"
                "Hint: choose an output outside of the input, with -o or output=."
            )


def cut(files: Sequence[InputFile], part_rows: int) -> list[Part]:
    """Parts of at most that many rows, none across two files."""
    parts: list[Part] = []
    before = 0
    for file in files:
        for start in range(0, file.rows, part_rows):
            stop = min(start + part_rows, file.rows)
            parts.append(Part(len(parts), file, start, stop, before + start))
        before += file.rows
    return parts


def read_part(part: Part, columns: Sequence[str]) -> Any:
    """Columns of the rows of a part as an Arrow table; raises if the file has changed."""
    arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
    part.file.check_unchanged()
    with _open(part.file.path) as file:
        _refuse_unclear(columns, file.schema_arrow.names, part.file.path)
        ends = np.cumsum([file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)])
        first, last = np.searchsorted(ends, [part.start, part.stop - 1], side="right")
        position = int(ends[first - 1]) if first else 0
        taken = []
        batches = file.iter_batches(
            batch_size=part.stop - part.start,
            row_groups=range(first, last + 1),
            columns=list(columns),
            use_threads=False,
        )
        for batch in batches:
            low, high = max(part.start - position, 0), min(part.stop - position, batch.num_rows)
            if low < high:
                taken.append(batch.slice(low, high - low))
            position += batch.num_rows
            if position >= part.stop:
                break
    # Check again: a file replaced in between may have returned old and new rows.
    part.file.check_unchanged()
    return arrow.Table.from_batches(taken).select(list(columns)).replace_schema_metadata(None)


def column_names(file: InputFile) -> list[str]:
    """Columns of a file."""
    with _open(file.path) as opened:
        return list(opened.schema_arrow.names)


def check_columns(file: InputFile, columns: Sequence[str]) -> None:
    """Raise unless a file has each of these columns, once."""
    _refuse_unclear(columns, column_names(file), file.path)


def _refuse_unclear(columns: Sequence[str], names: list[str], path: str) -> None:
    missing = [name for name in columns if name not in names]
    if missing:
        raise InvalidInputError(
            f"There is no column {missing[0]!r} in {path}.\nHint: the columns are "
            f"{', '.join(map(repr, names[:20]))}{', …' if len(names) > 20 else ''}."
        )
    if twice := [name for name in columns if names.count(name) > 1]:
        raise InvalidInputError(
            f"Several columns of {path} are called {twice[0]!r}.\nHint: give every column its own name."
        )


def _given(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list | tuple) else [source]


def _paths(source: str | PathLike[str]) -> list[str]:
    if not isinstance(source, str | PathLike):
        raise InvalidInputError(
            f"The input must be a path, a folder, a pattern such as 'data/*.parquet', or a list of these. "
            f"Got a {type(source).__name__}."
        )
    text = str(source)
    if "://" in text:
        return _remote_paths(text)
    path = Path(source)
    if path.is_dir():
        found = [file for file in path.rglob("*") if _is_data(file.relative_to(path))]
    elif path.exists():
        if path.suffix.lower() not in SUFFIXES:
            raise InvalidInputError(
                f"{path} does not have the name of a Parquet file.\n"
                "Hint: convert a CSV file with pandas.read_csv(path).to_parquet('table.parquet')."
            )
        return [str(path.resolve())]
    elif _is_pattern(path):
        found = [Path(name) for name in _matching(text) if _is_data(Path(Path(name).name))]
    else:
        raise InvalidInputError(f"There is no file or folder {path}.")
    if not found:
        raise InvalidInputError(f"There is no Parquet file in {path}.")
    return sorted(str(file.resolve()) for file in found)


def _takes_in(source: str | PathLike[str], file: Path) -> bool:
    """Whether a path, folder, pattern or address matches a file, existing or not."""
    text = str(source)
    if "://" in text:
        if not text.startswith("file:"):
            return False
        text = _filesystem(text)[1]
    place = Path(text)
    if place.is_dir():
        folder = place.resolve()
        return file.is_relative_to(folder) and _is_data(file.relative_to(folder))
    if not _is_pattern(place):
        return place.resolve() == file
    names = place.absolute().parts
    fixed = list(takewhile(lambda name: not glob.has_magic(name), names))
    folder, magic = Path(*fixed).resolve(), names[len(fixed) :]
    if not (file.is_relative_to(folder) and _is_data(Path(file.name))):
        return False
    inside = file.relative_to(folder).parts
    if "**" in magic:  # any depth below
        return magic[-1] == "**" or fnmatch(inside[-1], magic[-1])
    return len(inside) == len(magic) and all(map(fnmatch, inside, magic))


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _matching(pattern: str) -> list[str]:
    # Path.glob does not support absolute patterns.
    return glob.glob(pattern, recursive=True)  # noqa: PTH207


def _is_data(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not any(name.startswith(("_", ".")) for name in path.parts)


def _remote_paths(address: str) -> list[str]:
    fs = import_extra("pyarrow.fs", extra="dask", purpose=PURPOSE)
    filesystem, place = _filesystem(address)
    info = filesystem.get_file_info(place)
    if info.type == fs.FileType.File:
        return [address]
    if info.type != fs.FileType.Directory:
        raise InvalidInputError(f"There is no file or folder {address}.")
    found = filesystem.get_file_info(fs.FileSelector(place, recursive=True))
    inside = [Path(one.path).relative_to(place) for one in found if one.type == fs.FileType.File]
    paths = sorted(f"{address.rstrip('/')}/{path}" for path in inside if _is_data(path))
    if not paths:
        raise InvalidInputError(f"There is no Parquet file in {address}.")
    return paths


def _filesystem(path: str) -> tuple[Any, str]:
    """The file system of a path, and its name there."""
    fs = import_extra("pyarrow.fs", extra="dask", purpose=PURPOSE)
    if "://" not in path:
        return fs.LocalFileSystem(), path
    try:
        filesystem, place = fs.FileSystem.from_uri(path)
    except (ValueError, OSError) as error:
        raise InvalidInputError(f"Cannot read from {path}: {str(error).splitlines()[0]}") from error
    return filesystem, place


def _open(path: str) -> Any:
    filesystem, place = _filesystem(path)
    return open_parquet(place, filesystem, PURPOSE, called=path)


def _named(given: Sequence[Any]) -> str:
    return str(given[0]) if len(given) == 1 else f"{given[0]} and {len(given) - 1} more"


class ParquetSource(Source):
    """Parquet files of any size: one, or those of a folder, a pattern or a list, whose rows are numbered together."""

    suffixes = SUFFIXES

    def __init__(self, given: Any) -> None:
        self.name, self.notes = _named(_given(given)), []
        self._inputs = find_files(given)
        self._ends = np.cumsum([0, *(file.rows for file in self._inputs)])
        self._is_one = len(self._inputs) == 1 and Path(str(given)).suffix.lower() in SUFFIXES
        self._folder = given if isinstance(given, str | PathLike) and Path(given).is_dir() else None
        first = first_with_rows(self._inputs)
        with _open(first.path) as file:
            schema = file.schema_arrow
        written = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
        self._index = [name for name in written if isinstance(name, str)]
        self.header = [name for name in schema.names if name not in self._index]

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def files(self) -> list[str]:
        """Paths or addresses, in the order of the rows."""
        return [file.path for file in self._inputs]

    @property
    def is_many(self) -> bool:
        """Whether a copy is a folder with a file for each of the files."""
        return not self._is_one

    @property
    def root(self) -> Path:
        """The folder that holds all files."""
        if self._folder is not None:
            return Path(self._folder).resolve()
        return Path(os.path.commonpath([str(Path(path).parent) for path in self.files]))

    @property
    def digest(self) -> str:
        """Digest of sizes and footers."""
        facts = [(file.rows, file.size, file.footer) for file in self._inputs]
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any:
        """Some columns of the rows of a range as a data frame."""
        names = [self.header[self.columns.index(name)] for name in columns]
        return typed_frame(self._table(start, stop, names).rename_columns(list(columns)))

    def texts(self, column: str) -> Array:
        """Every cell of a column as text; empty if it is missing or blank."""
        return label_texts(self._values(column), self.name, column)

    def place_of(self, row: int) -> str:
        """The number of the row in its file, counted from 0, and which file."""
        number, names = int(np.searchsorted(self._ends, row, side="right")) - 1, self._names
        place = f"row {row - int(self._ends[number])}"
        return f"{names[number]}, {place}" if names[number] else place

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The values of all columns."""
        cells = []
        for start, stop in self.parts():
            first, last = np.searchsorted(rows, (start, stop))
            if first < last:
                table = self._table(start, stop, [*self.header, *self._index])
                cells += table_cells(table.take(rows[first:last] - start))
        return cells

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """The files with new labels in some rows and without some others; a file without any is copied."""
        new = replaced_values(self._values(column), self.texts(column), texts, self.name)
        for name, file, start, stop in zip(
            self._names, self._inputs, self._ends[:-1], self._ends[1:], strict=True
        ):
            mine = {row - int(start): value for row, value in new.items() if start <= row < stop}
            gone = {row - int(start) for row in dropped if start <= row < stop}
            yield name, _rewritten(file, column, mine, gone)

    @property
    def _names(self) -> list[str]:
        """Names of the copies of the files within a folder; empty for a single file."""
        if self._is_one:
            return [""]
        if any("://" in path for path in self.files):
            return [f"{number:05d}-{path.rpartition('/')[2]}" for number, path in enumerate(self.files)]
        return [Path(path).relative_to(self.root).as_posix() for path in self.files]

    def _values(self, column: str) -> list[Any]:
        """The values of a column, which must be of one type in all files: 1 and 1.0 would be two labels."""
        name = column if column in self._index else self.header[self.columns.index(self.named(column))]
        values: list[Any] = []
        first: tuple[str, InputFile] | None = None
        for start, stop, file in zip(self._ends[:-1], self._ends[1:], self._inputs, strict=True):
            if start < stop:
                cells = self._table(int(start), int(stop), [name]).column(0)
                kind = str(cells.type).removeprefix("large_")
                first = first or (kind, file)
                if kind != first[0]:
                    raise InvalidInputError(
                        f"Column {column!r} is of the type {kind} in {file.path}, and of the type {first[0]} in "
                        f"{first[1].path}.\nHint: write all files with the same types."
                    )
                values += cells.to_pylist()
        return values

    def _table(self, start: int, stop: int, names: Sequence[str]) -> Any:
        """Columns of the rows of a range as an Arrow table, coded texts as texts."""
        arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
        tables = []
        for file, before in zip(self._inputs, self._ends.tolist(), strict=False):
            low, high = max(start - before, 0), min(stop - before, file.rows)
            if low < high:
                try:
                    tables.append(plain_columns(read_part(Part(0, file, low, high, before + low), names)))
                except (arrow.ArrowException, OSError) as error:
                    raise _incomplete(file.path, error) from error
        return tables[0] if len(tables) == 1 else arrow.concat_tables(tables, promote_options="permissive")


def _rewritten(file: InputFile, column: str, new: Mapping[int, Any], dropped: Collection[int]) -> bytes:
    """Contents of a file with new values in some rows of a column and without some rows."""
    filesystem, place = _filesystem(file.path)
    if not new and not dropped:
        with filesystem.open_input_file(place) as stream:
            return bytes(stream.read())
    arrow = import_extra("pyarrow", extra="dask", purpose=PURPOSE)
    parquet = import_extra("pyarrow.parquet", extra="dask", purpose=PURPOSE)
    with _open(file.path) as opened:
        table, facts = opened.read(), opened.metadata
    group = facts.row_group(0)
    compression = {facts.schema.column(j).path: group.column(j).compression for j in range(group.num_columns)}
    sink = arrow.BufferOutputStream()
    parquet.write_table(
        with_new_values(table, table.column_names.index(column), new, dropped),
        sink,
        compression=compression,
        row_group_size=max(1, group.num_rows),
    )
    return bytes(sink.getvalue())
