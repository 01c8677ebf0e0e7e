"""Cells of the comparison on wrong labels, and its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neighboragg.bench._gain_interval import gain_interval
from neighboragg.bench._grid import Grid, Results
from neighboragg.bench.paper._label_noise import NOISE_BASES, NOISE_SETS, NOISES, RATES, compute_label_noise

__all__ = ["BEST_BASELINE", "OURS", "LabelNoiseResults", "LabelNoiseTask", "label_noise_plan"]

OURS, BEST_BASELINE, SAME_MODELS = "ours", "cleanlab normalized_margin", "margin on the mean of the models"
ALONE, DIFFERENCE = "ours, own_models=False", "ours, reliability=difference"
RANKINGS = ("average_precision", "auroc", "precision_at_recall_90", "precision_100", "precision_1000")
FLAGS = ("flagged", "flag_precision", "flag_recall", "flag_f1", "false_alarm_rate")


@dataclass(frozen=True)
class LabelNoiseTask:
    """One data set, base classifier, kind and rate of noise, and seed."""

    set: str
    base: str
    noise: str
    rate: float
    seed: int
    methods: tuple[str, ...] = (OURS,)

    def cell(self) -> dict[str, Any]:
        """What identifies the cell in the results."""
        return {"set": self.set, "base": self.base, "noise": self.noise, "rate": self.rate, "seed": self.seed}

    def limited_to(self, methods: Sequence[str]) -> "LabelNoiseTask":
        """The same task: its methods share their work, so that all are computed or none."""
        return self

    def rows(self) -> list[dict[str, Any]]:
        """Results of the cell."""
        return compute_label_noise(self.set, self.base, self.noise, self.rate, self.seed)


def label_noise_plan(seeds: int) -> list[LabelNoiseTask]:
    """Every data set, base classifier, kind and rate of noise."""
    return [
        LabelNoiseTask(name, base, noise, rate, seed)
        for name in NOISE_SETS
        for base in NOISE_BASES
        for noise in NOISES
        for rate in RATES
        for seed in range(seeds)
    ]


@dataclass(frozen=True)
class LabelNoiseResults(Results):
    """Who finds labels that were made wrong on purpose."""

    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    title: str = "Finding wrong labels"

    def tables(self) -> list[Grid]:
        """Mean rankings, flags, gains, noise rates, and the cells where we lose."""
        return [
            _means(self.rows, RANKINGS, "Ranking: mean over all cells, %"),
            _means(self.rows, FLAGS, "Flags: mean over all cells, %"),
            *self.summaries(),
        ]

    def summaries(self) -> list[Grid]:
        """Gains, noise rates, and the cells where we lose."""
        return [_gains(self.rows), _noise_rates(self.rows), _lost(self.rows)]


def _means(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], title: str) -> Grid:
    methods = dict.fromkeys(row["method"] for row in rows if keys[-1] in row)
    lines = [
        [
            method,
            *(
                f"{100 * np.mean([r[key] for r in rows if r['method'] == method and key in r]):.1f}"
                for key in keys
            ),
        ]
        for method in methods
    ]
    return Grid(title, ["score", *(key.replace("_", " ") for key in keys)], lines)


def _by_cell(rows: Sequence[Mapping[str, Any]], method: str, key: str) -> dict[tuple[Any, ...], float]:
    """Mean over seeds, %, for each data set, base classifier, kind and rate of noise."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        if row["method"] == method and key in row:
            found.setdefault((row["set"], row["base"], row["noise"], row["rate"]), []).append(100 * row[key])
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def _gains(rows: Sequence[Mapping[str, Any]]) -> Grid:
    lines = []
    for baseline, key in (
        (BEST_BASELINE, "average_precision"),
        (BEST_BASELINE, "precision_at_recall_90"),
        (SAME_MODELS, "average_precision"),
        ("cleanlab filter", "flag_f1"),
    ):
        ours, theirs = _by_cell(rows, OURS, key), _by_cell(rows, baseline, key)
        gains = np.array([ours[cell] - theirs[cell] for cell in ours])
        low, high = gain_interval(gains, [name for name, *_ in ours])
        won, lost = int((gains > 0).sum()), int((gains < 0).sum())
        lines.append(
            [
                baseline,
                key.replace("_", " "),
                f"{gains.mean():+.1f} [{low:+.1f}, {high:+.1f}]",
                f"{won} / {lost}",
            ]
        )
    return Grid(
        "Ours: paired gain in points, 95% bootstrap interval over data sets and their cells (means over seeds)",
        ["against", "in", "gain", "won / lost"],
        lines,
    )


def _noise_rates(rows: Sequence[Mapping[str, Any]]) -> Grid:
    lines = []
    for rate in sorted({row["rate"] for row in rows}):
        found = [100 * r["estimated_rate"] for r in rows if r["method"] == OURS and r["rate"] == rate]
        lines.append(
            [f"{100 * rate:.0f}%", f"{np.mean(found):.1f}%", f"{np.min(found):.1f}–{np.max(found):.1f}%"]
        )
    return Grid("Noise rate", ["true", "mean estimate", "range over cells"], lines)


def _lost(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Cells where we lose, and whether leaving something of ours out would have won them."""
    key = "average_precision"
    theirs = _by_cell(rows, BEST_BASELINE, key)
    gaps = {
        method: {cell: value - theirs[cell] for cell, value in _by_cell(rows, method, key).items()}
        for method in (OURS, ALONE, DIFFERENCE)
    }
    lost = sorted((gap, cell) for cell, gap in gaps[OURS].items() if gap < 0)
    lines = [
        [
            f"{name}, {base}",
            f"{noise}, {100 * rate:.0f}%",
            *(f"{gaps[method][name, base, noise, rate]:+.1f}" for method in (OURS, ALONE, DIFFERENCE)),
        ]
        for _, (name, base, noise, rate) in lost
    ]
    return Grid(
        f"Cells where {BEST_BASELINE} has the better average precision: gap in points",
        ["set, base", "noise", OURS, ALONE, DIFFERENCE],
        lines,
    )
