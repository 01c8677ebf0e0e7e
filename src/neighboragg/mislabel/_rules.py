"""Rules that turn scores into flags, each with the threshold that further rows are held against."""

import math
from dataclasses import dataclass

import numpy as np

from neighboragg._typing import BoolArray, FloatArray
from neighboragg.mislabel._conformal import benjamini_hochberg, cmd_threshold, conformal_p_values

__all__ = [
    "RULES",
    "Decision",
    "flag_budget",
    "flag_coverage",
    "flag_discoveries",
    "flag_estimated",
    "label_p_values",
]

RULES = ("budget", "coverage", "estimated", "fdr")
REVIEW = "Review a random sample of the flags for an interval (precision_interval)."


@dataclass(frozen=True)
class Decision:
    """Which rows are flagged, the score below which a row is, and what that promises."""

    mask: BoolArray
    threshold: float
    promise: str


def label_p_values(scores: FloatArray, clean: BoolArray) -> FloatArray:
    """P-value of each label against verified ones, or against all others if none is verified.

    A row that is itself in the sample is compared with the rest of it.
    """
    sample = clean if clean.any() else np.ones(len(scores), dtype=bool)
    p_values = conformal_p_values(scores, scores[sample])
    # (1 + #{c_j ≤ s}) / (m + 1), without the row itself among the m.
    m = int(sample.sum())
    return np.where(sample, (p_values * (m + 1) - 1) / m, p_values)


def flag_estimated(scores: FloatArray, clean: BoolArray, count: int) -> Decision:
    """Flag the `count` lowest scores, or fewer: rows that tie at the threshold are not flagged."""
    ordered = np.sort(scores[~clean])
    threshold = float(ordered[count]) if count < len(ordered) else np.inf
    promise = f"As many as are estimated to be wrong; no promise about false alarms. {REVIEW}"
    return Decision(~clean & (scores < threshold), threshold, promise)


def flag_budget(scores: FloatArray, clean: BoolArray, budget: int) -> Decision:
    """Flag exactly the `budget` lowest scores; of equal ones, those that come first."""
    rows = np.flatnonzero(~clean)
    order = rows[np.argsort(scores[rows], kind="stable")]
    mask = np.zeros(len(scores), dtype=bool)
    mask[order[:budget]] = True
    threshold = float(scores[order[budget]]) if budget < len(order) else np.inf
    promise = f"As many as asked for; no promise about false alarms. {REVIEW}"
    return Decision(mask, threshold, promise)


def flag_coverage(scores: FloatArray, clean: BoolArray, alpha: float, noise_rate: float) -> Decision:
    """Flag scores below the threshold of conformal mislabel detection."""
    threshold = cmd_threshold(scores, alpha=alpha, noise_rate=noise_rate)
    promise = (
        f"At most {alpha:.3g} of the right labels are flagged, if at most {noise_rate:.3g} of all are wrong: up to "
        f"{math.floor(alpha * len(scores) * (1 - noise_rate)):,} false alarms. This is no precision."
    )
    return Decision(~clean & (scores < threshold), threshold, promise)


def flag_discoveries(scores: FloatArray, clean_scores: FloatArray, q: float) -> Decision:
    """Flag scores of rows not verified, with a false discovery rate of at most `q`."""
    p_values = conformal_p_values(scores, clean_scores)
    mask = benjamini_hochberg(p_values, q=q)
    m = len(clean_scores)
    promise = (
        f"On average at most {q:.3g} of the flags are false alarms, if the {m:,} verified rows are a random sample "
        f"of the right labels. They allow to find no fewer than {math.ceil(len(scores) / (q * (m + 1))):,} at once."
    )
    if not mask.any():
        return Decision(mask, -np.inf, promise)
    # The largest flagged p-value has this many clean scores at or below it; the next clean score is above.
    passed = round(float(p_values[mask].max()) * (m + 1)) - 1
    threshold = float(np.sort(clean_scores)[passed]) if passed < m else np.inf
    return Decision(mask, threshold, promise)
