"""How to search, the contract of every class-wise search, and how recall is measured."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import rel_entr
from sklearn.base import BaseEstimator

from neighboragg._core.checks import (
    check_choice,
    check_fitted,
    check_integer,
    check_labels,
    check_real,
    check_rows,
    check_same_length,
    encode_labels,
)
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

CONFIDENCE_TAIL = 0.025  # on either side: an interval of 95%
HALVINGS = 60


def shares_found(found: FloatArray, exact: FloatArray) -> FloatArray:
    """Share of the exact neighbors found for each query; rows tied with the last one count."""
    return np.mean(found <= exact[:, -1:], axis=1)


def recall_interval(shares: FloatArray) -> tuple[float, float]:
    """Limits of the mean share over all queries, from the shares of a sample: Hoeffding's bound."""
    mean = float(np.mean(shares))
    enough = np.log(1 / CONFIDENCE_TAIL) / len(shares)
    return _farthest(mean, 0.0, enough), _farthest(mean, 1.0, enough)


def _farthest(mean: float, end: float, enough: float) -> float:
    """The number toward `end` at which KL(mean, number) is enough, by halving."""
    near, far = mean, end
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        if rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) < enough:
            near = middle
        else:
            far = middle
    return near


METRICS = ("cosine", "euclidean")
MAX_RECALL = 0.995  # the queries used for tuning cannot confirm a higher recall


class Exact(Stored, BaseEstimator):
    """Exact search among reference rows in memory. The default.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}, default="euclidean"
        Cosine distance is 1 - cos; an all-zero row has distance 1 to all rows that are not zero.
    device : str or torch.device, default=None
        Device that computes candidates, such as "cuda" or "mps"; needs PyTorch. Their distances are recomputed and
        certified on the CPU, so the result has the same bits. None searches without PyTorch.

    Examples
    --------
    >>> from neighboragg import NeighborAgg
    >>> from neighboragg.search import Exact
    >>> NeighborAgg(search=Exact(metric="cosine"))
    NeighborAgg(search=Exact(metric='cosine'))
    """

    def __init__(self, metric: str = "euclidean", *, device: Any = None) -> None:
        self.metric = metric
        self.device = device


class Approximate(Stored, BaseEstimator):
    """Approximate search, used where it is clearly faster. Needs faiss.

    Parameters
    ----------
    recall : float, default=0.99
        Share of the nearest rows to find in every class, at most 0.995. `fit` widens the search until the lower
        confidence limit of the recall reaches this; a class that never reaches it is searched exactly.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As in :class:`Exact`.
    always : bool, default=False
        False searches a class exactly unless it has 100,000 rows and the approximate search takes less than half the
        time. True searches every class of 4,096 rows (and 32 times `n_neighbors`) approximately.

    Examples
    --------
    >>> from neighboragg import NeighborAgg
    >>> from neighboragg.search import Approximate
    >>> NeighborAgg(search=Approximate(recall=0.95))
    NeighborAgg(search=Approximate(recall=0.95))
    """

    def __init__(self, recall: float = 0.99, *, metric: str = "euclidean", always: bool = False) -> None:
        self.recall = recall
        self.metric = metric
        self.always = always


class Streamed(Stored, BaseEstimator):
    """Exact search among reference rows that do not fit in memory, read in blocks.

    Parameters
    ----------
    memory : int or str, default="1 GB"
        Memory that a search may use, in bytes or as text such as "500 MB".
    metric : {"euclidean", "cosine"}, default="euclidean"
        As in :class:`Exact`.

    Examples
    --------
    >>> from neighboragg import NeighborAgg
    >>> from neighboragg.search import Streamed
    >>> NeighborAgg(search=Streamed(memory="2 GB"))
    NeighborAgg(search=Streamed(memory='2 GB'))
    """

    def __init__(self, memory: int | str = "1 GB", *, metric: str = "euclidean") -> None:
        self.memory = memory
        self.metric = metric


