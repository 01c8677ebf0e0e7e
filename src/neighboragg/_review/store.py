"""Decisions of reviewers in SQLite: an append-only log, leases and sessions."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Self

from neighboragg._core.checks import check_choice
from neighboragg.exceptions import FileFormatError, InvalidInputError, NeighborAggError
from neighboragg.labels import ReviewSet

ACTIONS = ("keep", "relabel", "exclude", "skip", "unsure")


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the append-only log."""

    id: int
    row: int
    action: str
    label: str | None
    reviewer: str
    time: str
    based_on: int
    undoes: int | None = None
    note: str = ""

    @property
    def settled(self) -> bool:
        """Whether it decides the label (keep, relabel or exclude), unlike skip and unsure."""
        return self.action in ("keep", "relabel", "exclude")


class DecisionConflictError(NeighborAggError, RuntimeError):
    """Another reviewer has changed the row in the meantime; nothing was written."""

    def __init__(self, row: int, latest: Decision, in_force: Decision | None) -> None:
        super().__init__(
            f"{latest.reviewer} has changed row {row} in the meantime ({latest.action}); nothing was saved.\n"
            "Hint: reload the row and decide again."
        )
        self.row = row
        self.latest = latest
        self.in_force = in_force


# UNIQUE (item, based_on): every version of a row has at most one successor, so no program can overwrite a decision.
# The triggers make the log append-only. A decision stands unless it was undone; the last standing decision is in
# force. Both views are answered from indexes, row by row.
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
    """One connection, opened on first use, that serializes the transactions of all threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block with the write lock of the file; commit all of it or nothing."""
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
        # Transactions are started explicitly, and self._lock serializes the threads.
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


class Sessions:
    """Reviewer names and row leases of the browsers, stored with the decisions."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def hand_out(self, rows: Iterable[int], *, session: str, seconds: float) -> int | None:
        """Lease the first row that no other session has leased."""
        with self._database.transaction() as db:
            now = self._clock()
            taken = db.execute("SELECT item FROM leases WHERE session <> ? AND expires > ?", (session, now))
            busy = {row for (row,) in taken}
            first = None
            for row in rows:
                first = row if first is None else first
                if row not in busy:
                    first = row
                    break
            _lease(db, first, session, now, seconds)
        return first

    def look_at(self, row: int, *, session: str, seconds: float) -> str | None:
        """Lease one row if it is free; otherwise return the name of the reviewer who has leased it."""
        with self._database.transaction() as db:
            now = self._clock()
            other = db.execute(
                "SELECT reviewer FROM leases JOIN sessions USING (session) "
                "WHERE item = ? AND leases.session <> ? AND expires > ?",
                (row, session, now),
            ).fetchone()
            _lease(db, row, session, now, seconds)
        return None if other is None else str(other[0])

    def reviewer(self, session: str) -> str:
        """Return the reviewer's name of a session; a new session gets the next free number."""
        with self._database.reading() as db:
            found = db.execute("SELECT reviewer FROM sessions WHERE session = ?", (session,)).fetchone()
        return self._number(session) if found is None else str(found[0])

    def rename(self, session: str, reviewer: str) -> None:
        """Change the reviewer's name of a session; earlier entries keep the old name."""
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (session, reviewer))

    def _number(self, session: str) -> str:
        with self._database.transaction() as db:
            (count,) = db.execute("SELECT COUNT(*) FROM sessions").fetchone()
            db.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?)", (session, f"reviewer {count + 1}"))
            (name,) = db.execute("SELECT reviewer FROM sessions WHERE session = ?", (session,)).fetchone()
        return str(name)


def _lease(db: sqlite3.Connection, row: int | None, session: str, now: float, seconds: float) -> None:
    """Release the session's other leases, and lease the row unless another session has it."""
    # Do not renew a recent lease, because every write waits for the disk.
    young = "SELECT 1 FROM leases WHERE item = ? AND session = ? AND expires > ?"
    if row is not None and db.execute(young, (row, session, now + 0.9 * seconds)).fetchone():
        return
    db.execute("DELETE FROM leases WHERE session = ? OR expires <= ?", (session, now))
    if row is not None:
        db.execute("INSERT OR IGNORE INTO leases VALUES (?, ?, ?)", (row, session, now + seconds))


_COLUMNS = "id, item, action, label, reviewer, time, based_on, undoes, note"
LONGEST_LABEL = 200
LONGEST_NOTE = 1_000


