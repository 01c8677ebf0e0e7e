"""A linear map in which neighbors share their class: neighborhood components analysis on mini-batches."""

import numpy as np

from neighboragg._threads import ONE_THREAD
from neighboragg._typing import FloatArray, IntArray

__all__ = ["default_rank", "learn_metric"]

# exp of less than this adds nothing, but denormal numbers slow every later step down many times.
NEGLIGIBLE = np.float32(-50.0)
CACHE_ROWS = 128
# In units of the median row; squares of what is farther would drown all else.
LARGEST_REACH = 1e4
# The map is divided by the spread, and must stay finite.
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
    """Learn a linear map by mini-batch neighborhood components analysis.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Integer class of each row.
    rank : int, default=None
        Columns of the map; None takes :func:`default_rank`.
    n_steps : int, default=120
    batch_size : int, default=1000
    learning_rate : float, default=0.03
        Of Adam, relative to the scale of the first map; falls linearly to a tenth.
    random_state : int, default=0
        Seed of the batches; the same seed gives the same map.

    Returns
    -------
    components : ndarray of shape (n_features, rank)
        Rows are mapped by ``X @ components``.

    Notes
    -----
    Minimizes the mean of −log Σ_{j: y_j = y_i} p_ij with p_ij ∝ exp(−‖A'x_i − A'x_j‖²), j ≠ i, over the rows
    of a batch, with its closed-form gradient. Full-batch implementations cost O(n²) a step; this one costs
    O(`batch_size`²).

    References
    ----------
    Goldberger, Roweis, Hinton and Salakhutdinov, "Neighbourhood Components Analysis", NeurIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.neighbors import learn_metric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> A = learn_metric(X, (X[:, 0] > 0).astype(int))
    >>> int(np.linalg.norm(A, axis=1).argmax())
    0
    """
    rng = np.random.default_rng(random_state)
    X = np.asarray(X)
    n_samples, n_features = X.shape
    rank = min(rank or default_rank(n_features, len(np.unique(codes))), n_features)
    size = min(batch_size, n_samples)
    sample = X[rng.permutation(n_samples)[:size]]
    center, spread = _center_and_spread(sample)
    components, scale = _initial_map(_normalized(sample, center, spread), rank)
    first, second = np.zeros_like(components), np.zeros_like(components)
    # Products this small gain nothing from a second thread, and one thread always adds in one order.
    with ONE_THREAD:
        # A row on its own has no neighbor to learn from.
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
    mapped = X @ components
    probabilities = _neighbor_probabilities(mapped, _squared_norms(mapped), slice(0, len(X)))
    agreement = (probabilities * (codes[:, None] == codes)).sum(axis=1)
    return float(-np.log(agreement[agreement > 0]).sum() / len(X))


def _center_and_spread(sample: FloatArray) -> tuple[FloatArray, float]:
    """Median, and median reach of the rows around it; the largest reach where most rows are equal."""
    center = np.median(sample.astype(np.float64), axis=0)
    reach = np.abs(sample - center).max(axis=1)
    spread = float(np.median(reach)) or float(reach.max()) or 1.0
    return center, max(spread, SMALLEST_SPREAD)


def _normalized(rows: FloatArray, center: FloatArray, spread: float) -> FloatArray:
    """Rows around zero and of common size, so that their squares are accurate in single precision."""
    return np.clip((rows - center) / spread, -LARGEST_REACH, LARGEST_REACH).astype(np.float32)


def _initial_map(sample: FloatArray, rank: int) -> tuple[FloatArray, float]:
    """Principal axes, scaled to unit median distance between nearest neighbors."""
    centered = sample - sample.mean(axis=0)
    norms = (centered**2).sum(axis=1)
    squared = norms[:, None] + norms - 2 * centered @ centered.T
    np.fill_diagonal(squared, np.inf)
    nearest = np.median(np.maximum(squared.min(axis=1, initial=np.inf), 0)) if len(sample) > 1 else 1.0
    if nearest <= 1e-12 * max(float(norms.mean()), 1e-30):
        # Mostly duplicates: their zero distance says nothing about scale.
        nearest = max(float(norms.mean()), 1e-12)
    scale = 1.0 / np.sqrt(nearest)
    return np.ascontiguousarray(_principal_axes(centered, rank) * scale, dtype=np.float32), float(scale)


def _principal_axes(centered: FloatArray, rank: int) -> FloatArray:
    n, d = centered.shape
    if rank == d:
        return np.eye(rank)
    if rank <= n < d:  # fewer rows than columns: the cost of an eigenproblem is cubic in the columns
        return np.linalg.svd(centered, full_matrices=False)[2][:rank].T
    return np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :rank]


def _squared_norms(mapped: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nr,nr->n", mapped, mapped))


def _neighbor_probabilities(mapped: FloatArray, norms: FloatArray, rows: slice) -> FloatArray:
    """p_ij: probability that row i, one of `rows`, picks row j as its neighbor."""
    logits: FloatArray = (2 * mapped[rows]) @ mapped.T
    logits -= norms  # the term constant in a row cancels in its softmax
    own = np.arange(len(logits)), np.arange(len(mapped))[rows]
    logits[own] = -np.inf
    logits -= logits.max(axis=1, keepdims=True)
    np.maximum(logits, NEGLIGIBLE, out=logits)
    np.exp(logits, out=logits)
    logits[own] = 0
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _gradient(X: FloatArray, codes: IntArray, components: FloatArray) -> FloatArray:
    """Gradient of :func:`nca_loss` in the map, some rows at a time so that they stay in cache."""
    mapped = X @ components
    norms = _squared_norms(mapped)
    pull = np.zeros_like(mapped)
    received = np.zeros_like(norms)
    for start in range(0, len(X), CACHE_ROWS):
        rows = slice(start, start + CACHE_ROWS)
        probabilities = _neighbor_probabilities(mapped, norms, rows)
        # Weight of each squared distance in the loss: (posterior given agreement) − (prior). Both are
        # distributions over j, so that the weights of a row add up to nothing.
        weights = probabilities * (codes[rows, None] == codes)
        agreement = weights.sum(axis=1, keepdims=True)
        lonely = agreement[:, 0] <= 0
        agreement[lonely] = 1
        weights /= agreement
        weights -= probabilities
        weights[lonely] = 0
        received += weights.sum(axis=0)
        pull[rows] -= weights @ mapped
        pull -= weights.T @ mapped[rows]
    pull += received[:, None] * mapped
    return np.asarray(2 / len(X) * (X.T @ pull), dtype=X.dtype)
