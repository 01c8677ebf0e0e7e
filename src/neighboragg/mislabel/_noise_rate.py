"""How many labels are doubted: confident counts on probabilities or trust vectors."""

import numpy as np

from neighboragg._typing import ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._validation import check_proba, check_same_length
from neighboragg.exceptions import InvalidInputError

__all__ = ["check_trust", "confident_count", "confident_of_another"]

# A mean of equal values may round to above them, and then no row of the class would be confident.
_THRESHOLD_SLACK = 1e-6


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
    The threshold of class j is its mean self-confidence, :math:`t_j = \\text{mean}\\{p_j(x) : y(x) = j\\}`. A row is
    counted if its most trusted class is another than the given one and reaches its threshold; a tie favors the
    given label.

    Confident learning [1]_ looks for the best class *among those that reach their threshold*. The two agree as long
    as every class has rows enough to be trusted. A misspelled label makes a class of one row, which nobody trusts
    and whose threshold is therefore next to nothing: nearly every doubtful row reaches that one, and would be counted.

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
    values, codes = check_trust(trust, y_codes, "trust", "confident_count")
    return int(confident_of_another(values, codes).sum())


def confident_of_another(values: FloatArray, codes: IntArray) -> BoolArray:
    """Rows whose most trusted class is not the given one and reaches its mean self-confidence."""
    n_classes = values.shape[1]
    given = values[np.arange(len(codes)), codes]
    sizes = np.bincount(codes, minlength=n_classes)
    sums = np.bincount(codes, weights=given, minlength=n_classes)
    thresholds = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    best = values.max(axis=1)
    # A row that trusts several classes alike may be confident of any of them.
    reached = ((values == best[:, None]) & (values >= thresholds - _THRESHOLD_SLACK)).any(axis=1)
    return (given < best) & reached


def check_trust(values: ArrayLike, y_codes: ArrayLike, name: str, owner: str) -> tuple[FloatArray, IntArray]:
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
