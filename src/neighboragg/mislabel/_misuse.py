"""Probabilities that cannot be out of sample: they repeat the given labels too well."""

import warnings
from collections.abc import Sequence

from scipy.stats import binom

from neighboragg._typing import FloatArray, IntArray
from neighboragg.exceptions import TrustWarning

__all__ = ["looks_in_sample", "warn_if_in_sample"]

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


def warn_if_in_sample(
    proba: FloatArray | None, others: Sequence[FloatArray], codes: IntArray, owner: str
) -> None:
    """Warn if given probabilities agree with the labels as only a model that has seen them can.

    Parameters
    ----------
    proba : ndarray of shape (n, C) or None
    others : sequence of ndarray of shape (n, C)
        What models and neighbors say that have not seen the label.
    codes : ndarray of shape (n,)
    owner : str
        What messages call the caller.
    """
    if proba is None:
        return
    agreeing, *counts = (int((said.argmax(axis=1) == codes).sum()) for said in (proba, *others))
    if looks_in_sample(agreeing, max(counts), len(codes)):
        warnings.warn(
            f"proba passed to {owner} agrees with y in {agreeing} of {len(codes)} rows, while the best opinion of "
            f"models and neighbors that have not seen the label agrees in {max(counts)}. It looks like predictions for "
            "rows that the classifier was trained on, which repeat wrong labels.\n"
            "Hint: proba=cross_val_predict(classifier, X, y, cv=5, method='predict_proba').",
            TrustWarning,
            stacklevel=4,
        )
