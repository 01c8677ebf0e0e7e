"""Small tables as aligned text and as HTML."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

# As many rows as fit on a screen; longer tables show their first and last rows.
MAX_ROWS = 20


def text_table(columns: Mapping[str, Any], *, most_rows: int = MAX_ROWS) -> str:
    """Format columns under their names: numbers are right-aligned, other values left-aligned."""
    if not columns:
        return ""
    n = len(next(iter(columns.values())))
    shown = _shown(n, most_rows)
    blocks = []
    for name, values in columns.items():
        cells = ["…" if i is None else format_cell(values[i]) for i in shown]
        width = max(map(len, [name, *cells]))
        pad = str.rjust if np.asarray(values).dtype.kind in "iuf" else str.ljust
        blocks.append([pad(cell, width) for cell in [name, *cells]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*blocks, strict=True))


def html_table(columns: Mapping[str, Any], *, most_rows: int = MAX_ROWS) -> str:
    """Format columns as an HTML table; every cell is escaped."""
    n = len(next(iter(columns.values()))) if columns else 0
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{'…' if i is None else escape(format_cell(values[i]))}</td>" for values in columns.values()
        )
        + "</tr>"
        for i in _shown(n, most_rows)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def format_cell(value: Any) -> str:
    """Format a cell: floats with three decimals, booleans as yes or no, other values by str."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.3f}"
    return str(value)


def _shown(n: int, most: int) -> list[int | None]:
    """Positions of the rows to show; None stands for omitted rows."""
    if n <= most:
        return list(range(n))
    half = most // 2
    return [*range(half), None, *range(n - half, n)]


def show_value(value: Any) -> str | None:
    """Return a value as text, or None if it is missing."""
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _is_missing(value: Any) -> bool:
    # Only NaN differs from itself.
    return value is None or bool(value != value)
