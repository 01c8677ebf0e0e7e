"""How many labels are wrong: confident counts on probabilities or trust vectors."""

import numpy as np

from neighboragg._typing import ArrayLike, FloatArray, IntArray
from neighboragg._validation import check_proba, check_same_length
from neighboragg.exceptions import InvalidInputError

__all__ = [
    "confident_count",
    "confident_joint",
    "noise_rate_from_trust",
]

# A mean of equal values may round to above them, and then no row of the class would be confident.
_THRESHOLD_SLACK = 1e-6


def confident_joint(proba: ArrayLike, y_codes: ArrayLike) -> IntArray:
    """Count the rows by given label and by the label that the probabilities are confident of.

    Parameters
    ----------
    proba : array-like of shape (n, C)
        Out-of-sample probabilities of the classes; rows sum to 1.
    y_codes : array-like of int of shape (n,)
        Given label of each row as a column of `proba`, 0 to C - 1.

    Returns
    -------
    counts : ndarray of shape (C, C)
        ``counts[i, j]`` rows are labeled i and confidently look like j. Rows that are confident of no class
        are not counted.

    See Also
    --------
    noise_rate_from_trust : The share of wrong labels that follows.

    Notes
    -----
    The threshold of class j is its mean self-confidence, :math:`t_j = \\text{mean}\\{p_j(x) : y(x) = j\\}`.
    A row counts for the class with the largest probability among those with :math:`p_j(x) \\ge t_j`; on a
    tie the given label wins, then the first class. A class without rows has no threshold and attracts none.

    References
    ----------
    .. [1] Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels",
       Journal of Artificial Intelligence Research 70, 2021, section 3.

    Examples
    --------
    >>> from neighboragg.mislabel import confident_joint
    >>> confident_joint([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]], [0, 0, 0, 1]).tolist()
    [[2, 1], [0, 1]]
    """
    values, codes = _check(proba, y_codes, "proba", "confident_joint")
    return _joint(values, codes)


def confident_count(trust: ArrayLike, y_codes: ArrayLike) -> int:
    """Count the rows whose trust vector is confident of another label than the given one.

    Parameters
    ----------
    trust : array-like of shape (n, C)
        Out-of-sample trust in each class; rows sum to 1.
    y_codes : array-like of int of shape (n,)
        Given label of each row as a column of `trust`, 0 to C - 1.

    Returns
    -------
    count : int
        Number of rows to flag, between 0 and n.

    Notes
    -----
    The rows off the diagonal of :func:`confident_joint`, except those that trust their given label most of
    all (it may miss its own class's high threshold while another class passes a low one). Ties favor the
    given label.

    *Assumptions:* noise depends on the true class only and never makes up half a class; the trust is out of sample
    (a model that has seen the label agrees with it), and good enough that a row of true class j exceeds class j's
    threshold and no other. The models' own errors count as noise otherwise: this is an estimate without a
    guarantee, in general not an upper bound. Check it with :func:`errors_left_interval` on a reviewed sample before
    using it as the `noise_rate` of :func:`cmd_threshold`.

    References
    ----------
    .. [1] Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels",
       Journal of Artificial Intelligence Research 70, 2021, section 3.

    Examples
    --------
    >>> from neighboragg.mislabel import confident_count
    >>> confident_count([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]], [0, 0, 0, 1])
    1
    """
    values, codes = _check(trust, y_codes, "trust", "confident_count")
    return _off_diagonal(values, codes)


def noise_rate_from_trust(trust: ArrayLike, y_codes: ArrayLike) -> float:
    """Estimate the share of wrong labels from trust vectors.

    Parameters
    ----------
    trust : array-like of shape (n, C)
        Out-of-sample trust in each class; rows sum to 1.
    y_codes : array-like of int of shape (n,)
        Given label of each row as a column of `trust`, 0 to C - 1.

    Returns
    -------
    rate : float
        In ``[0, 1]``.

    Notes
    -----
    :func:`confident_count` divided by n. Rows confident of no class count as correct, so the estimate leans
    low where classes overlap, and is no upper bound. The assumptions are those of :func:`confident_count`.

    References
    ----------
    .. [1] Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels",
       Journal of Artificial Intelligence Research 70, 2021, section 3.

    Examples
    --------
    >>> from neighboragg.mislabel import noise_rate_from_trust
    >>> noise_rate_from_trust([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]], [0, 0, 0, 1])
    0.25
    """
    values, codes = _check(trust, y_codes, "trust", "noise_rate_from_trust")
    return _off_diagonal(values, codes) / len(codes)


def _joint(values: FloatArray, codes: IntArray) -> IntArray:
    n_classes = values.shape[1]
    confident = _confident_class(values, codes)
    cells = (codes * n_classes + confident)[confident >= 0]
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes)


def _off_diagonal(values: FloatArray, codes: IntArray) -> int:
    confident = _confident_class(values, codes)
    given = np.take_along_axis(values, codes[:, None], axis=1)[:, 0]
    return int(((confident >= 0) & (confident != codes) & (given < values.max(axis=1))).sum())


def _confident_class(values: FloatArray, codes: IntArray) -> IntArray:
    """Class that each row is confident of, or -1."""
    n_classes = values.shape[1]
    given = np.take_along_axis(values, codes[:, None], axis=1)
    sizes = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, weights=given[:, 0], minlength=n_classes)
    thresholds = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    passing = np.where(values >= thresholds - _THRESHOLD_SLACK, values, -np.inf)
    best = passing.max(axis=1)
    confident = np.where(
        np.take_along_axis(passing, codes[:, None], axis=1)[:, 0] == best, codes, passing.argmax(axis=1)
    )
    return np.where(np.isneginf(best), -1, confident)


def _check(values: ArrayLike, y_codes: ArrayLike, name: str, owner: str) -> tuple[FloatArray, IntArray]:
    """Return the checked matrix, and the labels as columns of it."""
    shape = np.shape(values)
    matrix = check_proba(values, name, owner, n_classes=shape[1] if len(shape) == 2 else 0)
    codes = np.asarray(y_codes)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InvalidInputError(
            f"y_codes passed to {owner} must be a one-dimensional array of integers. "
            f"Got shape {codes.shape} of dtype {codes.dtype}.\n"
            "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
        )
    check_same_length(matrix, name, codes, "y_codes", owner)
    if not len(codes):
        raise InvalidInputError(f"{name} passed to {owner} is empty; at least one row is needed.")
    n_classes = matrix.shape[1]
    outside = (codes < 0) | (codes >= n_classes)
    if outside.any():
        raise InvalidInputError(
            f"y_codes passed to {owner} must lie in 0 to {n_classes - 1}, one per column of {name}. "
            f"Got {codes[outside][0]} at position {int(outside.argmax())}.\n"
            "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
        )
    return matrix, codes.astype(np.intp)
