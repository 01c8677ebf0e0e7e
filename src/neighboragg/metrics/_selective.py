"""Risk and coverage of selective prediction: the curve, areas under it, and points on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neighboragg._core.checks import check_outcomes, check_real
from neighboragg._core.types import ArrayLike
from neighboragg.exceptions import InvalidInputError
from neighboragg.metrics._ranking import TieGroups, group_ties, oracle_groups


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Coverage and selective risk of each threshold; see `risk_coverage_curve`."""

    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    threshold: NDArray[np.float64]

    def expected_risk(self, coverage: ArrayLike) -> NDArray[np.float64]:
        """Expected risk at any coverage when tied rows are accepted in random order."""
        kept = np.asarray(coverage, dtype=np.float64)
        if not ((kept >= 0.0) & (kept <= 1.0)).all():
            worst = kept[~((kept >= 0.0) & (kept <= 1.0))][0]
            raise InvalidInputError(
                f"coverage passed to RiskCoverageCurve.expected_risk must be in [0, 1]. Got {worst:.6g}."
            )
        # Below the first threshold the risk is that of the first threshold; this also avoids a division by zero.
        kept = np.maximum(kept, self.coverage[0])
        errors: NDArray[np.float64] = np.interp(kept, self.coverage, self.coverage * self.risk)
        return errors / kept


def risk_coverage_curve(correct: ArrayLike, trust: ArrayLike) -> RiskCoverageCurve:
    """Coverage and selective risk of every threshold on trust.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.

    Returns
    -------
    curve : RiskCoverageCurve
        Arrays `coverage`, `risk` and `threshold` with one point per distinct trust value, from the highest to the
        lowest. Tied rows are accepted together or not at all.

    See Also
    --------
    aurc : The area under this curve.
    RiskCoverageDisplay : Plot of this curve, with bootstrap limits.

    References
    ----------
    .. [1] R. El-Yaniv and Y. Wiener, "On the foundations of noise-free selective classification",
       JMLR 11, 2010.

    Examples
    --------
    >>> from neighboragg.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([True, True, False, False], [0.9, 0.5, 0.5, 0.1])
    >>> curve.coverage.tolist()
    [0.25, 0.75, 1.0]
    >>> curve.risk.round(4).tolist()
    [0.0, 0.3333, 0.5]
    """
    groups = group_ties(*check_outcomes(correct, trust, "risk_coverage_curve"))
    return _curve(groups)


def coverage_at_risk(correct: ArrayLike, trust: ArrayLike, *, risk: float) -> float:
    """Largest share of predictions that a threshold can accept with at most this share of errors.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.
    risk : float
        Largest allowed share of errors among the accepted predictions, in [0, 1].

    Returns
    -------
    coverage : float
        Between 0 and 1; 0 if every threshold exceeds the risk.

    Notes
    -----
    This describes the given rows and does not promise anything for new rows. The threshold was selected on the same
    rows, so the risk on new rows tends to be higher. Use `neighboragg.promises.risk_threshold` for a guarantee.

    Examples
    --------
    >>> from neighboragg.metrics import coverage_at_risk
    >>> coverage_at_risk([True, True, False, True], [0.9, 0.8, 0.7, 0.6], risk=0.25)
    1.0
    >>> coverage_at_risk([True, True, False, True], [0.9, 0.8, 0.7, 0.6], risk=0.1)
    0.5
    """
    limit = check_real(risk, "risk", "coverage_at_risk", low=0, high=1, closed="both")
    return grouped_coverage_at_risk(group_ties(*check_outcomes(correct, trust, "coverage_at_risk")), limit)


def risk_at_coverage(correct: ArrayLike, trust: ArrayLike, *, coverage: float) -> float:
    """Share of errors among the accepted predictions when a threshold accepts at least this share of all.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted. Only its order matters.
    coverage : float
        Smallest allowed share of accepted predictions, in (0, 1].

    Returns
    -------
    risk : float
        Selective risk of the highest threshold whose coverage is at least `coverage`. There is no interpolation;
        with ties the threshold may accept more than this share.

    See Also
    --------
    risk_coverage_curve : Its `expected_risk` gives the risk at exactly this coverage, with ties in random order.

    Examples
    --------
    >>> from neighboragg.metrics import risk_at_coverage
    >>> risk_at_coverage([True, True, False, True], [0.9, 0.8, 0.7, 0.6], coverage=0.5)
    0.0
    """
    target = check_real(coverage, "coverage", "risk_at_coverage", low=0, high=1, closed="right")
    curve = _curve(group_ties(*check_outcomes(correct, trust, "risk_at_coverage")))
    return float(curve.risk[np.argmax(curve.coverage >= target)])


def grouped_coverage_at_risk(groups: TieGroups, risk: float) -> float:
    """Largest coverage with a selective risk of at most `risk`, or 0."""
    curve = _curve(groups)
    return float(curve.coverage[curve.risk <= risk].max(initial=0.0))


def _curve(groups: TieGroups) -> RiskCoverageCurve:
    kept = np.cumsum(groups.sizes)
    return RiskCoverageCurve(kept / kept[-1], np.cumsum(groups.errors) / kept, groups.trust)


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
        Between 0 (no errors) and 1 (only errors). An uninformative score gets the error rate.

    See Also
    --------
    trust_metrics : Its ``excess_aurc`` subtracts the area that no score can avoid.
    augrc : Gives less weight to the few most trusted rows.

    Notes
    -----
    The AURC is the mean of the expected selective risk over the coverages :math:`i/n`, :math:`i = 1, \dots, n`.
    Tied rows are accepted in random order, and the expectation over these orders is exact: a group of :math:`s` rows
    with :math:`e` errors, below :math:`N` rows with :math:`E` errors, adds

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
        Between 0 (no errors) and 0.5 (only errors). An uninformative score gets half the error rate.

    Notes
    -----
    The generalized risk of a threshold is the share of *all* rows that are accepted and wrong, that is, of the
    undetected errors. With tied rows in random order it is linear between thresholds, so the area is a sum of
    trapezoids. In terms of the AUROC and of the shares of correct and wrong rows, it is exactly

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
    # Sum the reciprocals within each group, because a difference of harmonic numbers would lose digits.
    reciprocals = np.add.reduceat(1.0 / np.arange(1, groups.n_rows + 1), rows_before)
    bend = (errors_before * sizes - rows_before * errors) / sizes
    return float((errors + bend * reciprocals).sum() / groups.n_rows)


def grouped_excess_aurc(groups: TieGroups) -> float:
    """AURC minus the AURC of the best possible order of the same predictions."""
    # No order beats the best one: a negative difference is a rounding error.
    return max(0.0, grouped_aurc(groups) - grouped_aurc(oracle_groups(groups)))


def grouped_augrc(groups: TieGroups) -> float:
    """Area under the generalized risk-coverage curve by trapezoids."""
    # Doubled to stay in integers: errors up to the group's start plus errors up to its end.
    heights = 2 * np.cumsum(groups.errors) - groups.errors
    return float((groups.sizes * heights).sum() / (2 * groups.n_rows**2))
