"""Whether what is given says anything about the labels at all."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from neighboragg._typing import BoolArray, FloatArray, IntArray

__all__ = ["Predictiveness", "measure_predictiveness"]

SIGNIFICANCE = 0.1


@dataclass(frozen=True)
class Predictiveness:
    """How well labels are predicted out of sample, beside what the most frequent class alone would do.

    Parameters
    ----------
    agreeing : int
        Labels that are the most trusted class, and no other class is trusted as much.
    majority : int
        Labels of the most frequent class.
    n : int
        Labels with another of their class to be compared with.
    p_value : float
        Chance that a prediction that knows the frequencies of the classes and nothing else does as well.
    """

    agreeing: int
    majority: int
    n: int
    p_value: float

    @property
    def is_shown(self) -> bool:
        """Whether labels are predicted better than by the frequencies of the classes alone."""
        return self.p_value <= SIGNIFICANCE


def measure_predictiveness(
    trust: FloatArray, codes: IntArray, comparable: BoolArray, n_weights: int
) -> Predictiveness:
    """Test trust in labels against the frequencies of the classes.

    Parameters
    ----------
    trust : ndarray of shape (n, C)
        Out-of-sample trust, before labels are weighted by it: after that, a label has had a part in its own judgment.
    codes : ndarray of shape (n,)
    comparable : ndarray of bool of shape (n,)
        Rows with another one of their class.
    n_weights : int
        Weights of the pool, which was fitted to these labels.

    Returns
    -------
    predictiveness : Predictiveness

    Notes
    -----
    Two one-sided paired tests, the smaller p-value counted twice (Bonferroni). A z-test of log t_y − log(frequency of
    y), its sum less one for each fitted weight (Akaike): the likelihood tells of features that say much about a rare
    class, where right guesses hardly exceed the majority. And an exact sign test of right guesses against always
    saying the most frequent class, which labels that are wrong for certain do not spoil.
    """
    given, labels = trust[comparable], codes[comparable]
    n = len(labels)
    if n < 2:
        return Predictiveness(0, n, n, 1.0)
    counts = np.bincount(labels, minlength=trust.shape[1])
    own = given[np.arange(n), labels]
    gain = np.log(np.maximum(own, 1e-12)) - np.log(counts[labels] / n)
    by_likelihood = norm.sf((gain.sum() - n_weights) / (np.sqrt(n) * gain.std(ddof=1) + 1e-9))
    others = given.copy()
    others[np.arange(n), labels] = -1.0
    right, frequent = own > others.max(axis=1), labels == counts.argmax()
    gained, lost = int((right & ~frequent).sum()), int((~right & frequent).sum())
    by_sign = binom.sf(gained - 1, gained + lost, 0.5)
    return Predictiveness(
        agreeing=int(right.sum()),
        majority=int(counts.max()),
        n=n,
        p_value=min(1.0, 2.0 * float(min(by_likelihood, by_sign))),
    )
