"""What the decisions show: the precision of the flagged rows and the errors left among the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from neighboragg._review.store import Decision
from neighboragg.labels import ReviewItem, ReviewSet
from neighboragg.promises import errors_left_interval, precision_interval


@dataclass(frozen=True, slots=True)
class Counts:
    """How many labels of a set were found wrong and right, and how many rows are open.

    Open are rows not decided, skipped, unsure or excluded: nobody said whether their label is right.
    """

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


@dataclass(frozen=True, slots=True)
class ReviewStatistics:
    """Counts and intervals from the decisions in force; see `review_statistics`.

    Parameters
    ----------
    flagged, sample, random : Counts
        Rows found wrong, found right and open among the listed flagged rows, the random sample of them, and
        the random rows.
    precision : tuple of float, or None
        Limits of the share of wrong labels among the listed flagged rows; None if there are none.
    errors_left : tuple of int, or None
        Limits of the number of wrong labels among the rows neither flagged nor drawn at random; None
        without random unflagged rows.
    n_unseen : int
        Number of those rows.
    confidence_level : float
        Level of each of the two intervals.

    Examples
    --------
    >>> from neighboragg._review import ReviewSet, review_statistics
    >>> empty = ReviewSet(classes=("cat", "dog"), n_rows=100, n_flagged=0, items=())
    >>> review_statistics(empty, {}).n_unseen
    100
    """

    flagged: Counts
    sample: Counts
    random: Counts
    precision: tuple[float, float] | None
    errors_left: tuple[int, int] | None
    n_unseen: int
    confidence_level: float

    @property
    def errors_estimate(self) -> float | None:
        """Errors left if the open random rows and the unseen rows are like the decided random rows."""
        return self.n_unseen * self.random.wrong / self.random.decided if self.random.decided else None


def review_statistics(
    review_set: ReviewSet, decisions: Mapping[int, Decision], *, confidence_level: float = 0.95
) -> ReviewStatistics:
    """Precision of the flagged rows and errors left, with exact intervals.

    Parameters
    ----------
    review_set : ReviewSet
        The rows, and the random samples fixed in it.
    decisions : dict of int to Decision
        The decisions in force, as `DecisionStore.current` returns them.
    confidence_level : float, default=0.95
        Probability with which each interval covers its number, at least.

    Returns
    -------
    statistics : ReviewStatistics
        Counts and intervals.

    See Also
    --------
    neighboragg.promises.precision_interval : The interval for a completed sample.
    neighboragg.promises.errors_left_interval : The same for the errors left.

    Notes
    -----
    Flagged rows reviewed from the most suspicious down are no random sample: the first are worse than the rest.
    The precision therefore rests on the `sample` of the review set, which was fixed, in size and rows, before
    anything was decided. Its open rows (not decided yet, skipped, unsure or excluded) count as right for the
    lower limit and as wrong for the upper one. So the interval always contains the one of the completed sample,
    and holds at any moment: whatever the order of review, whatever is left open, and however often one looks.
    It is wide until the sample is complete. Rows decided outside the sample then narrow it by what they make
    certain: the wrong ones found are a lower bound, the right ones found leave an upper bound, and when all
    flagged rows are decided the precision is known.

    The errors left rest on the random rows in the same way: with w wrong and u open ones the limits are the lower
    one of `errors_left_interval` for w and the upper one for w + u.

    *Assumptions:* the random rows are a simple random sample of the unflagged rows, and the reviewers are right.
    If the review set lists only some of the flagged rows, the precision is that of the listed ones.

    Examples
    --------
    >>> from neighboragg._review import Decision, ReviewItem, ReviewSet, review_statistics
    >>> def item(row, queue):
    ...     return ReviewItem(row=row, content={"text": str(row)}, given="dog", suggested="cat", score=-1.0,
    ...                       trust=(0.7, 0.3), queue=queue)
    >>> items = [item(row, "flagged") for row in range(60)] + [item(row, "random") for row in range(60, 100)]
    >>> review_set = ReviewSet(classes=("cat", "dog"), n_rows=1000, n_flagged=60, items=tuple(items))
    >>> decided = {row: Decision(row + 1, row, "keep", "dog", "Ada", "", 0) for row in range(60, 100)}
    >>> statistics = review_statistics(review_set, decided)
    >>> statistics.errors_left, statistics.precision
    ((0, 81), (0.0, 1.0))
    """
    queues = (review_set.flagged, review_set.sample, review_set.random)
    return statistics_of_counts(
        review_set, *(_count(items, decisions) for items in queues), confidence_level=confidence_level
    )


def statistics_of_counts(
    review_set: ReviewSet, flagged: Counts, sample: Counts, random: Counts, *, confidence_level: float
) -> ReviewStatistics:
    """As `review_statistics`, from the counts of the three queues."""
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


def _count(items: Sequence[ReviewItem], decisions: Mapping[int, Decision]) -> Counts:
    found = [decisions[item.row].action for item in items if item.row in decisions]
    wrong, right = found.count("relabel"), found.count("keep")
    return Counts(wrong, right, len(items) - wrong - right)


# The page asks for the same counts again and again.
@lru_cache(maxsize=256)
def _precision(flagged: Counts, sample: Counts, confidence_level: float) -> tuple[float, float]:
    size = flagged.total
    lower, upper = (
        precision_interval(wrong, sample.total, n_flagged=size, confidence_level=confidence_level)[end]
        for end, wrong in enumerate((sample.wrong, sample.wrong + sample.open))
    )
    certain = flagged.wrong / size, (size - flagged.right) / size
    low, high = max(lower, certain[0]), min(upper, certain[1])
    # Apart only if the sample was one of the few that mislead; what is certain remains.
    return (low, high) if low <= high else certain


@lru_cache(maxsize=256)
def _errors_left(random: Counts, n_unseen: int, confidence_level: float) -> tuple[int, int]:
    low = errors_left_interval(random.wrong, random.total, n_unseen, confidence_level=confidence_level)[0]
    most = random.wrong + random.open
    high = errors_left_interval(most, random.total, n_unseen, confidence_level=confidence_level)[1]
    return low, high
