"""The SQLite file behind the decision store: its tables, its settings, and one connection for all threads."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

__all__ = ["Database"]

# UNIQUE (item, based_on): every version of a row has at most one successor, so that no decision can be
# overwritten, whatever program writes. The triggers make the log append-only for everyone. A decision stands unless
# it was undone; the last that stands is in force. Both views are answered from indexes, row by row.
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    item INTEGER NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('keep', 'relabel', 'exclude', 'skip', 'unsure', 'undo')),
    label TEXT,
    reviewer TEXT NOT NULL,
    time TEXT NOT NULL,
    based_on INTEGER NOT NULL,
    undoes INTEGER UNIQUE REFERENCES decisions (id),
    note TEXT NOT NULL DEFAULT '',
    UNIQUE (item, based_on),
    CHECK ((action = 'undo') = (undoes IS NOT NULL)),
    CHECK ((action IN ('keep', 'relabel')) = (label IS NOT NULL))
);
CREATE TRIGGER IF NOT EXISTS decisions_never_change BEFORE UPDATE ON decisions
    BEGIN SELECT RAISE(ABORT, 'the decision log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS decisions_never_go BEFORE DELETE ON decisions
    BEGIN SELECT RAISE(ABORT, 'the decision log is append-only'); END;
CREATE INDEX IF NOT EXISTS decisions_of_reviewer ON decisions (reviewer, id);
CREATE VIEW IF NOT EXISTS standing AS
    SELECT * FROM decisions AS d WHERE action <> 'undo' AND NOT EXISTS (SELECT 1 FROM decisions WHERE undoes = d.id);
CREATE VIEW IF NOT EXISTS current_decisions AS
    SELECT * FROM standing AS s WHERE NOT EXISTS (SELECT 1 FROM standing WHERE item = s.item AND id > s.id);
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, reviewer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS leases (item INTEGER PRIMARY KEY, session TEXT NOT NULL, expires REAL NOT NULL);
COMMIT;
"""


class Database:
    """One connection, opened on first use; transactions of all threads one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block with the write lock of the file: all of it is kept, or nothing."""
        with self._lock:
            connection = self._connection or self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Run the block without the write lock."""
        with self._lock:
            yield self._connection or self._open()

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        # Transactions are begun by hand, and the lock above serializes the threads.
        connection = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL syncs the log at each commit: a decision shown as saved survives a power failure.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection
