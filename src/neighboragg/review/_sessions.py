"""Who is looking at what: names of sessions, and leases that keep reviewers out of each other's way."""

import sqlite3
from collections.abc import Callable, Iterable

from neighboragg.review._database import Database

__all__ = ["Sessions"]


class Sessions:
    """Names and leases of the browsers at a review set, in the file of its decisions.

    Parameters
    ----------
    database : Database
        The file.
    clock : callable
        Seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def hand_out(self, rows: Iterable[int], *, session: str, seconds: float) -> int | None:
        """Lease the first row that nobody else is looking at.

        Parameters
        ----------
        rows : iterable of int
            Rows in the order of preference; read only as far as needed.
        session : str
            Who gets the row: one browser. Its former lease ends.
        seconds : float
            How long other sessions are given other rows.

        Returns
        -------
        row : int or None
            If all are leased to others, the first: a lease is a courtesy, not a lock. None without rows.
        """
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
        """Lease one row if it is free, and return the name of another reviewer who is looking at it."""
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
        """Return the name of the reviewer in a session; a new session gets the next free number."""
        with self._database.reading() as db:
            found = db.execute("SELECT reviewer FROM sessions WHERE session = ?", (session,)).fetchone()
        return self._number(session) if found is None else str(found[0])

    def rename(self, session: str, reviewer: str) -> None:
        """Give the reviewer in a session another name; entries made before keep the old one."""
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (session, reviewer))

    def _number(self, session: str) -> str:
        with self._database.transaction() as db:
            (count,) = db.execute("SELECT COUNT(*) FROM sessions").fetchone()
            db.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?)", (session, f"reviewer {count + 1}"))
            (name,) = db.execute("SELECT reviewer FROM sessions WHERE session = ?", (session,)).fetchone()
        return str(name)


def _lease(db: sqlite3.Connection, row: int | None, session: str, now: float, seconds: float) -> None:
    """Give up the session's other leases, and take the row unless somebody else holds it."""
    # A lease that is still young is left alone: every write waits for the disk.
    young = "SELECT 1 FROM leases WHERE item = ? AND session = ? AND expires > ?"
    if row is not None and db.execute(young, (row, session, now + 0.9 * seconds)).fetchone():
        return
    db.execute("DELETE FROM leases WHERE session = ? OR expires <= ?", (session, now))
    if row is not None:
        db.execute("INSERT OR IGNORE INTO leases VALUES (?, ?, ?)", (row, session, now + seconds))
