"""Projection of reference rows to fewer dimensions, from which the compiled search can propose candidates."""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import FloatArray
from neighboragg.search._reference import BLOCK_ROWS, LARGEST_SINGLE, Reference, table_of, table_parts

LARGEST_AXES = 64  # the compiled search has the same limit
N_AXES = (8, 16, 24, 32, 48, LARGEST_AXES)
# With fewer features, products are fast enough; with more, finding the axes takes too long.
MIN_FEATURES, MAX_FEATURES = 48, 512
MIN_ROWS = 4096
# Finding the axes and projecting the rows takes as long as about this many queries.
MIN_QUERIES = 1024
# Rows used to find the axes; queries, classes and rows per class used to choose the number of axes.
N_SAMPLED, N_TRIED, N_TRIED_CLASSES, N_TRIED_ROWS = 4096, 12, 2, 8192
# A projection that loses a larger share of the variance than this cannot separate the rows.
LARGEST_REST = 0.1
# Largest share of (query, class) pairs for which the candidates of the projection may be too few.
LARGEST_SHARE = 0.1


class Projection(NamedTuple):
    """Orthonormal axes of shape (n_features, n_axes), and the table of the projected reference rows."""

    axes: FloatArray
    table: FloatArray


def is_worth_a_look(reference: Reference, n_queries: int) -> bool:
    """Whether a search takes so long that trying a projection costs little in comparison."""
    n, d = reference.rows.shape
    enough = n >= MIN_ROWS and n_queries >= MIN_QUERIES
    return enough and MIN_FEATURES <= d <= MAX_FEATURES


def project(reference: Reference, k: int) -> Projection | None:
    """Project on the fewest axes that separate the k nearest rows of a class; None if that takes too many axes."""
    with ONE_THREAD:
        axes = _main_axes(reference)
        n_axes = None if axes is None else _fewest_axes(reference, axes, k)
        if axes is None or n_axes is None:
            return None
        return _along(reference, np.ascontiguousarray(axes[:, :n_axes]))


def _main_axes(reference: Reference) -> FloatArray | None:
    """The directions in which the rows vary most; None if they also vary in the others."""
    n, d = reference.rows.shape
    sample = reference.normalization.scaled(reference.rows[:: max(1, n // N_SAMPLED)])
    if not np.abs(sample).max() < LARGEST_SINGLE:
        return None
    variances, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    most = min(LARGEST_AXES, d // 2)
    if not variances[: d - most].sum() <= LARGEST_REST * variances.sum():
        return None
    return np.asarray(axes[:, ::-1][:, :most])


def _fewest_axes(reference: Reference, axes: FloatArray, k: int) -> int | None:
    """Smallest number of axes for which most queries of a sample need no further candidates."""
    n = len(reference.rows)
    queries = reference.normalization.scaled(reference.rows[np.linspace(0, n - 1, N_TRIED).astype(int)])
    n_enough = 2 * k - 1  # as many as the compiled search proposes
    wrong = {number: 0 for number in N_AXES if number <= axes.shape[1]}
    n_pairs = 0
    for c in np.argsort(-reference.sizes, kind="stable")[:N_TRIED_CLASSES]:
        low, high = reference.starts[c : c + 2]
        if high - low <= n_enough:
            continue
        rows = reference.normalization.scaled(reference.rows[low : min(high, low + N_TRIED_ROWS)])
        # One more than k, because a query may be among the rows.
        last = np.partition(cdist(queries, rows), k, axis=1)[:, k : k + 1]
        there, here = rows @ axes, queries @ axes
        for number in wrong:
            near = cdist(here[:, :number], there[:, :number]) <= last
            wrong[number] += int((near.sum(axis=1) > n_enough).sum())
        n_pairs += len(queries)
    enough = [number for number, count in wrong.items() if count <= LARGEST_SHARE * n_pairs]
    return min(enough) if n_pairs and enough else None


def _along(reference: Reference, axes: FloatArray) -> Projection | None:
    """The projection; None if a row is so large that it was clipped, because it could not be certified."""
    n = len(reference.rows)
    table = np.empty((-(-n // BLOCK_ROWS), axes.shape[1] + 1, BLOCK_ROWS), dtype=np.float32)
    for blocks in table_parts(len(table)):
        scaled = reference.normalization.scaled(
            reference.rows[blocks.start * BLOCK_ROWS : blocks.stop * BLOCK_ROWS]
        )
        if not np.abs(scaled).max() < LARGEST_SINGLE:
            return None
        table[blocks] = table_of(scaled @ axes)
    return Projection(axes, table)
