"""Why a prediction is trusted: contributions and the neighbors behind them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import islice
from typing import Any

import numpy as np

from neighboragg._core.display import html_table
from neighboragg._core.inputs import take_rows
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._core.views import LEARNED, view_of
from neighboragg._pool.experts import CLASSIFIER, NEIGHBORS, OPINIONS
from neighboragg._pool.network import BALANCE

SHOWN_COLUMNS = 3
# Rows whose vectors are compared, with the values that they have in a column and with others.
COMPARED_ROWS = 30
# Rows among which other values are looked for.
MAX_SEARCHED = 10_000
# A column must change vectors by more than transforming the same rows again does, where that is not exact.
MIN_TIMES_NOISE = 10.0


class ReferenceValues:
    """Data frames of the rows that neighbors come from, and which of their columns reach the vectors."""

    def __init__(self, frames: Sequence[Any], vectorize: Callable[[Any], FloatArray]) -> None:
        self.frames, self.vectorize = frames, vectorize
        # By column, as far as it has been needed: a frame may have thousands of columns.
        self._reaching: dict[Any, bool] = {}

    def row(self, position: int) -> tuple[Any, int]:
        """The frame that a reference row is in, and its position there."""
        for frame in self.frames:
            if position < len(frame):
                break
            position -= len(frame)
        return frame, position

    def reaches_vectors(self, name: Any, new: Any) -> bool:
        """Whether other values in a column change the vectors; `new` is a frame of one row with another value."""
        if name not in self._reaching:
            self._reaching[name] = self._changes_vectors(name, new)
        return self._reaching[name]

    def _changes_vectors(self, name: Any, new: Any) -> bool:
        frame = self.frames[0]
        rows, vectors, noise = self._compared
        others = _other_values(np.asarray(frame[name]), rows)
        source = (
            take_rows(new, np.zeros(len(rows), dtype=int)) if others is None else take_rows(frame, others)
        )
        changed = self.vectorize(
            _with_column(take_rows(frame, rows), list(frame.columns).index(name), source)
        )
        return bool(np.abs(changed - vectors).max() > MIN_TIMES_NOISE * noise)

    @cached_property
    def spreads(self) -> dict[Any, float]:
        """Standard deviations of the columns of numbers."""
        frame = self.frames[0]
        columns = {name: np.asarray(frame[name]) for name in frame.columns}
        return {
            name: float(np.nanstd(values.astype(np.float64))) or 1.0
            for name, values in columns.items()
            if values.dtype.kind in "iuf"
        }

    @cached_property
    def _compared(self) -> tuple[IntArray, FloatArray, float]:
        """Positions of some rows, their vectors, and how far these are from those of a second time."""
        frame = self.frames[0]
        rows = _spread_over(len(frame), COMPARED_ROWS)
        first, again = (self.vectorize(take_rows(frame, rows)) for _ in range(2))
        return rows, first, float(np.abs(again - first).max())


def _spread_over(n: int, most: int) -> IntArray:
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _other_values(values: Array, rows: IntArray) -> IntArray | None:
    """For each of some rows, a row with another value; None if all values are equal."""
    first: dict[str, int] = {}
    for position in (*rows.tolist(), *_spread_over(len(values), MAX_SEARCHED).tolist()):
        first.setdefault(str(values[position]), position)
    if len(first) < 2:
        return None
    different = list(first.values())
    chosen = np.linspace(0, len(different) - 1, len(rows)).astype(np.intp)
    same = [str(values[different[c]]) == str(values[row]) for c, row in zip(chosen, rows, strict=True)]
    return np.array(different)[chosen - np.array(same)]


def _with_column(frame: Any, column: int, source: Any) -> Any:
    """A copy of a frame with the values of one column taken from other rows, of the same type."""
    if hasattr(frame, "iloc"):
        changed = frame.copy()
        changed.isetitem(column, source.iloc[:, column].array)
        return changed
    return frame.clone().replace_column(column, source.to_series(column))


@dataclass(frozen=True, eq=False)
class RowValues:
    """Data frames of the rows that are explained and of those their neighbors come from."""

    rows: Any
    reference: ReferenceValues

    def difference(self, row: int, position: int) -> str:
        """The columns in which a neighbor differs most, measured by how much they vary."""
        frame, position = self.reference.row(position)
        found = []
        for name in self.rows.columns:
            here, there = np.asarray(self.rows[name])[row], np.asarray(frame[name])[position]
            if (size := _size(here, there, self.reference.spreads.get(name))) > 0:
                found.append((size, name, f"{name} {_text(there)}, here {_text(here)}"))
        largest = sorted(found, key=lambda one: -one[0])
        new = take_rows(self.rows, np.array([row]))
        used = (text for _, name, text in largest if self.reference.reaches_vectors(name, new))
        return "; ".join(islice(used, SHOWN_COLUMNS)) or "equal in all columns used"


def _size(here: Any, there: Any, spread: float | None) -> float:
    """Difference in standard deviations; 1 for categories that differ, 0 for vectors, which do not fit a line."""
    if np.ndim(here) or np.ndim(there):
        return 0.0
    if _is_missing(here) or _is_missing(there):
        return 0.0 if _is_missing(here) and _is_missing(there) else 1.0
    if spread is None or isinstance(here, str):
        return float(here != there)
    return abs(float(here) - float(there)) / spread


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _text(value: Any) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    number = float(value)
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"


FAMILIARITY = "familiarity"
# P-values up to which a row is called unlike, or hardly like, the rows seen.
UNLIKE, HARDLY_LIKE = 0.01, 0.05
# The metric of neighbors that are not shown.
SHOWN_NEIGHBORS = 3
# Differences in log odds below this are not worth a word.
NEGLIGIBLE = 0.005


@dataclass(frozen=True, eq=False)
class Explanation:
    """What raised and lowered the trust in each prediction.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    predicted : ndarray of shape (n,)
        Position of the predicted class.
    trust : ndarray of shape (n, n_classes)
    experts : list of str
    contributions : ndarray of shape (n, n_classes, n_experts)
        What each expert adds to the log trust of each class, relative to the mean over classes.
    distances, indices : ndarray of shape (n, n_classes, n_neighbors)
        Nearest reference rows of each class; indices count the training rows, then the validation rows.
    groups : list of str
        Group of each expert: "classifier", "neighbors", "second opinions", or "class balance" (of the network only).
    spaces : list of str
        The view or learned metric that each expert has its neighbors from; "" for other experts.
    proba : ndarray of shape (n, n_classes), default=None
        The classifier's probabilities.
    opinions : mapping of str to ndarray of shape (n, n_classes), default={}
        Probabilities of the second opinions, by the name of the expert.
    guard_weight : float, default=1.0
        How much is left to neighbors and second opinions; 0 where they did not help on the validation rows.
    names : sequence, default=None
        What the explained rows are called.
    reference_names : ndarray, default=None
        What the rows are called that `indices` point to; None means by their number.
    values : RowValues, default=None
        Values of the rows and of their neighbors. Only columns that reach the vectors are shown.
    familiarity : ndarray of shape (n,), default=None
        P-value for "rows like this have been seen".
    note : str, default=""
        Printed once, after all rows.

    Notes
    -----
    ``print(explanation)`` describes the classifier, the neighbors and the second opinions: the evidence of each, and by
    how much it raised or lowered the log odds of the predicted class against the next one. It adds whether rows like
    this have been seen, which does not enter the trust. In a pool, a classifier or second opinion that is for a class
    never lowers the trust in it. Numbers of neighbors that carry nearly the same evidence may correct each other, and
    are summed. The network may learn to count an input the other way; the text then says so. :meth:`to_frame` gives one
    line per row, class and expert.
    """

    classes: Array
    predicted: IntArray
    trust: FloatArray
    experts: list[str]
    contributions: FloatArray
    distances: FloatArray
    indices: IntArray
    groups: Sequence[str]
    spaces: Sequence[str]
    proba: FloatArray | None = None
    opinions: Mapping[str, FloatArray] = field(default_factory=dict)
    guard_weight: float = 1.0
    names: Sequence[Any] | None = None
    reference_names: Array | None = None
    values: RowValues | None = None
    familiarity: FloatArray | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.trust)

    def runner_up(self) -> IntArray:
        """Position of the most trusted class other than the predicted one."""
        others = self.trust.copy()
        others[np.arange(len(self)), self.predicted] = -1.0
        return others.argmax(axis=1)

    def renumbered(self, indices: IntArray) -> "Explanation":
        """The same with other row numbers for the neighbors."""
        return replace(self, indices=indices)

    def __str__(self) -> str:
        texts = [self._in_words(row) for row in range(len(self))]
        return "\n\n".join([*texts, self.note] if self.note else texts)

    def _repr_html_(self) -> str:
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return "".join(self._in_html(row) for row in range(len(self))) + note

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns row, class, trust, expert, group, contribution."""
        pandas = import_extra("pandas", extra="cli", purpose="Explanation.to_frame")
        n, n_classes, n_experts = self.contributions.shape
        row, c, e = np.indices((n, n_classes, n_experts)).reshape(3, -1)
        names = np.arange(n) if self.names is None else np.asarray(self.names)
        return pandas.DataFrame(
            {
                "row": names[row],
                "class": self.classes[c],
                "trust": self.trust[row, c],
                "expert": np.array(self.experts, dtype=object)[e],
                "group": np.array(self.groups, dtype=object)[e],
                "contribution": self.contributions.ravel(),
            }
        )

    def _in_words(self, row: int) -> str:
        lines = [self._headline(row)]
        if len(self.classes) > 1:
            story = self._story(row)
            width = max(len(who) for who, _, _ in story)
            lines += [f"  {who:<{width}}  {found}: {effect}" for who, found, effect in story]
            lines += [f"  nearest {label}: {', '.join(found)}" for label, found in self._nearest(row)]
        return "\n".join(lines)

    def _in_html(self, row: int) -> str:
        parts = [f"<p>{escape(self._headline(row))}</p>"]
        if len(self.classes) > 1:
            who, found, effect = zip(*self._story(row), strict=True)
            parts.append(html_table({"": who, "found": found, "effect": effect}))
            nearest = self._nearest(row)
            parts += [
                f"<p>nearest {escape(label)}:</p><ul>{''.join(f'<li>{escape(one)}</li>' for one in found)}</ul>"
                for label, found in nearest
            ]
        return "".join(parts)

    def _headline(self, row: int) -> str:
        name = "" if self.names is None else f"{_called(self.names[row], 'Row')}: "
        verb = "predicted" if name else "Predicted"
        if len(self.classes) == 1:
            return f"{name}{verb} {self.classes[0]!s}, the only class."
        predicted, other = self._pair(row)
        return (
            f"{name}{verb} {self.classes[predicted]!s} with trust {self.trust[row, predicted]:.3f}; "
            f"next is {self.classes[other]!s} with {self.trust[row, other]:.3f}."
        )

    def _story(self, row: int) -> list[tuple[str, str, str]]:
        """For each group of experts: its name, what it found, and the effect."""
        predicted, other = self._pair(row)
        margins = self.contributions[row, predicted] - self.contributions[row, other]
        learned = float(margins[[view_of(space) != space for space in self.spaces]].sum())
        found = {
            CLASSIFIER: self._found_by_probabilities(row, {"": self.proba}),
            NEIGHBORS: self._found_by_neighbors(row),
            OPINIONS: self._found_by_probabilities(row, self.opinions),
            BALANCE: ("what remains if the same evidence favors each class in turn", 0.0),
        }
        story = []
        for group, (words, leaning) in found.items():
            if group in self.groups:
                margin = float(margins[[one == group for one in self.groups]].sum())
                effect = self._effect(group, margin, leaning, learned, row)
                story.append((group, words, effect + (self._by_view(margins) if group == NEIGHBORS else "")))
        return story if self.familiarity is None else [*story, _seen(float(self.familiarity[row]))]

    def _found_by_probabilities(
        self, row: int, by_name: Mapping[str, FloatArray | None]
    ) -> tuple[str, float]:
        """Words for probabilities, and whether all lean to the predicted class (1) or to the next one (-1)."""
        predicted, other = self._pair(row)
        words, leanings = [], set()
        for name, proba in by_name.items():
            if proba is None:
                return "its probabilities", 0.0
            p, q = proba[row, predicted], proba[row, other]
            words.append(
                f"{name} gives {self.classes[predicted]!s} {p:.2f} and {self.classes[other]!s} {q:.2f}".strip()
            )
            leanings.add(float(np.sign(p - q)))
        return "; ".join(words), leanings.pop() if len(leanings) == 1 else 0.0

    def _found_by_neighbors(self, row: int) -> tuple[str, float]:
        """Words for the nearest rows of both classes, and whether the predicted class is nearer: 1, or else -1."""
        pair = self._pair(row)
        nearest = [self.distances[row, c, 0] for c in pair]
        words = ", ".join(
            f"nearest {self.classes[c]!s} at {distance:.3g}"
            if np.isfinite(distance)
            else f"no {self.classes[c]!s}"
            for c, distance in zip(pair, nearest, strict=True)
        )
        here, there = (_mean_finite(self.distances[row, c]) for c in pair)
        if self.distances.shape[2] > 1:
            words += f"; {self.distances.shape[2]} nearest at {here:.3g} and {there:.3g} on average"
        leanings = {_sign(nearest[1], nearest[0]), _sign(there, here)}
        return words, leanings.pop() if len(leanings) == 1 else 0.0

    def _effect(self, group: str, margin: float, leaning: float, learned: float, row: int) -> str:
        one, label = group == CLASSIFIER, self.classes[self.predicted[row]]
        if not one and self.guard_weight == 0:
            return "have no say, as they did not help on the validation rows"
        if abs(margin) < NEGLIGIBLE:
            return "makes no difference" if one else "make no difference"
        verb = ("raise" if margin > 0 else "lower") + ("s" if one else "")
        reason = ""
        if margin * leaning < 0:
            elsewhere = group == NEIGHBORS and learned * margin > 0
            reason = f", by the {LEARNED}" if elsewhere else ", to correct the others"
            if BALANCE in self.groups:
                reason = ": the network has learned to count it the other way"
        return f"{verb} the trust in {label!s} ({margin:+.2f}){reason}"

    def _by_view(self, margins: FloatArray) -> str:
        """How much of it is due to each of several views."""
        total: dict[str, float] = {}
        for space, margin in zip(self.spaces, margins, strict=True):
            if space:
                total[view_of(space)] = total.get(view_of(space), 0.0) + float(margin)
        if len(total) < 2 or self.guard_weight == 0:
            return ""
        return f": {', '.join(f'{view} {margin:+.2f}' for view, margin in total.items())}"

    def _nearest(self, row: int) -> list[tuple[str, list[str]]]:
        return [(str(self.classes[c]), self._neighbors(row, c) or ["none"]) for c in self._pair(row)]

    def _neighbors(self, row: int, c: int) -> list[str]:
        found = []
        for position, distance in zip(
            self.indices[row, c, :SHOWN_NEIGHBORS], self.distances[row, c, :SHOWN_NEIGHBORS], strict=True
        ):
            if position < 0:
                continue
            name = position if self.reference_names is None else self.reference_names[position]
            difference = "" if self.values is None else f" ({self.values.difference(row, int(position))})"
            found.append(f"{_called(name)} at {distance:.3g}{difference}")
        return found

    def _pair(self, row: int) -> tuple[int, int]:
        return int(self.predicted[row]), int(self.runner_up()[row])


def _called(name: Any, kind: str = "row") -> str:
    """Numbers are row numbers; other names stand for themselves."""
    return f"{kind} {name}" if isinstance(name, int | np.integer) else str(name)


def _seen(p: float) -> tuple[str, str, str]:
    """Familiarity in words: its name, what it found, and the effect."""
    likeness = "unlike the rows" if p <= UNLIKE else "hardly like rows" if p <= HARDLY_LIKE else "like rows"
    words = f"more unusual than {1 - p:.1%} of the validation rows"
    return FAMILIARITY, words, f"{likeness} seen so far ({p:.3f})"


def _sign(a: float, b: float) -> float:
    """1 if the first is the larger, -1 if the second is, 0 if they are equal, infinite or not."""
    return float(a > b) - float(a < b)


def _mean_finite(distances: FloatArray) -> float:
    finite = distances[np.isfinite(distances)]
    return float(finite.mean()) if len(finite) else np.inf
