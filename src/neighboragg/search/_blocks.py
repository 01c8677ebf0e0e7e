"""Reference rows read in blocks, from arrays and Parquet files."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._data.parquet import open_parquet
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError

PURPOSE = "Reading rows from Parquet files"


class Blocks(ABC):
    """Rows that are read in order, some at a time."""

    n_rows: int
    n_features: int

    @abstractmethod
    def read(self, size: int) -> Iterator[FloatArray]:
        """Consecutive blocks of rows, each of `size` rows but for the last of a file or of all."""

    def __len__(self) -> int:
        return self.n_rows


class ArrayBlocks(Stored, Blocks):
    """Any object with a shape and row slices: arrays of NumPy, Zarr, HDF5 and Dask."""

    def __init__(self, array: Any) -> None:
        self.array = array
        shape = tuple(array.shape)
        if len(shape) != 2 or not all(float(length).is_integer() for length in shape):
            raise InvalidInputError(
                f"Rows to be read in blocks must be an array of known shape (n, n_features). Got {shape}.\n"
                "Hint: reshape it; compute_chunk_sizes() makes the shape of a Dask array known."
            )
        if np.dtype(array.dtype).kind not in "biuf":
            raise InvalidInputError(
                f"Rows to be read in blocks must be numbers. Got an array of type {array.dtype}."
            )
        self.n_rows, self.n_features = int(shape[0]), int(shape[1])

    def read(self, size: int) -> Iterator[FloatArray]:
        """Slices, copied to memory one at a time."""
        for start in range(0, self.n_rows, size):
            # A copy, to release the pages of a file.
            yield _floats(np.array(self.array[start : start + size]))

    def _saved_state(self) -> dict[str, Any]:
        if not isinstance(self.array, np.ndarray):
            raise InvalidInputError(
                f"Rows in a {type(self.array).__name__} are not copied into a saved model.\n"
                "Hint: write them to a .npy file first, and fit on numpy.load(path, mmap_mode='r')."
            )
        return super()._saved_state()


class ParquetBlocks(Blocks):
    """Columns of one or more Parquet files as rows, in the order of the files."""

    def __init__(
        self,
        paths: Sequence[str | PathLike[str]],
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
    ) -> None:
        self.paths = [str(path) for path in paths]
        self.filesystem = filesystem
        if not self.paths:
            raise InvalidInputError("The list of Parquet files is empty.")
        self.sizes: list[int] = []
        self.states = [self._state(path) for path in self.paths]
        for position, path in enumerate(self.paths):
            with open_parquet(path, self.filesystem, PURPOSE) as file:
                self.sizes.append(file.metadata.num_rows)
                if position == 0:
                    self.columns = list(file.schema_arrow.names if columns is None else columns)
                missing = [name for name in self.columns if name not in file.schema_arrow.names]
                if missing:
                    raise InvalidInputError(
                        f"There is no column {missing[0]!r} in {path}.\n"
                        f"Hint: the columns are {', '.join(map(repr, file.schema_arrow.names))}."
                    )
                if position == 0 or (self.n_features == 0 and self.sizes[-1]):
                    self.n_features = self._width(file)
        self.n_rows = sum(self.sizes)

    def read(self, size: int) -> Iterator[FloatArray]:
        """Batches of the files; a file does not share a block with another."""
        for path, n_rows, state in zip(self.paths, self.sizes, self.states, strict=True):
            found = 0
            with open_parquet(path, self.filesystem, PURPOSE) as file:
                for batch in file.iter_batches(batch_size=size, columns=self.columns, use_threads=False):
                    if batch.num_rows:
                        yield _matrix(batch, self.columns, path, found)
                        found += batch.num_rows
            if found != n_rows:
                raise InvalidInputError(
                    f"{path} had {n_rows} rows when it was opened and has {found} now.\n"
                    "Hint: do not write to files that are being read."
                )
            if self._state(path) != state:
                raise InvalidInputError(
                    f"{path} has changed since it was opened.\n"
                    "Hint: do not write to files that are being read."
                )

    def _state(self, path: str) -> tuple[int, int] | None:
        """Size and modification time of a file, to detect writes; None without a file."""
        if self.filesystem is None:
            found = Path(path).stat() if Path(path).exists() else None
            return found and (found.st_size, found.st_mtime_ns)
        info = self.filesystem.get_file_info(path)
        return int(info.size or 0), int(info.mtime_ns or 0)

    def _width(self, file: Any) -> int:
        """Length of a row; for vectors, from their type or the first row."""
        for batch in file.iter_batches(batch_size=1, columns=self.columns, use_threads=False):
            return _matrix(batch, self.columns, "the first file", 0).shape[1]
        return 0


def map_rows(rows: FloatArray, components: FloatArray) -> FloatArray:
    """Rows after a linear map: row by row in double precision, so a row maps to the same bits in any batch."""
    wide = np.asarray(rows, dtype=np.float64), np.asarray(components, dtype=np.float64)
    return np.einsum("nd,dr->nr", *wide)


def open_rows(source: Any, *, columns: Sequence[str] | None = None) -> tuple[Blocks, ...]:
    """Convert any source of numeric rows to segments that are read one after the other."""
    if isinstance(source, list | tuple) and source and all(_holds_rows(part) for part in source):
        segments = tuple(segment for part in source for segment in open_rows(part, columns=columns))
        widths = {segment.n_features for segment in segments if segment.n_rows}
        if len(widths) > 1:
            raise InvalidInputError(
                f"Rows to be read one after the other have {' and '.join(map(str, sorted(widths)))} features."
            )
        return segments
    return (_open(source, columns),)


def _open(source: Any, columns: Sequence[str] | None) -> Blocks:
    if isinstance(source, Blocks):
        return source
    if isinstance(source, str | PathLike):
        return _from_path(Path(source), columns)
    if hasattr(source, "files") and hasattr(source, "filesystem"):  # a Dataset of pyarrow
        if type(source.format).__name__ != "ParquetFileFormat":
            raise InvalidInputError(
                f"A data set of {type(source.format).__name__} cannot be read in blocks.\nHint: write it as Parquet."
            )
        return ParquetBlocks(source.files, columns, source.filesystem)
    if _holds_rows(source):
        return ArrayBlocks(source)
    raise InvalidInputError(
        f"Rows cannot be read in blocks from a {type(source).__name__}.\n"
        "Hint: pass an array (NumPy, Zarr, HDF5, Dask), the path of Parquet or .npy files, a pyarrow Dataset, or a "
        "list of these."
    )


def count_rows(segments: Sequence[Blocks]) -> int:
    """Rows of all segments."""
    return sum(segment.n_rows for segment in segments)


def count_features(segments: Sequence[Blocks]) -> int:
    """Number of features of all segments; unknown for segments without rows."""
    return next((segment.n_features for segment in segments if segment.n_rows), segments[0].n_features)


def read_segments(segments: Sequence[Blocks], size: int) -> Iterator[FloatArray]:
    """The blocks of each segment, each of `size` rows but for the last of a segment."""
    return (block for segment in segments for block in segment.read(size))


def gather(segments: Sequence[Blocks], rows: IntArray, size: int) -> FloatArray:
    """Some rows in memory, given by ascending position, by one pass over the blocks."""
    taken, start = [], 0
    for block in read_segments(segments, size):
        first, last = np.searchsorted(rows, [start, start + len(block)])
        if first < last:
            taken.append(block[rows[first:last] - start])
        start += len(block)
    return np.concatenate(taken) if taken else np.empty((0, count_features(segments)))


def _holds_rows(source: Any) -> bool:
    return isinstance(source, str | PathLike | Blocks) or (
        all(hasattr(source, name) for name in ("shape", "dtype")) and hasattr(type(source), "__getitem__")
    )


def _from_path(path: Path, columns: Sequence[str] | None) -> Blocks:
    if path.suffix == ".npy":
        try:
            return ArrayBlocks(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError) as error:
            raise InvalidInputError(f"{path} is not a complete .npy file: {error}") from error
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".parquet", ".pq"))
        if not files:
            raise InvalidInputError(f"There is no Parquet file in the folder {path}.")
        return ParquetBlocks(files, columns)
    return ParquetBlocks([path], columns)


def _floats(rows: Array) -> FloatArray:
    """Single precision if given so, else double precision."""
    return rows if rows.dtype == np.float32 else np.asarray(rows, dtype=np.float64)


def _matrix(batch: Any, columns: Sequence[str], path: str, start: int) -> FloatArray:
    """The columns of an Arrow batch side by side; columns of vectors give as many as these are long."""
    parts = [_column(batch.column(name), name, path, start) for name in columns]
    single = all(part.dtype == np.float32 for part in parts)
    return np.concatenate([part if single else part.astype(np.float64) for part in parts], axis=1)


def _column(column: Any, name: str, path: str, start: int) -> Array:
    types = import_extra("pyarrow", extra="dask", purpose=PURPOSE).types
    where = f"Column {name!r} of {path}"
    if column.null_count:
        row = start + int(np.argmax(np.asarray(column.is_null())))
        raise InvalidInputError(
            f"{where} has no value in row {row}.\nHint: fill or drop the rows without one."
        )
    width, values = 1, column
    if types.is_fixed_size_list(column.type):
        width, values = column.type.list_size, column.flatten()
    elif types.is_list(column.type) or types.is_large_list(column.type):
        lengths = np.diff(np.asarray(column.offsets))
        width = int(lengths[0]) if len(lengths) else 0
        if (lengths != width).any():
            row = start + int(np.argmax(lengths != width))
            raise InvalidInputError(
                f"{where} contains vectors of {width} numbers, but one of {int(lengths[row - start])} in row {row}."
            )
        values = column.flatten()
    if not (types.is_floating(values.type) or types.is_integer(values.type) or types.is_boolean(values.type)):
        raise InvalidInputError(
            f"{where} contains {values.type}, not numbers.\nHint: name the columns of numbers with columns=[…]."
        )
    if values.null_count:
        row = start + int(np.argmax(np.asarray(values.is_null()))) // max(1, width)
        raise InvalidInputError(
            f"{where} has no value in row {row}.\nHint: fill or drop the rows without one."
        )
    found = values.to_numpy(zero_copy_only=False)
    return _floats(found if found.dtype != bool else found.astype(np.float64)).reshape(-1, width)
