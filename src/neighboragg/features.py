"""From tables to vectors whose distances mean something: scaling, categories, taming."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.validation import check_is_fitted

from neighboragg._typing import Array, FloatArray
from neighboragg._validation import check_integer, check_rows
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.persistence import Savable, Stored

__all__ = ["TabularFeatures", "TamedScores", "Vectorizer"]

N_QUANTILES = 256
LARGEST_SAMPLE = 20_000  # rows from which quantiles are taken
CLIP = 3.0
MOST_CATEGORIES = 100
# A mismatch changes two of the columns of a one-hot block: together they weigh like one standard deviation.
MISMATCH = 1.0 / np.sqrt(2.0)
# Wider sparse matrices are reduced rather than filled with zeros.
WIDEST_DENSE, SVD_COMPONENTS = 256, 100


class TamedScores(Savable, TransformerMixin, BaseEstimator):
    """Normal scores of training quantiles, so that no outlier or skewed column rules the distances.

    Parameters
    ----------
    standardize : bool, default=True
        Give every numeric column standard deviation 1; otherwise keep the scale it came with.

    Attributes
    ----------
    quantiles_ : ndarray of shape (256, n_features)
        Training quantiles of each column.
    is_binary_ : ndarray of bool of shape (n_features,)
        Columns with two values or fewer; they become 0 and `binary_weight_`.

    Notes
    -----
    A numeric column becomes Φ⁻¹(rank among the training rows), clipped at ±3, times its own standard deviation.
    Ties share their middle rank. A two-valued column becomes 0/1 times the mean standard deviation of the
    numeric columns, so that a rare value is not blown up. A missing value becomes 0, the median.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.features import TamedScores
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [1e6, 1.0]])
    >>> TamedScores().fit_transform(X).round(1)
    array([[-3. ,  0. ],
           [-0.4,  1. ],
           [ 0.4,  0. ],
           [ 3. ,  1. ]])
    """

    def __init__(self, *, standardize: bool = True) -> None:
        self.standardize = standardize

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the quantiles of each column.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : TamedScores
        """
        X = np.asarray(X, dtype=np.float64)
        n_features = X.shape[1]
        sample = X
        if len(X) > LARGEST_SAMPLE:
            sample = X[np.random.default_rng(0).choice(len(X), LARGEST_SAMPLE, replace=False)]
        self.quantiles_ = np.zeros((N_QUANTILES, n_features))
        self.is_binary_ = np.zeros(n_features, dtype=bool)
        self.low_, self.spread_, self.weight_ = np.zeros(n_features), np.ones(n_features), np.ones(n_features)
        for j in range(n_features):
            column = X[np.isfinite(X[:, j]), j]
            if not len(column):
                self.is_binary_[j] = True
                continue
            self.low_[j], self.spread_[j] = column.min(), np.ptp(column) or 1.0
            self.is_binary_[j] = _is_binary(column)
            self.weight_[j] = 1.0 if self.standardize else column.std()
            seen = sample[np.isfinite(sample[:, j]), j]
            self.quantiles_[:, j] = np.quantile(seen if len(seen) else column, np.linspace(0, 1, N_QUANTILES))
        numeric = self.weight_[~self.is_binary_]
        self.binary_weight_ = float(numeric.mean()) if len(numeric) else 1.0
        self.n_features_in_ = n_features
        return self

    def transform(self, X: Array) -> FloatArray:
        """Turn each value into its tamed score.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)

        Returns
        -------
        scores : ndarray of shape (n, n_features)
        """
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        scores = np.empty(X.shape)
        grid = np.linspace(0, 1, N_QUANTILES)
        for j in range(X.shape[1]):
            column = X[:, j]
            if self.is_binary_[j]:
                scores[:, j] = (column - self.low_[j]) / self.spread_[j] * self.binary_weight_
            else:
                quantiles = self.quantiles_[:, j]
                # Interpolating from both ends gives tied quantiles their first and last rank; take the middle.
                last = np.interp(column, quantiles, grid)
                first = 1.0 - np.interp(-column, -quantiles[::-1], grid)
                rank = np.clip(0.5 * (first + last), 1e-6, 1 - 1e-6)
                scores[:, j] = np.clip(ndtri(rank), -CLIP, CLIP) * self.weight_[j]
        return np.nan_to_num(scores, nan=0.0)


