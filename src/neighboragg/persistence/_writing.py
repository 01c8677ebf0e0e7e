"""Saving a record: a prefix, a JSON header, aligned arrays, and a checksum over all of it."""

import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import Any

from neighboragg._typing import Array
from neighboragg.exceptions import InvalidParameterError
from neighboragg.persistence._arrays import aligned, as_bytes, directory, payload_nbytes
from neighboragg.persistence._layout import FORMAT, MAGIC, PREFIX
from neighboragg.persistence._tree import encode

_LIBRARIES = ("neighboragg", "numpy", "scipy", "scikit-learn")


def write_record(path: str | os.PathLike[str], kind: str, record: dict[str, Any]) -> None:
    """Save a record as one file, all of it or nothing.

    Parameters
    ----------
    path : str or path-like
        File to write. An existing file is replaced, in one step, when the new one is complete.
    kind : str
        What the record is; given back by :func:`read_record`.
    record : dict
        Nested dict with str keys. A value is None, a bool, int, float or str, a NumPy array, a list
        of values, or another such dict. Arrays are of bool, integers, floats of at most 64 bits, or
        strings; object arrays may hold only str. NumPy scalars become Python scalars.

    Raises
    ------
    InvalidParameterError
        If a value cannot be saved; the message names its key path.
    OSError
        If the file cannot be written; what was at `path` is then untouched.

    See Also
    --------
    read_record : Read the file again.

    Notes
    -----
    The file is, in order: 8 magic bytes; the format number as little-endian uint32; the length of the
    header as uint64; the header, UTF-8 JSON; the arrays, each at a multiple of 64 bytes from the
    start of the file; the SHA-256 of all before it. The header holds the kind, the versions of the
    libraries, the record with placeholders for arrays, the size of the payload, and per array its
    name, dtype, shape, size, and offset. Offsets count from the start of the payload, the first
    multiple of 64 after the header. The checksum finds damage; it is no signature.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from neighboragg.persistence import read_record, write_record
    >>> theta = np.random.default_rng(0).normal(size=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_record(f"{folder}/pool.nagg", "pool", {"theta": theta, "radius": float("inf")})
    ...     kind, record = read_record(f"{folder}/pool.nagg")
    >>> kind, round(float(record["theta"].sum()), 4), record["radius"]
    ('pool', 0.634, inf)
    """
    if not isinstance(kind, str) or not kind:
        raise InvalidParameterError(
            f"The 'kind' parameter of write_record must be a non-empty str. Got {kind!r} instead."
        )
    if not isinstance(record, dict):
        raise InvalidParameterError(
            f"The 'record' parameter of write_record must be a dict. Got {type(record).__name__!r} instead."
        )
    tree, arrays = encode(record)
    entries = directory(arrays)
    header = {
        "kind": kind,
        "versions": _versions(),
        "payload_nbytes": payload_nbytes(entries),
        "arrays": [entry._asdict() for entry in entries],
        "record": tree,
    }
    # ASCII with escapes is valid UTF-8 and holds even lone surrogates.
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    _replace(Path(path), lambda file: _write(file, text, [array for _, array in arrays]))


def _versions() -> dict[str, str | None]:
    """Return the versions of Python and of the libraries that shape a saved model."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = None
    return found


def _write(file: BufferedWriter, header: bytes, arrays: list[Array]) -> None:
    """Write all parts of a file, and the checksum behind them."""
    digest = sha256()
    position = 0

    def put(part: bytes | memoryview) -> None:
        nonlocal position
        digest.update(part)
        file.write(part)
        position += len(part)

    put(PREFIX.pack(MAGIC, FORMAT, len(header)))
    put(header)
    put(bytes(aligned(position) - position))
    for array in arrays:
        put(bytes(aligned(position) - position))
        put(as_bytes(array))
    file.write(digest.digest())


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
