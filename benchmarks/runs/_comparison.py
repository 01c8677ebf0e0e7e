"""The result of a comparison, as tables with intervals."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import FloatArray

# Our method by default, and with the most computation.
DEFAULT, BEST = "Pool", "Pool, best"


@dataclass(frozen=True)
class Grid:
    """A table: a title, a header and rows of text; bold cells are marked as in Markdown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_markdown(self) -> str:
        """The table under its title."""
        lines = [f"**{self.title}**", "", _line(self.header), "| --- " * len(self.header) + "|"]
        return "\n".join([*lines, *(_line(row) for row in self.rows)]) + "\n"

    def to_html(self) -> str:
        """The table under its title, with everything that is not ours escaped."""
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return (
            f"<h2>{escape(self.title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Results(ABC):
    """What a comparison found, as tables under one title."""

    title: str

    @abstractmethod
    def tables(self) -> list[Grid]:
        """Every table, the details first."""

    @abstractmethod
    def summaries(self) -> list[Grid]:
        """The tables that tell most in short."""

    def to_markdown(self) -> str:
        """All tables as Markdown."""
        return f"# {self.title}\n\n" + "\n".join(grid.to_markdown() for grid in self.tables())

    def to_html(self) -> str:
        """All tables as one self-contained page."""
        parts = [
            f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(self.title)}</title>",
            "<style>body{font:15px system-ui,sans-serif;margin:2rem;color-scheme:light dark}"
            "table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{padding:.3rem .7rem;text-align:right;"
            "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
            "th:first-child,td:first-child{text-align:left}</style></head><body>",
            f"<h1>{escape(self.title)}</h1>",
            *(grid.to_html() for grid in self.tables()),
        ]
        return "\n".join([*parts, "</body></html>\n"])

    def __str__(self) -> str:
        return f"{self.title}\n\n" + "\n".join(grid.to_markdown() for grid in self.summaries())

    def write(self, stem: Path) -> list[Path]:
        """Write `stem`.md and `stem`.html, and return where."""
        written = []
        for suffix, text in ((".md", self.to_markdown()), (".html", self.to_html())):
            path = stem.with_name(stem.name + suffix)
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: str) -> str:
    text = escape(cell)
    return f"<strong>{text.replace('**', '')}</strong>" if "**" in text else text


N_RESAMPLES = 2000


def gain_interval(
    gains: FloatArray, sets: Sequence[str], weights: FloatArray | None = None
) -> tuple[float, float]:
    """95% bootstrap interval for the mean gain: data sets are drawn with replacement, then splits of each."""
    rng = np.random.default_rng(0)
    numbers = np.unique(np.asarray(sets), return_inverse=True)[1]
    counts = np.ones(len(gains)) if weights is None else weights
    groups = [numbers == number for number in range(numbers.max() + 1)]
    means = np.column_stack([_resampled(gains[group], counts[group], rng) for group in groups])
    drawn = rng.integers(0, len(groups), means.shape)
    sizes = np.array([counts[group].sum() for group in groups])[drawn]
    draws = (sizes * np.take_along_axis(means, drawn, axis=1)).sum(axis=1) / sizes.sum(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _resampled(gains: FloatArray, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Weighted means of resamples of one data set."""
    drawn = rng.integers(0, len(gains), (N_RESAMPLES, len(gains)))
    return np.average(gains[drawn], axis=1, weights=weights[drawn])


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
        defined = {(method, key): self._defined(method, key) for method in self.methods for key in keys}
        # Splits where a metric is defined for some method; one without errors has no ranking to measure for any.
        possible = {key: set().union(*(defined[method, key] for method in self.methods)) for key in keys}
        lines = []
        for method in self.methods:
            own = {(row["set"], row["base"], row["seed"]) for row in self._select(method)}
            # A mean over some of the splits cannot stand next to means over all of them.
            line = [
                "–" if len(found := defined[method, key]) < len(possible[key] & own) else _mean(found)
                for key in keys
            ]
            lines.append([self._named(method), *line])
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