def check_search(search: Any, owner: str, allowed: tuple[Any, ...] = (Exact, Approximate, Streamed)) -> Any:
    """A search with valid parameters; None means exact search."""
    found = Exact() if search is None else search
    if not isinstance(found, allowed):
        names = ", ".join(f"{kind.__name__}()" for kind in allowed)
        raise InvalidParameterError(
            f"The 'search' parameter of {owner} must be None or one of {names} from neighboragg.search. "
            f"Got {search!r} instead."
        )
    name = type(found).__name__
    check_choice(found.metric, "metric", name, choices=METRICS)
    if isinstance(found, Approximate):
        check_real(found.recall, "recall", name, low=0, high=MAX_RECALL, closed="right")
    return found


class ClasswiseSearch(ABC):
    """The public part of an index, which checks its input; subclasses search."""

    n_neighbors: int
    classes_: Array
    n_features_in_: int
    n_samples_fit_: int

    def kneighbors(
        self,
        X: ArrayLike | None = None,
        n_neighbors: int | None = None,
        *,
        exclude: ArrayLike | None = None,
    ) -> tuple[FloatArray, IntArray]:
        """Find the nearest reference rows of each class.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), default=None
            Query rows. None queries every reference row, each leaving itself out.
        n_neighbors : int, default=None
            Neighbors per class; defaults to the constructor's.
        exclude : array-like of shape (n_queries,), default=None
            Id of the reference row that each query must not find, because it is the same row; -1 for none.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ascending in the last axis; inf where a class has fewer rows.
        indices : ndarray of shape (n_queries, n_classes, n_neighbors)
            Ids of the reference rows (their position in the rows fitted); -1 where a class has fewer.
        """
        check_fitted(self, "n_samples_fit_")
        owner = type(self).__name__
        k = check_integer(
            self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors", owner, minimum=1
        )
        if X is None:
            return self._neighbors_of_reference(k)
        queries = check_rows(X, "X", owner, n_features=self.n_features_in_)
        ids = None if exclude is None else self._check_exclude(exclude, len(queries))
        return self._neighbors_of(queries, k, ids)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_samples_fit_")

    @abstractmethod
    def _neighbors_of(
        self, queries: FloatArray, k: int, exclude: IntArray | None
    ) -> tuple[FloatArray, IntArray]:
        """Distances and ids, without the row of each query in `exclude`, if any."""

    @abstractmethod
    def _neighbors_of_reference(self, k: int) -> tuple[FloatArray, IntArray]:
        """Distances and ids for every reference row, each leaving itself out."""

    def _check_params(self) -> None:
        owner = type(self).__name__
        check_integer(self.n_neighbors, "n_neighbors", owner, minimum=1)

    def _encode(self, n_rows: int, y: ArrayLike, classes: ArrayLike | None) -> IntArray:
        """Class of each row as a position in `classes_`, which it sets."""
        owner = type(self).__name__
        labels = check_labels(y, "y", owner)
        check_same_length(range(n_rows), "X", labels, "y", owner)
        if not len(labels):
            raise InvalidInputError(f"X passed to {owner} has no rows; at least one is needed to search.")
        known = np.unique(labels if classes is None else np.asarray(classes))
        codes = encode_labels(labels, known, "y", owner)
        self.classes_ = known
        return codes

    def _check_exclude(self, exclude: ArrayLike, n: int) -> IntArray:
        ids = np.asarray(exclude)
        if not ids.size:
            ids = ids.astype(np.int64)
        wrong = f"shape {ids.shape}" if ids.shape != (n,) else ""
        if ids.dtype.kind not in "iu":
            wrong = wrong or f"dtype {ids.dtype}"
        elif not wrong and (outside := (ids < -1) | (ids >= self.n_samples_fit_)).any():
            wrong = f"the id {ids[outside][0]}"
        if wrong:
            raise InvalidInputError(
                f"exclude passed to {type(self).__name__} must contain one row id below {self.n_samples_fit_}, or -1, "
                f"for each of the {n} queries. Got {wrong}."
            )
        return ids.astype(np.int64)
