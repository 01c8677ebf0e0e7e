"""Which labels to flag, from scores alone: the paper's rule, conformal p-values, false discovery rate."""

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from neighboragg._core.checks import check_real, check_scores
from neighboragg._core.types import ArrayLike, BoolArray, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

# Conformal p-values lie on a grid and often meet the line q * k / n exactly; four roundings separate
# the two sides, and the slack raises q by a relative 2e-15.
_ROUNDING_SLACK = 1.0 + 8.0 * float(np.finfo(np.float64).eps)


def cmd_threshold(scores: ArrayLike, *, alpha: float, noise_rate: float = 0.0) -> float:
    """Score below which a label is flagged, at most a share `alpha` of the correct ones.

    This is the threshold of conformal mislabel detection. Flag a row if its score is *strictly* smaller.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Trust in each given label; low is suspicious. Infinite values are allowed, NaN is not.
    alpha : float
        False-alarm rate: the probability with which a correctly labeled row may be flagged. In
        ``(1 / (n + 1), 1)``, and at least ``1 / (n + 1 - n * noise_rate)``.
    noise_rate : float, default=0.0
        Share of the n rows whose label is wrong, or an upper bound of it, in ``[0, 1)``.

    Returns
    -------
    threshold : float
        One of the scores.

    See Also
    --------
    cmd_flags : The mask that this threshold gives.
    conformal_p_values : For control of the precision of the flags instead of the false-alarm rate.

    Notes
    -----
    With N scores and noise rate p, the threshold τ is the B-th largest score,
    :math:`B = \\lceil (N + 1)(1 - \\alpha) + \\alpha N p \\rceil`.

    *Guarantee.* For a fresh, correctly labeled row, P(score < τ) ≤ α. It needs three things: the scores of
    the correctly labeled rows and of the fresh one are exchangeable (so the scoring function must not have
    seen the labels of the N rows in a way in which it has not seen the fresh one's: score out of sample); at
    most Np of the N labels are wrong; nothing at all about the scores of the wrong ones. For the B - M-th
    largest of the N - M correct scores is never below τ, whichever M ≤ Np scores belong to wrong labels,
    and the fresh score is below that one with probability at most (N + 1 - B) / (N + 1 - M) ≤ α. If instead
    each label is wrong with probability p independently, the bound grows by the factor
    1 + p / ((N + 1)(1 - p)) at most. Too small a `noise_rate` breaks it: up to α / (1 - share of wrong ones).

    *Ties.* The bound holds for ``score < τ``. With ``score <= τ``, as Algorithm 2 is printed, it holds for
    scores without ties only: if all scores are equal, ``<=`` flags everything.

    *It is not a precision.* By construction about α(1 - p)N rows are flagged whatever the data, and never more than
    α(N + 1 - Np) - 1, hence never more than a share α of the correctly labeled among the N rows
    themselves, if at most Np of them are labeled wrong. α does not bound the share of flags that are right.

    *Rounding.* `alpha` and `noise_rate` are read as the decimal numbers that they print as, and B is computed
    in exact fractions: in binary floating point a hair above an integer would cost one rank, and a hair
    below would break the bound.

    References
    ----------
    .. [1] Xiong et al., "Birds of a Feather Trust Together: Knowing When to Trust a Classifier via Adaptive
       Neighborhood Aggregation", TMLR 2022, Algorithm 2 and Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.promises import cmd_threshold
    >>> scores = np.random.default_rng(0).uniform(size=999)
    >>> round(cmd_threshold(scores, alpha=0.1), 3)
    0.118
    """
    values = check_scores(scores, "scores", "cmd_threshold")
    return _threshold(values, alpha, noise_rate, "cmd_threshold")


def cmd_flags(scores: ArrayLike, *, alpha: float, noise_rate: float = 0.0) -> BoolArray:
    """Flag the labels whose score is below the threshold of conformal mislabel detection."""
    values = check_scores(scores, "scores", "cmd_flags")
    return values < _threshold(values, alpha, noise_rate, "cmd_flags")


def conformal_p_values(scores: ArrayLike, verified_scores: ArrayLike) -> FloatArray:
    """P-value of each label against a sample of labels known to be correct; small is suspicious.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Trust in the labels to test; low is suspicious.
    verified_scores : array-like of shape (m,)
        The same trust for rows whose labels have been verified.

    Returns
    -------
    p_values : ndarray of shape (n,)
        In ``[1 / (m + 1), 1]``.

    See Also
    --------
    benjamini_hochberg : Flags with a bounded false discovery rate from these.

    Notes
    -----
    :math:`p_i = (1 + \\#\\{j : c_j \\le s_i\\}) / (m + 1)`.

    If the score of a correctly labeled row is exchangeable with the verified ones (same source of rows, same
    scoring function, neither of them used to fit it), then P(p_i ≤ u) ≤ u for every u. Ties count against
    the suspicion, so this holds for scores that tie as well.

    No p-value is smaller than 1 / (m + 1): to find k wrong labels among n at false discovery rate q, the
    verified sample needs at least n / (kq) - 1 rows.

    References
    ----------
    .. [1] Bates, Candès, Lei, Romano and Sesia, "Testing for outliers with conformal p-values", Annals of
       Statistics 51(1), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.promises import conformal_p_values
    >>> verified = np.random.default_rng(0).uniform(size=999)
    >>> conformal_p_values([-1.0, 0.5, 2.0], verified).round(3)
    array([0.001, 0.473, 1.   ])
    """
    values = check_scores(scores, "scores", "conformal_p_values", minimum=0)
    verified = np.sort(check_scores(verified_scores, "verified_scores", "conformal_p_values"))
    return (1.0 + np.searchsorted(verified, values, side="right")) / (len(verified) + 1.0)


