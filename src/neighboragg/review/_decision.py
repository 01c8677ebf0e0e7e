"""Entries of the decision log, and the error when two people decide about one row."""

from dataclasses import dataclass

from neighboragg.exceptions import NeighborAggError

__all__ = ["ACTIONS", "Decision", "DecisionConflictError"]

ACTIONS = ("keep", "relabel", "exclude", "skip", "unsure")


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry of the append-only log.

    Parameters
    ----------
    id : int
        Number of the entry, increasing.
    row : int
        Position in the original data.
    action : {"keep", "relabel", "exclude", "skip", "unsure", "undo"}
        What was decided; an excluded row does not belong in the data.
    label : str or None
        The label the row has by this decision; None if it decides on none.
    reviewer : str
        Who decided.
    time : str
        When, in UTC, as ISO 8601 with milliseconds.
    based_on : int
        The version of the row that the reviewer saw: the number of its last entry then, or 0.
    undoes : int or None, default=None
        The entry that an undo takes back.
    note : str, default=""
        What the reviewer wrote about it.

    Examples
    --------
    >>> from neighboragg.review import Decision
    >>> Decision(1, 3, "relabel", "cat", "Ada", "2025-01-01T12:00:00.000Z", 0).settled
    True
    """

    id: int
    row: int
    action: str
    label: str | None
    reviewer: str
    time: str
    based_on: int
    undoes: int | None = None
    note: str = ""

    @property
    def settled(self) -> bool:
        """Whether it says what becomes of the row: kept, relabeled or excluded, not skipped or unsure."""
        return self.action in ("keep", "relabel", "exclude")


class DecisionConflictError(NeighborAggError, RuntimeError):
    """Somebody else changed the row since the reviewer saw it; nothing was written.

    Parameters
    ----------
    row : int
        The row.
    latest : Decision
        The last entry about the row, by now.
    in_force : Decision or None
        The decision in force, None if there is none.

    Examples
    --------
    >>> from neighboragg.review import Decision, DecisionConflictError
    >>> decision = Decision(1, 3, "keep", "cat", "Ada", "2025-01-01T12:00:00.000Z", 0)
    >>> print(DecisionConflictError(3, decision, decision))
    Row 3 was changed in the meantime by Ada (keep); nothing was saved.
    Hint: read the row again and decide on its new version.
    """

    def __init__(self, row: int, latest: Decision, in_force: Decision | None) -> None:
        super().__init__(
            f"Row {row} was changed in the meantime by {latest.reviewer} ({latest.action}); nothing was saved.\n"
            "Hint: read the row again and decide on its new version."
        )
        self.row = row
        self.latest = latest
        self.in_force = in_force
