"""Kernel ridge classification on landmarks: one factorization for all ridges, leave-one-out in closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np
from scipy.linalg import eigh

from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import NeighborAggError

RIDGES = (1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
# Added to the similarities of the landmarks with themselves, which may repeat.
JITTER = 1e-6
# In units of the median row; squares of larger distances would dominate all others.
LARGEST_REACH = 1e4
# The root of a difference of products has half its digits, unless it stays away from zero.
SMALLEST_DISTANCE = 1e-3
# If a row determines its own prediction alone, its leave-one-out prediction is undefined.
LARGEST_LEVERAGE = 1 - 1e-6
# Similarities, or values of rows, in memory at a time: 2**22, 32 MB.
BLOCK_ELEMENTS = 2**22
# The last rows of a matrix product have other last bits where they are too few for a tile, of up to 32 rows or of 24:
# so many rows are whole tiles, and a row has the same bits in whatever block.
WHOLE_TILES = 96
# The map is learned from some of the rows, and gradients are taken at fewer.
GRADIENT_STEPS, GRADIENT_LANDMARKS, FITTED_ROWS, GRADIENT_ROWS = 2, 500, 6000, 1000
# Wider rows are first turned to their principal axes: the cost of a map is cubic in its columns.
MAX_COLUMNS = 128


@dataclass(frozen=True)
class LinearMap(Stored):
    """Rows around zero and of common size, then turned and stretched; made by :meth:`scaling`."""

    center: FloatArray
    spread: float
    matrix: FloatArray | None = None

    @classmethod
    def scaling(cls, X: FloatArray) -> "LinearMap":
        """Only the common size, learned from rows: their median, and their median reach around it."""
        center = np.median(X.astype(np.float64), axis=0)
        reach = np.abs(X - center).max(axis=1)
        spread = float(np.median(reach)) or float(reach.max()) or 1.0
        return cls(center, spread)

    def followed_by(self, matrix: FloatArray) -> "LinearMap":
        """This map, then a matrix."""
        both = matrix if self.matrix is None else self.matrix @ matrix
        return LinearMap(self.center, self.spread, np.ascontiguousarray(both))

    def apply(self, X: FloatArray) -> FloatArray:
        """Mapped rows in double precision; bounded, however far out a row is."""
        scaled = np.minimum(np.maximum((X - self.center) / self.spread, -LARGEST_REACH), LARGEST_REACH)
        return scaled if self.matrix is None else scaled @ self.matrix


@dataclass(frozen=True)
class KernelRidge(Stored):
    """A kernel ridge classifier as :func:`fit_kernel_ridge` makes it."""

    space: LinearMap
    width: float
    landmarks: FloatArray
    prior: FloatArray
    coefficients: FloatArray
    root: FloatArray
    power: float = 1.0

    def predict_proba(self, X: FloatArray, own_codes: IntArray | None = None) -> FloatArray:
        """Probabilities, shape (n, C); `own_codes` has the class of a row of fit, which is left out, else -1."""
        scores = np.empty((len(X), len(self.prior)))
        with ONE_THREAD:
            for rows in _blocks(X, len(self.landmarks), len(self.prior)):
                mapped = self.space.apply(X[rows])
                near = kernel(mapped, self.landmarks, self.width, self.power, self._squared_lengths)
                found = near @ self.coefficients
                if own_codes is not None and (own := own_codes[rows] >= 0).any():
                    leverage = ((near[own] @ self.root) ** 2).sum(axis=1)
                    target = one_hot(own_codes[rows][own], self.prior)
                    found[own] = without_itself(found[own], leverage, target)
                scores[rows] = found
        return as_probabilities(self.prior + scores)

    @cached_property
    def _squared_lengths(self) -> FloatArray:
        """Of the landmarks, which are many compared with one row."""
        return squared_lengths(self.landmarks)


def fit_kernel_ridge(
    X: FloatArray,
    codes: IntArray,
    n_classes: int,
    scored: IntArray,
    *,
    space: LinearMap,
    n_landmarks: int,
    seed: int,
    power: float = 1.0,
    widths: Sequence[float] = (1.0,),
) -> tuple[KernelRidge, FloatArray]:
    """Fit on all rows; return the classifier and its leave-one-out predictions for the `scored` rows."""
    prior = np.bincount(codes, minlength=n_classes) / len(codes)
    chosen = np.random.default_rng(seed).permutation(len(X))[:n_landmarks]
    target = one_hot(codes[scored], prior)

    def fitted(width: float) -> tuple[float, FloatArray, KernelRidge]:
        """Loss of the best ridge, its answers on scored rows, and the classifier."""
        gram, pull = np.zeros((len(chosen), len(chosen))), np.zeros((len(chosen), n_classes))
        for rows in _blocks(X, len(chosen), n_classes):
            near = kernel(space.apply(X[rows]), landmarks, width, power)
            gram += near.T @ near
            pull += near.T @ one_hot(codes[rows], prior)
        among = kernel(landmarks, landmarks, width, power) + JITTER * np.eye(len(chosen))
        values, vectors = eigh(gram, among)
        values, pull = np.maximum(values, 0), vectors.T @ pull
        basis = kernel(space.apply(X[scored]), landmarks, width, power) @ vectors
        least, best, shrinkage, squares = np.inf, None, values, basis**2
        for ridge in RIDGES:
            factor = 1 / (values + ridge)
            answer = without_itself(basis @ (pull * factor[:, None]), squares @ factor, target)
            loss = float(((answer - target) ** 2).sum())
            if loss < least:
                least, best, shrinkage = loss, answer, factor
        if best is None:
            raise NeighborAggError(
                f"A kernel of the width {width:.3g} does not give finite predictions for the {len(scored)} rows that "
                "choose its ridge.\nHint: scale columns of extreme values, or leave kernels out of second_opinions."
            )
        coefficients = vectors @ (pull * shrinkage[:, None])
        root = np.ascontiguousarray(
            vectors * np.sqrt(shrinkage)
        )  # as in a file, where products have the same bits
        return least, best, KernelRidge(space, width, landmarks, prior, coefficients, root, power)

    with ONE_THREAD:
        landmarks = space.apply(X[chosen])
        median = float(np.median(distances_between(landmarks, landmarks))) or 1.0
        _, best, model = min((fitted(median * width) for width in widths), key=itemgetter(0))
    return model, as_probabilities(prior + best)


def learn_gradient_map(X: FloatArray, codes: IntArray, n_classes: int, *, seed: int) -> LinearMap:
    """A map that stretches the directions in which the classes change, learned from rows of several classes."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(len(X))[:FITTED_ROWS]
    X, codes = X[some], codes[some]
    space = LinearMap.scaling(X)
    with ONE_THREAD:
        if X.shape[1] > MAX_COLUMNS:
            space = space.followed_by(principal_axes(space.apply(X[:GRADIENT_ROWS]), MAX_COLUMNS))
        for _ in range(GRADIENT_STEPS):
            scored = rng.permutation(len(X))[:GRADIENT_ROWS]
            model, _ = fit_kernel_ridge(
                X, codes, n_classes, scored, space=space, n_landmarks=GRADIENT_LANDMARKS, seed=seed
            )
            space = space.followed_by(_root_of_gradients(model, space.apply(X[scored])))
    return space


