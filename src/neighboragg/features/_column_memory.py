"""What the columns of a data frame looked like in fit, and what has changed about them since."""

from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import binom, chi2_contingency, ks_2samp

from neighboragg._core.inputs import is_missing
from neighboragg._core.stats import upper_limit
from neighboragg._core.types import Array, BoolArray, FloatArray
from neighboragg._store.objects import Stored

# A batch with fewer rows cannot differ from the rows of fit by more than chance.
MIN_ROWS = 10
# Probability of a warning about a batch from the same source as the rows of fit, over all columns.
LEVEL = 1e-3
MAX_CATEGORIES = 1000
N_QUANTILES = 201
# Share of the values that must have changed their category before a significant difference is worth a warning.
MIN_MOVED = 0.25
TEXT_TYPES = ("object", "str", "string")


@dataclass(frozen=True)
class ColumnProfile(Stored):
    """One column of the rows of fit."""

    name: str
    dtype: str
    n_rows: int
    n_missing: int
    # What stood for a missing value in a column of objects: "None", "nan" or ""; the last if there was none.
    missing: str
    # Categories and how often each occurred; nothing where the values are numbers, or hardly ever repeat.
    categories: list[Any]
    counts: list[int]
    # Values at equally spaced quantiles of a column of numbers; empty for others.
    quantiles: FloatArray

    @classmethod
    def of(cls, name: str, column: Any) -> "ColumnProfile":
        """The profile of a column."""
        values, missing = _values(column)
        present = values[~missing]
        counted: dict[Any, int] = {}
        quantiles = np.empty(0)
        if values.dtype.kind == "f":
            if len(present):
                quantiles = np.quantile(present, np.linspace(0, 1, min(N_QUANTILES, len(present))))
        elif _are_categories(present):
            counted = dict(Counter(present.tolist()))
        known = getattr(getattr(column, "dtype", None), "categories", None)
        if known is not None:
            counted = {category: counted.get(category, 0) for category in known.tolist()}
        return cls(
            name,
            str(column.dtype),
            len(values),
            int(missing.sum()),
            _marker(values, missing),
            list(counted),
            list(counted.values()),
            quantiles,
        )

    def cast(self, column: Any) -> Any:
        """The column as it was in fit, as far as nothing is lost; otherwise unchanged."""
        now = str(column.dtype)
        if now in TEXT_TYPES and self.dtype in TEXT_TYPES:
            return _with_marker(column, self.missing)
        if now == self.dtype or self.dtype == "category":
            return column
        if self.dtype in TEXT_TYPES:
            return _as_text(column) if self.categories and isinstance(self.categories[0], str) else column
        return _converted(column, self.dtype)

    def changes(self, column: Any, level: float) -> str:
        """What differs from fit by more than chance, in words; empty if nothing does."""
        values, missing = _values(column)
        present = values[~missing]
        if not len(present):
            return self._more_missing(missing, level)
        other = ""
        if len(self.quantiles):
            other = self._moved_numbers(present, level)
        elif self.categories:
            other = self._other_categories(present, level)
        return " ".join(text for text in (self._more_missing(missing, level), other) if text)

    def _more_missing(self, missing: BoolArray, level: float) -> str:
        highest = float(upper_limit(self.n_missing, self.n_rows, level))
        if binom.sf(missing.sum() - 1, len(missing), highest) >= level:
            return ""
        return (
            f"{missing.mean():.0%} of the values are missing; in fit {self.n_missing / self.n_rows:.0%} were."
        )

    def _moved_numbers(self, present: Array, level: float) -> str:
        if present.dtype.kind != "f":
            return f"it held numbers in fit, and contains {present[0]!r} now."
        if ks_2samp(present, self.quantiles, method="asymp").pvalue >= level:
            return ""
        before = np.quantile(self.quantiles, [0.25, 0.75])
        now = np.quantile(present, [0.25, 0.75])
        return (
            f"half of the values lie between {now[0]:.4g} and {now[1]:.4g}; "
            f"in fit they lay between {before[0]:.4g} and {before[1]:.4g}."
        )

    def _other_categories(self, present: Array, level: float) -> str:
        known = dict(zip(self.categories, self.counts, strict=True))
        counted = Counter(present.tolist())
        unseen = {value: n for value, n in counted.items() if not known.get(value)}
        # Good and Turing: categories that occurred once in fit are as frequent as those that did not occur.
        highest = float(upper_limit(sum(n == 1 for n in self.counts), self.n_rows - self.n_missing, level))
        if binom.sf(sum(unseen.values()) - 1, len(present), highest) < level:
            return self._unseen(unseen, len(present))
        both = np.array([[known[value], counted.get(value, 0)] for value in known if known[value]])
        both = both[both.sum(axis=1) > 0]
        if len(both) < 2 or not both[:, 1].sum() or chi2_contingency(both, correction=False).pvalue >= level:
            return ""
        shares = both / both.sum(axis=0)
        # With many rows any difference is beyond chance; only a large one changes what a model is worth.
        if np.abs(shares[:, 1] - shares[:, 0]).sum() / 2 < MIN_MOVED:
            return ""
        most = int(np.argmax(np.abs(shares[:, 1] - shares[:, 0])))
        value = [value for value in known if known[value]][most]
        return f"{shares[most, 1]:.0%} of the values are {value!r}; in fit {shares[most, 0]:.0%} were."

    def _unseen(self, unseen: dict[Any, int], n: int) -> str:
        most = max(unseen, key=lambda value: unseen[value])
        text = f"{sum(unseen.values()) / n:.0%} of the values did not occur in fit, such as {most!r}"
        alike = {_folded(value): value for value in self.categories}
        if (likely := alike.get(_folded(most))) is not None:
            return f"{text}; {likely!r} did."
        if str(most) in {str(value) for value in self.categories}:
            return f"{text}, which was of another type."
        return f"{text}; {', '.join(map(repr, self.categories[:3]))} did."


