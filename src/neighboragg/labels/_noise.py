"""Turn trust vectors into label scores, probabilities of errors and an error rate."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logsumexp

from neighboragg._core.checks import check_choice, check_proba, check_same_length
from neighboragg._core.stats import best_other_class, softmax
from neighboragg._core.types import ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels._noise_model import MAX_ROWS, NoiseModel, fit_noise_model

# A mean of equal values may round to above them, and then no row of the class would be confident.
_THRESHOLD_SLACK = 1e-6


def confident_count(trust: ArrayLike, y_codes: ArrayLike) -> int:
    """Count the rows whose trust vector is confident of a label other than the given one."""
    values, codes = check_trust(trust, y_codes, "trust", "confident_count")
    return int(confident_of_another(values, codes).sum())


def confident_of_another(values: FloatArray, codes: IntArray) -> BoolArray:
    """Rows whose most trusted class is not the given one and reaches its mean self-confidence."""
    n_classes = values.shape[1]
    given = values[np.arange(len(codes)), codes]
    sizes = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, weights=given, minlength=n_classes)
    thresholds = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    best = values.max(axis=1)
    # A row that trusts several classes alike may be confident of any of them.
    reached = ((values == best[:, None]) & (values >= thresholds - _THRESHOLD_SLACK)).any(axis=1)
    return (given < best) & reached


def check_trust(values: ArrayLike, y_codes: ArrayLike, name: str, owner: str) -> tuple[FloatArray, IntArray]:
    """Return the checked matrix, and the labels as columns of it."""
    shape = np.shape(values)
    matrix = check_proba(values, name, owner, n_classes=shape[1] if len(shape) == 2 else 0)
    codes = np.asarray(y_codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"y_codes passed to {owner} must be a 1-D array of integers. "
            f"Got shape {codes.shape} of dtype {codes.dtype}.\n"
            "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
        )
    check_same_length(matrix, name, codes, "y_codes", owner)
    if not len(codes):
        raise InvalidInputError(f"{name} passed to {owner} is empty; at least one row is needed.")
    n_classes = matrix.shape[1]
    outside = (codes < 0) | (codes >= n_classes)
    if outside.any():
        raise InvalidInputError(
            f"y_codes passed to {owner} must lie in 0 to {n_classes - 1}, one per column of {name}. "
            f"Got {codes[outside][0]} at position {int(outside.argmax())}.\n"
            "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
        )
    return matrix, codes.astype(np.intp)


RELIABILITIES = ("difference", "margin", "paper", "trust")


def label_reliability(
    trust: ArrayLike, y_codes: ArrayLike, *, kind: str = "margin", predicted: ArrayLike | None = None
) -> FloatArray:
    """Score every given label from its trust vector; low is suspicious."""
    owner = "label_reliability"
    check_choice(kind, "kind", owner, choices=RELIABILITIES)
    values, codes = check_trust(trust, y_codes, "trust", owner)
    if values.shape[1] < 2:
        raise InvalidInputError(
            f"trust passed to {owner} has 1 column; scoring labels takes at least two classes."
        )
    labels = None if predicted is None else check_trust(values, predicted, "trust", owner)[1]
    return reliability_scores(values, codes, kind, labels)


def reliability_scores(
    trust: FloatArray, codes: IntArray, kind: str, predicted: IntArray | None
) -> FloatArray:
    """The score of :func:`label_reliability` for checked arrays."""
    given = trust[np.arange(len(codes)), codes]
    if kind == "trust":
        return given
    if kind == "paper":
        agrees = (trust.argmax(axis=1) if predicted is None else predicted) == codes
        return np.where(agrees, given, -given)
    other = trust[np.arange(len(codes)), best_other_class(trust, codes)]
    if kind == "difference":
        return given - other
    tiny = np.finfo(np.float64).tiny
    return np.log(np.maximum(given, tiny)) - np.log(np.maximum(other, tiny))


# Gain in log likelihood at which a model of random errors counts as much as plain doubt.
HALF_GAIN = 5.0
# If the doubted labels are random errors, these make up at least this share of them.
EXPLAINED = 1 / 2
# Doubt in log odds depends on differences of trust: of two labels without trust, neither is much worse.
DOUBT_SLOPE = 4.0
# Up to this share of doubted labels, as many are expected to be wrong; above it, more.
EVEN_SHARE = 0.06
# Up to this share of doubted labels only those are flagged: clean classes that overlap are doubted as often.
SURE_SHARE = 0.12
TRUST_FLOOR = 1e-30
MAX_LOG_POWER = 1.0


@dataclass(frozen=True)
class LabelNoise(Stored):
    """Log odds that labels are right, for rows fitted on and for others."""

    model: NoiseModel
    randomness: float
    power: float
    shift: float
    is_clustered: BoolArray

    def log_odds(self, trust: FloatArray, first: FloatArray, codes: IntArray) -> FloatArray:
        """Log odds that labels are right, from the final and the first trust; low is suspicious."""
        usual = self.is_clustered[codes]
        log_odds = _log_ratio(trust, codes)
        known, labels = _among(self.is_clustered, trust[usual], first[usual], codes[usual])
        random = self.model.log_odds(softmax(self.power * known), labels)
        log_odds[usual] = _mixed(random, first[usual], codes[usual], self.randomness) + self.shift
        return log_odds


@dataclass(frozen=True)
class NoiseEstimate:
    """The noise in the labels of the rows fitted on."""

    noise: LabelNoise
    p_wrong: FloatArray
    rate: float
    flags_per_doubted: float
    p_random: FloatArray
    doubted: BoolArray
    is_clustered: BoolArray

    def n_to_flag(self, rows: BoolArray) -> int:
        """Number of rows to flag: for random errors by the best expected F1, else by the doubted rows."""
        usual, w = rows & self.is_clustered, self.noise.randomness
        random = likely_f1_count(self.p_random[usual])
        ambiguous = self.flags_per_doubted * int(self.doubted[usual].sum())
        return round(w * random + (1 - w) * ambiguous) + int(self.doubted[rows & ~self.is_clustered].sum())


def find_label_noise(
    trust: FloatArray, first: FloatArray, codes: IntArray, is_clustered: BoolArray
) -> NoiseEstimate:
    """Fit the noise of labels to trust in them."""
    n, usual = len(codes), is_clustered[codes]
    log_trust, labels = _among(is_clustered, trust[usual], first[usual], codes[usual])
    power = _calibrating_power(log_trust, labels)
    known = softmax(power * log_trust)
    model = fit_noise_model(known, labels)
    gain = max(model.gain, 0.0)
    log_odds, p_random = model.log_odds(known, labels), np.zeros(n)
    p_random[usual] = expit(-log_odds)
    unlikely = trust[np.arange(n), codes] < trust.max(axis=1)
    doubted = unlikely.copy()
    doubted[usual] = confident_of_another(_calibrated(is_clustered, trust[usual], labels), labels)
    random, n_doubted = float(p_random.sum()), int(doubted[usual].sum())
    randomness = gain**2 / (gain**2 + HALF_GAIN**2) * min(1.0, random / max(EXPLAINED * n_doubted, 1.0))
    doubt, n_usual = 1 - trust[np.arange(n), codes], max(int(usual.sum()), 1)
    doubted_share = n_doubted / n_usual
    likely = likely_share(doubted_share, float(doubt[usual].sum()) / n_usual)
    expected = randomness * random + (1 - randomness) * (n_usual * likely)
    mixed = _mixed(log_odds, first[usual], codes[usual], randomness)
    noise = LabelNoise(model, randomness, power, _shift(mixed, expected), is_clustered)
    p_wrong = expit(-noise.log_odds(trust, first, codes))
    rate = float(p_wrong.mean())
    per_doubted = flags_per_doubted(doubted_share, likely)
    return NoiseEstimate(noise, p_wrong, rate, per_doubted, p_random, doubted, usual)


def likely_share(doubted: float, doubt: float) -> float:
    """Expected share of wrong labels where errors look like ambiguity."""
    return max(doubted, min(doubted * (doubted / EVEN_SHARE) ** 0.5, doubt))


def flags_per_doubted(doubted: float, likely: float) -> float:
    """Flags for each doubted label: one where few are doubted, more where many are, up to those likely wrong."""
    return max(1.0, min((doubted / SURE_SHARE) ** 2, likely / max(doubted, 1e-12)))


def likely_f1_count(p: FloatArray) -> int:
    """Number of rows whose flags have the largest expected F1, 2 Σ_{i≤k} p_i / (k + Σ p)."""
    found = np.cumsum(np.sort(p)[::-1])
    if not len(p) or found[-1] <= 0.5:
        return 0
    return int(np.argmax(2 * found / (np.arange(1, len(p) + 1) + found[-1]))) + 1


def _among(
    is_clustered: BoolArray, trust: FloatArray, first: FloatArray, codes: IntArray
) -> tuple[FloatArray, IntArray]:
    """Log trust, averaged with the first pass, and labels, both among the clustered classes only."""
    log_trust = np.log(np.sqrt(trust[:, is_clustered] * first[:, is_clustered]) + TRUST_FLOOR)
    return log_trust, (np.cumsum(is_clustered) - 1)[codes]


def _calibrated(is_clustered: BoolArray, trust: FloatArray, labels: IntArray) -> FloatArray:
    """Trust among the clustered classes, recalibrated where other classes were left out."""
    if is_clustered.all():
        return trust
    log_trust = np.log(trust[:, is_clustered] + TRUST_FLOOR)
    return softmax(_calibrating_power(log_trust, labels) * log_trust)


def _calibrating_power(log_trust: FloatArray, labels: IntArray) -> float:
    """The power of trust that makes the given labels most likely."""
    if not len(labels):
        return 1.0
    every = max(1, len(labels) // MAX_ROWS)
    values, given = log_trust[::every], labels[::every]

    def surprise(log_power: float) -> float:
        scaled = np.exp(log_power) * values
        return float((logsumexp(scaled, axis=1) - scaled[np.arange(len(given)), given]).sum())

    return float(np.exp(minimize_scalar(surprise, bounds=(-MAX_LOG_POWER, MAX_LOG_POWER)).x))


def _mixed(random: FloatArray, first: FloatArray, codes: IntArray, randomness: float) -> FloatArray:
    """Mix the log odds against a random error with doubt."""
    given, other = _given_and_other(first, codes)
    return np.asarray(randomness * random + (1 - randomness) * DOUBT_SLOPE * (given - other))


def _log_ratio(trust: FloatArray, codes: IntArray) -> FloatArray:
    """log t_y − log max_c t_c over other classes."""
    given, other = _given_and_other(trust, codes)
    tiny = np.finfo(np.float64).tiny
    return np.asarray(np.log(given + tiny) - np.log(other + tiny))


def _given_and_other(trust: FloatArray, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Trust in the given label, and in the best other one."""
    row = np.arange(len(codes))
    return trust[row, codes], trust[row, best_other_class(trust, codes)]


def _shift(log_odds: FloatArray, expected: float) -> float:
    """The shift of the log odds that makes P(wrong) sum to the expected number."""
    n = len(log_odds)
    if not n:
        return 0.0
    # At least half a label: finding nothing does not prove that all labels are right.
    wanted = min(max(expected, 0.5), 0.9 * n)
    reach = float(np.abs(log_odds).max()) + np.log(n) + 20.0
    return float(brentq(lambda b: expit(-log_odds - b).sum() - wanted, -reach, reach))
