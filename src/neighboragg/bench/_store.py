"""Results as JSON lines: appended as they come, never computed twice."""

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import neighboragg
from neighboragg.exceptions import FileFormatError

__all__ = ["ResultStore", "machine"]

KEY = ("set", "label", "digest", "base", "seed", "method", "n_neighbors", "noise", "rate")


def machine() -> dict[str, Any]:
    """Versions and hardware that go with every result."""
    packages = {}
    for name in ("numpy", "scipy", "scikit-learn"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:  # vendored or built in place
            packages[name] = "unknown"
    return {
        "neighboragg": neighboragg.__version__,
        "python": platform.python_version(),
        **packages,
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


class ResultStore:
    """A file of results, one JSON object a line.

    Parameters
    ----------
    path : Path
        Created if absent. A last line cut short by a crash is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            self._read()

    def __contains__(self, wanted: dict[str, Any]) -> bool:
        return _key(wanted) in {_key(row) for row in self.rows}

    def missing(self, cell: dict[str, Any], methods: Iterable[str]) -> list[str]:
        """Methods that have no result for a cell yet."""
        done = {_key(row) for row in self.rows}
        return [name for name in methods if _key({**cell, "method": name}) not in done]

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append rows, on disk before this returns."""
        new = list(rows)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
            file.flush()
            os.fsync(file.fileno())
        self.rows += new

    def _read(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                self.rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                if number == len(lines):
                    break
                raise FileFormatError(
                    f"Line {number} of {self.path} is not JSON: {line[:60]!r}.\nHint: remove that line, or the file."
                ) from error
        # Also a whole last line may lack its end, and what is appended would land on it.
        if len(self.rows) < len(lines) or not text.endswith("\n"):
            self.path.write_text("".join(json.dumps(row) + "\n" for row in self.rows), encoding="utf-8")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in KEY)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
