"""find_mislabeled: the detector as one function."""

from typing import Any

from neighboragg._progress import Listener, telling
from neighboragg._typing import ArrayLike
from neighboragg.mislabel._detector import MislabelDetector
from neighboragg.mislabel._result import MislabelResult
from neighboragg.mislabel.rules import FlagRule

__all__ = ["find_mislabeled"]


def find_mislabeled(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    proba: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    flag: FlagRule | str | float = "estimated",
    random_state: Any = 0,
    progress: Listener | None = None,
    **settings: Any,
) -> MislabelResult:
    """Find the wrong labels of a data set.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, n_features), sequence of str, or mapping
        The rows: a table of numbers, categories and texts, embeddings (with ``features="passthrough"``), or a list,
        1-D array or Series of texts; or a mapping of names to several of these, each of which has neighbors of its own.
        Pictures with ``features=ImageFeatures()``.
    y : array-like of shape (n,)
        Labels to judge, of at least two classes.
    estimator : classifier with `predict_proba`, default=None
        Cross-validated for its opinion on every row.
    proba : array-like of shape (n, n_classes), default=None
        Out-of-fold probabilities instead of an estimator, columns in the sorted order of classes. With neither,
        neighbors and own models judge alone.
    groups : array-like of shape (n,), default=None
        Rows of one group do not vouch for each other.
    verified : array-like of bool of shape (n,) or of int, default=None
        Rows whose labels have been verified to be right, as a mask or by number; never flagged.
    flag : FlagRule, "estimated", int or float, default="estimated"
        What to flag: :class:`Estimated`, :class:`Budget`, :class:`FalseAlarms` or :class:`FDR`. Short forms:
        ``"estimated"``, an int for the number of labels to flag, a float in (0, 1) for the share of the right
        labels that may be flagged.
    random_state : int, RandomState instance or None, default=0
        Seeds folds and own models.
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` with a text and two numbers while the work goes on; `total` is 0 as
        long as it is not known.
    **settings : dict
        Any other parameter of :class:`MislabelDetector`.

    Returns
    -------
    result : MislabelResult

    See Also
    --------
    MislabelDetector : The same as an object, which can judge further rows.

    Notes
    -----
    The method is described in :class:`MislabelDetector`, what each rule promises in its own class.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from neighboragg.datasets import add_label_noise
    >>> from neighboragg.mislabel import find_mislabeled
    >>> X, y = load_wine(return_X_y=True)
    >>> noisy = add_label_noise(y, rate=0.05, random_state=0)
    >>> result = find_mislabeled(X, noisy.y, flag=9)
    >>> round(float(noisy.mask[result.mask].mean()), 1)
    0.9
    """
    detector = MislabelDetector(estimator, flag=flag, random_state=random_state, **settings)
    with telling(progress):
        return detector._judge(X, y, proba, groups, verified, keep_models=False)
