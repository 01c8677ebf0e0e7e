"""What was found on rows unlike those seen, as tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.runs import DEFAULT, Grid, Results, gain_interval
from benchmarks.shift._alarms import ALARMS, FAMILIARITY
from benchmarks.shift._shifted_cell import SHIFTS
from benchmarks.shift._task import LEVELS, METHODS

__all__ = ["ShiftResults"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ShiftResults(Results):
    """Trust methods and alarms on shifted cells.

    Parameters
    ----------
    rows : sequence of dict
        One a method and cell, as the file of results holds them.
    title : str, default="Rows unlike those seen"
    """

    rows: Sequence[Row] = field(repr=False)
    title: str = "Rows unlike those seen"

    def tables(self) -> list[Grid]:
        """Everything: rankings, trust beside accuracy, power by cell, and gains."""
        return [
            self.by_shift("auroc", "AUROC of right against wrong or unknown, all test rows, %"),
            self.by_shift("aurc", "AURC ↓, all test rows, %"),
            self.trust_beside_accuracy(),
            self.power(),
            *self.summaries(),
        ]

    def summaries(self) -> list[Grid]:
        """Paired gains in ranking and in power."""
        return [self.gains(), self.gains_in_power()]

    def by_shift(self, key: str, title: str) -> Grid:
        """Mean of a metric over the cells of each kind of shift, and over the kinds."""
        lines = []
        for method in self._present(METHODS):
            means = [_mean(self._select(method, kind), key) for kind in SHIFTS]
            lines.append([method, *(_percent(value) for value in means), _percent(float(np.mean(means)))])
        return Grid(title, ["method", *SHIFTS, "mean"], lines)

    def trust_beside_accuracy(self) -> Grid:
        """Mean trust in shifted rows, beside the accuracy there."""
        lines = [
            [method, *(_percent(_mean(self._select(method, kind), "trust_shifted")) for kind in SHIFTS)]
            for method in self._present(METHODS)
        ]
        accuracy = [_percent(_mean(self._select(DEFAULT, kind), "accuracy_shifted")) for kind in SHIFTS]
        return Grid(
            "Mean trust in the shifted rows, %, which should be their accuracy",
            ["method", *SHIFTS],
            [["**accuracy**", *(f"**{value}**" for value in accuracy)], *lines],
        )

    def power(self) -> Grid:
        """Share of the shifted rows that are noticed at each level, cell by cell, and false alarms in all."""
        names = self._present(ALARMS)
        header = ["shift", "set", *(f"{name}, {level:.0%}" for level in LEVELS for name in names)]
        lines = []
        for kind, sets in SHIFTS.items():
            for dataset in sets:
                line = [kind, dataset]
                for level in LEVELS:
                    line += _best_in_bold(
                        [
                            _mean(
                                [r for r in self._select(name, kind) if r["set"] == dataset],
                                f"power_{level:g}",
                            )
                            for name in names
                        ]
                    )
                lines.append(line)
        false = [_mean(self._select(name), f"false_alarms_{level:g}") for level in LEVELS for name in names]
        lines.append(["false alarms", "all", *(_percent(value, 2) for value in false)])
        return Grid("Power: shifted rows that are noticed, %, at a level of false alarms", header, lines)

    def gains(self) -> Grid:
        """Paired gains in AUROC and AURC of the default over each other method."""
        lines = [
            [method, *(self._gain(DEFAULT, method, key) for key in ("auroc", "aurc"))]
            for method in self._present(METHODS)
            if method != DEFAULT
        ]
        title = f"{DEFAULT}: paired gain, points, 95% bootstrap interval over data sets and their cells"
        return Grid(title, ["against", "AUROC", "AURC (below 0 is better)"], lines)

    def gains_in_power(self) -> Grid:
        """Paired gains in power of familiarity over each other alarm."""
        lines = [
            [method, *(self._gain(FAMILIARITY, method, f"power_{level:g}") for level in LEVELS)]
            for method in self._present(ALARMS)
            if method != FAMILIARITY
        ]
        title = f"{FAMILIARITY}: paired gain in power, points, 95% bootstrap interval over data sets and their cells"
        return Grid(title, ["against", *(f"at {level:.0%}" for level in LEVELS)], lines)

    def _present(self, names: Sequence[str] | Mapping[str, Callable[..., Any]]) -> list[str]:
        found = {row["method"] for row in self.rows}
        return [name for name in names if name in found]

    def _select(self, method: str, kind: str | None = None) -> list[Row]:
        return [row for row in self.rows if row["method"] == method and kind in (None, row["shift"])]

    def _gain(self, first: str, second: str, key: str) -> str:
        return _gain(self.rows, first, second, key)


def _gain(rows: Sequence[Row], first: str, second: str, key: str) -> str:
    """Mean paired difference in points, with its interval."""
    ours, theirs = (
        {(r["set"], r["shift"], r["base"], r["seed"]): 100 * r[key] for r in rows if r["method"] == method}
        for method in (first, second)
    )
    gains = {cell: value - theirs[cell] for cell, value in ours.items() if cell in theirs}
    gains = {cell: gain for cell, gain in gains.items() if not np.isnan(gain)}
    if not gains:
        return "–"
    values = np.array([*gains.values()])
    text = f"{values.mean():+.2f}"
    if len(values) > 1:
        low, high = gain_interval(values, [cell[0] for cell in gains])
        text += f" [{low:+.2f}, {high:+.2f}]"
    return text


def _mean(rows: Sequence[Row], key: str) -> float:
    values = [row[key] for row in rows if not np.isnan(row[key])]
    return float(np.mean(values)) if values else np.nan


def _percent(value: float, digits: int = 1) -> str:
    return "–" if np.isnan(value) else f"{100 * value:.{digits}f}"


def _best_in_bold(values: Sequence[float]) -> list[str]:
    return [f"**{_percent(value)}**" if value == np.nanmax(values) else _percent(value) for value in values]
