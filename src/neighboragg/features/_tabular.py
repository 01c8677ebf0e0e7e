"""Turn tables into vectors with meaningful distances."""

from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD

from neighboragg._core.checks import check_fitted, check_integer
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError
from neighboragg.features._columns import (
    TextVectors,
    column_kind,
    is_texts,
    read_columns,
    unit_rows,
)
from neighboragg.features._quantiles import QuantileScores

MAX_CATEGORIES = 100
# A mismatch changes two of the columns of a one-hot block: together they weigh like one standard deviation.
MISMATCH = 1.0 / np.sqrt(2.0)
# Wider sparse matrices are reduced instead of made dense.
WIDEST_DENSE, SVD_COMPONENTS = 256, 100
# A text uses few of all words; a sparse matrix with a larger share of nonzero values is not made from texts.
MAX_FILLED = 0.1
# Unrelated texts are √2 times this apart, as two values of a column with this standard deviation are on average.
TEXT_WEIGHT = 1.0


class RowVectors(NamedTuple):
    """Rows as vectors, and the terms of their texts (a sparse array, or None without texts)."""

    vectors: FloatArray
    terms: Any


class TabularFeatures(Savable, TransformerMixin, BaseEstimator):
    """Turn arrays, data frames (pandas, polars), sparse matrices and texts into vectors for neighbor search.

    Parameters
    ----------
    standardize : bool, default=True
        Scale every numeric column to standard deviation 1; otherwise keep its scale.
    max_categories : int, default=100
        Largest number of categories to use per column. If there are more, the most frequent are used, except those
        that occur only once: an identifier is not informative.

    Attributes
    ----------
    kinds_ : list of str
        "number", "category" or "text" for each column, from all of its values in fit; "empty" for an ignored column
        without values. Texts hardly ever repeat, and most have several words.
    categories_ : dict of int to list of str
        Categories used of each categorical column.
    texts_ : dict of int to TextVectors
        For each column of texts.

    Notes
    -----
    Numbers become :class:`QuantileScores`, with an extra indicator column if values are missing in training.
    Categories become one column each, scaled to make a mismatch weigh like one standard deviation; categories beyond
    `max_categories` or not seen in fit are all zero. Texts become :class:`TextVectors`, scaled to make two unrelated
    texts differ as much as two values of a number do on average. A list, 1-D array or Series of strings is one
    column of texts. A sparse matrix with more than 256 columns is reduced by truncated SVD to 100 components.
    If it contains counts or weights of words (no value is below 0, and at most a tenth is not 0, or all rows have unit
    length), vectors get unit length, as for texts: the length of a text does not reveal its subject, and a text
    without any known word, whose vector is zero, must not be near all others. Any other sparse matrix keeps its scale.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.features import TabularFeatures
    >>> X = np.array([[1.0, "red"], [2.0, "blue"], [3.0, "red"]], dtype=object)
    >>> TabularFeatures().fit_transform(X).shape
    (3, 3)
    """

    def __init__(self, *, standardize: bool = True, max_categories: int = MAX_CATEGORIES) -> None:
        self.standardize = standardize
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn kinds, quantiles and categories of the columns.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), or sequence of str
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
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), or sequence of str
        y : ignored
        **params : ignored

        Returns
        -------
        vectors : ndarray of shape (n_samples, n_vector_features)
        """
        return self.fit_represent(X).vectors

    def fit_represent(self, X: Any) -> RowVectors:
        """Fit, and return vectors and terms of the same rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), or sequence of str

        Returns
        -------
        rows : RowVectors
        """
        most = check_integer(self.max_categories, "max_categories", type(self).__name__, minimum=1)
        self.svd_: TruncatedSVD | None = None
        self.unit_length_ = False
        for name in ("_only_numbers", "_gaps"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if sparse.issparse(X):
            self.n_features_in_ = X.shape[1]
            self.unit_length_ = holds_terms(X)
            if X.shape[1] > WIDEST_DENSE:
                n_components = min(SVD_COMPONENTS, X.shape[1] - 1, max(1, X.shape[0] - 1))
                self.svd_ = TruncatedSVD(n_components, random_state=0)
                vectors = self.svd_.fit_transform(X)
                # Transformed again, to get the same bits as for new rows.
                return RowVectors(self._directions(X) if self.unit_length_ else vectors, None)
            if self.unit_length_:
                return RowVectors(self._directions(X), None)
        columns = read_columns(X)
        self.n_features_in_ = len(columns)
        self.kinds_ = ["text"] if is_texts(X) else [column_kind(column) for column in columns]
        of_kind: dict[str, list[int]] = {"category": [], "text": []}
        for j, kind in enumerate(self.kinds_):
            of_kind.setdefault(kind, []).append(j)
        self.categories_ = {j: _most_frequent(columns[j], most) for j in of_kind["category"]}
        self.texts_ = {j: TextVectors().fit(columns[j]) for j in of_kind["text"]}
        numbers = self._numbers(columns)
        self.missing_ = np.isnan(numbers).any(axis=0)
        self.quantile_scores_ = QuantileScores(standardize=self.standardize).fit(numbers)
        return self._represent(columns, numbers)

    def transform(self, X: Any) -> FloatArray:
        """Vectors of new rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features), or sequence of str

        Returns
        -------
        vectors : ndarray of shape (n, n_vector_features)
        """
        return self.represent(X).vectors

    def represent(self, X: Any) -> RowVectors:
        """Vectors and terms of new rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features), or sequence of str

        Returns
        -------
        rows : RowVectors
        """
        check_fitted(self, "n_features_in_")
        if self.unit_length_:
            return RowVectors(self._directions(X), None)
        if self.svd_ is not None:
            return RowVectors(self.svd_.transform(X), None)
        if self._only_numbers and _is_numeric(X) and X.shape[1] == self.n_features_in_:
            return self._represent([], np.asarray(X, dtype=np.float64))
        columns = read_columns(X, self.kinds_)
        if len(columns) != self.n_features_in_:
            raise InvalidInputError(
                f"X passed to {type(self).__name__} has {len(columns)} features, but {self.n_features_in_} were "
                "seen in fit."
            )
        return self._represent(columns, self._numbers(columns))

    @cached_property
    def _only_numbers(self) -> bool:
        return set(self.kinds_) == {"number"}

    @cached_property
    def _gaps(self) -> IntArray:
        """Numeric columns with missing values in fit."""
        return np.flatnonzero(self.missing_)

    def _directions(self, terms: Any) -> FloatArray:
        """Vectors of unit length for rows of terms; zero for a row without any."""
        if terms.shape[1] != self.n_features_in_:
            raise InvalidInputError(
                f"X passed to {type(self).__name__} has {terms.shape[1]} features, but {self.n_features_in_} were "
                "seen in fit."
            )
        if self.svd_ is not None:
            return unit_rows(self.svd_.transform(terms))
        return unit_rows(np.asarray(terms.toarray() if sparse.issparse(terms) else terms, dtype=np.float64))

    def _numbers(self, columns: list[Array]) -> FloatArray:
        """The numeric columns as one float matrix."""
        numeric = [columns[j] for j, kind in enumerate(self.kinds_) if kind == "number"]
        n = len(columns[0]) if columns else 0
        return np.column_stack(numeric) if numeric else np.empty((n, 0))

    def _represent(self, columns: list[Array], numbers: FloatArray) -> RowVectors:
        parts = [self.quantile_scores_.scores_of(numbers)]
        if len(self._gaps):
            parts.append(np.isnan(numbers[:, self._gaps]).astype(np.float64))
        for j, categories in self.categories_.items():
            parts.append(MISMATCH * (columns[j][:, None] == np.array(categories, dtype=object)))
        terms = {j: texts.terms(columns[j]) for j, texts in self.texts_.items()}
        parts += [TEXT_WEIGHT * texts.vectors_of(terms[j]) for j, texts in self.texts_.items()]
        together = sparse.csr_array(sparse.hstack(list(terms.values()))) if terms else None
        return RowVectors(np.hstack(parts) if len(parts) > 1 else parts[0], together)


def holds_terms(X: Any) -> bool:
    """Whether a sparse matrix looks like word counts: few values per row, or unit length; none below 0."""
    if not X.nnz or X.dtype.kind not in "biuf" or X.min() < 0:
        return False
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return bool(X.nnz <= MAX_FILLED * np.prod(X.shape) or np.isclose(squares[squares > 0], 1.0).all())


def _is_numeric(X: Any) -> bool:
    """Whether this is an array of numbers, whose columns need no analysis."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf"


def _most_frequent(values: Array, most: int) -> list[str]:
    """All categories, sorted; if they are too many, only the most frequent that occur more than once."""
    categories, counts = np.unique(values, return_counts=True)
    if len(categories) > most:
        frequent = np.argsort(-counts, kind="stable")[:most]
        categories = np.sort(categories[frequent[counts[frequent] > 1]])
    return categories.tolist()
