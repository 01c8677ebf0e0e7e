"""Rows that arrive batch by batch, collected in memory or written to a .npy file as they come."""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neighboragg._typing import Array
from neighboragg.exceptions import InvalidInputError

__all__ = ["GrowingFile", "GrowingRows"]


class GrowingRows:
    """Rows in memory."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def append(self, rows: Array) -> None:
        """Add the rows of one batch."""
        self._parts.append(rows)

    def finish(self) -> Array:
        """All rows as one array; the parts are let go."""
        rows = np.concatenate(self._parts) if self._parts else np.empty((0, 0))
        self._parts = []
        return rows


class GrowingFile:
    """Rows in a .npy file, of which only one batch is in memory at a time.

    It is written beside its place and moved there when it is complete.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(f".{path.name}.partial")
        self._file: BinaryIO | None = None
        self._shape: tuple[int, ...] = ()
        self._count = 0

    def append(self, rows: Array) -> None:
        """Add the rows of one batch."""
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        if self._file is None:
            self._file = self._partial.open("wb")
            self._shape = rows.shape[1:]
            self._write_header()
        if rows.shape[1:] != self._shape:
            raise InvalidInputError(
                f"A batch has vectors of shape {rows.shape[1:]}, but those before have {self._shape}.\n"
                "Hint: bring all inputs to one size."
            )
        rows.tofile(self._file)
        self._count += len(rows)

    def finish(self) -> Array:
        """The complete file, mapped into memory."""
        if self._file is None:
            raise InvalidInputError("There are no rows to write.")
        self._file.seek(0)
        self._write_header()
        self._file.close()
        self._partial.replace(self._path)
        return np.load(self._path, mmap_mode="r")

    def discard(self) -> None:
        """Leave nothing half-written."""
        if self._file is not None:
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def _write_header(self) -> None:
        # NumPy leaves room in the header for more rows, so that it keeps its length.
        header: dict[str, Any] = {
            "descr": "<f4",
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)  # type: ignore[arg-type]
