"""Kinds of columns, and texts as vectors."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from neighboragg._core.inputs import expand_vectors, is_frame, is_missing
from neighboragg._core.types import Array, FloatArray
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError

# Longer values are texts even if many of them repeat, unless they are few enough to be the options of a choice.
WORDS_OF_A_TEXT, MIN_TEXTS = 5, 20
# Two words with letters in them: "order 17" is an identifier.
SEVERAL_WORDS = re.compile(r"[^\W\d_]\S*\s+(?:\S*\s)?\S*[^\W\d_]")


def is_texts(X: Any) -> bool:
    """Whether rows are texts: a list, 1-D array or Series of strings."""
    if hasattr(X, "columns") or sparse.issparse(X) or isinstance(X, str):
        return False
    values = X if isinstance(X, list | tuple) else np.asarray(X)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind not in "OUT"):
        return False
    return len(values) > 0 and all(isinstance(value, str) or is_missing(value) for value in values)


def column_kind(column: Array) -> str:
    """Kind of a column from :func:`read_columns`: "number", "category", "text", or "empty" without any value."""
    if column.dtype.kind == "f":
        return "empty" if np.isnan(column).all() else "number"
    values = [value for value in column.tolist() if value]
    if not values:
        return "empty"
    several_words = sum(SEVERAL_WORDS.search(value) is not None for value in values)
    distinct = len(set(values))
    if 2 * several_words <= len(values):
        return "category"
    long = sum(len(value.split()) >= WORDS_OF_A_TEXT for value in values)
    repeated_texts = distinct >= MIN_TEXTS and 2 * long > len(values)
    return "text" if 2 * distinct > len(values) or repeated_texts else "category"


def read_columns(X: Any, kinds: Sequence[str] | None = None) -> list[Array]:
    """Columns as float arrays (numbers) or object arrays of str (categories and texts).

    The kind of a column is decided in fit, from all of its values; later rows are only converted to those `kinds`.
    The result for a row therefore does not depend on the rest of its batch.
    """
    columns = _raw_columns(X, texts=is_texts(X) if kinds is None else list(kinds) == ["text"])
    if kinds is None:
        return [_typed(column) for column in columns.values()]
    if len(columns) != len(kinds):
        return list(columns.values())
    return [
        as_numbers(column, name) if kind == "number" else as_strings(column)
        for (name, column), kind in zip(columns.items(), kinds, strict=True)
    ]


def _raw_columns(X: Any, *, texts: bool) -> dict[Any, Array]:
    """Columns by their names, or by their positions."""
    if sparse.issparse(X):
        X = X.toarray()
    if is_frame(X):
        X = expand_vectors(X, "X", "TabularFeatures")
        return {name: np.asarray(X[name]) for name in X.columns}
    array = np.asarray(X)
    if texts and array.ndim == 1:
        return {0: array}
    if array.ndim != 2:
        raise InvalidInputError(
            f"X passed to TabularFeatures must have two dimensions. Got shape {array.shape}.\n"
            "Hint: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single column."
        )
    return dict(enumerate(array.T))


def _typed(column: Array) -> Array:
    """Numbers if all values are; strings are categories even if they look like numbers."""
    if column.dtype.kind in "US" or any(isinstance(value, str) for value in column):
        return as_strings(column)
    try:
        return as_numbers(column, None)
    except InvalidInputError:
        return as_strings(column)


def as_numbers(column: Array, name: Any) -> FloatArray:
    """Values as numbers, points in time as seconds, missing ones as NaN."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind in "mM":
        seconds = column.astype(f"{column.dtype.kind}8[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(column), np.nan, seconds)
    numbers = np.empty(len(column))
    for row, value in enumerate(column):
        try:
            numbers[row] = np.nan if is_missing(value) or value == "" else _as_float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"Column {name!r} of X contained only numbers in fit, but now contains {value!r} in row {row}.\n"
                "Hint: convert the column, or fit again with rows like this one."
            ) from None
    return numbers


def _as_float(value: Any) -> float:
    """A number, or the seconds of a point in time (UTC without a time zone)."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return float(value)


def as_strings(column: Any) -> Array:
    """Values as text, missing ones as the empty string."""
    return np.array(["" if is_missing(value) else _text_of(value) for value in column], dtype=object)


def _text_of(value: Any) -> str:
    # A column of whole numbers is read as floats if one of its values is missing: 11.0 is 11.
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


N_COMPONENTS = 100
# Whole words in lower case; and parts of words as written, which capture abbreviations and names.
TERMS: tuple[dict[str, Any], ...] = (
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 4), "analyzer": "char_wb", "lowercase": False},
)


class TextVectors(Savable, TransformerMixin, BaseEstimator):
    """Latent semantic vectors of texts, of unit length."""

    def __init__(self, *, n_components: int = N_COMPONENTS) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms and their co-occurrence."""
        texts = list(X)
        self.terms_ = [
            vectorizer for settings in TERMS if (vectorizer := _fitted(settings, texts)) is not None
        ]
        counts = self.terms(texts)
        self.svd_: TruncatedSVD | None = None
        n_components = min(self.n_components, counts.shape[1] - 1, counts.shape[0] - 1)
        if n_components > 0:
            self.svd_ = TruncatedSVD(n_components, random_state=0).fit(counts)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Vectors of texts."""
        return self.vectors_of(self.terms(X))

    def terms(self, X: Any) -> Any:
        """Weights (TF-IDF) of all terms."""
        check_is_fitted(self, "terms_")
        texts = list(X)
        if not self.terms_:
            return sparse.csr_array((len(texts), 0))
        return sparse.csr_array(sparse.hstack([vectorizer.transform(texts) for vectorizer in self.terms_]))

    def vectors_of(self, terms: Any) -> FloatArray:
        """Vectors of texts given by their terms."""
        if self.svd_ is None:
            return np.empty((terms.shape[0], 0))
        return unit_rows(self.svd_.transform(terms))


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows of length one; a zero row stays zero."""
    return np.asarray(vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12))


def _fitted(settings: dict[str, Any], texts: list[str]) -> TfidfVectorizer | None:
    """Terms of at least two texts, or None if there are none."""
    try:
        return TfidfVectorizer(sublinear_tf=True, min_df=2, **settings).fit(texts)
    except ValueError:  # no terms remain
        return None
