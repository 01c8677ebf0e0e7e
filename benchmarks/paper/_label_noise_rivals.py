"""Rivals in finding wrong labels that need no probabilities: SimiFeat, kNN-Shapley, the margins of boosting."""

from collections.abc import Iterator

import numpy as np
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from neighboragg._core.types import BoolArray, FloatArray, IntArray

__all__ = ["boosting_margins", "knn_disagreement", "knn_shapley", "out_of_fold_loss", "simifeat"]

# SimiFeat's own setting.
N_NEIGHBORS = 10
# Of HOC: rows start as mostly right, and the search stops when it no longer gets anywhere.
FIRST_LOGIT, MAX_STEPS = 3.0, 150
BLOCK_ROWS = 500


def simifeat(X: FloatArray, y: IntArray) -> tuple[FloatArray, BoolArray, BoolArray]:
    """SimiFeat [1]_: the score of its ranking, the flags of the vote, and the flags of the ranking.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Labels 0 to C - 1.

    Returns
    -------
    scores : ndarray of shape (n,)
        Cosine of the soft label of the 10 nearest rows and the given label.
    voted : ndarray of bool of shape (n,)
        SimiFeat-V: another class has the most votes.
    ranked : ndarray of bool of shape (n,)
        SimiFeat-R: in each class, as many of the lowest scores as are wrong by its transition matrix, which HOC
        estimates from how often a row and its two nearest agree.

    References
    ----------
    .. [1] Zhu, Dong and Liu, "Detecting Corrupted Labels Without Training a Model to Predict", ICML 2022.
    """
    n_classes = int(y.max()) + 1
    near = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(normalize(X)).kneighbors(return_distance=False)
    votes = np.stack([(y[near] == label).sum(axis=1) for label in range(n_classes)], axis=1).astype(float)
    rows = np.arange(len(y))
    scores = votes[rows, y] / np.linalg.norm(votes, axis=1)
    transition, prior = _consensus(y, near, n_classes)
    given = np.bincount(y, minlength=n_classes) / len(y)
    ranked = np.zeros(len(y), dtype=bool)
    for label in range(n_classes):
        right = min(1.0, transition[label, label] * prior[label] / max(given[label], 1e-12))
        own = np.flatnonzero(y == label)
        ranked[own[np.argsort(scores[own], kind="stable")[: round((1 - right) * len(own))]]] = True
    return scores, votes[rows, y] < votes.max(axis=1), ranked


def _consensus(y: IntArray, near: IntArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """HOC: the transition matrix and prior that explain the labels of rows and their two nearest best."""
    first, second = y[near[:, 0]], y[near[:, 1]]
    n = len(y)
    one = np.bincount(y, minlength=n_classes) / n
    two, three = np.zeros((n_classes,) * 2), np.zeros((n_classes,) * 3)
    np.add.at(two, (y, first), 1 / n)
    np.add.at(three, (y, first, second), 1 / n)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        prior, T = _softmax(theta[:n_classes]), _softmax(theta[n_classes:].reshape(n_classes, n_classes))
        pairs = (T[:, :, None] * T[:, None, :]).reshape(n_classes, -1)
        gap1 = prior @ T - one
        gap2 = (prior[:, None] * T).T @ T - two
        gap3 = ((prior[:, None] * T).T @ pairs).reshape(three.shape) - three
        # d/dT and d/dprior of the summed squares of the gaps; the three places of a pattern in turn.
        around2 = (gap2 @ T.T).T, (gap2.T @ T.T).T
        around3 = [(np.moveaxis(gap3, place, 0).reshape(n_classes, -1) @ pairs.T).T for place in range(3)]
        slope_T = 2 * prior[:, None] * (gap1[None, :] + around2[0] + around2[1] + sum(around3))
        slope_prior = 2 * (T @ gap1 + (T * around2[0]).sum(axis=1) + (T * around3[0]).sum(axis=1))
        by_T = T * (slope_T - (slope_T * T).sum(axis=1, keepdims=True))
        by_prior = prior * (slope_prior - slope_prior @ prior)
        return float((gap1**2).sum() + (gap2**2).sum() + (gap3**2).sum()), np.r_[by_prior, by_T.ravel()]

    start = np.r_[np.log(one + 1e-6), FIRST_LOGIT * np.eye(n_classes).ravel()]
    # Shares are small, and so are their squares: scaled, or the search would stop at once.
    found = minimize(
        lambda theta: tuple(n * part for part in loss(theta)),
        start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS},
    )  # fmt: skip
    return _softmax(found.x[n_classes:].reshape(n_classes, n_classes)), _softmax(found.x[:n_classes])


