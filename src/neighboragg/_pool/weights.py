"""Weights of a log-linear opinion pool, as pure functions on an evidence tensor of shape (n, C, E)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neighboragg._core.stats import softmax
from neighboragg._core.types import BoolArray, FloatArray, IntArray

MAX_NEWTON_STEPS = 50
# Evidence copied at a time: 2**23 values, 64 MB.
OUTER_ELEMENTS = 2**23
# In standard errors: up to the first gain the pool gets no weight, from the second on all of it.
GUARD_START, GUARD_END = 0.5, 1.5
# Experts share errors, so together they deserve little more weight than one alone.
TOTAL_WEIGHT = 1.15
# In units of the spread of the evidence; an expert with less gets next to no weight.
MIN_SHARPNESS = 1e-3


def centered(tensor: FloatArray) -> FloatArray:
    """Evidence relative to its mean over classes: only differences between classes matter."""
    return tensor - tensor.sum(axis=1, keepdims=True) / tensor.shape[1]


def pool_weights(
    tensor: FloatArray,
    codes: IntArray,
    *,
    penalty: float = 1.0,
    prior: FloatArray | float = 0.0,
    nonnegative: BoolArray | bool = False,
    sample_weight: FloatArray | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Weights that minimize Σ −w log t_y + penalty · ‖θ − prior‖², t = softmax(F θ)."""
    n, _, n_experts = tensor.shape
    weight = np.ones(n) if sample_weight is None else sample_weight
    chosen = tensor[np.arange(n), codes]
    mean = np.broadcast_to(np.asarray(prior, dtype=np.float64), n_experts)
    lowest = np.where(nonnegative, 0.0, -np.inf)
    theta = np.maximum(mean if start is None else start, lowest)
    value = _objective(tensor, chosen, weight, penalty, theta - mean, theta)
    for _ in range(MAX_NEWTON_STEPS):
        trust = softmax(tensor @ theta)
        expected = np.einsum("nc,nce->ne", trust, tensor)
        gradient = (weight[:, None] * (expected - chosen)).sum(axis=0) + 2 * penalty * (theta - mean)
        outer = _outer_product(tensor, weight[:, None] * trust)
        hessian = outer - (weight[:, None] * expected).T @ expected + 2 * penalty * np.eye(n_experts)
        step = _newton_step(hessian, gradient, at_bound=theta <= lowest)
        size, candidate = 1.0, np.inf
        while size > 1e-6:
            moved = np.maximum(theta - size * step, lowest)
            candidate = _objective(tensor, chosen, weight, penalty, moved - mean, moved)
            if candidate <= value:
                break
            size /= 2
        else:
            break
        theta = moved
        gain, value = value - candidate, candidate
        if gain < 1e-9 * max(n, 1):
            break
    return theta