class DecisionStore:
    """Append-only log of decisions about a review set, in one SQLite file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        review_set: ReviewSet,
        *,
        create: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self._given = {int(item.row): item.given for item in review_set.items}
        self._classes = frozenset(review_set.classes)
        self._clock = clock
        if not create and not self.path.exists():
            raise FileFormatError(
                f"The file of decisions {path} does not exist.\nHint: review some rows first, or check the path."
            )
        self._database = Database(self.path)
        self.sessions = Sessions(self._database, clock)
        try:
            self._claim(review_set.fingerprint)
        except sqlite3.DatabaseError as error:
            self.close()
            raise FileFormatError(f"{path} cannot be used as a decision store: {error}.") from error
        except FileFormatError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def record(
        self,
        row: int,
        *,
        action: str,
        reviewer: str,
        based_on: int,
        label: str | None = None,
        note: str = "",
        new_class: bool = False,
    ) -> Decision:
        """Append a decision."""
        check_choice(action, "action", "DecisionStore.record", choices=ACTIONS)
        if row not in self._given:
            raise InvalidInputError(f"Row {row!r} is not in the review set.")
        note = _checked_line(note, "note", LONGEST_NOTE)
        if action == "relabel":
            label = self._new_label(row, label, new_class)
            action = "keep" if label == self._given[row] else action
        chosen = {"keep": self._given[row], "relabel": label}.get(action)
        with self._database.transaction() as db:
            latest = _latest(db, row)
            if latest is None or latest.id == based_on:
                # An unknown version is stale too, but does not conflict with any entry.
                if latest is None and based_on != 0:
                    raise InvalidInputError(f"Row {row} has no version {based_on!r}.")
                db.execute("DELETE FROM leases WHERE item = ?", (row,))
                return _append(db, row, action, chosen, reviewer, self._now(), based_on, None, note)
            recorded = (latest.based_on, latest.action, latest.label, latest.reviewer, latest.note)
            if recorded == (based_on, action, chosen, reviewer, note):
                return latest
            raise DecisionConflictError(row, latest, _in_force(db, row))

    def undo(self, decision_id: int, *, reviewer: str) -> Decision:
        """Undo a decision that is in force."""
        with self._database.transaction() as db:
            found = _select(db, "decisions WHERE id = ? AND action <> 'undo'", (decision_id,))
            if not found or found[0].reviewer != reviewer:
                raise InvalidInputError(f"There is no decision {decision_id!r} of {reviewer} to undo.")
            row = found[0].row
            latest, in_force = _latest(db, row), _in_force(db, row)
            assert latest is not None  # the decision found is an entry of this row
            if latest.undoes == decision_id:
                return latest
            if in_force is None or in_force.id != decision_id:
                raise DecisionConflictError(row, latest, in_force)
            return _append(db, row, "undo", None, reviewer, self._now(), latest.id, decision_id, "")

    def current(self) -> dict[int, Decision]:
        """Return the decision in force for each row that has one."""
        with self._database.reading() as db:
            return {decision.row: decision for decision in _select(db, "current_decisions ORDER BY id")}

    def log(self, row: int | None = None) -> list[Decision]:
        """Return all entries, or the entries about one row, oldest first."""
        with self._database.reading() as db:
            if row is None:
                return _select(db, "decisions ORDER BY id")
            return _select(db, "decisions WHERE item = ? ORDER BY id", (row,))

    def entry(self, decision_id: int) -> Decision | None:
        """Return one entry of the log."""
        with self._database.reading() as db:
            found = _select(db, "decisions WHERE id = ?", (decision_id,))
        return found[0] if found else None

    def version(self, row: int) -> int:
        """Return the version of a row: the number of its last entry, or 0."""
        with self._database.reading() as db:
            latest = _latest(db, row)
        return 0 if latest is None else latest.id

    def last_of(self, reviewer: str) -> Decision | None:
        """Return the newest decision in force by one reviewer, which an undo would revert."""
        with self._database.reading() as db:
            found = _select(db, "current_decisions WHERE reviewer = ? ORDER BY id DESC LIMIT 1", (reviewer,))
        return found[0] if found else None

    def in_force(self, row: int) -> Decision | None:
        """Return the decision in force for one row."""
        with self._database.reading() as db:
            return _in_force(db, row)

    def changes(self, since: int) -> tuple[int, dict[int, Decision | None]]:
        """Return the last entry number, and the decision in force for each row with entries after `since`."""
        with self._database.reading() as db:
            (last,) = db.execute("SELECT COALESCE(MAX(id), 0) FROM decisions").fetchone()
            rows = db.execute(
                "SELECT DISTINCT item FROM decisions WHERE id > ? AND id <= ?", (since, last)
            ).fetchall()
            return last, {row: _in_force(db, row) for (row,) in rows}

    def _new_label(self, row: int, label: str | None, new_class: bool) -> str:
        """Check and return the new label of a row."""
        if new_class:
            text = _checked_line(label or "", "name of the new class", LONGEST_LABEL)
            if not text:
                raise InvalidInputError(f"Row {row}: the name of the new class is empty.")
            return text
        if label is None or label not in self._classes:
            raise InvalidInputError(
                f"Row {row}: the new label {label!r} is not among the {len(self._classes)} classes."
            )
        return label

    def _claim(self, fingerprint: str) -> None:
        """Bind a new file to the review set, and refuse a file of another review set."""
        with self._database.transaction() as db:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('review_set', ?)", (fingerprint,))
            (found,) = db.execute("SELECT value FROM meta WHERE key = 'review_set'").fetchone()
        if found != fingerprint:
            raise FileFormatError(
                f"The decisions in {self.path} belong to another review set: its rows, labels, classes or "
                "sampling plan differ.\nHint: give each review set its own store_path."
            )

    def _now(self) -> str:
        moment = datetime.fromtimestamp(self._clock(), tz=UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _append(db: sqlite3.Connection, *entry: Any) -> Decision:
    cursor = db.execute(
        "INSERT INTO decisions (item, action, label, reviewer, time, based_on, undoes, note) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        entry,
    )
    return Decision(cursor.lastrowid or 0, *entry)


def _select(db: sqlite3.Connection, source: str, values: tuple[Any, ...] = ()) -> list[Decision]:
    return [Decision(*entry) for entry in db.execute(f"SELECT {_COLUMNS} FROM {source}", values)]


def _latest(db: sqlite3.Connection, row: int) -> Decision | None:
    found = _select(db, "decisions WHERE item = ? ORDER BY id DESC LIMIT 1", (row,))
    return found[0] if found else None


def _in_force(db: sqlite3.Connection, row: int) -> Decision | None:
    found = _select(db, "current_decisions WHERE item = ?", (row,))
    return found[0] if found else None


def _checked_line(text: str, name: str, longest: int) -> str:
    """Return a line that a person typed, without blanks around it."""
    text = " ".join(text.split())
    if len(text) > longest or not text.isprintable():
        raise InvalidInputError(f"The {name} must be one line of up to {longest:,} printable characters.")
    return text
