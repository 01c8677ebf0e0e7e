"""Arrays in a file: which can be stored, where each lies, and how each is read back."""

import math
import re
from collections.abc import Sequence
from io import BufferedReader
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from neighboragg._typing import Array
from neighboragg.exceptions import InvalidParameterError

ALIGNMENT = 64  # a cache line, so that a memory map of any array is aligned
_DTYPES = frozenset(["|b1", "|i1", "|u1", *(f"<{kind}{size}" for kind in "iuf" for size in (2, 4, 8))])
_UNICODE = re.compile(r"<U[1-9][0-9]{0,8}")
_LAST_CODE_POINT = 0x10FFFF


class HeaderError(Exception):
    """A header whose content cannot be; the reader adds the path."""


class ArrayEntry(NamedTuple):
    """One row of the array directory; `offset` counts from the start of the payload."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def aligned(position: int) -> int:
    """Return the first multiple of the alignment that is not below `position`."""
    return -(-position // ALIGNMENT) * ALIGNMENT


def storable(value: Array, where: str) -> Array:
    """Return `value` as a little-endian array in C order, or say why it cannot be stored."""
    dtype = value.dtype.newbyteorder("<")
    if dtype.kind == "U":
        # Strings of width 0 are all empty; width 1 says the same and is a dtype NumPy makes itself.
        dtype = np.dtype(f"<U{max(1, dtype.itemsize // 4)}")
    elif dtype.str not in _DTYPES:
        raise InvalidParameterError(
            f"The array at {where!r} of the record has the dtype {value.dtype}, which cannot be saved.\n"
            "Hint: convert it to a bool, integer, float16/32/64 or str array with astype()."
        )
    return np.asarray(value, dtype=dtype, order="C")


def directory(arrays: Sequence[tuple[str, Array]]) -> list[ArrayEntry]:
    """Lay out storable arrays one after the other."""
    entries, offset = [], 0
    for name, array in arrays:
        entries.append(ArrayEntry(name, array.dtype.str, array.shape, offset, array.nbytes))
        offset = aligned(offset + array.nbytes)
    return entries


def payload_nbytes(entries: Sequence[ArrayEntry]) -> int:
    """Return the size of the payload that holds `entries`."""
    return entries[-1].offset + entries[-1].nbytes if entries else 0


def as_bytes(array: Array) -> memoryview:
    """View the memory of a C-ordered array as bytes; writing to the view fills the array."""
    return array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(bytearray())


def check_directory(rows: Any, available: int) -> list[ArrayEntry]:
    """Return the directory of a header, each entry within the `available` bytes and none overlapping."""
    if not isinstance(rows, list):
        raise HeaderError("the array directory is not a list")
    entries = [_check_entry(row) for row in rows]
    offset = 0
    for entry in entries:
        if entry.offset != offset:
            raise HeaderError(f"array {entry.name!r} is at {entry.offset} instead of {offset}")
        offset = aligned(offset + entry.nbytes)
    if payload_nbytes(entries) != available:
        raise HeaderError(f"the arrays take {payload_nbytes(entries)} bytes, and there are {available}")
    return entries


def read_array(file: BufferedReader, start: int, entry: ArrayEntry) -> Array:
    """Read one array into memory of its own, in native byte order."""
    try:
        array = np.empty(entry.shape, dtype=entry.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise HeaderError(f"array {entry.name!r} cannot be made: {error}") from error
    file.seek(start + entry.offset)
    if file.readinto(as_bytes(array)) != entry.nbytes:
        raise HeaderError(f"array {entry.name!r} ends early; the file changed while it was read")
    _check_values(array, entry)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_entry(row: Any) -> ArrayEntry:
    """Return one row of the directory with every field of the right type and the size that follows."""
    if not isinstance(row, dict) or set(row) != set(ArrayEntry._fields):
        raise HeaderError("an entry of the array directory has other fields than expected")
    name, dtype = row["name"], row["dtype"]
    if not isinstance(name, str):
        raise HeaderError("the name of an array is not a string")
    if not isinstance(dtype, str) or not (dtype in _DTYPES or _UNICODE.fullmatch(dtype)):
        raise HeaderError(f"array {name!r} has the dtype {dtype!r}, which is not a known one")
    shape = check_shape(row["shape"], name)
    if not is_size(row["offset"]) or not is_size(row["nbytes"]):
        raise HeaderError(f"array {name!r} has an offset or a size that is not a whole number")
    item = 4 * int(dtype[2:]) if dtype.startswith("<U") else int(dtype[2:])
    if row["nbytes"] != math.prod(shape) * item:
        raise HeaderError(f"array {name!r} of shape {shape} and dtype {dtype} has a wrong size")
    return ArrayEntry(name, dtype, shape, row["offset"], row["nbytes"])


def check_shape(shape: Any, name: str) -> tuple[int, ...]:
    """Return a list of sizes as a tuple."""
    if not isinstance(shape, list) or not all(is_size(length) for length in shape):
        raise HeaderError(f"array {name!r} has a shape that is not a list of whole numbers")
    return tuple(shape)


def is_size(value: Any) -> TypeGuard[int]:
    """Tell whether `value` is a whole number of at least zero, and not a bool."""
    return type(value) is int and value >= 0


def _check_values(array: Array, entry: ArrayEntry) -> None:
    """Refuse bytes that are no value of their dtype: NumPy trusts them unseen."""
    if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise HeaderError(f"array {entry.name!r} holds bytes that are neither True nor False")
    if array.dtype.kind == "U" and array.size:
        points = array.reshape(-1).view("<u4")
        if points.max() > _LAST_CODE_POINT:
            raise HeaderError(f"array {entry.name!r} holds bytes that are no characters")
