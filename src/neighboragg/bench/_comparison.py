"""What a comparison of trust methods found: best in bold, differences with intervals."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import FloatArray
from neighboragg.bench._gain_interval import gain_interval
from neighboragg.bench._grid import Grid, Results
from neighboragg.bench._lineup import BEST, DEFAULT

__all__ = ["METRICS", "Comparison"]

#: The paper's metrics and our names for them.
METRICS = {"AUC": "auroc", "APC": "ap_success", "APM": "ap_error"}

Cell = tuple[str, str, str, str]
#: Data set, base classifier and seed.
Split = tuple[str, str, int]


@dataclass(frozen=True)
class Comparison(Results):
    """Results of trust methods on data sets × base classifiers × splits, and the tables they give.

    Parameters
    ----------
    rows : sequence of dict
        One a method and split, as :func:`compare` and the files of results hold them. Others than those of `sets`,
        `bases` and `methods` may be among them.
    sets, bases, methods : sequence of str
        What is compared, in the order of the tables.
    title : str, default="Trust methods"
    detailed : sequence of str, default=None
        Methods of the tables by base classifier; None means all.
    printed : mapping, default={}
        Published means, shown in brackets: (set, base, method, metric) to percent.
    """

    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    sets: Sequence[str]
    bases: Sequence[str]
    methods: Sequence[str]
    title: str = "Trust methods"
    detailed: Sequence[str] | None = None
    printed: Mapping[Cell, float] = field(default_factory=dict, repr=False)

    def tables(self) -> list[Grid]:
        """By base classifier, means, and what the pool gains over every other method."""
        return [*self.by_base(), *self.summaries()]

    def summaries(self) -> list[Grid]:
        """The tables over all data sets and base classifiers."""
        references = [name for name in (DEFAULT, BEST) if name in self.methods]
        return [self.means(), *(self.gains(name) for name in references)]

    def by_base(self) -> list[Grid]:
        """One table a base classifier: mean (standard deviation) over splits, and the published mean."""
        values = self._percentages()
        header = ["method", *(f"{name} {metric}" for name in self.sets for metric in METRICS)]
        grids = []
        for base in self.bases:
            lines = [
                [
                    self._named(method),
                    *(
                        self._cell(values, (name, base, method, m))
                        for name in self.sets
                        for m in METRICS.values()
                    ),
                ]
                for method in self._detailed()
            ]
            seeds = len({row["seed"] for row in self.rows if row["base"] == base})
            title = f"{base}: mean (standard deviation) over {seeds} seeds"
            grids.append(Grid(title + (", [paper's mean]" if self.printed else ""), header, lines))
        return grids

    def means(self) -> Grid:
        """Means over all cells, each with equal weight however many splits it has, and calibration."""
        keys = ("auroc", "ap_success", "ap_error", "aurc", "augrc", "ece")
        lines = [
            [self._named(method), *(_mean(self._defined(method, key)) for key in keys)]
            for method in self.methods
        ]
        title = f"Mean over {', '.join(self.sets)} × {', '.join(self.bases)}"
        return Grid(title, ["method", "AUROC", "APC", "APM", "AURC ↓", "AUGRC ↓", "ECE ↓"], lines)

    def gains(self, reference: str) -> Grid:
        """Paired differences of `reference` over each other method, with intervals over data sets and splits.

        Parameters
        ----------
        reference : str
            One of the methods.

        Returns
        -------
        grid : Grid
        """
        lines = []
        for method in self.methods:
            if method != reference:
                ranking, errors = (self._paired(reference, method, key) for key in ("auroc", "ap_error"))
                lines.append([method, *_gain(ranking), self._worst(ranking), *_gain(errors)])
        header = ["against", "AUROC", "splits won", "worst cell (AUROC)", "APM", "splits won"]
        title = f"{reference}: paired gain, 95% bootstrap interval over data sets and their splits"
        return Grid(title, header, lines)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for every method and split."""
        pandas = import_extra("pandas", extra="cli", purpose="A data frame of results")
        chosen = [row for method in self.methods for row in self._select(method)]
        return pandas.DataFrame([{key: row[key] for key in row if key != "machine"} for row in chosen])

    def _named(self, method: str) -> str:
        """The method, and how many splits it was measured on where others were on more."""
        of_method = {name: {row["seed"] for row in self._select(name)} for name in self.methods}
        n, most = len(of_method[method]), max(map(len, of_method.values()))
        return f"{method} ({n} of {most} seeds)" if 0 < n < most else method

    def _detailed(self) -> Sequence[str]:
        return self.methods if self.detailed is None else self.detailed

    def _percentages(self) -> dict[Cell, FloatArray]:
        """Percentages over splits for each (set, base, method, metric)."""
        collected: dict[Cell, list[float]] = {}
        for row in self.rows:
            for metric in METRICS.values():
                if not np.isnan(row[metric]):  # undefined on a split without an error, for every method alike
                    key = row["set"], row["base"], row["method"], metric
                    collected.setdefault(key, []).append(100 * row[metric])
        return {key: np.array(found) for key, found in collected.items()}

    def _cell(self, values: Mapping[Cell, FloatArray], cell: Cell) -> str:
        found = values.get(cell)
        if found is None:
            return "–"
        name, base, _, metric = cell
        others = [values[other] for m in self._detailed() if (other := (name, base, m, metric)) in values]
        text = f"{found.mean():.2f} ({found.std():.2f})"
        text = f"**{text}**" if found.mean() >= max(other.mean() for other in others) - 1e-9 else text
        return f"{text} [{self.printed[cell]:.2f}]" if cell in self.printed else text

    def _select(self, method: str) -> list[Mapping[str, Any]]:
        return [
            row
            for row in self.rows
            if row["set"] in self.sets and row["base"] in self.bases and row["method"] == method
        ]

    def _defined(self, method: str, key: str) -> dict[Split, float]:
        """Percent by data set, base classifier and seed, where it is defined."""
        return {
            (row["set"], row["base"], row["seed"]): 100 * row[key]
            for row in self._select(method)
            if not np.isnan(row[key])
        }

    def _paired(self, first: str, second: str, key: str) -> dict[Split, float]:
        """Difference in points by data set, base classifier and seed."""
        ours, theirs = self._defined(first, key), self._defined(second, key)
        return {split: value - theirs[split] for split, value in ours.items() if split in theirs}

    def _worst(self, gains: Mapping[Split, float]) -> str:
        means = {
            (name, base): float(np.mean(found))
            for name in self.sets
            for base in self.bases
            if (found := [gain for split, gain in gains.items() if split[:2] == (name, base)])
        }
        if not means:
            return "–"
        name, base = min(means, key=lambda cell: means[cell])
        return f"{means[name, base]:+.2f} ({name} {base})"


def _gain(differences: Mapping[Split, float]) -> list[str]:
    """Mean with its interval, for which a single split is too few, and the share of splits won."""
    if not differences:
        return ["–", "–"]
    gains, weights = np.array([*differences.values()]), _weights(differences)
    text = f"{np.average(gains, weights=weights):+.2f}"
    if len(gains) > 1:
        low, high = gain_interval(gains, [name for name, _, _ in differences], weights)
        text += f" [{low:+.2f}, {high:+.2f}]"
    return [text, f"{100 * (gains > 0).mean():.0f}%"]


def _mean(values: Mapping[Split, float]) -> str:
    return f"{np.average([*values.values()], weights=_weights(values)):.2f}" if values else "–"


def _weights(splits: Iterable[Split]) -> FloatArray:
    """One for each cell, shared by its splits."""
    cells = [split[:2] for split in splits]
    sizes = Counter(cells)
    return np.array([1 / sizes[cell] for cell in cells])
