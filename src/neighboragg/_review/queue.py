"""Queues of rows to review, their filters, and statistics of the decisions.

Each queue stores the decision about a row as one byte. The next undecided row is found by searching for a byte, and
each decision changes the counts by one, so pages stay fast for long queues.
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite
from threading import Lock

import numpy as np

from neighboragg._core.display import show_value
from neighboragg._core.types import BoolArray, IntArray
from neighboragg._review.store import DecisionStore
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels import ReviewItem, ReviewSet
from neighboragg.promises import errors_left_interval, precision_interval

QUEUE_NAMES = {
    "flagged": "Flagged, most suspicious first",
    "sample": "Random sample of the flagged",
    "random": "Random unflagged rows",
}
SHOW_NAMES = {
    "todo": "not yet looked at",
    "later": "skipped or unsure",
    "done": "kept, relabeled or excluded",
    "all": "all",
}
_STATES = {"skip": 1, "unsure": 1, "keep": 2, "relabel": 3, "exclude": 4}
_SHOWN = {"todo": b"\0", "later": b"\1", "done": b"\2\3\4", "all": b"\0\1\2\3\4"}
_MAX_FILTERS = 32
_LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """The part of the review set that a browser shows; part of the address of every page."""

    queue: str = "flagged"
    label: str = ""
    low: float | None = None
    high: float | None = None
    search: str = ""
    show: str = "todo"

    @classmethod
    def from_query(cls, query: Mapping[str, str], classes: tuple[str, ...]) -> "ReviewFilter":
        """Read a filter from the fields of an address or a form."""
        chosen = cls(
            queue=query.get("queue") or "flagged",
            label=query.get("label", ""),
            low=_number(query.get("low", ""), "lowest"),
            high=_number(query.get("high", ""), "highest"),
            search=" ".join(query.get("search", "").split())[:_LONGEST_SEARCH],
            show=query.get("show") or "todo",
        )
        if chosen.queue not in QUEUE_NAMES or chosen.show not in SHOW_NAMES:
            raise InvalidInputError(f"There is no queue {chosen.queue!r} showing {chosen.show!r}.")
        if chosen.label and chosen.label not in classes:
            raise InvalidInputError(f"There is no class {chosen.label!r}.")
        return chosen

    def query(self) -> dict[str, str]:
        """Return the fields that differ from the defaults."""
        fields = {
            "queue": "" if self.queue == "flagged" else self.queue,
            "label": self.label,
            "low": "" if self.low is None else f"{self.low!r}",
            "high": "" if self.high is None else f"{self.high!r}",
            "search": self.search,
            "show": "" if self.show == "todo" else self.show,
        }
        return {name: value for name, value in fields.items() if value}

    @property
    def narrows(self) -> bool:
        """Whether it excludes rows of the queue regardless of their decisions."""
        return bool(self.label or self.search) or self.low is not None or self.high is not None


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of wrong labels, right labels and open rows in a queue."""

    wrong: int
    right: int
    open: int

    @property
    def decided(self) -> int:
        """Rows whose label is known."""
        return self.wrong + self.right

    @property
    def total(self) -> int:
        """All rows of the set."""
        return self.decided + self.open


