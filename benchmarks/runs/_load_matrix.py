"""Data for a benchmark: a known data set, or a table with its label column."""

from typing import Any

import numpy as np

from benchmarks.datasets import list_datasets, load_dataset
from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.trust._compare import table_matrix

__all__ = ["load_matrix"]


def load_matrix(source: Any, label: str | None = None) -> tuple[FloatArray, Array]:
    """Features, not scaled, and labels of a data set by name, or of a table with its label column."""
    if label is not None:
        return table_matrix(source, label)
    if source not in list_datasets():
        raise InvalidInputError(
            f"Unknown data set {source!r}.\nHint: one of {', '.join(list_datasets())}; for a file, name its label "
            "column."
        )
    dataset = load_dataset(source)
    return dataset.to_matrix(), np.unique(dataset.y, return_inverse=True)[1]
