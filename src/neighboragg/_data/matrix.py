"""Embeddings and probabilities for the rows of a table, as arrays or in files."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from neighboragg._core.checks import check_proba
from neighboragg._core.types import Array, FloatArray
from neighboragg._data.labels import class_order
from neighboragg._data.open import open_source
from neighboragg.exceptions import InvalidInputError, TrustWarning

# Suspect another column order if it would agree with this much more of the labels.
MIN_GAIN = 0.05


def read_matrix(source: Any, n_rows: int, name: str) -> Array:
    """A matrix with one row per row of the table."""
    return _checked_shape(*_loaded(source, name)[::2], n_rows)


def read_proba(source: Any, labels: Array) -> FloatArray:
    """Probabilities of all rows, columns in the sorted order of the labels that occur."""
    matrix, named, where = _loaded(source, "proba")
    matrix = _checked_shape(matrix, where, len(labels))
    known = np.flatnonzero(labels != "")
    present = np.unique(labels[known])
    names = class_order(present).tolist() if named is None else named
    _check_names(names, matrix, where, present, given=named is not None)
    proba = check_proba(matrix[known], where, "audit", n_classes=len(names), n_rows=len(known))
    places = {name: j for j, name in enumerate(names)}
    kept = proba[:, [places[name] for name in present.tolist()]]
    totals = kept.sum(axis=1, keepdims=True)
    # A row whose classes are all absent from the table is not evidence about the classes present.
    kept = np.where(totals > 0, kept / np.where(totals > 0, totals, 1.0), 1.0 / kept.shape[1])
    _warn_if_swapped(kept, labels[known], where)
    found = np.full((len(labels), len(present)), np.nan)
    found[known] = kept
    return found


def _loaded(source: Any, name: str) -> tuple[Array, list[str] | None, str]:
    """The array, its column names if any, and its name in messages."""
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return source.to_numpy(), [str(column) for column in source.columns], name
    if not isinstance(source, str | os.PathLike):
        return np.asarray(source), None, name
    path = Path(source)
    if not path.exists():
        raise InvalidInputError(f"There is no file {path}.")
    if path.suffix not in (".npy", ".npz"):
        table = open_source(path)
        frame = table.read(0, len(table), table.columns)
        return frame.to_numpy(), list(table.columns), str(path)
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded, None, str(path)
        with loaded:
            return loaded["proba"], [str(value) for value in loaded["classes"].tolist()], str(path)
    except KeyError as error:
        raise InvalidInputError(
            f"{path} must contain the arrays 'proba' and 'classes'.\n"
            "Hint: numpy.savez(path, proba=proba, classes=classifier.classes_)."
        ) from error
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(
            f"{path} is not a numeric .npy array.\nHint: numpy.save(path, array)."
        ) from error


def _checked_shape(matrix: Array, where: str, n_rows: int) -> Array:
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2 or len(matrix) != n_rows:
        raise InvalidInputError(
            f"{where} must contain a matrix of numbers with one row for each of the {n_rows} rows of the table. "
            f"Got shape {matrix.shape} of type {matrix.dtype}."
        )
    return matrix


def _check_names(names: list[str], matrix: Array, where: str, present: Array, *, given: bool) -> None:
    shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    if matrix.shape[1] != len(names):
        count = f"{len(names)} classes are named" if given else f"there are {len(names)} labels"
        raise InvalidInputError(
            f"{where} has {matrix.shape[1]} columns, but {count}: {shown}.\n"
            "Hint: name the class of each column: a data frame, a CSV file with a header, or an .npz file with proba "
            "and classes."
        )
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{where} has two columns for one class: {shown}.")
    absent = sorted(set(present.tolist()) - set(names))
    if absent:
        raise InvalidInputError(
            f"{where} has no column for the label {absent[0]!r}; its columns are {shown}.\n"
            "Hint: name each class by its label as text, exactly as in the table."
        )


def _warn_if_swapped(proba: FloatArray, labels: Array, where: str) -> None:
    """Warn if another order of the columns would agree with many more labels."""
    classes, codes = np.unique(labels, return_inverse=True)
    agreement = np.zeros((len(classes), len(classes)))
    np.add.at(agreement, (proba.argmax(axis=1), codes), 1.0)
    columns, best = linear_sum_assignment(-agreement)
    now, other = np.trace(agreement) / len(codes), agreement[columns, best].sum() / len(codes)
    if other - now > max(MIN_GAIN, 3.0 / np.sqrt(len(codes))):
        moved = [(i, j) for i, j in zip(columns.tolist(), best.tolist(), strict=True) if i != j]
        pairs = ", ".join(f"{str(classes[i])!r} is {str(classes[j])!r}" for i, j in moved[:5])
        warnings.warn(
            f"{where} agrees with {now:.1%} of the labels, but would agree with {other:.1%} if its columns were in "
            f"another order: the column of {pairs}{', …' if len(moved) > 5 else ''}.\n"
            "Hint: name the class of each column: a data frame, a CSV file with a header, or an .npz file with proba "
            "and classes.",
            TrustWarning,
            stacklevel=4,
        )
