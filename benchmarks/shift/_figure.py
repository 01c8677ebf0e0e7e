"""Trust beside accuracy, and the power of alarms, in one figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runs import DEFAULT
from benchmarks.shift._alarms import ALARMS, FAMILIARITY
from benchmarks.shift._shifted_cell import SHIFTS
from neighboragg._core.packages import import_extra

__all__ = ["shift_figure"]

LEVEL = 0.05
SHOWN = ("Confidence", "TrustScore", DEFAULT)


def shift_figure(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Left, mean trust in shifted rows against their accuracy; right, how many of them are noticed at a level of 5%."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The figure of shifts")
    figure = figure_module.Figure(figsize=(12, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
    for method, marker in zip(SHOWN, "osv", strict=True):
        found = [row for row in rows if row["method"] == method]
        points = [[100 * row[key] for row in found] for key in ("accuracy_shifted", "trust_shifted")]
        left.scatter(*points, marker=marker, s=16, alpha=0.6, label=method)
    left.axline((0, 0), slope=1, color="0.4", linestyle="--", linewidth=1)
    left.set(
        xlabel="accuracy on shifted rows, %", ylabel="mean trust in them, %", xlim=(-3, 103), ylim=(0, 103)
    )
    left.legend(frameon=False, fontsize="small")
    cells = [(kind, name) for kind, sets in SHIFTS.items() for name in sets]
    width = 0.8 / len(ALARMS)
    for i, alarm in enumerate(ALARMS):
        noticed = [
            [
                100 * row[f"power_{LEVEL:g}"]
                for row in rows
                if (row["method"], row["shift"], row["set"]) == (alarm, kind, name)
            ]
            for kind, name in cells
        ]
        right.bar(
            np.arange(len(cells)) + i * width,
            [np.mean(values) if values else np.nan for values in noticed],
            width,
            label=alarm,
            edgecolor="black" if alarm == FAMILIARITY else "none",
        )
    right.axhline(100 * LEVEL, color="0.4", linestyle="--", linewidth=1)
    names = [f"{kind}\n{name}" for kind, name in cells]
    right.set_xticks(np.arange(len(cells)) + 0.4 - width / 2, names, rotation=60, fontsize="small")
    right.set_ylabel("shifted rows noticed at a level of 5%, %")
    right.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=110)
