"""Conversion of the kinds of rows that users pass: arrays, frames, tensors, data sets, texts and images."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from neighboragg._core.types import Array, BoolArray, IntArray
from neighboragg.exceptions import InvalidInputError, NeighborAggError


def as_plain(values: Any, name: str, owner: str) -> Any:
    """Convert tensors to arrays, and a Hugging Face `Dataset` or Arrow table to a frame; return other types as is."""
    if _is_tensor(values):
        return _array_of(values)
    if isinstance(values, list | tuple) and len(values) and _is_tensor(values[0]):
        return np.array([_array_of(value) for value in values])
    if isinstance(values, Mapping):
        keys = ", ".join(repr(key) for key in list(values)[:5])
        raise InvalidInputError(
            f"{name} passed to {owner} is a {type(values).__name__} with the keys {keys}.\n"
            f"Hint: pass one of its values, or pandas.DataFrame({name}) if each value is a column."
        )
    if hasattr(values, "column_names"):
        if not hasattr(values, "to_pandas") or not hasattr(values, "__len__"):
            raise InvalidInputError(
                f"{name} passed to {owner} is a {type(values).__name__}, whose rows can only be read once.\n"
                "Hint: load the data set without streaming, or copy the rows into arrays."
            )
        return values.to_pandas()
    return values


def as_column(values: Any, name: str, owner: str) -> Any:
    """Convert one value per row like :func:`as_plain`, keeping all digits of pandas integers and booleans."""
    plain = as_plain(values, name, owner)
    if hasattr(values, "column_names") and is_frame(plain):
        if len(plain.columns) != 1:
            names = ", ".join(repr(column) for column in plain.columns)
            raise InvalidInputError(
                f"{name} passed to {owner} must have one value per row. Got a {type(values).__name__} with the columns "
                f"{names}.\nHint: pass one column, e.g. {name}[{str(plain.columns[-1])!r}]."
            )
        plain = plain[plain.columns[0]]
    kind = getattr(plain, "dtype", None)
    # scikit-learn would convert the extension types of pandas to floats.
    if (hasattr(kind, "na_value") or kind == np.dtype(object)) and np.ndim(plain) == 1:
        return _narrowed(np.asarray(plain, dtype=object))
    return plain


def is_frame(X: Any) -> bool:
    """Whether `X` is a pandas or polars data frame."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def expand_vectors(X: Any, name: str, owner: str) -> Any:
    """Replace each frame column of vectors (lists, arrays or tensors) with one column per number."""
    if not is_frame(X):
        return X
    vectors = {column: first for column in X.columns if (first := _first_vector(X, column)) is not None}
    if not vectors:
        return X
    columns: dict[Any, Any] = {}
    for column in X.columns:
        if column in vectors:
            matrix = _stacked(X[column], column, len(vectors[column]), name, owner)
            columns |= {f"{column}_{j}": values for j, values in enumerate(matrix.T)}
        else:
            columns[column] = X[column]
    return type(X)(columns, index=X.index) if hasattr(X, "iloc") else type(X)(columns)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, pandas.NA or the like."""
    try:
        return value is None or bool(value != value)
    except (
        TypeError,
        ValueError,
    ):  # pandas.NA has no truth value; an array has none either, but is not missing
        return not hasattr(value, "__len__")


def missing_mask(values: Array) -> BoolArray:
    """Which values of an array of any type are missing."""
    if values.dtype.kind == "O":
        return np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
    return np.asarray(values != values)


class _NotNumericError(InvalidInputError, TypeError):
    """Also a TypeError, as scikit-learn raises."""


@contextmanager
def refusal_explained(X: Any, name: str, owner: str, hint: str) -> Iterator[None]:
    """Name the first value that is not a number, its place and the remedy in the error."""
    try:
        yield
    except (TypeError, ValueError) as error:
        found = None if isinstance(error, NeighborAggError) else _first_odd_value(X)
        if found is None:
            raise
        row, column, value = found
        raise _NotNumericError(
            f"{name} passed to {owner} contains {value!r}, which is not a number, in row {row} of column {column!r} "
            f"({error}).\nHint: {hint}"
        ) from error


def needs_numbers(estimator: Any) -> str:
    """Hint for a classifier that accepts only numbers."""
    return (
        f"{type(estimator).__name__} needs numbers; put it in a Pipeline after a ColumnTransformer that encodes the "
        "column, or drop the column."
    )


def refuse_labels_as_column(X: Any, labels: Array, owner: str) -> None:
    """Raise if a column of a frame equals the labels, because a model that learns from it is useless."""
    for column in X.columns if is_frame(X) else ():
        values = np.asarray(X[column])
        if values.dtype.kind == "O" and not all(isinstance(value, str | int | float) for value in values):
            continue  # missing values, vectors and dates cannot equal labels
        if values.shape == labels.shape and bool(np.all(values == labels)):
            raise InvalidInputError(
                f"Column {column!r} of X passed to {owner} is equal to y in every row.\n"
                "Hint: drop the labels from X."
            )


def _is_tensor(values: Any) -> bool:
    return all(hasattr(values, name) for name in ("detach", "cpu", "numpy", "dtype"))


def _array_of(tensor: Any) -> Array:
    tensor = tensor.detach().cpu()
    if getattr(tensor, "is_sparse", False):
        tensor = tensor.to_dense()
    if "float8" in str(tensor.dtype) or "bfloat16" in str(tensor.dtype):  # NumPy has no such types
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def _narrowed(values: Array) -> Array:
    """Convert objects that are all booleans, integers or floats; return other or incomplete columns as is."""
    given = values.tolist()
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        return np.array(given, dtype=bool)
    if given and all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in given):
        low, high = min(given), max(given)
        # NumPy would convert integers outside the range of one integer type to floats and lose digits.
        if low >= -(2**63) and high < 2**63:
            return np.array(given, dtype=np.int64)
        return np.array(given, dtype=np.uint64) if low >= 0 and high < 2**64 else values
    if given and all(isinstance(value, float | int | np.floating | np.integer) for value in given):
        return np.array(given, dtype=np.float64)
    return values


def _first_vector(X: Any, column: Any) -> Any:
    """The first value of a column if it is a vector, else None."""
    values = X[column]
    kind = str(getattr(values, "dtype", ""))
    if not kind.lower().startswith(("object", "list", "array", "fixed_size_list")):
        return None
    first = next((value for value in values if not is_missing(value)), None)
    if first is None or isinstance(first, str | bytes | Mapping):
        return None
    return first if isinstance(first, Sequence) or np.ndim(_plain_vector(first)) == 1 else None


def _stacked(values: Any, column: Any, length: int, name: str, owner: str) -> Array:
    where = f"Column {column!r} of {name} passed to {owner}"
    rows = []
    for i, value in enumerate(values):
        row = None if is_missing(value) else _plain_vector(value)
        if row is None or row.shape != (length,):
            given = "nothing" if row is None else f"a vector of shape {row.shape}"
            raise InvalidInputError(
                f"{where} must contain vectors of {length} numbers. Got {given} in row {i}.\n"
                "Hint: every row needs a vector of the same length; drop the other rows."
            )
        if row.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"{where} must contain vectors of numbers. Got a list of {row.dtype.type.__name__} in row {i}.\n"
                "Hint: convert it to numbers first, or drop the column."
            )
        rows.append(row)
    return np.array(rows)


def _plain_vector(value: Any) -> Array:
    return _array_of(value) if _is_tensor(value) else np.asarray(value)


def _first_odd_value(X: Any) -> tuple[int, Any, Any] | None:
    """Row, column and value of the first entry that is not a number, or None."""
    if is_frame(X):
        columns = {column: np.asarray(X[column]) for column in X.columns}
    else:
        array = np.asarray(X)
        columns = dict(enumerate(array.T)) if array.ndim == 2 and array.dtype.kind == "O" else {}
    for column, values in columns.items():
        if values.dtype.kind in "biuf":
            continue
        for row, value in enumerate(values):
            try:
                if values.dtype.kind in "mM":
                    return row, column, value
                float(value)
            except (TypeError, ValueError):
                return row, column, value
    return None


# A sample contains at least this many rows of each class, or all rows of smaller classes.
MIN_ROWS_PER_CLASS = 50


def holdout_mask(codes: IntArray, fraction: float, rng: np.random.RandomState) -> BoolArray:
    """Mask of the rows to hold out: the same share of every class, but never the only row of a class."""
    counts = np.bincount(codes)
    # Random rounding gives rare classes a chance to appear among the validation rows.
    quota = np.minimum(np.floor(fraction * counts + rng.uniform(size=len(counts))), np.maximum(counts - 1, 0))
    if not quota.any() and counts.max() > 1:
        quota[counts.argmax()] = 1
    shuffled = rng.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    held_out = np.zeros(len(codes), dtype=bool)
    held_out[order] = rank < quota[codes[order]]
    return held_out


def draw_sample(codes: IntArray, most: int, seed: int) -> IntArray:
    """Positions of `most` random rows, plus more rows of rare classes; all rows if there are at most `most`."""
    n = len(codes)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    chosen = np.zeros(n, dtype=bool)
    chosen[order[:most]] = True
    counts = np.bincount(codes)
    for c in np.flatnonzero(
        (counts > 0) & (np.bincount(codes[chosen], minlength=len(counts)) < MIN_ROWS_PER_CLASS)
    ):
        chosen[order[codes[order] == c][:MIN_ROWS_PER_CLASS]] = True
    return np.flatnonzero(chosen)


def as_rows(X: Any, owner: str, *, keep_vectors: bool = False) -> Any:
    """Return frames, sparse matrices, texts and images as is; convert anything else to a 2-D array."""
    if type(X) is np.ndarray and X.ndim == 2:
        return X
    X = as_plain(X, "X", owner)
    if sparse.issparse(X) or is_frame(X):
        return X if keep_vectors else expand_vectors(X, "X", owner)
    if _holds_images(X):
        images = np.empty(len(X), dtype=object)
        for i, value in enumerate(X):  # one by one, because NumPy would stack images of equal size
            images[i] = str(value) if isinstance(value, os.PathLike) else value
        return images
    rows = np.asarray(X)
    if rows.ndim == 1 and not any(isinstance(value, str) for value in rows):
        raise InvalidInputError(
            f"X passed to {owner} must have two dimensions. Got a 1-D array of shape {rows.shape}.\n"
            "Hint: Reshape your data: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature."
        )
    return rows


def _holds_images(X: Any) -> bool:
    """Whether the rows are PIL images or file paths."""
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and np.ndim(X[:0]) == 1 and len(X) else None
    return isinstance(first, os.PathLike) or all(hasattr(first, name) for name in ("convert", "tobytes"))


def take_rows(X: Any, rows: IntArray) -> Any:
    """Select rows of an array, data frame, sparse matrix or list; the type stays the same."""
    if isinstance(X, list):
        return [X[row] for row in rows]
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def row_names(X: Any, n: int) -> Array:
    """Names of the rows: the index of a pandas frame, otherwise positions."""
    return X.index if hasattr(X, "iloc") else np.arange(n)


def reference_names(frames: Sequence[Any]) -> Array | None:
    """Names of the rows of concatenated pandas frames as numbers or strings; None if they are positions."""
    if not all(hasattr(frame, "iloc") for frame in frames):
        return None
    names = np.concatenate([np.asarray(frame.index) for frame in frames])
    if names.dtype.kind in "iu":
        return None if np.array_equal(names, np.arange(len(names))) else names
    return np.array([str(name) for name in names])
