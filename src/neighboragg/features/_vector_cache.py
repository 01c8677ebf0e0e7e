"""A cache of vectors on disk, keyed by encoder and content."""

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
# Every version of SQLite accepts at least this many parameters.
MAX_KEYS = 500
SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    encoder TEXT NOT NULL, content BLOB NOT NULL, type TEXT NOT NULL, vector BLOB NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (encoder, content)
) WITHOUT ROWID
"""

_T = TypeVar("_T")


class VectorCache:
    """Vectors in one SQLite file, keyed by the identity of the encoder and the digest of the content."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.path = (home() / "vectors" if folder is None else Path(folder).expanduser()) / FILE

    def get(self, encoder: str, contents: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """The cached vectors, by content."""
        if not self.path.exists():
            return {}

        def read(connection: "sqlite3.Connection") -> list[tuple[bytes, str, bytes, bytes]]:
            rows = []
            for start in range(0, len(contents), MAX_KEYS):
                keys = contents[start : start + MAX_KEYS]
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
        """Store vectors, replacing existing ones."""
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
        """Delete all vectors of an encoder."""
        if self.path.exists():
            self._run(
                lambda connection: connection.execute("DELETE FROM vectors WHERE encoder = ?", [encoder])
            )

    def clear(self) -> None:
        """Delete the file, and the renamed copy of a damaged file."""
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
        """Run an action on the file; if the file is damaged, rename it and retry with a new one."""
        import sqlite3  # missing in some builds of Python, and most of this package works without it

        try:
            with self._connection() as connection:
                return action(connection)
        except sqlite3.OperationalError as error:  # locked, full or not writable
            raise InvalidInputError(
                f"The vector cache {self.path} cannot be used: {error}.\n"
                "Hint: set NEIGHBORAGG_HOME to a writable folder."
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
                f"The folder of the vector cache, {self.path.parent}, cannot be created: {error.strerror}.\n"
                "Hint: set NEIGHBORAGG_HOME to a writable folder."
            ) from error
        with closing(sqlite3.connect(self.path, timeout=30.0)) as connection, connection:
            connection.execute(SCHEMA)
            yield connection


def _digest(encoder: str, content: bytes, kind: str, raw: bytes) -> bytes:
    return hashlib.sha256(b"\0".join([encoder.encode(), content, kind.encode(), raw])).digest()