class Queue:
    """Rows in order of review, with the decision about each."""

    def __init__(self, rows: IntArray, ranks: IntArray, places: Mapping[int, int], states: bytes) -> None:
        self._rows = rows
        self._ranks = ranks
        self._places = places
        self._states = bytearray(states)
        self._counts = Counter(dict(enumerate(np.bincount(np.frombuffer(states, dtype=np.uint8)).tolist())))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def counts(self) -> Counts:
        """Numbers of wrong labels, right labels and open rows."""
        wrong, right = self._counts[_STATES["relabel"]], self._counts[_STATES["keep"]]
        return Counts(wrong, right, len(self) - wrong - right)

    def count(self, show: str) -> int:
        """Number of rows that `show` selects."""
        return sum(self._counts[state] for state in _SHOWN[show])

    def rows(self, show: str) -> Iterator[int]:
        """Iterate over the rows that `show` selects."""
        place = self._next(show, 0)
        while place >= 0:
            yield int(self._rows[place])
            place = self._next(show, place + 1)

    def around(self, row: int, show: str) -> tuple[int | None, int | None]:
        """Return the shown rows before and after a row; the row itself need not be in the queue."""
        place, is_here = self._find(row)
        before = max(self._states.rfind(state, 0, place) for state in _SHOWN[show])
        after = self._next(show, place + is_here)
        return (
            int(self._rows[before]) if before >= 0 else None,
            int(self._rows[after]) if after >= 0 else None,
        )

    def number(self, row: int, show: str) -> int | None:
        """Return the position of a row among the shown rows, starting at 1."""
        place, is_here = self._find(row)
        if not is_here or self._states[place] not in _SHOWN[show]:
            return None
        if show == "all":
            return place + 1
        states = np.frombuffer(bytes(self._states[:place]), dtype=np.uint8)
        return 1 + sum(int(np.count_nonzero(states == state)) for state in _SHOWN[show])

    def note(self, row: int, state: int) -> None:
        """Record the decision about a row."""
        place, is_here = self._find(row)
        if is_here:
            self._counts[self._states[place]] -= 1
            self._counts[state] += 1
            self._states[place] = state

    def part(self, chosen: IntArray) -> "Queue":
        """Return a queue with only the rows at these positions of the whole queue."""
        states = np.frombuffer(bytes(self._states), dtype=np.uint8)[chosen]
        return Queue(self._rows[chosen], chosen, self._places, states.tobytes())

    def _find(self, row: int) -> tuple[int, bool]:
        """Position of a row, or the position where it would be, and whether it is in the queue."""
        rank = self._places.get(row, -1)
        place = int(np.searchsorted(self._ranks, rank))
        return place, place < len(self) and self._ranks[place] == rank

    def _next(self, show: str, start: int) -> int:
        found = [place for state in _SHOWN[show] if (place := self._states.find(state, start)) >= 0]
        return min(found, default=-1)


class _Order:
    """One queue of a review set, stored in columns for filtering."""

    def __init__(self, items: Sequence[ReviewItem], classes: Sequence[str]) -> None:
        self._codes = {label: code for code, label in enumerate(classes)}
        rows = np.array([item.row for item in items], dtype=np.int64)
        places = {int(row): place for place, row in enumerate(rows)}
        self.queue = Queue(rows, np.arange(len(rows)), places, bytes(len(rows)))
        self._scores = np.array([item.score for item in items], dtype=float)
        self._given = np.array([self._codes[item.given] for item in items], dtype=np.int64)
        self._suggested = np.array([self._codes[item.suggested] for item in items], dtype=np.int64)
        self._texts = _Texts([_searched(item) for item in items])

    def filtered(self, chosen: ReviewFilter) -> Queue:
        kept = np.ones(len(self._scores), dtype=bool)
        if chosen.label:
            code = self._codes[chosen.label]
            kept &= (self._given == code) | (self._suggested == code)
        if chosen.low is not None:
            kept &= self._scores >= chosen.low
        if chosen.high is not None:
            kept &= self._scores <= chosen.high
        if text := chosen.search.casefold():
            kept &= self._texts.containing(text)
        return self.queue.part(np.flatnonzero(kept))


