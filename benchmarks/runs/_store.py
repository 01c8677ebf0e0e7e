"""Results as JSON lines: appended as they come, never computed twice."""

import itertools
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from neighboragg.exceptions import FileFormatError

__all__ = ["ResultStore"]

KEY = (
    "set",
    "label",
    "digest",
    "base",
    "seed",
    "method",
    "n_neighbors",
    "noise",
    "rate",
    "shift",
    "epochs",
    "limit",
)


class ResultStore:
    """A file of results, one JSON object a line.

    Parameters
    ----------
    path : Path, default=None
        Created if absent. A last line cut short by a crash is dropped. None keeps results in memory only.

    Notes
    -----
    The machine is written where it is another than that of the line before, and filled in again on reading.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = [] if path is None or not path.exists() else _read(path)

    def __contains__(self, wanted: dict[str, Any]) -> bool:
        return _key(wanted) in {_key(row) for row in self.rows}

    def missing(self, cell: dict[str, Any], methods: Iterable[str]) -> list[str]:
        """Methods that have no result for a cell yet."""
        done = {_key(row) for row in self.rows}
        return [name for name in methods if _key({**cell, "method": name}) not in done]

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append rows, on disk before this returns."""
        new = list(rows)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                last = self.rows[-1:]
                file.writelines(json.dumps(row) + "\n" for row in _brief(last + new)[len(last) :])
                file.flush()
                os.fsync(file.fileno())
        self.rows += new


def _brief(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the machine where it is that of the row before."""
    before = [None, *(row.get("machine") for row in rows[:-1])]
    return [
        {name: value for name, value in row.items() if name != "machine" or value != known}
        for row, known in zip(rows, before, strict=True)
    ]


def _with_machines(rows: Sequence[dict[str, Any]]) -> None:
    """Fill in what :func:`_brief` leaves out."""
    for before, row in itertools.pairwise(rows):
        if "machine" in before:
            row.setdefault("machine", before["machine"])


def _read(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number == len(lines):
                break
            raise FileFormatError(
                f"Line {number} of {path} is not JSON: {line[:60]!r}.\nHint: remove that line, or the file."
            ) from error
    # Also a whole last line may lack its end, and what is appended would land on it.
    if len(rows) < len(lines) or not text.endswith("\n"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _with_machines(rows)
    return rows


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in KEY)
