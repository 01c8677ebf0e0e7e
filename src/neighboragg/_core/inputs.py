"""What users pass as rows: tensors, data sets, texts, vectors and views, and how rows are taken from them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from neighboragg._core.types import Array, BoolArray, IntArray
from neighboragg.exceptions import InvalidInputError, NeighborAggError


def as_plain(values: Any, name: str, owner: str) -> Any:
    """Tensors as arrays; a Hugging Face `Dataset` or an Arrow table as a data frame; all else as it is."""
    if _is_tensor(values):
        return _array_of(values)
    if isinstance(values, list | tuple) and len(values) and _is_tensor(values[0]):
        return np.array([_array_of(value) for value in values])
    if isinstance(values, Mapping):
        keys = ", ".join(repr(key) for key in list(values)[:5])
        raise InvalidInputError(
            f"{name} passed to {owner} is a {type(values).__name__} with the keys {keys}.\n"
            f"Hint: pass one of its values, or pandas.DataFrame({name}) if each holds a column."
        )
    if hasattr(values, "column_names"):
        if not hasattr(values, "to_pandas") or not hasattr(values, "__len__"):
            raise InvalidInputError(
                f"{name} passed to {owner} is a {type(values).__name__}, whose rows cannot be read more than once.\n"
                "Hint: load the data set without streaming, or collect what you need into arrays."
            )
        return values.to_pandas()
    return values


def as_column(values: Any, name: str, owner: str) -> Any:
    """One value per row: as :func:`as_plain`, integers and booleans of pandas without loss of digits."""
    plain = as_plain(values, name, owner)
    if hasattr(values, "column_names") and is_frame(plain):
        if len(plain.columns) != 1:
            names = ", ".join(repr(column) for column in plain.columns)
            raise InvalidInputError(
                f"{name} passed to {owner} is a {type(values).__name__} with the columns {names}, but one value per "
                f"row is needed.\nHint: pass one column of it, e.g. {name}[{str(plain.columns[-1])!r}]."
            )
        plain = plain[plain.columns[0]]
    kind = getattr(plain, "dtype", None)
    # pandas has types of its own, of which scikit-learn would make floats.
    if (hasattr(kind, "na_value") or kind == np.dtype(object)) and np.ndim(plain) == 1:
        return _narrowed(np.asarray(plain, dtype=object))
    return plain


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame, of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def expand_vectors(X: Any, name: str, owner: str) -> Any:
    """A frame with vectors in a column (lists, arrays or tensors) gets a column for each of their numbers."""
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
    ):  # pandas.NA has no truth value; neither has an array, which is not missing
        return not hasattr(value, "__len__")


def missing_mask(values: Array) -> BoolArray:
    """Which values of an array of any type are missing."""
    if values.dtype.kind == "O":
        return np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
    return np.asarray(values != values)


class _NotNumericError(InvalidInputError, TypeError):
    """Also a TypeError, as scikit-learn has it."""


@contextmanager
def refusal_explained(X: Any, name: str, owner: str, hint: str) -> Iterator[None]:
    """If values that are not numbers are refused, say which, where, and what to do."""
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
    """Hint for who passed something else than numbers to a classifier that refuses it."""
    return (
        f"{type(estimator).__name__} needs numbers; put it into a Pipeline after a ColumnTransformer that makes them, "
        "or drop the column."
    )


def refuse_labels_as_column(X: Any, labels: Array, owner: str) -> None:
    """Raise if a column of a frame is the labels themselves: whatever is learned from it is worth nothing."""
    for column in X.columns if is_frame(X) else ():
        values = np.asarray(X[column])
        if values.dtype.kind == "O" and not all(isinstance(value, str | int | float) for value in values):
            continue  # labels are complete, and neither vectors nor dates
        if values.shape == labels.shape and bool(np.all(values == labels)):
            raise InvalidInputError(
                f"Column {column!r} of X passed to {owner} is equal to y in every row.\n"
                "Hint: leave the labels out of X."
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
    """Booleans, integers or floats that came as objects; anything else, or with gaps, stays."""
    given = values.tolist()
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        return np.array(given, dtype=bool)
    if given and all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in given):
        low, high = min(given), max(given)
        # NumPy would make floats of integers on both sides of its widest types, and lose digits.
        if low >= -(2**63) and high < 2**63:
            return np.array(given, dtype=np.int64)
        return np.array(given, dtype=np.uint64) if low >= 0 and high < 2**64 else values
    if given and all(isinstance(value, float | int | np.floating | np.integer) for value in given):
        return np.array(given, dtype=np.float64)
    return values


def _first_vector(X: Any, column: Any) -> Any:
    """The first value of a column, if it is a vector of numbers."""
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
                f"{where} holds vectors of {length} numbers, but {given} in row {i}.\n"
                "Hint: every row needs a vector of the same length; drop the other rows."
            )
        if row.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"{where} holds lists of {row.dtype.type.__name__} in row {i}, not vectors of numbers.\n"
                "Hint: turn it into numbers first, or leave the column out."
            )
        rows.append(row)
    return np.array(rows)


def _plain_vector(value: Any) -> Array:
    return _array_of(value) if _is_tensor(value) else np.asarray(value)


def _first_odd_value(X: Any) -> tuple[int, Any, Any] | None:
    """Row, column and value of the first that is not a number, where columns may hold anything."""
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


# Of a class in a sample, where it has so many: what is learned should know every class.
LEAST_OF_A_CLASS = 50


def holdout_mask(codes: IntArray, fraction: float, rng: np.random.RandomState) -> BoolArray:
    """Which rows to hold out: the same share of every class, and never the only row of a class."""
    counts = np.bincount(codes)
    # Rounding at random keeps rare classes in the validation rows now and then.
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
    """Positions of `most` rows drawn at random, and some more of rare classes; all if there are no more than that."""
    n = len(codes)
    if n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    chosen = np.zeros(n, dtype=bool)
    chosen[order[:most]] = True
    counts = np.bincount(codes)
    for c in np.flatnonzero(
        (counts > 0) & (np.bincount(codes[chosen], minlength=len(counts)) < LEAST_OF_A_CLASS)
    ):
        chosen[order[codes[order] == c][:LEAST_OF_A_CLASS]] = True
    return np.flatnonzero(chosen)


def as_rows(X: Any, owner: str, *, keep_vectors: bool = False) -> Any:
    """Data frames, sparse matrices, texts and pictures as they are, all else as an array with two dimensions."""
    if type(X) is np.ndarray and X.ndim == 2:
        return X
    X = as_plain(X, "X", owner)
    if sparse.issparse(X) or is_frame(X):
        return X if keep_vectors else expand_vectors(X, "X", owner)
    if _holds_pictures(X):
        pictures = np.empty(len(X), dtype=object)
        for i, value in enumerate(X):  # one by one: NumPy would make one array of pictures of the same size
            pictures[i] = str(value) if isinstance(value, os.PathLike) else value
        return pictures
    rows = np.asarray(X)
    if rows.ndim == 1 and not any(isinstance(value, str) for value in rows):
        raise InvalidInputError(
            f"X passed to {owner} must have two dimensions. Got a 1-D array of shape {rows.shape}.\n"
            "Hint: Reshape your data: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature."
        )
    return rows


def _holds_pictures(X: Any) -> bool:
    """Whether rows are PIL images, or paths of files."""
    first = X[0] if isinstance(X, list | tuple | np.ndarray) and np.ndim(X[:0]) == 1 and len(X) else None
    return isinstance(first, os.PathLike) or all(hasattr(first, name) for name in ("convert", "tobytes"))


def take_rows(X: Any, rows: IntArray) -> Any:
    """Some rows of an array, data frame or sparse matrix, of the same kind."""
    if sparse.issparse(X):
        return X.tocsr()[rows]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def row_names(X: Any, n: int) -> Array:
    """What a user calls the rows: the index of a pandas frame, else their positions."""
    return X.index if hasattr(X, "iloc") else np.arange(n)


def reference_names(frames: Sequence[Any]) -> Array | None:
    """Names of the rows of pandas frames one after the other, as numbers or strings; None if by position."""
    if not all(hasattr(frame, "iloc") for frame in frames):
        return None
    names = np.concatenate([np.asarray(frame.index) for frame in frames])
    if names.dtype.kind in "iu":
        return None if np.array_equal(names, np.arange(len(names))) else names
    return np.array([str(name) for name in names])


# What the only view is called, and its learned metric.
