"""Areas under risk-coverage curves: the whole curve in one number."""

import numpy as np

from neighboragg._outcomes import check_outcomes
from neighboragg._typing import ArrayLike
from neighboragg.metrics._groups import TieGroups, group_ties, oracle_groups

__all__ = ["augrc", "aurc", "excess_aurc", "grouped_augrc", "grouped_aurc", "grouped_excess_aurc"]


def aurc(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""Area under the risk-coverage curve, lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    aurc : float
        Between 0 (no errors) and 1 (nothing else). A trust that knows nothing gets the error rate.

    See Also
    --------
    excess_aurc : Without the part that no trust can avoid.
    augrc : Does not weigh the few most trusted rows as heavily.

    Notes
    -----
    The mean of the expected selective risk over the coverages :math:`i/n`, :math:`i = 1, \dots, n`. This
    extends the last selective risk, that of the most trusted row, to coverage 0. Tied rows are kept in
    random order, and the expectation over these orders is exact: a group of :math:`s` rows with :math:`e`
    errors, below :math:`N` rows with :math:`E` errors, adds

    .. math::

        \sum_{j=1}^{s} \frac{E + e j / s}{N + j}
        = e + \left(E - \frac{N e}{s}\right) \sum_{i=N+1}^{N+s} \frac{1}{i}.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel and R. El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
       classifiers", ICLR 2019.

    Examples
    --------
    >>> from neighboragg.metrics import aurc
    >>> round(aurc([True, True, False, True], [0.9, 0.8, 0.7, 0.6]), 6)
    0.145833
    """
    return grouped_aurc(group_ties(*check_outcomes(correct, trust, "aurc")))


def excess_aurc(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""AURC above that of the best possible order of the same predictions.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    excess_aurc : float
        At least 0; 0 if every correct row is trusted more than every wrong one. Also 0 if all rows are
        correct or all are wrong, for then every order is the best.

    Notes
    -----
    The best order puts all errors last. With :math:`n` rows, :math:`E` of them wrong, its area is exactly
    :math:`\frac1n \sum_{j=1}^{E} j / (n - E + j)`; the usual
    :math:`r + (1 - r) \ln(1 - r)`, :math:`r = E / n`, is its limit for many rows and is not used.

    References
    ----------
    .. [1] Y. Geifman, G. Uziel and R. El-Yaniv, "Bias-reduced uncertainty estimation for deep neural
       classifiers", ICLR 2019.

    Examples
    --------
    >>> from neighboragg.metrics import excess_aurc
    >>> round(excess_aurc([True, True, False, True], [0.9, 0.8, 0.7, 0.6]), 6)
    0.083333
    """
    return grouped_excess_aurc(group_ties(*check_outcomes(correct, trust, "excess_aurc")))


def augrc(correct: ArrayLike, trust: ArrayLike) -> float:
    r"""Area under the generalized risk-coverage curve, lower is better.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    augrc : float
        Between 0 (no errors) and 0.5 (nothing else). A trust that knows nothing gets half the error rate.

    Notes
    -----
    The generalized risk of a threshold is the share of *all* rows that are kept and wrong: what an undetected
    error costs, averaged over thresholds. It starts at 0 and is linear between thresholds, as tied rows in
    random order would make it; the area is that of the trapezoids. In terms of the AUROC, and of the shares
    of correct and of wrong rows, it is exactly

    .. math:: \text{AUGRC} = (1 - \text{AUROC}) \cdot \text{acc} \cdot \text{err} + \tfrac12 \text{err}^2.

    References
    ----------
    .. [1] J. Traub et al., "Overcoming common flaws in the evaluation of selective classification
       systems", NeurIPS 2024.

    Examples
    --------
    >>> from neighboragg.metrics import augrc
    >>> augrc([True, True, False, True], [0.9, 0.8, 0.7, 0.6])
    0.09375
    """
    return grouped_augrc(group_ties(*check_outcomes(correct, trust, "augrc")))


def grouped_aurc(groups: TieGroups) -> float:
    """AURC, in expectation over random orders of tied rows."""
    sizes, errors = groups.sizes, groups.errors
    rows_before = np.cumsum(sizes) - sizes
    errors_before = np.cumsum(errors) - errors
    # Summing reciprocals per group, where a difference of harmonic numbers would lose digits.
    reciprocals = np.add.reduceat(1.0 / np.arange(1, groups.n_rows + 1), rows_before)
    bend = (errors_before * sizes - rows_before * errors) / sizes
    return float((errors + bend * reciprocals).sum() / groups.n_rows)


def grouped_excess_aurc(groups: TieGroups) -> float:
    """AURC less that of the oracle."""
    # The oracle cannot be beaten: a negative difference is rounding.
    return max(0.0, grouped_aurc(groups) - grouped_aurc(oracle_groups(groups)))


def grouped_augrc(groups: TieGroups) -> float:
    """Area under the generalized risk-coverage curve by trapezoids."""
    # Doubled to stay in integers: errors up to the group's start plus those up to its end.
    heights = 2 * np.cumsum(groups.errors) - groups.errors
    return float((groups.sizes * heights).sum() / (2 * groups.n_rows**2))
