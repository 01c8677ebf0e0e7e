"""The file: safetensors with a digest of every part."""

import json
import mmap as system
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from io import BufferedReader, BufferedWriter
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from neighboragg._core.types import Array
from neighboragg.exceptions import FileFormatError, InvalidParameterError

FORMAT = 3
"""Number of the file format that this version writes and reads."""

#: NumPy's names of what safetensors can hold, by the names that safetensors has for them.
DTYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1"} | {
    f"{name}{8 * size}": f"<{name.lower()}{size}" for name in "IUF" for size in (2, 4, 8)
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
# The limit of safetensors itself.
_LARGEST_HEADER = 100_000_000
# Unescaped quotes occur nowhere in the header but around a key or a value.
_DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_BLANK = b"0" * 64
_DAMAGED = "Hint: copy the file again, or save the model again."
_FOREIGN: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle, as written by pickle or joblib"),
    ((b"x\x01", b"x^", b"x\x9c", b"x\xda"), "a zlib stream, as joblib writes a compressed pickle"),
    ((b"\x1f\x8b", b"BZh", b"\xfd7zXZ"), "a compressed file, perhaps a pickle by joblib"),
    ((b"PK\x03\x04",), "a zip archive, such as .npz or .skops"),
    ((b"\x93NUMPY",), "a NumPy .npy file"),
    ((b"\x89HDF",), "an HDF5 file"),
    ((b"PAR1",), "a Parquet file"),
    ((b"\x89NAGG",), "a file of a development version of neighboragg, with a format of its own"),
)


class MalformedError(Exception):
    """Content that no saving could have written; who knows the path turns it into a FileFormatError."""


def write_file(
    path: str | os.PathLike[str], document: Mapping[str, Any], tensors: Mapping[str, Array]
) -> None:
    """Write named arrays, and a document as JSON text, in the place of what is at `path`."""
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))  # so that each is aligned
    # ASCII with escapes is valid UTF-8 and holds even lone surrogates.
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    digests = {name: sha256(_as_bytes(tensors[name])).hexdigest() for name in names}
    entries: dict[str, Any] = {
        "__metadata__": {"sha256": _BLANK.decode(), "arrays": json.dumps(digests), "neighboragg": text}
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
    header += b" " * (-(8 + len(header)) % 64)  # so that the arrays begin with a cache line
    if len(header) > _LARGEST_HEADER:
        raise InvalidParameterError(
            f"What is not an array takes {len(header):,} bytes, and a safetensors file holds at most "
            f"{_LARGEST_HEADER:,} of these.\nHint: save it without long lists of strings."
        )
    header = header.replace(_BLANK, _digest_of(header).encode("ascii"), 1)
    parts: list[bytes | memoryview] = [len(header).to_bytes(8, "little"), header]
    parts += [_as_bytes(tensors[name]) for name in names]
    _replace(Path(path), lambda file: file.writelines(parts))


def read_file(
    path: str | os.PathLike[str], *, mmap: bool = False
) -> tuple[dict[str, Any], Mapping[str, Array]]:
    """Return the document and the arrays of a file, after every check that needs no knowledge of its content."""
    path = Path(path)
    with path.open("rb") as file:
        header, entries = _read_entries(file, path)
        document = _parse_document(entries, path)
        digests = _checked_digests(header, entries, path)
        start = 8 + len(header)
        if mmap:
            # Not numpy.memmap: joblib sends the path of one to its processes, where the file may be another by then.
            pages = system.mmap(file.fileno(), 0, access=system.ACCESS_READ)
            whole = np.ndarray(len(pages), dtype=np.uint8, buffer=pages)
            return document, MappedArrays(path, whole[start:], entries, digests)
        arrays = {}
        for name, digest in digests.items():
            raw = _read_bytes(file, start, name, entries[name])
            _check_digest(raw, name, digest, path)
            arrays[name] = _as_array(raw, name, entries[name], path)
    return document, arrays


class MappedArrays(Mapping[str, Array]):
    """Arrays as views of a file in memory, each read and checked when it is first asked for."""

    def __init__(
        self, path: Path, payload: Array, entries: Mapping[str, Any], digests: Mapping[str, str]
    ) -> None:
        self.path, self._payload, self._entries, self._digests = path, payload, entries, digests
        self._checked: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._checked:
            digest, entry = self._digests[name], self._entries[name]
            raw = self._payload[slice(*entry["data_offsets"])]
            _check_digest(raw, name, digest, self.path)
            self._checked[name] = _as_array(raw, name, entry, self.path)
        return self._checked[name]

    def __contains__(self, name: object) -> bool:
        return name in self._digests

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise unless every byte of a file is as its digests say, without reading it into memory."""
    _, arrays = read_file(path, mmap=True)
    dict(arrays)  # each is checked as it is asked for


def read_digest(path: str | os.PathLike[str]) -> str:
    """Return the digest that a file says it has; :func:`check_file` finds whether it is so."""
    path = Path(path)
    with path.open("rb") as file:
        _, entries = _read_entries(file, path)
    _parse_document(entries, path)
    return str(entries["__metadata__"]["sha256"])


def _as_bytes(array: Array) -> memoryview:
    """View the memory of a C-ordered array as bytes."""
    return array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")


def _replace(path: Path, write: Callable[[BufferedWriter], None]) -> None:
    """Let `write` fill a new file beside `path`, then put it in the place of `path` in one step."""
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


def _read_entries(file: BufferedReader, path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the header as it stands there, and its entries."""
    size = os.fstat(file.fileno()).st_size
    header = _read_header(file, size, path)
    return header, _parse_header(header, size, path)


def _read_header(file: BufferedReader, size: int, path: Path) -> bytes:
    """Return the header of what may be a safetensors file."""
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    # Any two bytes may begin the length of a header, so that it is looked at before the signs of other formats.
    if start[8:] != b"{" or length > _LARGEST_HEADER:
        raise FileFormatError(f"{str(path)!r} is not a neighboragg file: {_guess(start)}")
    if size < 8 + length:
        raise _truncated(path, size, 8 + length)
    return start[8:] + file.read(length - 1)


def _guess(start: bytes) -> str:
    """Say what a foreign file looks like, and what to do with it."""
    if not start:
        return "it is empty."
    for signs, description in _FOREIGN:
        if start.startswith(signs):
            return (
                f"it looks like {description}.\n"
                "Hint: load it with the library that wrote it, if you trust where it comes from."
            )
    return f"it begins with {start[:8]!r}.\nHint: check the path."


def _truncated(path: Path, size: int, expected: int) -> FileFormatError:
    return FileFormatError(
        f"{str(path)!r} is truncated: it has {size} bytes, and should have at least {expected}.\n{_DAMAGED}"
    )


def _parse_header(header: bytes, size: int, path: Path) -> dict[str, Any]:
    """Return the entries of a header that safetensors finds valid for this file."""
    entries = _parse_json(header.decode("utf-8", "replace"))
    expected = 8 + len(header)
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        ends = [entry["data_offsets"][1] for name, entry in entries.items() if name != "__metadata__"]
        expected += max(ends)
    if size < expected:
        raise _truncated(path, size, expected)
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, ValueError) as error:
        raise FileFormatError(f"The header of {str(path)!r} is not valid: {error}.\n{_DAMAGED}") from error
    if not isinstance(entries, dict):
        raise FileFormatError(f"The header of {str(path)!r} is not valid: it is not JSON.\n{_DAMAGED}")
    return entries


