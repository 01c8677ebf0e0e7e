"""Learned metric: a linear map from neighborhood components analysis on mini-batches."""

from collections.abc import Iterator

import numpy as np

from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import FloatArray, IntArray

# The exponential of anything smaller is negligible, but denormal numbers make later steps many times slower.
NEGLIGIBLE = -80.0
# A row without a neighbor of this similarity is far from all others and is computed with its own scale.
SMALLEST_SIMILARITY = 1e-20
CACHE_ROWS = 128
# Classes with fewer rows are processed together.
FEW_ROWS = 64
# In units of the median reach; the squares of larger values would dominate everything else.
LARGEST_REACH = 1e4
# The map is divided by the spread and must stay finite.
SMALLEST_SPREAD = 1e-150
FIRST_DECAY, SECOND_DECAY = 0.9, 0.999


def default_rank(n_features: int, n_classes: int) -> int:
    """Dimensions of the learned space: two per class, between 6 and 24, at most the features."""
    return int(min(n_features, np.clip(2 * n_classes, 6, 24)))


def learn_metric(
    X: FloatArray,
    codes: IntArray,
    *,
    rank: int | None = None,
    n_steps: int = 120,
    batch_size: int = 1000,
    learning_rate: float = 0.03,
    random_state: int | None = 0,
) -> FloatArray:
    """Learn a linear map by mini-batch neighborhood components analysis."""
    rng = np.random.default_rng(random_state)
    X = np.asarray(X)
    n_samples, n_features = X.shape
    rank = min(rank or default_rank(n_features, len(np.unique(codes))), n_features)
    size = min(batch_size, n_samples)
    sample = X[rng.permutation(n_samples)[:size]]
    center, spread = _center_and_spread(sample)
    components, scale = _initial_map(_normalized(sample, center, spread), rank)
    first, second = np.zeros_like(components), np.zeros_like(components)
    # Products this small do not benefit from a second thread, and one thread always sums in the same order.
    with ONE_THREAD:
        # A single row does not have a neighbor to learn from.
        for step in range(1, n_steps + 1 if size > 1 else 0):
            rows = rng.choice(n_samples, size, replace=False, shuffle=False)
            gradient = _gradient(_normalized(X[rows], center, spread), codes[rows], components)
            first = FIRST_DECAY * first + (1 - FIRST_DECAY) * gradient
            second = SECOND_DECAY * second + (1 - SECOND_DECAY) * gradient**2
            rate = learning_rate * scale * (1 - 0.9 * step / n_steps)
            update = (first / (1 - FIRST_DECAY**step)) / (np.sqrt(second / (1 - SECOND_DECAY**step)) + 1e-8)
            components = components - np.float32(rate) * update
    return components.astype(np.float64) / spread


def nca_loss(X: FloatArray, codes: IntArray, components: FloatArray) -> float:
    """Mean negative log probability that a row's stochastic neighbor shares its class."""
    similar = _similarities(X @ components)
    agreement = (similar * (codes[:, None] == codes)).sum(axis=1) / similar.sum(axis=1)
    return float(-np.log(agreement[agreement > 0]).sum() / len(X))


def _center_and_spread(sample: FloatArray) -> tuple[FloatArray, float]:
    """Median of the rows, and their median distance from it (the largest if most rows are equal)."""
    center = np.median(sample.astype(np.float64), axis=0)
    reach = np.abs(sample - center).max(axis=1)
    spread = float(np.median(reach)) or float(reach.max()) or 1.0
    return center, max(spread, SMALLEST_SPREAD)


def _normalized(rows: FloatArray, center: FloatArray, spread: float) -> FloatArray:
    """Center and scale the rows, so that their squares are accurate in single precision."""
    return np.clip((rows - center) / spread, -LARGEST_REACH, LARGEST_REACH).astype(np.float32)


