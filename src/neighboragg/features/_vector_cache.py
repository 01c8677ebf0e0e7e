"""Vectors kept on disk, by what they were made from and by what made them."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from neighboragg._core.files import home
from neighboragg._core.types import FloatArray
from neighboragg.exceptions import InvalidInputError

if TYPE_CHECKING:
    import sqlite3

FILE = "neighboragg-vectors.sqlite"
TYPES: dict[str, np.dtype[Any]] = {"f4": np.dtype("<f4"), "f8": np.dtype("<f8")}
# SQLite takes this many parameters at least.
MOST_KEYS = 500
SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    encoder TEXT NOT NULL, content BLOB NOT NULL, type TEXT NOT NULL, vector BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (encoder, content)
) WITHOUT ROWID
"""

_T = TypeVar("_T")


class VectorCache:
    """Vectors on disk in one SQLite file, by the digest of a content and the identity of an encoder."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.path = (home() / "vectors" if folder is None else Path(folder).expanduser()) / FILE

    def get(self, encoder: str, contents: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """The vectors that are there, by content."""
        if not self.path.exists():
            return {}

        def read(connection: "sqlite3.Connection") -> list[tuple[bytes, str, bytes, bytes]]:
            rows = []
            for start in range(0, len(contents), MOST_KEYS):
                keys = contents[start : start + MOST_KEYS]
                marks = ",".join("?" * len(keys))
                rows += connection.execute(
                    f"SELECT content, type, vector, digest FROM vectors WHERE encoder = ? AND content IN ({marks})",
                    [encoder, *keys],
                ).fetchall()
            return rows

        found = {}
        for content, kind, raw, digest in self._run(read):
            if _digest(encoder, content, kind, raw) == digest and kind in TYPES:
                vector = np.frombuffer(raw, dtype=TYPES[kind])
                if np.isfinite(vector).all():
                    found[content] = vector
        return found

    def put(self, encoder: str, vectors: Mapping[bytes, FloatArray]) -> None:
        """Keep vectors; those that are there already are replaced."""
        rows = []
        for content, vector in vectors.items():
            kind = "f4" if vector.dtype == np.float32 else "f8"
            raw = vector.astype(TYPES[kind]).tobytes()
            rows.append((encoder, content, kind, raw, _digest(encoder, content, kind, raw)))
        self._run(
            lambda connection: connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows
            )
        )

    def forget(self, encoder: str) -> None:
        """Drop all vectors of an encoder."""
        if self.path.exists():
            self._run(
                lambda connection: connection.execute("DELETE FROM vectors WHERE encoder = ?", [encoder])
            )

    def clear(self) -> None:
        """Remove the file, and a damaged one that was put aside."""
        for path in (
            self.path,
            self._aside,
            *(Path(f"{self.path}{end}") for end in ("-journal", "-wal", "-shm")),
        ):
            path.unlink(missing_ok=True)

    def __len__(self) -> int:
        """Number of vectors."""
        if not self.path.exists():
            return 0
        return int(
            self._run(lambda connection: connection.execute("SELECT COUNT(*) FROM vectors").fetchone()[0])
        )

    @property
    def _aside(self) -> Path:
        return self.path.with_suffix(".damaged")

    def _run(self, action: "Callable[[sqlite3.Connection], _T]") -> _T:
        """Do something with the file; one that is damaged is put aside, and the same done with a new one."""
        import sqlite3  # not every Python has it, and most of this package needs none

        try:
            with self._connection() as connection:
                return action(connection)
        except sqlite3.OperationalError as error:  # locked, full, not writable
            raise InvalidInputError(
                f"The cache of vectors {self.path} cannot be used: {error}.\n"
                "Hint: set NEIGHBORAGG_HOME to a folder that can be written."
            ) from error
        except sqlite3.DatabaseError:
            with suppress(FileNotFoundError):  # another program was faster
                self.path.replace(self._aside)
            with self._connection() as connection:
                return action(connection)

    @contextmanager
    def _connection(self) -> "Iterator[sqlite3.Connection]":
        import sqlite3

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"The folder of the cache, {self.path.parent}, cannot be made: {error.strerror}.\n"
                "Hint: set NEIGHBORAGG_HOME to a folder that can be written."
            ) from error
        with closing(sqlite3.connect(self.path, timeout=30.0)) as connection, connection:
            connection.execute(SCHEMA)
            yield connection


def _digest(encoder: str, content: bytes, kind: str, raw: bytes) -> bytes:
    return hashlib.sha256(b"\0".join([encoder.encode(), content, kind.encode(), raw])).digest()