def benjamini_hochberg(p_values: ArrayLike, *, q: float) -> BoolArray:
    """Flag as many p-values as possible with a false discovery rate of at most `q`.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        In ``[0, 1]``; small is suspicious.
    q : float
        Bound of the expected share of false alarms among the flags, in ``(0, 1)``.

    Returns
    -------
    mask : ndarray of shape (n,), dtype=bool
        True for the k smallest p-values, k being the largest number with p_(k) ≤ qk / n; equal p-values
        are treated alike.

    Notes
    -----
    With p-values of :func:`conformal_p_values`, E[false flags / max(flags, 1)] ≤ q · (share of correct
    labels), if each correct label's score is exchangeable with the verified scores given the scores of all other
    tested rows. P-values that share one verified sample are dependent, but in the harmless direction [2]_; ties
    do no harm. The bound is on the average over data sets, verified sample included: the share in one data set
    can be larger. The method is also valid for independent p-values [1]_.

    References
    ----------
    .. [1] Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical
       Society B 57(1), 1995.
    .. [2] Bates, Candès, Lei, Romano and Sesia, "Testing for outliers with conformal p-values", Annals of
       Statistics 51(1), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.promises import benjamini_hochberg, conformal_p_values
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(size=180), rng.normal(-5.0, size=20)])
    >>> p_values = conformal_p_values(scores, rng.normal(size=2000))
    >>> mask = benjamini_hochberg(p_values, q=0.1)
    >>> int(mask.sum()), int(mask[180:].sum())
    (21, 20)
    """
    level = check_real(q, "q", "benjamini_hochberg", low=0, high=1)
    values = check_scores(p_values, "p_values", "benjamini_hochberg", minimum=0)
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        raise InvalidInputError(
            "p_values passed to benjamini_hochberg must lie in [0, 1]. "
            f"Got {values[outside][0]:g} at position {int(outside.argmax())}.\n"
            "Hint: turn scores into p-values with conformal_p_values(scores, verified_scores)."
        )
    ordered = np.sort(values)
    n = len(ordered)
    below = np.flatnonzero(ordered * n <= level * np.arange(1, n + 1) * _ROUNDING_SLACK)
    if not len(below):
        return np.zeros(n, dtype=np.bool_)
    return values <= ordered[below[-1]]


def _threshold(scores: FloatArray, alpha: float, noise_rate: float, owner: str) -> float:
    """Return the B-th largest of the checked scores."""
    n = len(scores)
    rank = _rank(n, alpha, noise_rate, owner)
    return float(np.partition(scores, n - rank)[n - rank])


def _rank(n: int, alpha: float, noise_rate: float, owner: str) -> int:
    """Return B, counted from the largest score, in exact arithmetic."""
    a = _as_printed(check_real(alpha, "alpha", owner, low=0, high=1))
    p = _as_printed(check_real(noise_rate, "noise_rate", owner, low=0, high=1, closed="left"))
    enough = max(math.floor(1 / a), math.ceil((1 / a - 1) / (1 - p)))
    hint = f"Hint: pass a larger alpha, or at least {enough} scores."
    if a * (n + 1) <= 1:
        raise InvalidParameterError(
            f"The 'alpha' parameter of {owner} must be a number in (1 / (N + 1), 1), which for N = {n} "
            f"scores begins above {_rounded_up(Fraction(1, n + 1))}. Got {alpha!r} instead.\n{hint}"
        )
    rank = math.ceil((n + 1) * (1 - a) + a * n * p)
    if rank > n:
        raise InvalidParameterError(
            f"{owner} cannot keep alpha={alpha!r} with N = {n} scores and noise_rate={noise_rate!r}: the "
            f"threshold would be the score of rank {rank}. With this noise rate the smallest valid alpha is "
            f"{_rounded_up(1 / (n + 1 - n * p))}.\n{hint}"
        )
    return rank


def _as_printed(value: float) -> Fraction:
    """Return the decimal number that the user wrote, not its binary neighbor."""
    return Fraction(repr(value))


def _rounded_up(value: Fraction) -> Decimal:
    """Return four significant digits, upwards: the number that a message names must work."""
    return Context(prec=4, rounding=ROUND_CEILING).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