def _root_of_gradients(model: KernelRidge, rows: FloatArray) -> FloatArray:
    """Root of the mean outer product of the gradients at mapped rows, of unit mean variance."""
    near = kernel(rows, model.landmarks, model.width) / distances_between(rows, model.landmarks)
    outer = np.zeros((rows.shape[1], rows.shape[1]))
    for coefficients in model.coefficients.T:
        weight = near * coefficients
        slope = weight.sum(axis=1, keepdims=True) * rows - weight @ model.landmarks
        outer += slope.T @ slope
    size = np.trace(outer) / len(outer)
    if size <= 0:
        return np.eye(len(outer))
    values, vectors = np.linalg.eigh(outer / size)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def principal_axes(rows: FloatArray, n_axes: int) -> FloatArray:
    """The first principal axes of rows, as columns."""
    return np.asarray(np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:n_axes].T)


def kernel(
    A: FloatArray, B: FloatArray, width: float, power: float = 1.0, lengths_of_b: FloatArray | None = None
) -> FloatArray:
    """exp(−(r / width)^power) for every pair of rows."""
    exponents = distances_between(A, B, lengths_of_b)
    if power == 1:
        exponents /= -width
    else:
        exponents /= width
        exponents **= power
        np.negative(exponents, out=exponents)
    return np.exp(exponents, out=exponents)


def distances_between(A: FloatArray, B: FloatArray, lengths_of_b: FloatArray | None = None) -> FloatArray:
    """Distances between all pairs of rows, none below :data:`SMALLEST_DISTANCE` or so."""
    squared = (-2 * A) @ B.T
    squared += squared_lengths(A)[:, None]
    squared += squared_lengths(B) if lengths_of_b is None else lengths_of_b
    np.maximum(squared, 0, out=squared)
    squared += SMALLEST_DISTANCE**2
    return np.sqrt(squared, out=squared)


def squared_lengths(rows: FloatArray) -> FloatArray:
    """|x|² of every row."""
    return np.add.reduce(rows * rows, axis=1)


def one_hot(codes: IntArray, prior: FloatArray) -> FloatArray:
    """1 for the class of each row and 0 for the others, less the share of each class."""
    return np.eye(len(prior))[codes] - prior


def without_itself(fitted: FloatArray, leverage: FloatArray, target: FloatArray) -> FloatArray:
    """Leave-one-out predictions."""
    own = np.minimum(leverage, LARGEST_LEVERAGE)[:, None]
    return (fitted - own * target) / (1 - own)


def as_probabilities(scores: FloatArray) -> FloatArray:
    """Scores clipped at zero and normalized to sum to one."""
    positive = np.maximum(scores, 0)
    return positive / positive.sum(axis=1, keepdims=True)


def _blocks(X: FloatArray, n_landmarks: int, n_classes: int) -> Iterator[slice]:
    size = max(1, BLOCK_ELEMENTS // max(n_landmarks, X.shape[1], n_classes))
    if size > WHOLE_TILES:
        size -= size % WHOLE_TILES
    return (slice(start, start + size) for start in range(0, len(X), size))
