"""Rules that choose which labels to flag."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.stats import hypergeom

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.labels._noise import NoiseEstimate
from neighboragg.promises import benjamini_hochberg, cmd_threshold, conformal_p_values

REVIEW = "To bound their precision, review a random sample of the flags (precision_interval)."


@dataclass(frozen=True)
class LabelScores:
    """Scores, trust and estimated noise of n labels: the input of a flag rule."""

    scores: FloatArray
    trust: FloatArray
    codes: IntArray
    verified: BoolArray
    noise: NoiseEstimate


@dataclass(frozen=True)
class Flags:
    """The flagged labels, the score below which further labels are flagged, and the promise."""

    mask: BoolArray
    threshold: float
    promise: str


class FlagRule(Stored, ABC):
    """Which labels to flag, from their scores."""

    #: The name of the rule in results.
    name: ClassVar[str]
    #: Whether to flag nothing if rows do not predict labels; not needed with a fixed number or verified rows.
    needs_evidence: ClassVar[bool] = True

    @abstractmethod
    def flag(self, labels: LabelScores) -> Flags:
        """Choose the labels to flag, none of them verified."""

    def check(self, verified: BoolArray) -> None:
        """Raise early if the rule cannot hold for these rows."""

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag further labels by the threshold and the verified scores of the first rows."""
        return scores < threshold

    def flag_all(self, scores: FloatArray, verified: BoolArray, fitted: Flags, noise_rate: float) -> Flags:
        """Flag all labels of a source by the threshold of the fitted sample."""
        return Flags(~verified & (scores < fitted.threshold), fitted.threshold, fitted.promise)


