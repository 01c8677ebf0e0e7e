"""Weights of a log-linear opinion pool, as pure functions on an evidence tensor of shape (n, C, E)."""

import numpy as np

from neighboragg._typing import FloatArray, IntArray
from neighboragg.aggregators._base import softmax

__all__ = ["centered", "guard_weight", "log_likelihood", "pool_weights"]

MAX_NEWTON_STEPS = 50
# z below the first counts as no gain; two standard errors further as certain gain.
GUARD_START, GUARD_WIDTH = 0.5, 2.0


def centered(tensor: FloatArray) -> FloatArray:
    """Evidence relative to its mean over classes: only differences between classes matter."""
    return tensor - tensor.mean(axis=1, keepdims=True)


def pool_weights(
    tensor: FloatArray,
    codes: IntArray,
    *,
    penalty: float = 1.0,
    sample_weight: FloatArray | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Weights that minimize Σ −w log t_y + penalty · ‖θ‖², t = softmax(F θ).

    Parameters
    ----------
    tensor : ndarray of shape (n, C, E)
        Evidence, centered over classes and scaled to comparable size.
    codes : ndarray of shape (n,)
        Class of each row.
    penalty : float, default=1.0
    sample_weight : ndarray of shape (n,), default=None
    start : ndarray of shape (E,), default=None
        First guess, zero if None; it saves steps and does not change the answer.

    Returns
    -------
    theta : ndarray of shape (E,)

    Notes
    -----
    The problem is strictly convex; Newton's method with step halving.
    """
    n, _, n_experts = tensor.shape
    weight = np.ones(n) if sample_weight is None else sample_weight
    chosen = tensor[np.arange(n), codes]
    theta = np.zeros(n_experts) if start is None else start
    value = _objective(tensor, chosen, weight, penalty, theta)
    for _ in range(MAX_NEWTON_STEPS):
        trust = softmax(tensor @ theta)
        mean = np.einsum("nc,nce->ne", trust, tensor)
        gradient = (weight[:, None] * (mean - chosen)).sum(axis=0) + 2 * penalty * theta
        root = (tensor * np.sqrt(weight[:, None] * trust)[:, :, None]).reshape(-1, n_experts)
        hessian = root.T @ root - (weight[:, None] * mean).T @ mean + 2 * penalty * np.eye(n_experts)
        step = np.linalg.solve(hessian, gradient)
        size, candidate = 1.0, np.inf
        while size > 1e-6:
            candidate = _objective(tensor, chosen, weight, penalty, theta - size * step)
            if candidate <= value:
                break
            size /= 2
        else:
            break
        theta = theta - size * step
        gain, value = value - candidate, candidate
        if gain < 1e-9 * max(n, 1):
            break
    return theta


def log_likelihood(tensor: FloatArray, codes: IntArray, theta: FloatArray) -> FloatArray:
    """log t_y of every row, floored at log 1e-9."""
    trust = softmax(tensor @ theta)
    return np.log(trust[np.arange(len(codes)), codes] + 1e-9)


def guard_weight(
    tensor: FloatArray,
    codes: IntArray,
    *,
    penalty: float = 1.0,
    n_folds: int = 5,
    pooled: FloatArray | None = None,
    alone: FloatArray | None = None,
) -> float:
    """How far the pool may depart from temperature scaling, between 0 and 1.

    `pooled` and `alone` may give the weights fitted on all rows, where the fits on each fold start from.

    The paired cross-validated log-likelihood gain of the pool over the first expert alone (the classifier, so
    temperature scaling), in standard errors, is mapped linearly to [0, 1].
    """
    n = len(codes)
    if n < n_folds:
        return 0.0
    folds = np.random.default_rng(0).permutation(n) % n_folds
    gain = np.empty(n)
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        scores = []
        for part, start in ((tensor, pooled), (tensor[:, :, :1], alone)):
            theta = pool_weights(part[train], codes[train], penalty=penalty, start=start)
            scores.append(log_likelihood(part[test], codes[test], theta))
        gain[test] = scores[0] - scores[1]
    error = gain.std(ddof=1) / np.sqrt(n)
    z = gain.mean() / (error + 1e-12)
    return float(np.clip((z - GUARD_START) / GUARD_WIDTH, 0.0, 1.0))


def _objective(
    tensor: FloatArray, chosen: FloatArray, weight: FloatArray, penalty: float, theta: FloatArray
) -> float:
    logits = tensor @ theta
    top = logits.max(axis=1)
    normalizer = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    return float((weight * (normalizer - chosen @ theta)).sum() + penalty * theta @ theta)