def _parse_json(text: str) -> Any:
    """Return what a JSON text says, or None; NaN and Infinity are not JSON."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _parse_document(entries: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the document among the entries, if it is of the format that is read here."""
    metadata = entries.get("__metadata__")
    if not isinstance(metadata, dict) or not {"neighboragg", "sha256"} <= set(metadata):
        raise FileFormatError(
            f"{str(path)!r} is not a neighboragg file: it is a safetensors file of other software.\n"
            "Hint: check the path."
        )
    document = _parse_json(metadata["neighboragg"])
    number = document.get("format") if isinstance(document, dict) else None
    if not isinstance(document, dict) or type(number) is not int:
        raise FileFormatError(
            f"The header of {str(path)!r} is not valid: it has no format number.\n{_DAMAGED}"
        )
    if number != FORMAT:
        remedy = "upgrade neighboragg" if number > FORMAT else "save the model again with this version"
        raise FileFormatError(
            f"{str(path)!r} has the format number {number}, and this version of neighboragg reads {FORMAT}.\n"
            f"Hint: {remedy}."
        )
    return document


def _checked_digests(header: bytes, entries: dict[str, Any], path: Path) -> dict[str, str]:
    """Return the digests of the arrays, if the header has the digest that it says."""
    found, expected = _DIGEST.findall(header), _digest_of(header)
    if found != [expected.encode("ascii")] or entries["__metadata__"]["sha256"] != expected:
        raise FileFormatError(
            f"{str(path)!r} is damaged: the digest of its header does not match its content.\n{_DAMAGED}"
        )
    digests = _parse_json(entries["__metadata__"].get("arrays", ""))
    if not isinstance(digests, dict) or digests.keys() != entries.keys() - {"__metadata__"}:
        raise FileFormatError(
            f"The header of {str(path)!r} is not valid: it has other digests than arrays.\n{_DAMAGED}"
        )
    return digests


def _digest_of(header: bytes) -> str:
    """The digest of a header with zeros in its place, and of its length."""
    blank = _DIGEST.sub(b'"sha256":"' + _BLANK + b'"', header)
    return sha256(len(header).to_bytes(8, "little") + blank).hexdigest()


def _check_digest(raw: Array, name: str, digest: str, path: Path) -> None:
    if sha256(raw.data).hexdigest() != digest:
        raise FileFormatError(
            f"{str(path)!r} is damaged: the digest of its array {name!r} does not match its content.\n{_DAMAGED}"
        )


def _read_bytes(file: BufferedReader, start: int, name: str, entry: Any) -> Array:
    first, end = entry["data_offsets"]
    try:
        raw = np.empty(end - first, dtype=np.uint8)
        file.seek(start + first)
        if file.readinto(raw.data) != raw.nbytes:
            raise ValueError("the file changed while it was read")
    except (TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"The array {name!r} of {file.name!r} cannot be made: {error}.") from error
    return raw


def _as_array(raw: Array, name: str, entry: Any, path: Path) -> Array:
    """Return the array that bytes stand for: a view of them if they lie as they should."""
    if entry["dtype"] not in DTYPES:
        raise FileFormatError(f"The array {name!r} of {str(path)!r} has the unknown type {entry['dtype']!r}.")
    try:
        array = raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    except (TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"The array {name!r} of {str(path)!r} cannot be made: {error}.") from error
    if array.dtype.kind == "b" and raw.max(initial=0) > 1:
        raise FileFormatError(
            f"The array {name!r} of {str(path)!r} holds bytes that are neither True nor False."
        )
    # What others wrote may lie anywhere, and compiled code expects numbers at multiples of their size.
    return np.require(array.astype(array.dtype.newbyteorder("="), copy=False), requirements="A")


_LAST_CODE_POINT = 0x10FFFF


def write_text(array: Array) -> dict[str, Array] | None:
    """Tensors for an array of strings, by the end of their name; None if some object is not a str."""
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
