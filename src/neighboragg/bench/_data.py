"""Data for a comparison: a known data set or anybody's table, as one matrix and labels."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._typing import Array, FloatArray
from neighboragg.datasets import list_datasets, load_dataset
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.tables import (
    ColumnRole,
    check_class_labels,
    check_usable,
    column_roles,
    prepared_frame,
    read_table,
    to_matrix,
)

__all__ = ["load_matrix"]

FEWEST_ROWS = 50


def load_matrix(source: Any, label: str | None = None) -> tuple[FloatArray, Array]:
    """Features and labels of a data set by name, or of a table with its label column.

    Parameters
    ----------
    source : str, path-like or DataFrame
        Name of a data set; or with `label` a table as for :func:`neighboragg.tables.read_table`.
    label : str, default=None
        Label column of a table. Rows without a label are left out.

    Returns
    -------
    X : ndarray of shape (n, n_features)
        Numbers and one-hot categories; not scaled.
    labels : ndarray of shape (n,)
        Of a table, the text of the labels.
    """
    if label is None:
        if source not in list_datasets():
            raise InvalidInputError(
                f"Unknown data set {source!r}.\nHint: one of {', '.join(list_datasets())}; for a file, name its label "
                "column."
            )
        dataset = load_dataset(source)
        return dataset.to_matrix(), np.unique(dataset.y, return_inverse=True)[1]
    table = read_table(Path(source) if isinstance(source, str) else source, label)
    check_class_labels(table.labels, label, least_rows=FEWEST_ROWS)
    labeled = np.flatnonzero(table.labels != "")
    labels, frame = table.labels[labeled], table.frame.iloc[labeled]
    if 5 * (n_classes := len(np.unique(labels))) > len(labels):
        raise InvalidInputError(
            f"The label column {label!r} has {n_classes} different values in {len(labels)} rows; that leaves too few "
            "rows of each to compare methods.\nHint: choose another column, or join rare classes."
        )
    roles = tuple(_without_text(role) for role in column_roles(frame, labels))
    check_usable(roles, hint="add columns of numbers or categories.")
    if left_out := [f"{role.name!r} ({role.reason})" for role in roles if not role.used]:
        warnings.warn(f"Left out {', '.join(left_out)}.", TrustWarning, stacklevel=2)
    return to_matrix(prepared_frame(frame, roles)), labels


def _without_text(role: ColumnRole) -> ColumnRole:
    return ColumnRole(role.name, "ignored", "texts") if role.use == "text" else role