class _Texts:
    """The values of every row; distinct values are stored once, so a search reads each only once."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        numbers: dict[str, int] = {}
        values = [numbers.setdefault(value, len(numbers)) for row in rows for value in row]
        self._n_rows = len(rows)
        self._values = np.array(values, dtype=np.int32)
        self._rows = np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows])
        self._all = "\n".join(numbers)
        self._ends = np.cumsum([len(value) + 1 for value in numbers])

    def containing(self, text: str) -> BoolArray:
        """Mask of the rows in which any value contains a one-line text."""
        found = [match.start() for match in re.finditer(re.escape(text), self._all)]
        has_text = np.zeros(len(self._ends), dtype=bool)
        has_text[np.searchsorted(self._ends, np.array(found, dtype=np.int64), side="right")] = True
        matches = np.zeros(self._n_rows, dtype=bool)
        matches[self._rows[has_text[self._values]]] = True
        return matches


class Queues:
    """The queues of a review set and of the filters in use, updated with the decisions in a store."""

    def __init__(self, review_set: ReviewSet, store: DecisionStore) -> None:
        self._store = store
        self._classes = frozenset(review_set.classes)
        self._orders = {name: _Order(getattr(review_set, name), review_set.classes) for name in QUEUE_NAMES}
        self._filtered: OrderedDict[ReviewFilter, Queue] = OrderedDict()
        self._new_labels: dict[int, str] = {}
        self._last = 0
        self._lock = Lock()

    @property
    def new_classes(self) -> list[str]:
        """Classes in use that reviewers added to the review set."""
        return sorted(set(self._new_labels.values()))

    def whole(self) -> dict[str, Queue]:
        """Update and return all queues."""
        with self._lock:
            self._update()
            return {name: order.queue for name, order in self._orders.items()}

    def filtered(self, chosen: ReviewFilter) -> Queue:
        """Update and return the queue of a filter, with rows in every state."""
        with self._lock:
            self._update()
            if not chosen.narrows:
                return self._orders[chosen.queue].queue
            key = replace(chosen, show="all")
            if key not in self._filtered:
                self._filtered[key] = self._orders[chosen.queue].filtered(chosen)
            self._filtered.move_to_end(key)
            if len(self._filtered) > _MAX_FILTERS:
                self._filtered.popitem(last=False)
            return self._filtered[key]

    def _update(self) -> None:
        """Apply the decisions made since the last update, by this or another process."""
        self._last, changes = self._store.changes(self._last)
        queues = [order.queue for order in self._orders.values()] + list(self._filtered.values())
        for row, decision in changes.items():
            for queue in queues:
                queue.note(row, 0 if decision is None else _STATES[decision.action])
            self._new_labels.pop(row, None)
            label = None if decision is None else decision.label
            if label is not None and label not in self._classes:
                self._new_labels[row] = label


def _searched(item: ReviewItem) -> list[str]:
    """All values of a row that a search covers, with whitespace collapsed."""
    values = [item.title, item.given, item.suggested]
    values += [show_value(value) or "" for value in (*item.content.values(), *item.details.values())]
    return [" ".join(value.split()).casefold() for value in values]


def _number(text: str, name: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise InvalidInputError(f"The {name} score must be a number. Got {text!r}.")
    return value


@dataclass(frozen=True, slots=True)
class ReviewStatistics:
    """Counts and intervals from the decisions in force."""

    flagged: Counts
    sample: Counts
    random: Counts
    precision: tuple[float, float] | None
    errors_left: tuple[int, int] | None
    n_unseen: int
    confidence_level: float

    @property
    def errors_estimate(self) -> float | None:
        """Estimated errors left, if open and unseen rows resemble the decided random rows."""
        return self.n_unseen * self.random.wrong / self.random.decided if self.random.decided else None


def review_statistics(
    review_set: ReviewSet, flagged: Counts, sample: Counts, random: Counts, *, confidence_level: float
) -> ReviewStatistics:
    """Precision of the flagged rows and number of errors left, with exact intervals."""
    n_unseen = int(review_set.n_judged - review_set.n_flagged - random.total)
    return ReviewStatistics(
        flagged=flagged,
        sample=sample,
        random=random,
        precision=_precision(flagged, sample, confidence_level) if flagged.total else None,
        errors_left=_errors_left(random, n_unseen, confidence_level) if random.total else None,
        n_unseen=n_unseen,
        confidence_level=confidence_level,
    )


# The page requests the same counts repeatedly.
@lru_cache(maxsize=256)
def _precision(flagged: Counts, sample: Counts, confidence_level: float) -> tuple[float, float]:
    size = flagged.total
    lower, upper = (
        precision_interval(wrong, sample.total, n_flagged=size, confidence_level=confidence_level)[end]
        for end, wrong in enumerate((sample.wrong, sample.wrong + sample.open))
    )
    certain = flagged.wrong / size, (size - flagged.right) / size
    low, high = max(lower, certain[0]), min(upper, certain[1])
    # The ranges are disjoint only if the sample was misleading; the certain range is still valid.
    return (low, high) if low <= high else certain


@lru_cache(maxsize=256)
def _errors_left(random: Counts, n_unseen: int, confidence_level: float) -> tuple[int, int]:
    low = errors_left_interval(random.wrong, random.total, n_unseen, confidence_level=confidence_level)[0]
    most = random.wrong + random.open
    high = errors_left_interval(most, random.total, n_unseen, confidence_level=confidence_level)[1]
    return low, high
