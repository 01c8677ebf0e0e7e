"""Graph convolution over class-wise neighbors, the GCN-khop of the paper."""

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax

from neighboragg._core.checks import check_choice, check_integer, check_real
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._pool.evidence import FitData, laplacian_similarity
from neighboragg._pool.experts import nearest_distance
from neighboragg.methods._method import TrustMethod
from neighboragg.search import ClasswiseNeighbors

N_FOLDS = 5
# Edges of the graph searched at a time while scoring.
SCORING_EDGES = 2**22


class NeighborGCN(TrustMethod):
    """Trust from labels that travel `n_hops` edges of the neighbor graph, and the classifier's probabilities.

    Parameters
    ----------
    n_hops : int, default=1
        Steps that a label travels to reach a row.
    n_neighbors : int, default=5
        Edges of every row to each class.
    bandwidth : "median" or float, default="median"
        T in the edge weights exp(−d / T); "median" is the median distance of a validation row to the nearest
        training row.
    penalty : float, default=1e-4
        Weight of the squared distance of the output weights from their start, against the mean loss.
    max_iter : int, default=200
        Iterations of L-BFGS.
    n_jobs : int, default=None
        Number of threads of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    bandwidth_ : float
        T as used.
    nodes_ : ndarray of shape (n_train, n_classes)
        Features of the training nodes after `n_hops` − 1 steps; rows add up to one.
    W_ : ndarray of shape (n_classes, 2 * n_classes)
        Output weights.

    Notes
    -----
    Needs training rows, probabilities and validation rows. The graph is that of Theorem 1: edges from every row to
    its K nearest training rows of each class, with weights a = exp(−d / T) / K. A training node starts with its
    label as a unit vector, and each step but the last gives it the weighted mean of itself and its neighbors. In
    the last step a query with probabilities p becomes z = [Σ_j a_j y_j ‖ p], and trust = softmax(W z). W is fitted
    by cross-entropy on validation rows, which is convex. New rows need no refit (the model is inductive), and
    steps have no weights of their own, as in simplified graph convolution.

    Where validation rows are the training rows, z is made out of fold (5 folds): in two steps a row's own label
    would come back to it from its neighbors.

    References
    ----------
    Xiong et al., "Birds of a Feather Trust Together", TMLR 2022, Theorem 1 and the appendix on graph networks.

    Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017.

    Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.methods import NeighborGCN
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 2)) + 3 * y[:, None]
    >>> method = NeighborGCN(n_hops=2).fit(X, y, proba_val=np.full((300, 2), 0.5))
    >>> method.predict_trust([[3.0, 3.0]], [[0.5, 0.5]]).round(1)
    array([[0., 1.]])
    """

    def __init__(
        self,
        n_hops: int = 1,
        *,
        n_neighbors: int = 5,
        bandwidth: str | float = "median",
        penalty: float = 1e-4,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        self.n_hops = n_hops
        self.n_neighbors = n_neighbors
        self.bandwidth = bandwidth
        self.penalty = penalty
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        check_integer(self.n_hops, "n_hops", owner, minimum=1)
        check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        penalty = check_real(self.penalty, "penalty", owner, low=0, high=np.inf, closed="left")
        max_iter = check_integer(self.max_iter, "max_iter", owner, minimum=1)
        self.index_ = self._index(data.X, data.codes, data.n_classes)
        self.bandwidth_ = self._resolve_bandwidth(data)
        self.nodes_ = self._smoothed(self.index_, data.X, data.codes)
        arrived = (
            self._out_of_fold(data) if data.shared else self._arrived(self.index_, self.nodes_, data.X_val)
        )
        self.W_ = softmax_weights(
            np.hstack([arrived, data.proba_val]),
            data.codes_val,
            np.tile(np.eye(data.n_classes), 2),
            penalty=penalty,
            max_iter=max_iter,
        )

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        features = np.hstack([self._arrived(self.index_, self.nodes_, X), proba])
        return softmax(features @ self.W_.T, axis=1)

    def _index(self, X: FloatArray, codes: IntArray, n_classes: int) -> ClasswiseNeighbors:
        return ClasswiseNeighbors(self.n_neighbors, n_jobs=self.n_jobs).fit(
            X, codes, classes=np.arange(n_classes)
        )

    def _resolve_bandwidth(self, data: FitData) -> float:
        if isinstance(self.bandwidth, str):
            check_choice(self.bandwidth, "bandwidth", type(self).__name__, choices=("median",))
            distances, _ = self.index_.kneighbors(None if data.shared else data.X_val, 1)
            return nearest_distance(distances) or 1.0
        return check_real(self.bandwidth, "bandwidth", type(self).__name__, low=0, high=np.inf)

    def _smoothed(self, index: ClasswiseNeighbors, X: FloatArray, codes: IntArray) -> FloatArray:
        """Labels of the training nodes after all steps but the last."""
        nodes = np.eye(len(index.classes_))[codes]
        if self.n_hops > 1:
            edges = adjacency(index, X, self.bandwidth_, exclude=np.arange(len(X)))
            for _ in range(self.n_hops - 1):
                nodes = nodes + edges @ nodes
                nodes /= nodes.sum(axis=1, keepdims=True)
        return nodes

    def _arrived(self, index: ClasswiseNeighbors, nodes: FloatArray, X: FloatArray) -> FloatArray:
        """What the last step brings to query rows: Σ_j a_j y_j, shape (n, C)."""
        arrived = np.empty((len(X), nodes.shape[1]))
        step = max(1, SCORING_EDGES // (index.n_neighbors * nodes.shape[1]))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            arrived[part] = adjacency(index, X[part], self.bandwidth_) @ nodes
        return arrived

    def _out_of_fold(self, data: FitData) -> FloatArray:
        """What arrives at each training row in a graph of the other folds."""
        n = len(data.X)
        arrived = np.zeros((n, data.n_classes))
        if n == 1:
            return arrived  # it has no neighbor
        folds = np.random.default_rng(0).permutation(n) % N_FOLDS
        for fold in range(min(n, N_FOLDS)):
            rest = folds != fold
            X, codes = data.X[rest], data.codes[rest]
            index = self._index(X, codes, data.n_classes)
            arrived[~rest] = self._arrived(index, self._smoothed(index, X, codes), data.X[~rest])
        return arrived


def adjacency(
    index: ClasswiseNeighbors, X: FloatArray, bandwidth: float, *, exclude: IntArray | None = None
) -> csr_array:
    """Edge weights exp(−d / T) / K from query rows to reference rows, shape (n, n_reference)."""
    distances, ids = index.kneighbors(X, exclude=exclude)
    n, n_classes, k = distances.shape
    weights = laplacian_similarity(distances, bandwidth) / k
    # A neighbor that does not exist has weight 0, wherever its edge leads.
    ends = np.where(ids < 0, 0, ids)
    bounds = np.arange(n + 1) * n_classes * k
    return csr_array((weights.ravel(), ends.ravel(), bounds), shape=(n, index.n_samples_fit_))


def softmax_weights(
    features: FloatArray, codes: IntArray, start: FloatArray, *, penalty: float, max_iter: int
) -> FloatArray:
    """W that minimizes the mean of −log softmax(W z)_y + penalty · ‖W − start‖²."""
    n, rows = len(codes), np.arange(len(codes))

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        drift = flat.reshape(start.shape) - start
        log_trust = log_softmax(features @ (start + drift).T, axis=1)
        error = np.exp(log_trust)
        error[rows, codes] -= 1.0
        gradient = error.T @ features / n + 2.0 * penalty * drift
        loss = -log_trust[rows, codes].mean() + penalty * float((drift**2).sum())
        return float(loss), gradient.ravel()

    result = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return np.asarray(result.x).reshape(start.shape)
