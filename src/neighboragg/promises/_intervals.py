"""Exact intervals from rows that a person has reviewed: a proportion, a precision, errors left."""

from bisect import bisect_left

import numpy as np
from scipy.stats import hypergeom

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.stats import lower_limit, upper_limit
from neighboragg._core.types import ArrayLike, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

# Tail sums of huge populations carry rounding errors of about 1e-8; a smaller tail only widens the interval.
_TAIL_SLACK = 1.0 - 1e-6


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, *, confidence_level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided interval for a proportion from independent trials."""
    tail = _tail(confidence_level, "clopper_pearson")
    k, n = _check_counts(successes, trials)
    return lower_limit(k, n, tail), upper_limit(k, n, tail)


def precision_interval(
    reviewed_wrong: int, reviewed: int, *, n_flagged: int | None = None, confidence_level: float = 0.95
) -> tuple[float, float]:
    """Interval for the share of truly wrong labels in a flagged set, from a reviewed part of it.

    Parameters
    ----------
    reviewed_wrong : int
        Number of reviewed rows whose label proved wrong.
    reviewed : int
        Number of flagged rows reviewed.
    n_flagged : int, default=None
        Size of the flagged set. None means unlimited.
    confidence_level : float, default=0.95
        Probability with which the interval covers the precision, at least.

    Returns
    -------
    low, high : float
        Limits of the precision.

    See Also
    --------
    errors_left_interval : The same for the rows that were not flagged.

    Notes
    -----
    *Assumption:* the reviewed rows are a simple random sample of the flagged set, drawn without replacement
    and of a size fixed beforehand. Reviewing the top of the ranking, or stopping when the result looks
    good, voids it.

    With `n_flagged` the interval inverts the exact hypergeometric tails, and shrinks to one point when all
    rows have been reviewed. Without, it is the interval of Clopper and Pearson, which is exact for an
    unlimited set and conservative (never too narrow) for a finite one. Both ends are one-sided limits at
    level (1 + confidence_level) / 2.

    References
    ----------
    .. [1] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
       binomial", Biometrika 26(4), 1934.

    Examples
    --------
    >>> from neighboragg.promises import precision_interval
    >>> [round(end, 3) for end in precision_interval(40, 50)]
    [0.663, 0.9]
    >>> [round(end, 3) for end in precision_interval(40, 50, n_flagged=80)]
    [0.725, 0.863]
    """
    owner = "precision_interval"
    tail = _tail(confidence_level, owner)
    wrong, seen = _check_review(reviewed_wrong, reviewed, owner)
    if n_flagged is None:
        low, high = clopper_pearson(wrong, seen, confidence_level=confidence_level)
        return float(low), float(high)
    size = check_integer(n_flagged, "n_flagged", owner, minimum=1)
    if size < seen:
        raise InvalidParameterError(
            f"{owner} got reviewed={seen}, more than the n_flagged={size} rows of the flagged set.\n"
            "Hint: count each flagged row once, and only rows of this set."
        )
    fewest, most = _total_wrong(wrong, seen, size, tail)
    return fewest / size, most / size


def errors_left_interval(
    reviewed_wrong: int, reviewed: int, n_unreviewed: int, *, confidence_level: float = 0.95
) -> tuple[int, int]:
    """Interval for the number of wrong labels left among the unreviewed rows.

    Parameters
    ----------
    reviewed_wrong : int
        Number of reviewed rows of the set whose label proved wrong.
    reviewed : int
        Number of rows of the set reviewed.
    n_unreviewed : int
        Number of rows of the set *not* reviewed; the set, usually all unflagged rows, has
        ``reviewed + n_unreviewed`` rows.
    confidence_level : float, default=0.95
        Probability with which the interval covers the number of errors left, at least.

    Returns
    -------
    low, high : int
        Limits of the number of wrong labels among the `n_unreviewed` rows. The `reviewed_wrong` are known,
        hence not counted.

    See Also
    --------
    precision_interval : The share of wrong labels in the flagged set.

    Notes
    -----
    *Assumption:* the reviewed rows are a simple random sample of the set, drawn without replacement and of a
    size fixed beforehand.

    The number of wrong labels found is then hypergeometric, X ~ H(n + m, D, m) with m reviewed, n unreviewed
    and D wrong rows in all. The interval holds every D with P(X ≤ x) and P(X ≥ x) both above
    (1 - confidence_level) / 2, minus the x found. It is exact for the finite set: the coverage is at least
    the confidence level for every D. For the upper limit alone at 95 %, use ``confidence_level=0.9``.

    References
    ----------
    .. [1] Cochran, "Sampling Techniques", 3rd edition, Wiley 1977, chapter 3.

    Examples
    --------
    >>> from neighboragg.promises import errors_left_interval
    >>> errors_left_interval(2, 200, 9800)
    (11, 351)
    >>> errors_left_interval(0, 200, 9800)
    (0, 180)
    """
    owner = "errors_left_interval"
    tail = _tail(confidence_level, owner)
    wrong, seen = _check_review(reviewed_wrong, reviewed, owner)
    unseen = check_integer(n_unreviewed, "n_unreviewed", owner, minimum=0)
    fewest, most = _total_wrong(wrong, seen, seen + unseen, tail)
    return fewest - wrong, most - wrong


def _total_wrong(wrong: int, reviewed: int, size: int, tail: float) -> tuple[int, int]:
    """Limits of the number of wrong rows in a finite set; the lower one counts the right rows from above."""
    fewest = size - _most(reviewed - wrong, reviewed, size, tail)
    return fewest, _most(wrong, reviewed, size, tail)


def _most(found: int, reviewed: int, size: int, tail: float) -> int:
    """Largest number in the set under which finding so few is still likelier than the tail."""
    totals = range(found, size - reviewed + found + 1)

    def too_many(total: int) -> bool:
        return bool(hypergeom.cdf(found, size, total, reviewed) <= tail * _TAIL_SLACK)

    # The tail falls as the total grows, and is 1 for the first: at least one total stays.
    return totals[bisect_left(totals, True, key=too_many) - 1]


def _tail(confidence_level: float, owner: str) -> float:
    return (1.0 - check_real(confidence_level, "confidence_level", owner, low=0, high=1)) / 2.0


def _check_review(reviewed_wrong: int, reviewed: int, owner: str) -> tuple[int, int]:
    """Return both counts as ints; raise if the first exceeds the second."""
    wrong = check_integer(reviewed_wrong, "reviewed_wrong", owner, minimum=0)
    seen = check_integer(reviewed, "reviewed", owner, minimum=0)
    if wrong > seen:
        raise InvalidParameterError(
            f"{owner} got reviewed_wrong={wrong}, more than reviewed={seen}.\n"
            "Hint: the first count is of wrong labels, the second of all reviewed rows."
        )
    return wrong, seen


def _check_counts(successes: ArrayLike, trials: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both counts as float arrays of one shape."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    try:
        k, n = np.broadcast_arrays(k, n)
    except ValueError:
        raise InvalidInputError(
            "successes and trials passed to clopper_pearson must have shapes that broadcast. "
            f"Got {k.shape} and {n.shape}."
        ) from None
    # Written so that NaN fails too.
    bad = ~((k >= 0.0) & (k <= n) & (k == np.floor(k)) & (n == np.floor(n)) & np.isfinite(n))
    if bad.any():
        raise InvalidInputError(
            "successes and trials passed to clopper_pearson must be whole numbers with "
            f"0 <= successes <= trials. Got {k[bad][0]:g} of {n[bad][0]:g}."
        )
    return k, n