class TabularFeatures(Savable, TransformerMixin, BaseEstimator):
    """Arrays, data frames (pandas, polars) and sparse matrices to vectors for neighbor search.

    Parameters
    ----------
    standardize : bool, default=True
        Give every numeric column standard deviation 1; otherwise keep the scale it came with.
    max_categories : int, default=100
        Most categories of a column that count. If there are more, the most frequent do, unless they occur only
        once: an identifier says nothing.

    Attributes
    ----------
    kinds_ : list of str
        "number" or "category" for each column.
    categories_ : dict of int to list of str
        Categories of each categorical column that count.

    Notes
    -----
    Numbers become :class:`TamedScores`; where values are missing in training, a column that says so is added.
    Categories become one column each, scaled so that a mismatch weighs like one standard deviation; those beyond
    `max_categories` or not seen in fit are all zero. A sparse matrix with more than 256 columns is reduced by
    truncated SVD to 100 components and left at that scale.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.features import TabularFeatures
    >>> X = np.array([[1.0, "red"], [2.0, "blue"], [3.0, "red"]], dtype=object)
    >>> TabularFeatures().fit_transform(X).shape
    (3, 3)
    """

    def __init__(self, *, standardize: bool = True, max_categories: int = MOST_CATEGORIES) -> None:
        self.standardize = standardize
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn kinds, quantiles and categories of the columns.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self : TabularFeatures
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> FloatArray:
        """Fit, and return the vectors of the same rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        **params : ignored

        Returns
        -------
        vectors : ndarray of shape (n_samples, n_vector_features)
        """
        most = check_integer(self.max_categories, "max_categories", type(self).__name__, minimum=1)
        self.svd_: TruncatedSVD | None = None
        if sparse.issparse(X):
            self.n_features_in_ = X.shape[1]
            if X.shape[1] > WIDEST_DENSE:
                n_components = min(SVD_COMPONENTS, X.shape[1] - 1, max(1, X.shape[0] - 1))
                self.svd_ = TruncatedSVD(n_components, random_state=0)
                return self.svd_.fit_transform(X)
        columns = _columns(X)
        self.n_features_in_ = len(columns)
        self.kinds_ = ["number" if column.dtype.kind == "f" else "category" for column in columns]
        self.categories_ = {
            j: _most_frequent(columns[j], most) for j, kind in enumerate(self.kinds_) if kind == "category"
        }
        numbers = self._numbers(columns)
        self.missing_ = np.isnan(numbers).any(axis=0)
        self.tamed_ = TamedScores(standardize=self.standardize).fit(numbers)
        return self._vectors(columns, numbers)

    def transform(self, X: Any) -> FloatArray:
        """Vectors of new rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        vectors : ndarray of shape (n, n_vector_features)
        """
        check_is_fitted(self)
        if self.svd_ is not None:
            return self.svd_.transform(X)
        columns = _columns(X)
        if len(columns) != self.n_features_in_:
            raise InvalidInputError(
                f"X passed to {type(self).__name__} has {len(columns)} features, but {self.n_features_in_} were "
                "seen in fit."
            )
        return self._vectors(columns, self._numbers(columns))

    def _numbers(self, columns: list[Array]) -> FloatArray:
        """The numeric columns as one float matrix."""
        numeric = [_as_numbers(columns[j], j) for j, kind in enumerate(self.kinds_) if kind == "number"]
        n = len(columns[0]) if columns else 0
        return np.column_stack(numeric) if numeric else np.empty((n, 0))

    def _vectors(self, columns: list[Array], numbers: FloatArray) -> FloatArray:
        parts = [self.tamed_.transform(numbers)]
        if self.missing_.any():
            parts.append(np.isnan(numbers[:, self.missing_]).astype(np.float64))
        for j, categories in self.categories_.items():
            values = _as_strings(columns[j])
            parts.append(MISMATCH * (values[:, None] == np.array(categories, dtype=object)))
        return np.hstack(parts)


