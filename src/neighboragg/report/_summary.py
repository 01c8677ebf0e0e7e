"""The numbers of a report, as a dict of plain values."""

import math
from collections.abc import Sequence
from typing import Any

from neighboragg._binomial import lower_limit, upper_limit
from neighboragg._outcomes import check_outcomes
from neighboragg._typing import ArrayLike, BoolArray, FloatArray
from neighboragg._validation import check_real
from neighboragg.metrics import (
    Interval,
    auroc,
    bootstrap_difference,
    bootstrap_interval,
    coverage_at_risk,
    expected_calibration_error,
    reliability_curve,
)

__all__ = ["summarize_trust"]

RISKS = (0.01, 0.02, 0.05)


def summarize_trust(
    correct: ArrayLike,
    trust: ArrayLike,
    confidence: ArrayLike,
    *,
    risks: Sequence[float] = RISKS,
    confidence_level: float = 0.95,
    n_resamples: int = 500,
    random_state: Any = 0,
) -> dict[str, Any]:
    """Compare trust with the classifier's own confidence on rows whose labels are known.

    Parameters
    ----------
    correct : array-like of bool of shape (n,)
        Whether each prediction was correct.
    trust : array-like of shape (n,)
        Trust in each prediction.
    confidence : array-like of shape (n,)
        The classifier's probability of each prediction.
    risks : sequence of float, default=(0.01, 0.02, 0.05)
        Error rates among the kept predictions at which coverage is given.
    confidence_level : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=500
        Bootstrap resamples behind the intervals of AUROC.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    summary : dict
        Keys n_rows, n_errors, confidence_level, accuracy, auroc, coverage_at_risk, ece and reliability; plain
        numbers, lists and dicts all the way down. An interval is a dict with estimate, low and high. AUROC is
        None where all predictions are right or all are wrong, and ECE where a score is no probability.

    Notes
    -----
    The interval of the accuracy is exact (Clopper and Pearson). Those of AUROC are bootstrap intervals; that of
    the difference is paired: both scores see the same resampled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.report import summarize_trust
    >>> rng = np.random.default_rng(0)
    >>> trust = rng.uniform(0.5, 1, size=500)
    >>> correct = rng.uniform(size=500) < trust
    >>> summary = summarize_trust(correct, trust, np.full(500, 0.75), n_resamples=50)
    >>> summary["auroc"]["confidence"]["estimate"], summary["auroc"]["difference"]["low"] > 0
    (0.5, True)
    """
    owner = "summarize_trust"
    level = check_real(confidence_level, "confidence_level", owner, low=0, high=1)
    hits, scores = check_outcomes(correct, trust, owner)
    _, plain = check_outcomes(correct, confidence, owner)
    both = {"trust": scores, "confidence": plain}
    n, n_hits, tail = len(hits), int(hits.sum()), (1 - level) / 2
    return {
        "n_rows": n,
        "n_errors": n - n_hits,
        "confidence_level": level,
        "accuracy": {
            "estimate": n_hits / n,
            "low": float(lower_limit(n_hits, n, tail)),
            "high": float(upper_limit(n_hits, n, tail)),
        },
        "auroc": _auroc(hits, scores, plain, level, n_resamples, random_state),
        "coverage_at_risk": [
            {"risk": float(risk), **{name: coverage_at_risk(hits, s, risk=risk) for name, s in both.items()}}
            for risk in risks
        ],
        "ece": {name: _if_probability(expected_calibration_error, hits, s) for name, s in both.items()},
        "reliability": {name: _if_probability(_reliability, hits, s) for name, s in both.items()},
    }


def _auroc(
    hits: BoolArray, trust: FloatArray, confidence: FloatArray, level: float, n: int, seed: Any
) -> dict[str, Any] | None:
    if hits.all() or not hits.any():
        return None
    settings = {"confidence_level": level, "n_resamples": n, "random_state": seed}
    return {
        "trust": _plain(bootstrap_interval(auroc, hits, trust, **settings)),
        "confidence": _plain(bootstrap_interval(auroc, hits, confidence, **settings)),
        "difference": _plain(bootstrap_difference(auroc, hits, trust, confidence, **settings)),
    }


def _plain(interval: Interval) -> dict[str, float | None]:
    values = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _reliability(hits: BoolArray, scores: FloatArray) -> list[dict[str, float]]:
    curve = reliability_curve(hits, scores)
    return [
        {"trust": float(t), "correct": float(c), "n_rows": int(n)}
        for t, c, n in zip(curve.trust, curve.correct, curve.n_rows, strict=True)
    ]


def _if_probability(metric: Any, hits: BoolArray, scores: FloatArray) -> Any:
    return metric(hits, scores) if ((scores >= 0) & (scores <= 1)).all() else None
