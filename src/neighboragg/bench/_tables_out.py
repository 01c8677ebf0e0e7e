"""Tables of results in Markdown and HTML: ours beside the paper's, best in bold, differences with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from neighboragg._typing import FloatArray
from neighboragg.bench._intervals import gain_interval
from neighboragg.bench._paper import METRICS, TABLE1_PAPER

__all__ = ["Grid", "difference_table", "mean_table", "result_table", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Grid:
    """A table: a title, a header and rows of text; bold cells are marked as in Markdown."""

    title: str
    header: list[str]
    rows: list[list[str]]


def result_table(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], bases: Sequence[str], methods: Sequence[str]
) -> list[Grid]:
    """One grid a base classifier: mean (standard deviation) over seeds, and the paper's mean in brackets."""
    values = _by_cell(rows)
    grids = []
    for base in bases:
        header = ["method", *(f"{name} {metric}" for name in sets for metric in METRICS)]
        lines = []
        for method in methods:
            cells = [
                _cell(values, name, base, method, metric, methods)
                for name in sets
                for metric in METRICS.values()
            ]
            lines.append([method, *cells])
        seeds = len({row["seed"] for row in rows if row["base"] == base})
        grids.append(
            Grid(f"{base}: mean (standard deviation) over {seeds} seeds, [paper's mean]", header, lines)
        )
    return grids


def mean_table(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], bases: Sequence[str], methods: Sequence[str]
) -> Grid:
    """Means over all cells and seeds, and calibration."""
    keys = ("auroc", "ap_success", "ap_error", "aurc", "augrc", "ece")
    means = {
        (method, key): _mean([100 * row[key] for row in _select(rows, sets, bases, method)])
        for method in methods
        for key in keys
    }
    lines = [[method, *(_number(means[method, key]) for key in keys)] for method in methods]
    title = f"Mean over {', '.join(sets)} × {', '.join(bases)}"
    return Grid(title, ["method", "AUROC", "APC", "APM", "AURC ↓", "AUGRC ↓", "ECE ↓"], lines)


def difference_table(
    rows: Sequence[Mapping[str, Any]],
    sets: Sequence[str],
    bases: Sequence[str],
    methods: Sequence[str],
    reference: str,
) -> Grid:
    """Paired differences of `reference` over each other method, with bootstrap intervals over data sets and splits."""
    lines = []
    for method in methods:
        if method == reference:
            continue
        line = [method]
        for key in ("auroc", "ap_error"):
            line += _gain(_paired(rows, sets, bases, reference, method, key))
            if key == "auroc":
                line.append(_worst(rows, sets, bases, reference, method))
        lines.append(line)
    header = ["against", "AUROC", "splits won", "worst cell (AUROC)", "APM", "splits won"]
    return Grid(
        f"{reference}: paired gain, 95% bootstrap interval over data sets and their splits", header, lines
    )


def to_markdown(grid: Grid) -> str:
    """The grid as a Markdown table under its title."""
    lines = [
        f"**{grid.title}**",
        "",
        "| " + " | ".join(grid.header) + " |",
        "| --- " * len(grid.header) + "|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in grid.rows]
    return "\n".join(lines) + "\n"


def to_html(grids: Sequence[Grid], title: str) -> str:
    """The grids as one self-contained page."""
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>",
        "<style>body{font:15px system-ui,sans-serif;margin:2rem;color-scheme:light dark}"
        "table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{padding:.3rem .7rem;text-align:right;"
        "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
        "th:first-child,td:first-child{text-align:left}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
    ]
    for grid in grids:
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in grid.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_html(cell)}</td>" for cell in row) + "</tr>" for row in grid.rows
        )
        parts.append(
            f"<h2>{escape(grid.title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    return "\n".join([*parts, "</body></html>\n"])


Values = dict[tuple[str, str, str, str], FloatArray]


def _by_cell(rows: Sequence[Mapping[str, Any]]) -> Values:
    """Percentages over seeds for each (set, base, method, metric)."""
    collected: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        for metric in METRICS.values():
            if not np.isnan(row[metric]):  # undefined on a split without an error, for every method alike
                key = row["set"], row["base"], row["method"], metric
                collected.setdefault(key, []).append(100 * row[metric])
    return {key: np.array(found) for key, found in collected.items()}


def _cell(values: Values, name: str, base: str, method: str, metric: str, methods: Sequence[str]) -> str:
    found = values.get((name, base, method, metric))
    if found is None:
        return "–"
    best = max(values[name, base, m, metric].mean() for m in methods if (name, base, m, metric) in values)
    text = f"{found.mean():.2f} ({found.std():.2f})"
    text = f"**{text}**" if found.mean() >= best - 1e-9 else text
    paper = TABLE1_PAPER.get((name, base, method, metric))
    return text if paper is None else f"{text} [{paper:.2f}]"


def _select(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], bases: Sequence[str], method: str
) -> list[Mapping[str, Any]]:
    return [r for r in rows if r["set"] in sets and r["base"] in bases and r["method"] == method]


def _paired(
    rows: Sequence[Mapping[str, Any]],
    sets: Sequence[str],
    bases: Sequence[str],
    first: str,
    second: str,
    key: str,
) -> dict[tuple[str, str, int], float]:
    """Difference in points by data set, base classifier and seed."""
    found = [
        {(r["set"], r["base"], r["seed"]): 100 * r[key] for r in _select(rows, sets, bases, method)}
        for method in (first, second)
    ]
    differences = {split: value - found[1][split] for split, value in found[0].items() if split in found[1]}
    return {split: value for split, value in differences.items() if not np.isnan(value)}


def _worst(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], bases: Sequence[str], first: str, second: str
) -> str:
    cells = {
        (name, base): _paired(rows, [name], [base], first, second, "auroc") for name in sets for base in bases
    }
    means = {cell: float(np.mean([*found.values()])) for cell, found in cells.items() if found}
    if not means:
        return "–"
    name, base = min(means, key=lambda cell: means[cell])
    return f"{means[name, base]:+.2f} ({name} {base})"


def _gain(differences: Mapping[tuple[str, str, int], float]) -> list[str]:
    """Mean with its interval, for which a single split is too few, and the share of splits won."""
    if not differences:
        return ["–", "–"]
    gains = np.array([*differences.values()])
    text = f"{gains.mean():+.2f}"
    if len(gains) > 1:
        low, high = gain_interval(gains, [name for name, _, _ in differences])
        text += f" [{low:+.2f}, {high:+.2f}]"
    return [text, f"{100 * (gains > 0).mean():.0f}%"]


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _html(cell: str) -> str:
    text = escape(cell)
    return f"<strong>{text.replace('**', '')}</strong>" if "**" in text else text
