"""All metrics of one trust score."""

import math

from neighboragg._core.checks import check_outcomes
from neighboragg._core.types import ArrayLike
from neighboragg.metrics._calibration import grouped_brier_score, grouped_calibration_error
from neighboragg.metrics._ranking import (
    group_ties,
    grouped_auroc,
    grouped_average_precision_error,
    grouped_average_precision_success,
    grouped_fpr_at_tpr,
    warn_undefined,
)
from neighboragg.metrics._selective import (
    grouped_augrc,
    grouped_aurc,
    grouped_coverage_at_risk,
    grouped_excess_aurc,
)


def trust_metrics(correct: ArrayLike, trust: ArrayLike) -> dict[str, float]:
    """All metrics of one trust score; the rows are sorted only once.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each prediction was correct; boolean, or the integers 0 and 1.
    trust : array-like of shape (n_samples,)
        Trust in each prediction, higher for more trusted.

    Returns
    -------
    metrics : dict of str to float
        It always has these keys, in this order:

        - ``auroc``: `auroc`;
        - ``ap_success``: `average_precision_success`;
        - ``ap_error``: `average_precision_error`;
        - ``fpr_at_95_tpr``: `fpr_at_tpr` with ``tpr=0.95``;
        - ``aurc``: `aurc`;
        - ``excess_aurc``: `aurc` minus the smallest value that any score can reach with these predictions;
        - ``augrc``: `augrc`;
        - ``coverage_at_1_risk``: `coverage_at_risk` with ``risk=0.01``, that is, 1% errors;
        - ``ece``: `expected_calibration_error` with 15 bins of equal width;
        - ``brier``: mean squared difference between trust and outcome;
        - ``accuracy``: share of correct rows.

    Notes
    -----
    If all rows are correct or all are wrong, the first four values are NaN and the function issues one
    `TrustWarning`. If any trust is outside [0, 1], it is not a probability, and ``ece`` and ``brier`` are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.metrics import trust_metrics
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.uniform(0.5, 1, size=1000)
    >>> correct = rng.uniform(size=1000) < trust
    >>> metrics = trust_metrics(correct, trust)
    >>> round(metrics["auroc"], 3), round(metrics["accuracy"], 3)
    (0.704, 0.764)
    """
    groups = group_ties(*check_outcomes(correct, trust, "trust_metrics"))
    metrics = {
        "auroc": grouped_auroc(groups),
        "ap_success": grouped_average_precision_success(groups),
        "ap_error": grouped_average_precision_error(groups),
        "fpr_at_95_tpr": grouped_fpr_at_tpr(groups, 0.95),
        "aurc": grouped_aurc(groups),
        "excess_aurc": grouped_excess_aurc(groups),
        "augrc": grouped_augrc(groups),
        "coverage_at_1_risk": grouped_coverage_at_risk(groups, 0.01),
        "ece": math.nan,
        "brier": math.nan,
        "accuracy": groups.n_successes / groups.n_rows,
    }
    # Groups are sorted: the first has the highest trust, the last the lowest.
    if groups.trust[0] <= 1.0 and groups.trust[-1] >= 0.0:
        metrics["ece"] = grouped_calibration_error(groups, 15, "uniform")
        metrics["brier"] = grouped_brier_score(groups)
    if math.isnan(metrics["auroc"]):
        warn_undefined(
            "In trust_metrics, auroc, ap_success, ap_error and fpr_at_95_tpr are",
            n_rows=groups.n_rows,
            all_correct=not groups.n_errors,
        )
    return metrics
