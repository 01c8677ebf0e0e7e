"""Nearest neighbor guidance: the energy, weighed by that of similar training rows."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from benchmarks.methods._logits import LogitMethod, energies, logits_of
from neighboragg._core.checks import check_integer
from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidInputError

__all__ = ["NNGuide"]

# Products held at a time while scoring.
SCORING_PRODUCTS = 2**22


class NNGuide(LogitMethod):
    """Energy of the row, times the mean guidance of the training rows that guide it most.

    Parameters
    ----------
    n_neighbors : int, default=10
        Training rows that guide; all if there are fewer.
    bank_size : int, default=10000
        Training rows that are kept, drawn at random where there are more.
    random_state : int, RandomState instance or None, default=0
        Seeds the draw.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    bank_ : ndarray of shape (n_bank, n_dimensions)
        Embeddings of length one, times the energy of their row.

    Notes
    -----
    Vectors are logits followed by the embedding (see :class:`LogitMethod`). A training row i with energy s_i (see
    :class:`Energy`) guides a row by s_i cos(e_i, e). Trust is the row's own energy times the mean of the `n_neighbors`
    largest of these. It is the same for every class, and was made to tell unfamiliar rows from familiar ones, not
    errors from right predictions. As in the paper, energies are taken to be positive, as those of trained networks
    are.

    References
    ----------
    Park, Jung and Teoh, "Nearest Neighbor Guidance for Out-of-Distribution Detection", ICCV 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.methods import NNGuide
    >>> rows = np.hstack([np.log([[6.0, 2.0], [3.0, 1.0]]), [[1.0, 0.0], [0.0, 1.0]]])
    >>> proba = [[0.75, 0.25], [0.75, 0.25]]
    >>> method = NNGuide(n_neighbors=1).fit(rows, [0, 1], proba_val=proba)
    >>> bool(np.allclose(method.score_samples(rows, proba), [np.log(8) ** 2, np.log(4) ** 2]))
    True
    """

    def __init__(self, *, n_neighbors: int = 10, bank_size: int = 10000, random_state: Any = 0) -> None:
        self.n_neighbors = n_neighbors
        self.bank_size = bank_size
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        owner = type(self).__name__
        check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)
        size = check_integer(self.bank_size, "bank_size", owner, minimum=1)
        if data.X.shape[1] == data.n_classes:
            raise InvalidInputError(
                f"X passed to {owner} has {data.n_classes} columns, the logits, and no embedding.\n"
                "Hint: pass np.hstack([logits, embeddings])."
            )
        rows = data.X
        if len(rows) > size:
            rng = check_random_state(self.random_state)
            rows = rows[np.sort(rng.choice(len(rows), size, replace=False))]
        directions, own = self._parts(rows, data.n_classes)
        self.bank_ = directions * own[:, None]

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        directions, own = self._parts(X, proba.shape[1])
        k = min(self.n_neighbors, len(self.bank_))
        guidance = np.empty(len(X))
        step = max(1, SCORING_PRODUCTS // len(self.bank_))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            products = directions[part] @ self.bank_.T
            guidance[part] = np.partition(products, len(self.bank_) - k, axis=1)[:, -k:].mean(axis=1)
        return np.repeat((own * guidance)[:, None], proba.shape[1], axis=1)

    def _parts(self, X: FloatArray, n_classes: int) -> tuple[FloatArray, FloatArray]:
        """Embeddings of length one, 0 where they are 0; and energies."""
        embeddings = X[:, n_classes:].astype(np.float64)
        largest = np.abs(embeddings).max(axis=1, keepdims=True)
        relative = np.divide(embeddings, largest, out=np.zeros_like(embeddings), where=largest > 0)
        length = np.sqrt((relative**2).sum(axis=1, keepdims=True))
        directions = np.divide(relative, length, out=relative, where=length > 0)
        return directions, energies(logits_of(X, n_classes))
