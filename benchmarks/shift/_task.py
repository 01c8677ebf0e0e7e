"""One cell with a shift: how trust ranks its rows, and which are noticed."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.runs import COMPARED, DEFAULT, ENTRANTS, machine
from benchmarks.shift._alarms import ALARMS
from benchmarks.shift._shifted_cell import SHIFTS, ShiftedCell, shifted_cell
from neighboragg._core.types import FloatArray
from neighboragg.exceptions import TrustWarning
from neighboragg.metrics import trust_metrics

__all__ = ["LEVELS", "METHODS", "SHIFT_BASES", "ShiftTask", "shift_plan"]

# To choose the settings of a network by refitting it takes longer than all the rest together.
LONG = ("TCP, tuned", "GCN-1hop, tuned", "Network, tuned")
METHODS = tuple(name for name in COMPARED if name not in LONG)
SHIFT_BASES = ("LR", "RF")
LEVELS = (0.01, 0.05)


@dataclass(frozen=True)
class ShiftTask:
    """One data set, kind of shift, base classifier and seed."""

    set: str
    shift: str
    base: str
    seed: int
    methods: tuple[str, ...] = (*METHODS, *ALARMS)

    def cell(self) -> dict[str, Any]:
        """What identifies the cell in the results."""
        return {"set": self.set, "shift": self.shift, "base": self.base, "seed": self.seed}

    def split(self) -> Hashable:
        """The rows to learn from, which are often the same for several kinds of shift."""
        return (self.set, self.seed)

    def limited_to(self, methods: Sequence[str]) -> "ShiftTask":
        """The same cell with only some of the methods."""
        return replace(self, methods=tuple(methods))

    def rows(self) -> list[dict[str, Any]]:
        """Results of the cell, one row a trust method or a way to give alarms."""
        shifted = shifted_cell(self.set, self.shift, self.base, self.seed)
        cell = shifted.cell
        about = {"n_train": len(cell.train), "n_val": len(cell.val), "n_test": len(cell.test)}
        rows = []
        for name in self.methods:
            found = _alarms(shifted, name) if name in ALARMS else _trust(shifted, name)
            values = {key: round(float(value), 5) for key, value in found.items()}
            rows.append({**self.cell(), "method": name, **values, **about})
        rows[0]["machine"] = machine()
        return rows


def shift_plan(n_splits: int) -> list[ShiftTask]:
    """Every shift with its data sets and base classifiers, seed by seed; one data set after the other."""
    pairs = [(name, kind) for kind, sets in SHIFTS.items() for name in sets]
    return [
        ShiftTask(name, kind, base, seed)
        for seed in range(n_splits)
        for name, kind in sorted(pairs, key=lambda pair: pair[0])
        for base in SHIFT_BASES
    ]


def _trust(shifted: ShiftedCell, name: str) -> dict[str, float]:
    """Ranking of all test rows, and of those that are not shifted; trust beside accuracy on those that are."""
    cell, moved = shifted.cell, shifted.shifted
    correct, trust = cell.correct, _trust_in_predictions(shifted, name)
    found = trust_metrics(correct, trust)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # rows of unknown classes are all wrong
        same = trust_metrics(correct[~moved], trust[~moved])
    return {
        "auroc": found["auroc"],
        "aurc": found["aurc"],
        "auroc_same": same["auroc"],
        "trust_shifted": float(np.mean(trust[moved])),
        "accuracy_shifted": float(np.mean(correct[moved])),
        "trust_same": float(np.mean(trust[~moved])),
        "accuracy_same": float(np.mean(correct[~moved])),
    }


def _trust_in_predictions(shifted: ShiftedCell, name: str) -> FloatArray:
    cell = shifted.cell
    if name != DEFAULT:
        return cell.trust(ENTRANTS[name].make(), ENTRANTS[name].vectors)
    return shifted.pool.score_samples(cell.vectors["quantiles"][cell.test], cell.proba[cell.test])


def _alarms(shifted: ShiftedCell, name: str) -> dict[str, float]:
    """Share of shifted rows that are noticed, and of others that are taken for such, at each level."""
    p, moved = ALARMS[name](shifted), shifted.shifted
    return {
        f"{what}_{level:g}": float(np.mean(p[rows] <= level))
        for level in LEVELS
        for what, rows in (("power", moved), ("false_alarms", ~moved))
    }
