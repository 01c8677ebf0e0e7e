"""The file: named arrays and a JSON document in the layout of safetensors, with a digest of every part."""

import json
import mmap as system
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from io import BufferedReader, BufferedWriter
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import Any, NamedTuple

import numpy as np

from neighboragg._core.types import Array
from neighboragg.exceptions import FileFormatError, InvalidParameterError

FORMAT = 4
"""Number of the file format that this version writes and reads."""

#: NumPy's names of the types that safetensors can hold, by the names that safetensors has for them.
DTYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1"} | {
    f"{name}{8 * size}": f"<{name.lower()}{size}" for name in "IUF" for size in (2, 4, 8)
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
# The limit of safetensors itself.
_LARGEST_HEADER = 100_000_000
# Stands in the place of the header's digest while that is computed.
_BLANK = "0" * 64
_DAMAGED = "Hint: copy the file again, or save the model again."


def write_file(
    path: str | os.PathLike[str], document: Mapping[str, Any], tensors: Mapping[str, Array]
) -> None:
    """Write named arrays, and a document as JSON text, in the place of what is at `path`."""
    # The widest types come first, which puts every array at a multiple of its item size.
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    # ASCII with escapes is valid UTF-8 and holds even lone surrogates.
    text = json.dumps(document, separators=(",", ":"))
    digests = {name: sha256(_as_bytes(tensors[name])).hexdigest() for name in names}
    entries: dict[str, Any] = {
        "__metadata__": {"sha256": _BLANK, "arrays": json.dumps(digests), "neighboragg": text}
    }
    end = 0
    for name in names:
        array = tensors[name]
        start, end = end, end + array.nbytes
        entries[name] = {
            "dtype": _NAMES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [start, end],
        }
    header = json.dumps(entries, separators=(",", ":")).encode("ascii")
    header += b" " * (-(8 + len(header)) % 64)  # the arrays begin with a cache line
    if len(header) > _LARGEST_HEADER:
        raise InvalidParameterError(
            f"The parts of this object that are not arrays take {len(header):,} bytes, and a safetensors file holds "
            f"at most {_LARGEST_HEADER:,} of these.\nHint: save it without long lists of strings."
        )
    # The digest is the first entry, and so replaces the first zeros.
    header = header.replace(_BLANK.encode(), _digest_of(header, _BLANK).encode(), 1)

    def write(file: BufferedWriter) -> None:
        # `safetensors.numpy.save_file` would copy every array, and those of a mapped model may not fit into memory.
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        file.writelines(_as_bytes(tensors[name]) for name in names)

    _replace(Path(path), write)


def read_file(path: str | os.PathLike[str], *, mmap: bool = False) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the document and the arrays of a file whose every byte has been compared with its digest."""
    path = Path(path)
    arrays = {}
    with path.open("rb") as file:
        header = _read_header(file, path)
        # Not numpy.memmap: joblib sends the path of one to its processes, where the file may have been replaced.
        pages = system.mmap(file.fileno(), 0, access=system.ACCESS_READ) if mmap else None
        for name, entry in header.entries.items():
            start, end = entry["data_offsets"]
            if pages is None:
                raw = np.empty(end - start, dtype=np.uint8)
                file.readinto(raw.data)
            else:
                raw = np.ndarray(end - start, np.uint8, pages, header.size + start)
            if sha256(raw.data).hexdigest() != header.digests[name]:
                raise FileFormatError(
                    f"{str(path)!r} is damaged: the digest of its array {name!r} does not match its content."
                    f"\n{_DAMAGED}"
                )
            array = raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return header.document, arrays


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise unless every byte of a file matches its digests, without reading it into memory."""
    read_file(path, mmap=True)


def read_digest(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file's header, which holds the digests of all arrays."""
    path = Path(path)
    with path.open("rb") as file:
        return _read_header(file, path).digest


class _Header(NamedTuple):
    """The first part of a file: everything but the arrays."""

    size: int
    digest: str
    document: dict[str, Any]
    digests: dict[str, str]
    entries: dict[str, dict[str, Any]]


def _read_header(file: BufferedReader, path: Path) -> _Header:
    """Return the header of a file that has the length and the digest that its header states."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if start[8:] != b"{" or not 2 <= length <= _LARGEST_HEADER:
        raise _not_ours(path)
    raw = start[8:] + file.read(length - 1)
    if len(raw) < length:
        raise _truncated(path, size, 8 + length)
    try:
        entries = json.loads(raw)
        metadata = entries.pop("__metadata__")
        stated, document = metadata["sha256"], json.loads(metadata["neighboragg"])
        number, digest = int(document["format"]), _digest_of(raw, stated)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if b'"neighboragg":' not in raw:
            raise _not_ours(path) from error
        raise FileFormatError(f"{str(path)!r} is damaged: its header is not valid.\n{_DAMAGED}") from error
    if number != FORMAT:
        remedy = "upgrade neighboragg" if number > FORMAT else "save the model again with this version"
        raise FileFormatError(
            f"{str(path)!r} has the format number {number}, and this version of neighboragg reads {FORMAT}.\n"
            f"Hint: {remedy}."
        )
    if digest != stated:
        raise FileFormatError(
            f"{str(path)!r} is damaged: the digest of its header does not match its content.\n{_DAMAGED}"
        )
    expected = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    if size < expected:
        raise _truncated(path, size, expected)
    if size > expected:
        raise FileFormatError(
            f"{str(path)!r} is damaged: it has {size} bytes, and should have {expected}.\n{_DAMAGED}"
        )
    return _Header(8 + length, digest, document, json.loads(metadata["arrays"]), entries)


def _not_ours(path: Path) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is not a neighboragg file.\nHint: load reads only files that save has written."
    )


def _truncated(path: Path, size: int, expected: int) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is truncated: it has {size} bytes, and should have at least {expected}.\n{_DAMAGED}"
    )


def _digest_of(header: bytes, stated: str) -> str:
    """The digest of a header, with zeros in the place of the digest that it states, and of its length."""
    blank = header.replace(stated.encode(), _BLANK.encode(), 1)
    return sha256(len(header).to_bytes(8, "little") + blank).hexdigest()


def _as_bytes(array: Array) -> memoryview:
    """View the memory of a C-ordered array as bytes."""
    return array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")


def _replace(path: Path, write: Callable[[BufferedWriter], None]) -> None:
    """Let `write` fill a new file next to `path`, then put it in the place of `path` in one step."""
    target = path.resolve()  # a symbolic link stays one
    temporary = target.with_name(f".nagg-{token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.is_file():
            copymode(target, temporary)
        temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        # The system's own message would name the temporary file.
        reason = f"Cannot save to the folder {str(target.parent)!r} ({error.strerror or error})"
        raise OSError(error.errno, reason, str(path)) from error


def write_text(array: Array) -> dict[str, Array] | None:
    """Tensors for an array of strings, by the end of their name; None if some object is not a str."""
    if array.dtype.kind == "U":
        # Strings of width 0 are all empty. Width 1 means the same and is a type that NumPy makes itself.
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
        (points,) = tensors
        return points.reshape(-1).view(f"U{points.shape[-1]}").reshape(points.shape[:-1])
    data, lengths = tensors
    content, ends = data.tobytes(), np.cumsum(lengths.reshape(-1)).tolist()
    flat = np.empty(lengths.size, dtype=object)
    flat[:] = [
        content[start:end].decode("utf-8", "surrogatepass")
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    return flat.reshape(lengths.shape)
