"""Reading a record: every check that comes before a byte of the content is used."""

import json
import os
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any

from neighboragg.exceptions import FileFormatError
from neighboragg.persistence._arrays import HeaderError, aligned, check_directory, is_size, read_array
from neighboragg.persistence._layout import DIGEST_NBYTES, FORMAT, MAGIC, PREFIX
from neighboragg.persistence._tree import decode

_CHUNK_NBYTES = 1 << 20
_FOREIGN: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle, as written by pickle or joblib"),
    ((b"x\x01", b"x^", b"x\x9c", b"x\xda"), "a zlib stream, as joblib writes a compressed pickle"),
    ((b"\x1f\x8b", b"BZh", b"\xfd7zXZ"), "a compressed file, perhaps a pickle by joblib"),
    ((b"PK\x03\x04",), "a zip archive, such as .npz or .skops"),
    ((b"\x93NUMPY",), "a NumPy .npy file"),
    ((b"\x89HDF",), "an HDF5 file"),
    ((b"PAR1",), "a Parquet file"),
)


def read_record(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Read a record that :func:`write_record` saved.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    kind : str
        What the record is.
    record : dict
        The record as it was saved; every array owns its memory and is writable.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If it is not a neighboragg file, of a newer format, truncated, or damaged, or if its header
        cannot be.

    See Also
    --------
    write_record : Save a record.

    Notes
    -----
    The checks run in the order of the errors above, before anything is built from the content, and
    no size in the file is believed before it is compared with the size of the file. Nothing is
    unpickled.

    Examples
    --------
    >>> import tempfile
    >>> from neighboragg.persistence import read_record, write_record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_record(f"{folder}/a.nagg", "demo", {"fold": {"seed": 7}})
    ...     read_record(f"{folder}/a.nagg")
    ('demo', {'fold': {'seed': 7}})
    """
    path = Path(path)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header_nbytes = _check_prefix(file.read(PREFIX.size), size, path)
        header = _parse_header(file.read(header_nbytes))
        start = aligned(PREFIX.size + header_nbytes)
        _check_size(header, start, size, path)
        _check_digest(file, size, path)
        try:
            return _read_content(file, header, start, size)
        except HeaderError as error:
            raise FileFormatError(
                f"The header of {str(path)!r} is not valid: {error}.\nHint: save the model again."
            ) from error


def _check_prefix(prefix: bytes, size: int, path: Path) -> int:
    """Return the length of the header of a file that may be ours and whole."""
    found = prefix[: len(MAGIC)]
    if not found or not MAGIC.startswith(found):
        raise FileFormatError(f"{str(path)!r} is not a neighboragg file: {_guess(prefix)}")
    smallest = PREFIX.size + DIGEST_NBYTES
    if len(prefix) < PREFIX.size:
        raise _truncated(path, size, smallest)
    _, number, header_nbytes = PREFIX.unpack(prefix)
    if number > FORMAT:
        raise FileFormatError(
            f"{str(path)!r} has the format number {number}, and this version of neighboragg reads "
            f"up to {FORMAT}.\nHint: upgrade neighboragg."
        )
    if number < 1:
        raise FileFormatError(
            f"{str(path)!r} has the format number {number}, which no version of neighboragg writes: "
            "the file is damaged.\nHint: copy the file again, or save the model again."
        )
    if size < smallest + header_nbytes:
        raise _truncated(path, size, smallest + header_nbytes)
    return int(header_nbytes)


def _guess(prefix: bytes) -> str:
    """Say what a foreign file looks like, and what to do with it."""
    if not prefix:
        return "it is empty."
    for magics, description in _FOREIGN:
        if prefix.startswith(magics):
            return (
                f"it looks like {description}.\n"
                "Hint: load it with the library that wrote it, if you trust where it comes from."
            )
    return f"it begins with {prefix[: len(MAGIC)]!r}.\nHint: check the path."


def _truncated(path: Path, size: int, expected: int) -> FileFormatError:
    """Return the error of a file that ends early."""
    return FileFormatError(
        f"{str(path)!r} is truncated: it has {size} bytes, and should have at least {expected}.\n"
        "Hint: copy the file again, or save the model again."
    )


def _parse_header(text: bytes) -> Any:
    """Return the JSON of a header, or None; before the checksum, nothing but its size is used."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    """Refuse the literals NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is not JSON")


def _check_size(header: Any, start: int, size: int, path: Path) -> None:
    """Raise if the file is shorter than a readable header says."""
    payload = header.get("payload_nbytes") if isinstance(header, dict) else None
    expected = start + DIGEST_NBYTES
    if is_size(payload):
        expected += payload
    if size < expected:
        raise _truncated(path, size, expected)


def _check_digest(file: BufferedReader, size: int, path: Path) -> None:
    """Raise unless the last bytes are the checksum of all before them."""
    digest = sha256()
    file.seek(0)
    left = size - DIGEST_NBYTES
    while left > 0 and (chunk := file.read(min(left, _CHUNK_NBYTES))):
        digest.update(chunk)
        left -= len(chunk)
    if left or file.read(DIGEST_NBYTES) != digest.digest():
        raise FileFormatError(
            f"{str(path)!r} is damaged: its checksum does not match its content.\n"
            "Hint: copy the file again, or save the model again."
        )


def _read_content(file: BufferedReader, header: Any, start: int, size: int) -> tuple[str, dict[str, Any]]:
    """Return kind and record of a file whose checksum is right."""
    if not isinstance(header, dict):
        raise HeaderError("it is not a JSON object")
    kind = header.get("kind")
    if not isinstance(kind, str):
        raise HeaderError("the kind is not a string")
    entries = check_directory(header.get("arrays"), size - start - DIGEST_NBYTES)
    arrays = [read_array(file, start, entry) for entry in entries]
    return kind, decode(header.get("record"), arrays)