@dataclass(frozen=True)
class Nothing(FlagRule):
    """Never flag a label, and explain why; replaces a rule that lacks evidence."""

    name: str  # type: ignore[misc]  # the name of the rule that it replaces
    reason: str

    def flag(self, labels: LabelScores) -> Flags:
        """Flag nothing."""
        return Flags(np.zeros(len(labels.scores), dtype=bool), -np.inf, self.reason)

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag nothing."""
        return np.zeros(len(scores), dtype=bool)


@dataclass(frozen=True)
class Sampled(FlagRule):
    """Flag every label of a sample, to get reasons for all, with the threshold of another rule."""

    rule: FlagRule

    @property
    def name(self) -> str:  # type: ignore[override]
        """The value of the rule."""
        return self.rule.name

    @property
    def needs_evidence(self) -> bool:  # type: ignore[override]
        """Check the rule."""
        return self.rule.needs_evidence

    def flag(self, labels: LabelScores) -> Flags:
        """Flag everything."""
        found = self.rule.flag(labels) if self.needs_evidence else Flags(labels.verified, -np.inf, "")
        return Flags(np.ones(len(labels.scores), dtype=bool), found.threshold, found.promise)


@dataclass(frozen=True)
class Budget(FlagRule):
    """Flag exactly the `n` most suspicious labels; ties are broken by the order of rows.

    Parameters
    ----------
    n : int
        Labels to flag.

    Notes
    -----
    No promise is made about false alarms. ``flag=100`` is short for ``flag=Budget(100)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import Budget, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> find_mislabeled(X, y, flag=Budget(5)).n_flagged
    5
    """

    name: ClassVar[str] = "budget"
    needs_evidence: ClassVar[bool] = False

    n: int

    def __post_init__(self) -> None:
        check_integer(self.n, "n", "Budget", minimum=1)

    def check(self, verified: BoolArray) -> None:
        """Raise if `n` exceeds the number of labels."""
        if self.n > (most := int((~verified).sum())):
            raise InvalidParameterError(
                f"Budget({self.n}) exceeds the number of labels that can be flagged, {most}.\n"
                f"Hint: Budget({most}) flags them all."
            )

    def flag(self, labels: LabelScores) -> Flags:
        """Flag the lowest scores."""
        return self.flag_all(labels.scores, labels.verified)

    def flag_all(
        self, scores: FloatArray, verified: BoolArray, fitted: Flags | None = None, noise_rate: float = 0.0
    ) -> Flags:
        """Flag the lowest scores of all."""
        rows = np.flatnonzero(~verified)
        order = rows[np.argsort(scores[rows], kind="stable")]
        mask = np.zeros(len(scores), dtype=bool)
        mask[order[: self.n]] = True
        threshold = float(scores[order[self.n]]) if self.n < len(order) else np.inf
        return Flags(mask, threshold, f"A fixed number, without a promise about false alarms. {REVIEW}")


@dataclass(frozen=True)
class Estimated(FlagRule):
    """Flag the labels that the evidence is confident are wrong, the most suspicious first; the default.

    Notes
    -----
    If errors look random, the number maximizes the expected F1 of the flags. If they look like ambiguity, it is the
    number of rows whose trust is confident of another class (:func:`confident_count`), and more if these exceed 12% of
    all rows, up to the number estimated to be wrong. In between, it is a mean of the two. The estimated share of wrong
    labels can therefore exceed the flagged share: errors that look like hard rows cannot be distinguished from them,
    and flagging as many would mostly flag right labels where classes overlap. Labels that tie at the threshold are not
    flagged. No promise is made about false alarms.
    ``flag="estimated"`` is short for ``flag=Estimated()``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import Estimated, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> bool(find_mislabeled(X, y, flag=Estimated()).mask[7])
    True
    """

    name: ClassVar[str] = "estimated"

    def flag(self, labels: LabelScores) -> Flags:
        """Flag the lowest scores."""
        tested = ~labels.verified
        count = labels.noise.n_to_flag(tested)
        ordered = np.sort(labels.scores[tested])
        threshold = float(ordered[count]) if count < len(ordered) else np.inf
        promise = (
            "The labels that trust is confident are wrong, which may be fewer than estimated, without a promise about "
            f"false alarms. {REVIEW}"
        )
        return Flags(tested & (labels.scores < threshold), threshold, promise)


# Estimates are capped here; the threshold is not defined at 1.
MAX_NOISE = 0.99


@dataclass(frozen=True)
class FalseAlarms(FlagRule):
    """Flag at most a share `level` of the right labels, given a bound on the wrong ones: conformal detection.

    Parameters
    ----------
    level : float, default=0.05
        Share of the right labels that may be flagged, in ``(0, 1)``.
    noise_rate : float, default=None
        Share of wrong labels, or an upper bound of it, in ``[0, 1)``. None estimates it.

    Notes
    -----
    The rule flags about this share of the labels on any data: `level` is a false-alarm rate, not a precision.

    *Assumption:* at most a share `noise_rate` of the labels is wrong. This suffices for the labels fitted on.
    For new rows, scores of their right labels must also be exchangeable with those of the fitted ones
    (:func:`cmd_threshold`). If a share w is wrong and r < w was assumed, up to ``level * (1 - r) / (1 - w)`` of the
    right labels are flagged: 11.8% instead of 10% for w = 15% and r = 0. An estimated rate is too low where wrong
    labels look right to a model, such as copies that confirm each other, or labels made by a model.

    ``flag=0.05`` is short for ``flag=FalseAlarms(0.05)``.

    References
    ----------
    .. [1] Xiong et al., "Birds of a Feather Trust Together: Knowing When to Trust a Classifier via Adaptive
       Neighborhood Aggregation", TMLR 2022, Algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import FalseAlarms, find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> find_mislabeled(X, y, flag=FalseAlarms(0.1, noise_rate=0.02)).n_flagged
    13
    """

    name: ClassVar[str] = "false alarms"

    level: float = 0.05
    _: KW_ONLY
    noise_rate: float | None = None

    def __post_init__(self) -> None:
        check_real(self.level, "level", "FalseAlarms", low=0, high=1)
        if self.noise_rate is not None:
            check_real(self.noise_rate, "noise_rate", "FalseAlarms", low=0, high=1, closed="left")

    def flag(self, labels: LabelScores) -> Flags:
        """Flag scores below the conformal threshold."""
        return self.flag_all(labels.scores, labels.verified, None, labels.noise.rate)

    def flag_all(
        self, scores: FloatArray, verified: BoolArray, fitted: Flags | None, noise_rate: float
    ) -> Flags:
        """Flag scores below the conformal threshold of all."""
        rate = min(noise_rate, MAX_NOISE) if self.noise_rate is None else self.noise_rate
        threshold = cmd_threshold(scores, alpha=self.level, noise_rate=rate)
        most = math.floor(self.level * len(scores) * (1 - rate))
        promise = (
            f"At most {self.level:.3g} of the right labels are flagged, if at most {rate:.3g} of all are wrong: up to "
            f"{most:,} false alarms. This is not a precision."
        )
        if self.noise_rate is None:
            promise += (
                f" {rate:.3g} is an estimate, too low where wrong labels look right to a model; pass noise_rate, an "
                "upper bound, to rely on the promise."
            )
        return Flags(~verified & (scores < threshold), threshold, promise)


@dataclass(frozen=True)
class FDR(FlagRule):
    """Keep the expected share of false alarms among the flags, the false discovery rate, below `level`.

    Parameters
    ----------
    level : float, default=0.1
        Expected share of false alarms among the flags, in ``(0, 1)``.

    Notes
    -----
    Needs `verified` rows, a random sample of the right labels. They take part in the fit like any other row, so their
    scores are exchangeable with those of other right labels. The flags follow from conformal p-values against them and
    the step-up rule of Benjamini and Hochberg (:func:`conformal_p_values`, :func:`benjamini_hochberg`).

    Rows that were verified because they looked right are not a random sample; most flags are then false alarms. A
    warning is raised if chance cannot explain how few verified rows have low scores (exact tests, at 1e-3 in total),
    allowing for twice the estimated number of wrong labels among the others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg.labels import FDR, find_mislabeled
    >>> X, y = load_digits(return_X_y=True)
    >>> X, y = X[:400] / 16, y[:400]
    >>> y[:20] = (y[:20] + 1) % 10
    >>> verified = np.arange(200, 400)
    >>> result = find_mislabeled(X, y, features="passthrough", flag=FDR(0.2), verified=verified, effort="fast")
    >>> result.n_flagged, int(result.mask[:20].sum())
    (25, 20)
    """

    name: ClassVar[str] = "FDR"
    needs_evidence: ClassVar[bool] = False

    level: float = 0.1

    def __post_init__(self) -> None:
        check_real(self.level, "level", "FDR", low=0, high=1)

    def check(self, verified: BoolArray) -> None:
        """Raise without verified rows."""
        if not verified.any():
            raise InvalidInputError(
                "The rule FDR needs rows whose labels have been verified.\n"
                "Hint: pass verified=rows, a random sample of right labels, or choose another rule."
            )

    def flag(self, labels: LabelScores) -> Flags:
        """Flag the discoveries among the labels that are not verified."""
        noise_rate = float(labels.noise.p_wrong[~labels.verified].mean()) if (~labels.verified).any() else 0.0
        return self.flag_all(labels.scores, labels.verified, noise_rate=noise_rate)

    def flag_all(
        self, scores: FloatArray, verified: BoolArray, fitted: Flags | None = None, noise_rate: float = 0.0
    ) -> Flags:
        """Flag the discoveries among all labels that are not verified."""
        tested, sample = scores[~verified], np.sort(scores[verified])
        if look_chosen(sample, tested, math.ceil(WRONG_ALLOWED * noise_rate * len(tested))):
            warnings.warn(
                f"The {len(sample):,} verified rows passed to FDR have higher scores than a random sample of the right "
                f"labels would have, so far more than {self.level:.3g} of the flags may be false alarms.\n"
                "Hint: draw the rows to verify at random from all rows, not from those that look right.",
                TrustWarning,
                stacklevel=5,
            )
        p_values = conformal_p_values(tested, sample)
        found = benjamini_hochberg(p_values, q=self.level)
        mask = np.zeros(len(scores), dtype=bool)
        mask[~verified] = found
        m = len(sample)
        least = math.ceil(len(tested) / (self.level * (m + 1)))
        promise = (
            f"On average at most {self.level:.3g} of the flags are false alarms, if the {m:,} verified rows are a "
            f"random sample of the right labels. With this few verified rows, fewer than {least:,} wrong labels cannot "
            "be detected."
        )
        if not found.any():
            return Flags(mask, -np.inf, promise)
        # The largest flagged p-value has this many verified scores at or below it; the next one is above.
        passed = round(float(p_values[found].max()) * (m + 1)) - 1
        return Flags(mask, float(sample[passed]) if passed < m else np.inf, promise)

    def flag_new(self, scores: FloatArray, threshold: float, verified_scores: FloatArray) -> BoolArray:
        """Flag the discoveries among these labels alone."""
        return benjamini_hochberg(conformal_p_values(scores, verified_scores), q=self.level)


# Wrong labels allowed for among the rows that are not verified, as a multiple of the estimated number.
WRONG_ALLOWED = 2.0
CHOSEN_SIGNIFICANCE = 1e-3
LOW_SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)


def look_chosen(verified: FloatArray, others: FloatArray, n_wrong: int) -> bool:
    """Whether scores of verified rows are higher than those of the right labels among the others."""
    # Wrong labels with the lowest scores of all explain the most.
    right = np.sort(others)[n_wrong:]
    m, n = len(verified), len(right)
    if not n:
        return False
    levels = right[(np.array(LOW_SHARES) * n).astype(int)]
    low_verified, low_right = (np.array([(s <= level).sum() for level in levels]) for s in (verified, right))
    p_values = hypergeom.cdf(low_verified, m + n, low_verified + low_right, m)
    return bool(p_values.min() < CHOSEN_SIGNIFICANCE / len(LOW_SHARES))


def as_rule(flag: Any, owner: str) -> FlagRule:
    """Convert a `flag` parameter to a rule."""
    if isinstance(flag, FlagRule):
        return flag
    if isinstance(flag, str) and flag == "estimated":
        return Estimated()
    if isinstance(flag, Integral) and not isinstance(flag, bool) and int(flag) >= 1:
        return Budget(int(flag))
    if isinstance(flag, Real) and not isinstance(flag, Integral) and 0 < float(flag) < 1:
        return FalseAlarms(float(flag))
    raise InvalidParameterError(
        f"The 'flag' parameter of {owner} must be 'estimated', a number of labels to flag (an int >= 1), a share of "
        f"false alarms (a float in (0, 1)), or a rule. Got {flag!r} instead.\n"
        "Hint: the rules are Estimated(), Budget(100), FalseAlarms(0.05) and FDR(0.1)."
    )
