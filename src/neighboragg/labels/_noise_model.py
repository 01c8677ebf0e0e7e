"""A model of random label errors, fitted by expectation maximization."""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from neighboragg._core.stats import softmax
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._store.objects import Stored

# Trust is calibrated to partly wrong labels, so trust in the right label is sharper. These are the steps to try.
SHARPNESSES = (1.0, 1.22, 1.5, 1.83, 2.25, 2.8, 3.4)
PLAUSIBILITIES = (0.0, 0.5, 1.0)
PLAUSIBILITY_FLOOR = 0.01
# Shapes of the gamma prior of class pairs: with 0.3 a few pairs can make all errors, with 300 all are alike.
PAIR_SHAPES = np.array([0.3, 1, 3, 10, 30, 100, 300])
CONFIDENT = 0.7
FIRST_RATE, MIN_RATE, MAX_RATE = 0.08, 1e-4, 0.6
N_ITERATIONS, TOLERANCE = 25, 1e-5
# More rows hardly improve so few parameters.
MAX_ROWS = 20_000


@dataclass(frozen=True)
class NoiseModel(Stored):
    """The given label is the right one, or with probability `rate` another."""

    rate: float
    sharpness: float
    plausibility: float
    pairs: FloatArray
    gain: float

    def log_odds(self, trust: FloatArray, codes: IntArray) -> FloatArray:
        """Log odds that a label is right against a random error; low is suspicious."""
        right, kernel = _right_and_kernel(trust, self.sharpness, self.plausibility)
        wrong = _wrong(right, kernel, self.pairs, self.rate, codes).sum(axis=1)
        tiny = np.finfo(np.float64).tiny
        given = (1 - self.rate) * right[np.arange(len(codes)), codes]
        return np.log(np.maximum(given, tiny)) - np.log(np.maximum(wrong, tiny))


def fit_noise_model(trust: FloatArray, codes: IntArray) -> NoiseModel:
    """Fit rate and class pairs by EM, sharpness and plausibility by likelihood."""
    every = max(1, len(codes) // MAX_ROWS)
    t, y = trust[::every], codes[::every]
    if not len(y) or trust.shape[1] < 2:
        return NoiseModel(MIN_RATE, 1.0, 0.0, _all_pairs(trust.shape[1]), 0.0)
    several = trust.shape[1] > 2
    start = _first_pairs(t, y) if several else _all_pairs(2)
    tried = [_fit(t, y, SHARPNESSES[0], 0.0, start)]
    # The likelihood has one peak: sharpen as long as it rises.
    for sharpness in SHARPNESSES[1:]:
        tried.append(_fit(t, y, sharpness, 0.0, start))
        if tried[-1].gain <= tried[-2].gain:
            break
    if several:
        at = SHARPNESSES.index(max(tried, key=_gain).sharpness)
        near = SHARPNESSES[max(0, at - 1) : at + 2]
        tried += [_fit(t, y, sharpness, g, start) for g in PLAUSIBILITIES[1:] for sharpness in near]
    best = max(tried, key=_gain)
    # Interpolated, so results do not jump from one step to the next.
    sharpness = _peak([model for model in tried if model.plausibility == best.plausibility])
    return max(best, _fit(t, y, sharpness, best.plausibility, start), key=_gain)


def _gain(model: NoiseModel) -> float:
    return model.gain


def _peak(tried: list[NoiseModel]) -> float:
    """Sharpness at the peak of the parabola through the best model and its neighbors, in logarithms."""
    tried = sorted(tried, key=lambda model: model.sharpness)
    at = max(range(len(tried)), key=lambda i: tried[i].gain)
    if not 0 < at < len(tried) - 1:
        return tried[at].sharpness
    x = np.log([model.sharpness for model in tried[at - 1 : at + 2]])
    curvature, slope, _ = np.polyfit(x - x[1], [model.gain for model in tried[at - 1 : at + 2]], 2)
    return (
        float(np.exp(np.clip(x[1] - slope / (2 * curvature), x[0], x[2])))
        if curvature < 0
        else tried[at].sharpness
    )


def _fit(t: FloatArray, y: IntArray, sharpness: float, plausibility: float, start: FloatArray) -> NoiseModel:
    """EM of rate and pairs for a given sharpness and plausibility."""
    n, n_classes = t.shape
    row = np.arange(n)
    right, kernel = _right_and_kernel(t, sharpness, plausibility)
    flat = _all_pairs(n_classes)
    without_pairs = (right / np.maximum(kernel @ flat.T, 1e-12)).T @ kernel
    one_hot = np.eye(n_classes)[y]
    rate, pairs = FIRST_RATE, start
    for iteration in range(N_ITERATIONS):
        wrong = _wrong(right, kernel, pairs, rate, y)
        total = wrong.sum(axis=1) + (1 - rate) * right[row, y] + 1e-12
        wrong /= total[:, None]
        before, rate = rate, float(np.clip(wrong.sum() / n, MIN_RATE, MAX_RATE))
        if n_classes > 2 and iteration:
            pairs = _pair_factors(wrong.T @ one_hot, rate * without_pairs, flat)
        if iteration > 1 and abs(rate - before) <= TOLERANCE * rate:
            break
    wrong = _wrong(right, kernel, pairs, rate, y)
    total = wrong.sum(axis=1) + (1 - rate) * right[row, y]
    gain = float((np.log(total + 1e-12) - np.log(t[row, y] + 1e-12)).sum())
    return NoiseModel(rate, sharpness, plausibility, pairs, gain)


def _right_and_kernel(t: FloatArray, sharpness: float, plausibility: float) -> tuple[FloatArray, FloatArray]:
    """Distribution of the right label, and how plausible each class is as a mistake."""
    return softmax(sharpness * np.log(t + 1e-30)), (t + PLAUSIBILITY_FLOOR) ** plausibility


def _wrong(right: FloatArray, kernel: FloatArray, pairs: FloatArray, rate: float, y: IntArray) -> FloatArray:
    """Probability that the right label is j and the given one an error, by j; shape (n, C)."""
    given = kernel[np.arange(len(y)), y][:, None]
    return np.asarray(rate * right * pairs[:, y].T * given / np.maximum(kernel @ pairs.T, 1e-12))


def _first_pairs(t: FloatArray, y: IntArray) -> FloatArray:
    """Starting values of the pairs: the confident disagreements."""
    n_classes = t.shape[1]
    best, counts = t.argmax(axis=1), np.zeros((n_classes, n_classes))
    np.add.at(counts, (best, y), (best != y) & (t.max(axis=1) > CONFIDENT))
    flat = _all_pairs(n_classes)
    return np.asarray(flat * (counts + 3) / (counts.sum() / flat.sum() + 3))


def _pair_factors(observed: FloatArray, expected: FloatArray, flat: FloatArray) -> FloatArray:
    """Ratio of observed to expected errors by pair, shrunk to 1 by the prior that fits best (negative binomial)."""
    apart = flat > 0
    o, e = observed[apart], expected[apart] + 1e-9
    a = PAIR_SHAPES[:, None]
    fits = (gammaln(o + a) - gammaln(a) + a * np.log(a / (a + e)) + o * np.log(e / (a + e))).sum(axis=1)
    shape = PAIR_SHAPES[int(np.argmax(fits))]
    return np.asarray(flat * (observed + shape) / (expected + shape))


def _all_pairs(n_classes: int) -> FloatArray:
    """Every pair of different classes alike."""
    return 1.0 - np.eye(n_classes)
