"""Figures as in the paper (ablation bars, sensitivity to the number of neighbors), and of wrong labels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra

__all__ = ["ablation_figure", "label_noise_figure", "sensitivity_figure"]

TITLES = {"auroc": "AUROC, %", "ap_success": "APC, %", "ap_error": "APM, %"}


def ablation_figure(
    rows: Sequence[Mapping[str, Any]],
    sets: Sequence[str],
    bases: Sequence[str],
    methods: Sequence[str],
    metric: str,
    path: Path,
) -> None:
    """Grouped bars, one panel a base classifier, with the standard deviation over seeds."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The ablation figure")
    figure = figure_module.Figure(figsize=(11, 2.6 * len(bases)), layout="constrained")
    axes = figure.subplots(len(bases), 1, squeeze=False)[:, 0]
    width = 0.8 / len(methods)
    for ax, base in zip(axes, bases, strict=True):
        for i, method in enumerate(methods):
            found = [
                [100 * r[metric] for r in rows if (r["set"], r["base"], r["method"]) == (name, base, method)]
                for name in sets
            ]
            means = [np.mean(f) if f else np.nan for f in found]
            spread = [np.std(f) if f else np.nan for f in found]
            ax.bar(np.arange(len(sets)) + i * width, means, width, yerr=spread, label=method)
        ax.set_xticks(np.arange(len(sets)) + 0.4 - width / 2, sets)
        ax.set_ylabel(f"{base}: {TITLES[metric]}")
    axes[0].legend(ncols=len(methods), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    figure.savefig(path, dpi=110)


def sensitivity_figure(rows: Sequence[Mapping[str, Any]], methods: Sequence[str], path: Path) -> None:
    """Curves of APC and APM against the number of neighbors, with a band of one standard deviation."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The sensitivity figure")
    figure = figure_module.Figure(figsize=(10, 3.8), layout="constrained")
    for ax, metric in zip(figure.subplots(1, 2), ("ap_success", "ap_error"), strict=True):
        for method in methods:
            counts = sorted({r["n_neighbors"] for r in rows if r["method"] == method})
            found = [
                [100 * r[metric] for r in rows if (r["method"], r["n_neighbors"]) == (method, k)]
                for k in counts
            ]
            mean, spread = np.array([np.mean(f) for f in found]), np.array([np.std(f) for f in found])
            ax.plot(counts, mean, label=method)
            ax.fill_between(counts, mean - spread, mean + spread, alpha=0.2)
        ax.set_xlabel("neighbors K")
        ax.locator_params(axis="x", integer=True)
        ax.set_ylabel(TITLES[metric])
        ax.legend(frameon=False)
    figure.savefig(path, dpi=110)


def label_noise_figure(rows: Sequence[Mapping[str, Any]], ours: str, baseline: str, path: Path) -> None:
    """Left, average precision of ours against the baseline's, a point a cell; right, every score by noise rate."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The figure of wrong labels")
    figure = figure_module.Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    ranked = [row for row in rows if "average_precision" in row]
    for noise, marker in zip(dict.fromkeys(row["noise"] for row in ranked), "osv^D", strict=False):
        pair = [_precisions(ranked, method=method, noise=noise) for method in (baseline, ours)]
        left.scatter(*pair, marker=marker, s=18, alpha=0.7, label=noise.replace("_", " "))
    left.axline((0, 0), slope=1, color="0.4", linestyle="--", linewidth=1)
    left.set(xlabel=f"average precision, {baseline}, %", ylabel=f"average precision, {ours}, %")
    left.legend(frameon=False)
    rates = sorted({row["rate"] for row in ranked})
    for method in dict.fromkeys(row["method"] for row in ranked):
        means = [np.mean(_precisions(ranked, method=method, rate=rate)) for rate in rates]
        right.plot([100 * rate for rate in rates], means, marker="o", markersize=4, label=method,
                   linewidth=2.5 if method == ours else 1.2)  # fmt: skip
    right.set(xlabel="wrong labels, %", ylabel="mean average precision, %", ylim=(0, 100))
    right.legend(frameon=False, fontsize="x-small", ncols=2)
    figure.savefig(path, dpi=110)


def _precisions(rows: Sequence[Mapping[str, Any]], **wanted: Any) -> list[float]:
    """Average precisions of the matching rows, in the order of their cells."""
    chosen = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    chosen.sort(key=lambda r: (r["set"], r["base"], r["noise"], r["rate"], r["seed"]))
    return [100 * row["average_precision"] for row in chosen]
