"""What the decisions show: the precision of the flagged rows and the errors left among the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from neighboragg._review.store import Decision
from neighboragg.labels import ReviewItem, ReviewSet
from neighboragg.promises import errors_left_interval, precision_interval


@dataclass(frozen=True, slots=True)
class Counts:
    """How many labels of a set were found wrong and right, and how many rows are open."""

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
    """Counts and intervals from the decisions in force; see `review_statistics`."""

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
    """Precision of the flagged rows and errors left, with exact intervals."""
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
