"""Probabilities that cannot be out of sample: they repeat the given labels too well."""

from scipy.stats import binom

__all__ = ["looks_in_sample"]

# An honest classifier may be that many times better than our own models; a memory of the labels is better still.
PLAUSIBLE_RATIO = 5
LEAST_AGREEMENT = 0.995
SIGNIFICANCE = 1e-3


def looks_in_sample(agreeing: int, own_agreeing: int, n: int) -> bool:
    """Whether probabilities agree with the given labels as only a model that has seen the labels can.

    Parameters
    ----------
    agreeing : int
        Rows whose most probable class is the given label.
    own_agreeing : int
        The same for the best out-of-sample opinion at hand.
    n : int
        All rows.

    Notes
    -----
    True if at least 99.5% agree, and the number that does not is significantly (exact binomial test, 0.001) below
    a fifth of what the best own opinion has.
    """
    if agreeing < LEAST_AGREEMENT * n:
        return False
    rate = (n - own_agreeing) / n / PLAUSIBLE_RATIO
    return bool(binom.cdf(n - agreeing, n, rate) < SIGNIFICANCE)
