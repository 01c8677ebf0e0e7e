"""Arrays of strings as arrays of numbers: code points, or UTF-8 bytes with lengths."""

from collections.abc import Sequence

import numpy as np

from neighboragg._typing import Array
from neighboragg.persistence._file import MalformedError

__all__ = ["read_text", "write_text"]

_LAST_CODE_POINT = 0x10FFFF


def write_text(array: Array) -> dict[str, Array] | None:
    """Tensors for an array of strings, by the end of their name; None if some object is not a str.

    Strings of one width become code points in a last axis; objects become UTF-8 bytes and their lengths.
    """
    if array.dtype.kind == "U":
        # Strings of width 0 are all empty; width 1 says the same and is a type NumPy makes itself.
        width = max(1, array.dtype.itemsize // 4)
        points = np.asarray(array, dtype=f"<U{width}", order="C").reshape(-1).view("<u4")
        return {"": points.reshape(*array.shape, width)}
    items = array.reshape(-1).tolist()
    if not all(type(item) is str for item in items):
        return None
    encoded = [item.encode("utf-8", "surrogatepass") for item in items]
    lengths = np.array([len(item) for item in encoded], dtype="<i8").reshape(array.shape)
    return {"": np.frombuffer(b"".join(encoded), dtype=np.uint8), "lengths": lengths}


def read_text(tensors: Sequence[Array]) -> Array:
    """The array that :func:`write_text` was given."""
    if len(tensors) == 1:
        return _from_code_points(tensors[0])
    if len(tensors) == 2:
        return _from_bytes(*tensors)
    raise MalformedError("an array of strings has other parts than expected")


def _from_code_points(points: Array) -> Array:
    if points.dtype != np.uint32 or points.ndim < 1 or not points.shape[-1]:
        raise MalformedError("an array of strings has no code points")
    if points.max(initial=0) > _LAST_CODE_POINT:
        raise MalformedError("an array of strings holds numbers that are no characters")
    return points.reshape(-1).view(f"U{points.shape[-1]}").reshape(points.shape[:-1])


def _from_bytes(data: Array, lengths: Array) -> Array:
    if data.dtype != np.uint8 or data.ndim != 1 or lengths.dtype != np.int64:
        raise MalformedError("an array of strings has no bytes and lengths")
    sizes = lengths.reshape(-1)
    if sizes.min(initial=0) < 0 or sizes.max(initial=0) > len(data) or sizes.sum() != len(data):
        raise MalformedError("the lengths of strings are not those of the bytes there are")
    ends = np.cumsum(sizes).tolist()
    content = data.tobytes()
    flat = np.empty(len(sizes), dtype=object)
    try:
        flat[:] = [
            content[end - size : end].decode("utf-8", "surrogatepass")
            for end, size in zip(ends, sizes.tolist(), strict=True)
        ]
    except UnicodeDecodeError as error:
        raise MalformedError(f"an array of strings holds bytes that are no characters ({error})") from error
    return flat.reshape(lengths.shape)
