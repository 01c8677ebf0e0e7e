"""The paper's random splits of tables."""

import numpy as np

from neighboragg._core.checks import check_integer
from neighboragg._core.types import ArrayLike, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.trust._compare import split_rows

__all__ = ["paper_split"]

SMALLEST_SET = 4


def paper_split(n_or_y: int | ArrayLike, *, seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Split rows at random into 40% training, 10% validation and 50% test rows.

    Parameters
    ----------
    n_or_y : int or array-like of shape (n_samples,)
        Number of rows, or anything that has one entry a row. Values are not looked at: the split is not
        stratified.
    seed : int
        Number of the split, 0 or more.

    Returns
    -------
    train, validation, test : ndarray of int
        Row numbers, each row in exactly one of the three, in random order.

    Raises
    ------
    InvalidParameterError
        If `seed` is not an int of at least 0, or a number of rows is not an int of at least 4.
    InvalidInputError
        If an array has fewer than 4 rows.

    Notes
    -----
    ``train_test_split(random_state=42 + seed)`` is called twice: for a test share of 0.5, then for a
    validation share of 0.2 of what is left.

    References
    ----------
    M. Xiong, S. Li, W. Feng, A. Deng, J. Zhang, B. Hooi, "Birds of a Feather Trust Together: Knowing When to
    Trust a Classifier via Adaptive Neighborhood Aggregation", TMLR 2022, experimental setup.

    Examples
    --------
    >>> from benchmarks.datasets import paper_split
    >>> train, validation, test = paper_split(20_000, seed=0)
    >>> len(train), len(validation), len(test)
    (8000, 2000, 10000)
    """
    seed = check_integer(seed, "seed", "paper_split", minimum=0)
    if np.ndim(n_or_y) == 0:
        n_samples = check_integer(n_or_y, "n_or_y", "paper_split", minimum=SMALLEST_SET)
    elif (n_samples := len(np.asarray(n_or_y))) < SMALLEST_SET:
        raise InvalidInputError(
            f"paper_split needs at least {SMALLEST_SET} rows for its three parts. Got {n_samples}."
        )
    return split_rows(n_samples, seed)
