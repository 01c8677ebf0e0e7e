"""From trust vectors and given labels to one score per label, and to the label that fits better."""

import numpy as np

from neighboragg._core.checks import check_choice
from neighboragg._core.stats import best_other_class
from neighboragg._core.types import ArrayLike, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.labels._noise import check_trust

RELIABILITIES = ("difference", "margin", "paper", "trust")


def label_reliability(
    trust: ArrayLike, y_codes: ArrayLike, *, kind: str = "margin", predicted: ArrayLike | None = None
) -> FloatArray:
    """Score every given label from its trust vector; low is suspicious.

    Parameters
    ----------
    trust : array-like of shape (n, C)
        Out-of-sample trust in each class; rows sum to 1. At least two classes.
    y_codes : array-like of int of shape (n,)
        Given label of each row as a column of `trust`.
    kind : {"margin", "difference", "trust", "paper"}, default="margin"
        Which score; see Notes.
    predicted : array-like of int of shape (n,), default=None
        Label that the classifier predicts, for ``"paper"``; defaults to the most trusted class.

    Returns
    -------
    scores : ndarray of shape (n,)

    Notes
    -----
    With trust t, given label y and prediction ŷ:

    - ``"margin"``: log t_y − log max_{c ≠ y} t_c, negative if another class is trusted more;
    - ``"difference"``: t_y − max_{c ≠ y} t_c, which prefers rows that clearly look like one other class to rows
      that look a little like several;
    - ``"trust"``: t_y;
    - ``"paper"``: (2·[ŷ = y] − 1)·t_y, the reliability of the paper.

    The paper's score orders rows *upside down* among the disagreements ŷ ≠ y: the larger t_y, the smaller the
    score, so that the first to be flagged are those whose given label is nearly as credible as the predicted one,
    and the clearest errors (t_y near 0) come last. Use it to reproduce the paper, not to find errors.

    References
    ----------
    .. [1] Xiong et al., "Birds of a Feather Trust Together: Knowing When to Trust a Classifier via Adaptive
       Neighborhood Aggregation", TMLR 2022, section 3.3.

    Examples
    --------
    A right label, a doubtful one and a plain error; only the paper's score calls the doubtful one worse:

    >>> from neighboragg.labels import label_reliability
    >>> trust = [[0.9, 0.1], [0.4, 0.6], [0.01, 0.99]]
    >>> label_reliability(trust, [0, 0, 0]).round(2)
    array([ 2.2 , -0.41, -4.6 ])
    >>> label_reliability(trust, [0, 0, 0], kind="paper")
    array([ 0.9 , -0.4 , -0.01])
    """
    owner = "label_reliability"
    check_choice(kind, "kind", owner, choices=RELIABILITIES)
    values, codes = check_trust(trust, y_codes, "trust", owner)
    if values.shape[1] < 2:
        raise InvalidInputError(
            f"trust passed to {owner} has 1 column; a label can be doubted only if there are two classes or more."
        )
    labels = None if predicted is None else check_trust(values, predicted, "trust", owner)[1]
    return reliability_scores(values, codes, kind, labels)


def reliability_scores(
    trust: FloatArray, codes: IntArray, kind: str, predicted: IntArray | None
) -> FloatArray:
    """The score of :func:`label_reliability` for checked arrays."""
    given = trust[np.arange(len(codes)), codes]
    if kind == "trust":
        return given
    if kind == "paper":
        agrees = (trust.argmax(axis=1) if predicted is None else predicted) == codes
        return np.where(agrees, given, -given)
    other = trust[np.arange(len(codes)), best_other_class(trust, codes)]
    if kind == "difference":
        return given - other
    tiny = np.finfo(np.float64).tiny
    return np.log(np.maximum(given, tiny)) - np.log(np.maximum(other, tiny))