class ColumnMemory(Stored):
    """The columns of the data frame that a model was fitted on."""

    def __init__(self, columns: list[ColumnProfile]) -> None:
        self.columns = columns

    @classmethod
    def of(cls, X: Any) -> "ColumnMemory | None":
        """The memory of a data frame; None for anything else."""
        if not hasattr(X, "columns") or not len(X):
            return None
        return cls([ColumnProfile.of(str(name), X[name]) for name in X.columns])

    def conform(self, X: Any) -> tuple[Any, list[str]]:
        """A data frame with each column as it was in fit, where nothing is lost by that; and what differs.

        There is a line for each column that differs from fit by more than chance. Only pandas columns are converted.
        """
        if len(X.columns) != len(self.columns):
            return X, []
        if len(X) < MIN_ROWS and self._is_plain(X):
            return X, []
        level, new, lines = LEVEL / len(self.columns), {}, []
        for profile, name in zip(self.columns, X.columns, strict=True):
            column = X[name]
            if getattr(column, "ndim", 1) != 1:  # two columns of one name
                continue
            changed = profile.cast(column) if hasattr(X, "iloc") else column
            if len(X) >= MIN_ROWS and (text := profile.changes(changed, level)):
                lines.append(f"column {profile.name!r}: {text}")
            if profile.dtype == "category" and hasattr(X, "iloc"):
                changed = _as_category(column, profile.categories)
            if changed is not column:
                new[name] = changed
        return (X.assign(**new) if new else X), lines

    def _is_plain(self, X: Any) -> bool:
        """Whether all types are those of fit, and none of them can hold a missing value in two ways."""
        if not hasattr(X, "iloc"):
            return False
        return all(
            not profile.missing
            and str(now) == profile.dtype
            and (profile.dtype != "category" or now.categories.tolist() == profile.categories)
            for now, profile in zip(X.dtypes, self.columns, strict=True)
        )


def _values(column: Any) -> tuple[Array, BoolArray]:
    """Numbers as floats, anything else as objects; and where values are missing."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return numbers, np.isnan(numbers)
    if values.dtype.kind in "mM":
        numbers = values.astype(f"{values.dtype.kind}8[us]").astype(np.int64) / 1e6
        missing = np.isnat(values)
        return np.where(missing, np.nan, numbers), missing
    values = values.astype(object)
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    present = values[~missing]
    if len(present) and all(_is_number(value) for value in present):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = present.astype(np.float64)
        return numbers, missing
    return values, missing


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _are_categories(present: Array) -> bool:
    """Whether these are texts (or truth values) that repeat."""
    if not len(present) or not all(isinstance(value, str | bool | np.bool_) for value in present):
        return False
    distinct = len(set(present.tolist()))
    return distinct <= MAX_CATEGORIES and 2 * distinct <= max(len(present), 4)


def _marker(values: Array, missing: BoolArray) -> str:
    if values.dtype != object or not missing.any():
        return ""
    return "None" if values[missing][0] is None else "nan"


def _folded(value: Any) -> str:
    return " ".join(str(value).split()).casefold()


def _as_category(column: Any, categories: list[Any]) -> Any:
    known = getattr(column.dtype, "categories", None)
    if known is not None and known.tolist() == categories:
        return column
    # Values that did not occur in fit become missing: the model has no code for them.
    return column.astype("object").where(column.isin(categories)).astype(_category_dtype(categories))


def _category_dtype(categories: list[Any]) -> Any:
    return import_module("pandas").CategoricalDtype(categories)


def _with_marker(column: Any, marker: str) -> Any:
    """Missing values as they were in fit."""
    if not marker or not (missing := column.isna()).any():
        return column
    wanted = None if marker == "None" else float("nan")
    values = column.to_numpy(dtype=object, copy=True)
    if all((value is None) == (wanted is None) for value in values[missing.to_numpy()]):
        return column
    values[missing.to_numpy()] = wanted
    return type(column)(values, index=column.index, name=column.name, dtype=object)


def _as_text(column: Any) -> Any:
    """Numbers as the text that stood for them in fit: 11.0 is "11"."""
    values = column.to_numpy(dtype=object, copy=True)
    for i, value in enumerate(values):
        if _is_number(value) and not is_missing(value):
            values[i] = str(int(value)) if float(value).is_integer() else str(value)
    return type(column)(values, index=column.index, name=column.name, dtype=object)


def _converted(column: Any, dtype: str) -> Any:
    """Values of another type as that of fit, if each of them survives."""
    is_date = dtype.startswith("datetime")
    if str(column.dtype) not in TEXT_TYPES and not is_date:
        return column  # numbers of another width
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):
        pass
    if is_date:
        return column
    try:
        return column.astype("float64")
    except (TypeError, ValueError):
        return column