def _initial_map(sample: FloatArray, rank: int) -> tuple[FloatArray, float]:
    """Principal axes, scaled to unit median distance between nearest neighbors."""
    centered = sample - sample.mean(axis=0)
    norms = (centered**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * centered @ centered.T
    np.fill_diagonal(squared, np.inf)
    nearest = np.median(np.maximum(squared.min(axis=1, initial=np.inf), 0)) if len(sample) > 1 else 1.0
    if nearest <= 1e-12 * max(float(norms.mean()), 1e-30):
        # Most rows are duplicates, and their zero distance does not indicate a scale.
        nearest = max(float(norms.mean()), 1e-12)
    scale = 1.0 / np.sqrt(nearest)
    return np.ascontiguousarray(_principal_axes(centered, rank) * scale, dtype=np.float32), float(scale)


def _principal_axes(centered: FloatArray, rank: int) -> FloatArray:
    n, d = centered.shape
    if rank == d:
        return np.eye(rank)
    if rank <= n < d:  # fewer rows than columns: an eigenproblem would be cubic in the columns
        return np.linalg.svd(centered, full_matrices=False)[2][:rank].T
    return np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :rank]


def _similarities(mapped: FloatArray) -> FloatArray:
    """exp(−‖x_i − x_j‖²) for all pairs of rows, up to a factor for each row i; zero on the diagonal."""
    n = len(mapped)
    norms, ones = (mapped**2).sum(axis=1, keepdims=True), np.ones((n, 1), mapped.dtype)
    left, right = np.hstack([2 * mapped, -norms, -ones]), np.hstack([mapped, ones, norms])
    similar = np.empty((n, n), mapped.dtype)
    for start in range(0, n, CACHE_ROWS):  # blocks that fit in the cache
        rows, after = slice(start, start + CACHE_ROWS), slice(start + CACHE_ROWS, n)
        exponents = left[rows] @ right[start:].T
        np.clip(exponents, NEGLIGIBLE, 0, out=exponents)  # rounding can make them positive
        np.exp(exponents, out=similar[rows, start:])
        similar[after, rows] = similar[rows, after].T
    np.fill_diagonal(similar, 0)
    far = np.flatnonzero(similar.max(axis=1) < SMALLEST_SIMILARITY)
    if len(far):
        with np.errstate(invalid="ignore"):  # OpenBLAS may raise the flag for lanes that it discards
            exponents = left[far] @ right.T
        exponents[np.arange(len(far)), far] = -np.inf
        exponents -= exponents.max(axis=1, keepdims=True)
        similar[far] = np.exp(np.maximum(exponents, NEGLIGIBLE))
        similar[far, far] = 0
    return similar


def _gradient(X: FloatArray, codes: IntArray, components: FloatArray) -> FloatArray:
    """Gradient of :func:`nca_loss` with respect to the map."""
    order = np.argsort(codes, kind="stable")
    X, codes = X[order], codes[order]
    mapped = X @ components
    similar = _similarities(mapped)
    beside = np.hstack([mapped, np.ones((len(mapped), 1), mapped.dtype)])
    # Σ_j w_ij [x_j, 1] less Σ_j p_ij [x_j, 1], and the same over i, from pairs of one class.
    given, received = np.zeros_like(beside), np.zeros_like(beside)
    for rows in _classes_together(codes):
        near = similar[rows, rows]
        if codes[rows][0] != codes[rows][-1]:
            near = near * (codes[rows, None] == codes[rows]).astype(near.dtype)
        given[rows] = near @ beside[rows]
        share = _inverse(given[rows, -1:])
        given[rows] *= share
        # In this order, because the product of rows with a large share could overflow.
        received[rows] = (near * share).T @ beside[rows]
    everywhere = similar @ beside
    # A row that is the only one of its class does not contribute.
    share = given[:, -1:] * _inverse(everywhere[:, -1:])
    given -= everywhere * share
    received -= similar.T @ (beside * share)
    pull = received[:, -1:] * mapped - received[:, :-1] - given[:, :-1]
    return np.asarray(2 / len(X) * (X.T @ pull), dtype=X.dtype)


def _classes_together(codes: IntArray) -> Iterator[slice]:
    """Slices of one large class or several small classes, for codes in ascending order."""
    first = 0
    for end in (*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)):
        if end - first >= FEW_ROWS or end == len(codes):
            yield slice(first, end)
            first = end


def _inverse(sums: FloatArray) -> FloatArray:
    """1 / sum, or 0 if the sum is 0."""
    return np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
