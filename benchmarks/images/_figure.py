"""A figure of the comparison on images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra

__all__ = ["images_figure"]

PANELS = {"auroc": "AUROC, %", "ap_error": "average precision of errors, %"}


def images_figure(
    rows: Sequence[Mapping[str, Any]], sets: Sequence[str], methods: Sequence[str], path: Path
) -> None:
    """Draw a line for each method and a point for each data set, the best method of all at the top.

    Parameters
    ----------
    rows : sequence of dict
        As :func:`table2` keeps them.
    sets, methods : sequence of str
        What is drawn; methods without any result are left out.
    path : Path
        Where the figure is written.
    """
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The figure of Table 2")
    means = {
        (name, method, metric): 100 * float(np.mean(found))
        for name in sets
        for method in methods
        for metric in PANELS
        if (found := [row[metric] for row in rows if (row["set"], row["method"]) == (name, method)])
    }
    drawn = [method for method in methods if any(method == key[1] for key in means)]
    # A method without a result somewhere is ranked by what it has, against the mean of the others there.
    middle = {name: np.mean([v for k, v in means.items() if k[0] == name and k[2] == "auroc"]) for name in sets
              if any(k[0] == name for k in means)}  # fmt: skip
    drawn.sort(
        key=lambda method: np.mean(
            [
                means[name, method, "auroc"] - middle[name]
                for name in middle
                if (name, method, "auroc") in means
            ]
        )
    )
    figure = figure_module.Figure(figsize=(11, 1.2 + 0.26 * len(drawn)), layout="constrained")
    for ax, (metric, title) in zip(figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True):
        for name, marker in zip(sets, "osv^D", strict=False):
            ax.scatter(
                [means.get((name, method, metric), np.nan) for method in drawn],
                np.arange(len(drawn)),
                marker=marker,
                label=name,
            )
        ax.set_yticks(np.arange(len(drawn)), drawn)
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        ax.set_xlabel(title)
    figure.axes[0].legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(sets))
    figure.savefig(path, dpi=110)