def _outer_product(tensor: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ w_nc f_nc f_nc', some rows at a time where there are very many."""
    n, n_classes, n_experts = tensor.shape
    step = max(1, OUTER_ELEMENTS // (n_classes * n_experts))
    total = np.zeros((n_experts, n_experts))
    for start in range(0, n, step):
        part = slice(start, start + step)
        root = (tensor[part] * np.sqrt(weight[part])[:, :, None]).reshape(-1, n_experts)
        total += root.T @ root
    return total


def _newton_step(hessian: FloatArray, gradient: FloatArray, at_bound: BoolArray) -> FloatArray:
    """The Newton step; zero for weights that would cross their lower bound."""
    free = ~at_bound | (gradient < 0)
    while True:
        step = np.zeros(len(gradient))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        passing = at_bound & (step > 0)
        if not passing.any():
            return step
        free &= ~passing


def log_likelihood(tensor: FloatArray, codes: IntArray, theta: FloatArray) -> FloatArray:
    """log t_y of every row, floored at log 1e-9."""
    trust = softmax(tensor @ theta)
    return np.log(trust[np.arange(len(codes)), codes] + 1e-9)


@dataclass(frozen=True)
class PoolWeights:
    """Weights of experts in calibrated units, the prior they were drawn to, and the units."""

    scale: FloatArray
    prior: FloatArray
    theta: FloatArray

    @property
    def first_alone(self) -> FloatArray:
        """Weights of temperature scaling: all for the first expert, the classifier."""
        return np.eye(len(self.theta))[0]


def fit_pool(
    tensor: FloatArray,
    codes: IntArray,
    groups: Sequence[Mapping[int, float]],
    *,
    penalty: float,
    nonnegative: BoolArray | bool = True,
    sample_weight: FloatArray | None = None,
    start: PoolWeights | None = None,
    overwrite: bool = False,
) -> PoolWeights:
    """Calibrate each expert, then weigh them together."""
    spread = _spread(tensor) + 1e-12
    sharpness = np.array(
        [
            pool_weights(
                tensor[:, :, [e]] / spread[e],
                codes,
                sample_weight=sample_weight,
                start=None if start is None else spread[[e]] / start.scale[e],
            )[0]
            for e in range(tensor.shape[2])
        ]
    )
    scale = spread / np.maximum(sharpness, MIN_SHARPNESS)
    calibrated = np.divide(tensor, scale, out=tensor if overwrite else None)
    prior = skill_prior(calibrated, codes, groups, sample_weight)
    theta = pool_weights(
        calibrated,
        codes,
        penalty=penalty,
        prior=prior,
        nonnegative=nonnegative,
        sample_weight=sample_weight,
        start=None if start is None else start.theta,
    )
    return PoolWeights(scale, prior, theta)


def _spread(tensor: FloatArray) -> FloatArray:
    """Standard deviation of each expert's evidence; one by one where a copy of all would be very large."""
    if tensor.size <= OUTER_ELEMENTS:
        return np.asarray(tensor.std(axis=(0, 1)))
    return np.array([tensor[:, :, e].std() for e in range(tensor.shape[2])])


def skill_prior(
    tensor: FloatArray,
    codes: IntArray,
    groups: Sequence[Mapping[int, float]],
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Weights to expect of calibrated experts before looking at how they complement each other."""
    prior = np.zeros(tensor.shape[2])
    if not len(codes):
        return prior
    losses = [
        -float(np.average(log_likelihood(tensor[:, :, [e]], codes, np.ones(1)), weights=sample_weight))
        for e in range(tensor.shape[2])
    ]
    skills = [max(1e-3, min(losses[e] for e in group)) ** -2 for group in groups]
    for group, skill in zip(groups, skills, strict=True):
        for expert, share in group.items():
            prior[expert] = TOTAL_WEIGHT * share * skill / sum(skills)
    return prior


def guard_weight(
    tensor: FloatArray,
    codes: IntArray,
    groups: Sequence[Mapping[int, float]],
    *,
    penalty: float,
    nonnegative: BoolArray | bool = True,
    n_folds: int = 5,
    start: PoolWeights | None = None,
) -> float:
    """How far the pool may depart from its first expert, between 0 and 1."""
    n = len(codes)
    if n < n_folds or tensor.shape[2] == 1:
        return 0.0
    folds = np.random.default_rng(0).permutation(n) % n_folds
    gain = np.empty(n)
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        pool = fit_pool(
            tensor[train],
            codes[train],
            groups,
            penalty=penalty,
            nonnegative=nonnegative,
            start=start,
            overwrite=True,
        )
        pooled, alone = (
            log_likelihood(tensor[test], codes[test], theta / pool.scale)
            for theta in (pool.theta, pool.first_alone)
        )
        gain[test] = pooled - alone
    error = gain.std(ddof=1) / np.sqrt(n)
    z = gain.mean() / (error + 1e-12)
    return float(np.clip((z - GUARD_START) / (GUARD_END - GUARD_START), 0.0, 1.0))


def _objective(
    tensor: FloatArray,
    chosen: FloatArray,
    weight: FloatArray,
    penalty: float,
    departure: FloatArray,
    theta: FloatArray,
) -> float:
    logits = tensor @ theta
    top = logits.max(axis=1)
    normalizer = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    return float((weight * (normalizer - chosen @ theta)).sum() + penalty * departure @ departure)
