"""Which rows come in which order: queues, filters, and the way from one row to the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from neighboragg.exceptions import InvalidInputError
from neighboragg.review._decision import Decision
from neighboragg.review._items import ReviewItem, ReviewSet

__all__ = ["QUEUE_NAMES", "SHOW_NAMES", "Queues", "ReviewFilter"]

QUEUE_NAMES = {
    "flagged": "Flagged, most suspicious first",
    "sample": "Random sample of the flagged",
    "random": "Random unflagged rows",
}
SHOW_NAMES = {
    "todo": "not yet looked at",
    "later": "skipped or unsure",
    "done": "kept or relabeled",
    "all": "all",
}


@dataclass(frozen=True, slots=True)
class ReviewFilter:
    """The part of the review set a browser works on; travels in the address of every page."""

    queue: str = "flagged"
    label: str = ""
    low: float | None = None
    high: float | None = None
    show: str = "todo"

    @classmethod
    def from_query(cls, query: Mapping[str, str], classes: tuple[str, ...]) -> "ReviewFilter":
        """Read a filter from the fields of an address or a form."""
        chosen = cls(
            queue=query.get("queue") or "flagged",
            label=query.get("label", ""),
            low=_number(query.get("low", ""), "lowest"),
            high=_number(query.get("high", ""), "highest"),
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
            "show": "" if self.show == "todo" else self.show,
        }
        return {name: value for name, value in fields.items() if value}

    def matches(self, item: ReviewItem) -> bool:
        """Whether class and score of an item are within the filter."""
        return (
            (not self.label or self.label in (item.given, item.suggested))
            and (self.low is None or item.score >= self.low)
            and (self.high is None or item.score <= self.high)
        )


class Queues:
    """The orders of a review set, and the rows of a filter in them."""

    def __init__(self, review_set: ReviewSet) -> None:
        self.orders = {
            "flagged": review_set.flagged,
            "sample": review_set.sample,
            "random": review_set.random,
        }
        self._places = {
            name: {int(item.row): place for place, item in enumerate(order)}
            for name, order in self.orders.items()
        }

    def rows(self, chosen: ReviewFilter, decisions: Mapping[int, Decision]) -> list[int]:
        """Return the rows of a filter, by what is decided about them too."""
        return [row for row in self._matching(chosen) if _shown(chosen.show, decisions.get(row))]

    def walk(self, chosen: ReviewFilter, decisions: Mapping[int, Decision]) -> list[int]:
        """Return the rows that "next" and "previous" go through.

        While rows are being decided these are all, decided or not: else one could not go back to the last one.
        """
        return self._matching(chosen) if chosen.show == "todo" else self.rows(chosen, decisions)

    def around(self, row: int, rows: list[int], queue: str) -> tuple[int | None, int | None]:
        """Return the rows before and after a row in the order of a queue; the row itself may be missing."""
        places = self._places[queue]
        here = places.get(row, -1)
        before = [other for other in rows if places[other] < here]
        after = [other for other in rows if places[other] > here]
        return before[-1] if before else None, after[0] if after else None

    def _matching(self, chosen: ReviewFilter) -> list[int]:
        return [int(item.row) for item in self.orders[chosen.queue] if chosen.matches(item)]


def _shown(show: str, decision: Decision | None) -> bool:
    if show == "todo":
        return decision is None
    if show == "later":
        return decision is not None and not decision.settled
    if show == "done":
        return decision is not None and decision.settled
    return True


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
