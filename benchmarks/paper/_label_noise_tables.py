"""Cells of the comparison on wrong labels, and its tables."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.paper._label_noise import METHODS, NOISE_BASES, NOISE_SETS, NOISES, RATES, compute_label_noise
from benchmarks.runs import Grid, Results, gain_interval

__all__ = ["BEST_BASELINE", "OURS", "LabelNoiseResults", "LabelNoiseTask", "label_noise_plan"]

OURS, BEST_BASELINE, SAME_MODELS = "ours", "cleanlab normalized_margin", "margin on the mean of the models"
MARGIN, DIFFERENCE = "ours, reliability=margin", "ours, reliability=difference"
FIRST_NOISES, FIRST_RATES = NOISES[:3], RATES[1:]
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
    methods: tuple[str, ...] = METHODS

    def cell(self) -> dict[str, Any]:
        """What identifies the cell in the results."""
        return {"set": self.set, "base": self.base, "noise": self.noise, "rate": self.rate, "seed": self.seed}

    def split(self) -> Hashable:
        """The cell itself: none of its methods has second opinions to share."""
        return tuple(self.cell().values())

    def limited_to(self, methods: Sequence[str]) -> "LabelNoiseTask":
        """The same cell with only some of the methods."""
        return replace(self, methods=tuple(methods))

    def rows(self) -> list[dict[str, Any]]:
        """Results of the cell."""
        return compute_label_noise(self.set, self.base, self.noise, self.rate, self.seed, self.methods)


def label_noise_plan(seeds: int) -> list[LabelNoiseTask]:
    """Every data set, kind and rate of noise, and base classifier; 1% and plausible errors with the first seed only."""
    # Bases innermost: they share the noise, and rivals that need no base.
    return [
        LabelNoiseTask(name, base, noise, rate, seed)
        for seed in range(seeds)
        for name in NOISE_SETS
        for noise in NOISES
        for rate in RATES
        if seed == 0 or is_first_comparison(noise, rate)
        for base in NOISE_BASES
    ]


def is_first_comparison(noise: str, rate: float) -> bool:
    """Whether a cell belongs to the 72 that the means over all cells are taken over."""
    return noise in FIRST_NOISES and rate in FIRST_RATES


@dataclass(frozen=True)
class LabelNoiseResults(Results):
    """Who finds labels that were made wrong on purpose."""

    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    title: str = "Finding wrong labels"

    def tables(self) -> list[Grid]:
        """Mean rankings, flags, gains, shares of wrong labels, and the cells where we lose."""
        first = self.first_comparison()
        return [
            _means(first, RANKINGS, f"Ranking: mean over {len(_cells(first))} cells, %"),
            _by_noise(self.rows),
            _means(first, FLAGS, f"Flags: mean over {len(_cells(first))} cells, %"),
            *self.summaries(),
        ]

    def summaries(self) -> list[Grid]:
        """Gains, shares of wrong labels, and the cells where we lose."""
        first = self.first_comparison()
        return [_gains(first), _noise_rates(self.rows), _lost(first)]

    def first_comparison(self) -> list[Mapping[str, Any]]:
        """Rows of the cells that the means over all cells are taken over."""
        return [row for row in self.rows if is_first_comparison(row["noise"], row["rate"])]


def _cells(rows: Sequence[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """Data sets, base classifiers, kinds and rates of noise."""
    return {(row["set"], row["base"], row["noise"], row["rate"]) for row in rows}


def _by_noise(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Average precision by kind of noise at 3 to 20%, and at 1%, over the first seed, which has them all."""
    groups: dict[str, list[Mapping[str, Any]]] = {
        noise: [row for row in rows if row["noise"] == noise and row["rate"] in FIRST_RATES]
        for noise in NOISES
    }
    groups["1%, all kinds"] = [row for row in rows if row["rate"] not in FIRST_RATES]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows if "average_precision" in row):
        values = [
            [row["average_precision"] for row in group if row["method"] == method and row["seed"] == 0]
            for group in groups.values()
        ]
        lines.append([method, *(f"{100 * np.mean(found):.1f}" if found else "–" for found in values)])
    header = ["score", *(name.replace("_", " ") for name in groups)]
    return Grid("Ranking: mean average precision by kind of noise, first seed, %", header, lines)


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
    """Estimated shares of wrong labels against the true ones, over all kinds of noise."""
    ours = [row for row in rows if row["method"] == OURS and "estimated_rate" in row]
    lines = []
    for rate in sorted({row["rate"] for row in ours}):
        some = [row for row in ours if row["rate"] == rate]
        mean = {key: float(np.mean([row[key] for row in some])) for key in ("estimated_rate", "ece")}
        off = np.mean([abs(row["estimated_rate"] - rate) for row in some])
        lines.append(
            [
                f"{100 * rate:.0f}%",
                f"{100 * mean['estimated_rate']:.1f}%",
                f"{100 * off:.1f}",
                f"{100 * mean['ece']:.1f}",
            ]
        )
    return Grid(
        "Share of wrong labels: estimate, and calibration of P(wrong)",
        [
            "true",
            "mean estimate",
            "off by, points",
            "ECE of P(wrong), points",
        ],
        lines,
    )


def _lost(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Cells where we lose, and whether a score without the noise model would have won them."""
    key = "average_precision"
    theirs = _by_cell(rows, BEST_BASELINE, key)
    gaps = {
        method: {cell: value - theirs[cell] for cell, value in _by_cell(rows, method, key).items()}
        for method in (OURS, MARGIN, DIFFERENCE)
    }
    lost = sorted((gap, cell) for cell, gap in gaps[OURS].items() if gap < 0)
    lines = [
        [
            f"{name}, {base}",
            f"{noise}, {100 * rate:.0f}%",
            *(f"{gap[cell]:+.1f}" if cell in gap else "–" for gap in gaps.values()),
        ]
        for _, cell in lost
        for name, base, noise, rate in [cell]
    ]
    return Grid(
        f"Cells where {BEST_BASELINE} has the better average precision: gap in points",
        ["set, base", "noise", OURS, MARGIN, DIFFERENCE],
        lines,
    )