def _most_frequent(values: Array, most: int) -> list[str]:
    """All categories, or if they are too many those that occur most often, more than once; sorted."""
    categories, counts = np.unique(values, return_counts=True)
    if len(categories) > most:
        frequent = np.argsort(-counts, kind="stable")[:most]
        categories = np.sort(categories[frequent[counts[frequent] > 1]])
    return categories.tolist()


class Vectorizer(Stored):
    """How rows become vectors: what the `features` parameter of an estimator stands for.

    Parameters
    ----------
    features : "auto", "passthrough", transformer or callable
    """

    def __init__(self, features: Any) -> None:
        self.kind, self.transformer, self.function = _resolve_features(features)

    def fit_transform(self, X: Any, y: Array, preprocessing: Any) -> FloatArray:
        """Fit on training rows, and return their vectors; `preprocessing` is fitted already, or None."""
        if self.kind == "auto":
            self.transformer = TabularFeatures(standardize=preprocessing is None)
            return self.transformer.fit_transform(X if preprocessing is None else preprocessing.transform(X))
        if self.kind == "transformer":
            self.transformer = clone(self.transformer)
            return check_rows(self.transformer.fit_transform(X, y), "transformed X", "features")
        return self.transform(X, preprocessing)

    def transform(self, X: Any, preprocessing: Any) -> FloatArray:
        """Vectors of new rows."""
        if self.kind == "passthrough":
            return check_rows(X, "X", "features='passthrough'")
        if self.function is not None:
            return check_rows(self.function(X), "the output of the callable", "features")
        if self.kind == "auto" and preprocessing is not None:
            X = preprocessing.transform(X)
        return check_rows(self.transformer.transform(X), "transformed X", "features")

    def _saved_state(self) -> dict[str, Any]:
        # A callable is code, which is never stored.
        return {name: value for name, value in vars(self).items() if name != "function" or value is None}

    def _after_load(self) -> None:
        if self.kind == "callable" and not callable(getattr(self, "function", None)):
            raise InvalidParameterError(
                "This model was saved with a callable for its features, which is never stored.\n"
                "Hint: neighboragg.load(path, features=function)."
            )


def _resolve_features(features: Any) -> tuple[str, Any, Callable[[Any], Any] | None]:
    """Kind, transformer and function that a `features` parameter stands for."""
    if isinstance(features, str) and features in ("auto", "passthrough"):
        return features, None, None
    if hasattr(features, "transform"):
        return "transformer", features, None
    if callable(features):
        return "callable", None, features
    raise InvalidParameterError(
        "The 'features' parameter must be 'auto', 'passthrough', a transformer or a callable. "
        f"Got {features!r} instead."
    )


def _is_binary(column: FloatArray) -> bool:
    """Whether there are at most two values; most columns show more in their first rows."""
    return len(np.unique(column[:2000])) <= 2 and len(np.unique(column)) <= 2


def _columns(X: Any) -> list[Array]:
    """Columns as float arrays (numbers) or object arrays of str (categories)."""
    if sparse.issparse(X):
        X = X.toarray()
    if hasattr(X, "columns") and hasattr(X, "shape"):
        raw = [np.asarray(X[name]) for name in X.columns]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise InvalidInputError(
                f"X passed to TabularFeatures must have two dimensions. Got shape {array.shape}.\n"
                "Hint: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single column."
            )
        raw = list(array.T)
    return [_typed(column) for column in raw]


def _typed(column: Array) -> Array:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    try:
        return _object_to_float(column)
    except (TypeError, ValueError):
        return _as_strings(column)


def _object_to_float(column: Array) -> Array:
    """Numbers in an object column; strings are categories even if they look like numbers."""
    if column.dtype.kind in "US" or any(isinstance(value, str) for value in column[:100]):
        raise ValueError
    # None, pandas.NA and the like differ from themselves or have no truth value: missing.
    return np.array([np.nan if _is_missing(value) else float(value) for value in column])


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _as_strings(column: Array) -> Array:
    return np.array(["" if _is_missing(value) else str(value) for value in column], dtype=object)


def _as_numbers(column: Array, position: int) -> FloatArray:
    if column.dtype.kind == "f":
        return column
    raise InvalidInputError(
        f"Column {position} of X held numbers in fit, but now contains {str(column[0])!r}."
    )