def _softmax(z: FloatArray) -> FloatArray:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def knn_disagreement(X: FloatArray, y: IntArray, n_neighbors: int = 20) -> FloatArray:
    """Share of the 20 nearest rows that carry the given label."""
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    return np.asarray((y[near] == y[:, None]).mean(axis=1))


def knn_shapley(X: FloatArray, y: IntArray) -> FloatArray:
    """Shapley value [1]_ of each row for a classifier by 10 neighbors that labels every other row.

    References
    ----------
    .. [1] Jia et al., "Efficient Task-Specific Data Valuation for Nearest Neighbor Algorithms", PVLDB 12, 2019,
       theorem 1.
    """
    n = len(y) - 1
    rank = np.arange(1, n)
    step = np.minimum(N_NEIGHBORS, rank) / (rank * N_NEIGHBORS)
    values = np.zeros(len(y))
    squares = (X**2).sum(axis=1)
    for start in range(0, len(y), BLOCK_ROWS):
        block = np.arange(start, min(start + BLOCK_ROWS, len(y)))
        distances = squares - 2 * X[block] @ X.T
        distances[np.arange(len(block)), block] = np.inf  # sorted last, and left out
        order = np.argsort(distances, axis=1, kind="stable")[:, :n]
        agrees = (y[order] == y[block][:, None]).astype(float)
        shapley = np.empty_like(agrees)
        shapley[:, -1] = agrees[:, -1] / max(n, N_NEIGHBORS)
        gains = (agrees[:, :-1] - agrees[:, 1:]) * step
        shapley[:, :-1] = shapley[:, -1:] + np.cumsum(gains[:, ::-1], axis=1)[:, ::-1]
        np.add.at(values, order, shapley)
    return values / len(y)


def _boosting(seed: int) -> HistGradientBoostingClassifier:
    """Boosting that is fast with many classes."""
    return HistGradientBoostingClassifier(
        learning_rate=0.15,
        max_iter=40,
        max_leaf_nodes=15,
        max_bins=63,
        early_stopping=False,
        random_state=seed,
    )


def boosting_margins(X: FloatArray, y: IntArray, seed: int) -> FloatArray:
    """AUM [1]_ with the stages of boosting as epochs: mean margin of the given class while it is learned.

    References
    ----------
    .. [1] Pleiss et al., "Identifying Mislabeled Data using the Area Under the Margin Ranking", NeurIPS 2020.
    """
    model = _boosting(seed).fit(X, y)
    margins = [_margin(raw, y) for raw in _stages(model, X)]
    return np.asarray(np.mean(margins, axis=0))


def _stages(model: HistGradientBoostingClassifier, X: FloatArray) -> Iterator[FloatArray]:
    """Raw scores of every class after each stage."""
    for raw in model.staged_decision_function(X):
        yield np.column_stack([-raw, raw]) if raw.ndim == 1 or raw.shape[1] == 1 else raw


def _margin(raw: FloatArray, y: IntArray) -> FloatArray:
    rows = np.arange(len(y))
    others = raw.copy()
    others[rows, y] = -np.inf
    return np.asarray(raw[rows, y] - others.max(axis=1))


def out_of_fold_loss(X: FloatArray, y: IntArray, seed: int) -> FloatArray:
    """Log probability of the given label by boosting, 5-fold; low is suspicious."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    proba = cross_val_predict(_boosting(seed), X, y, cv=folds, method="predict_proba")
    return np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12))
