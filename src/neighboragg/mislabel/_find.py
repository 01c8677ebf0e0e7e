"""find_mislabeled: the detector as one function."""

from typing import Any

from neighboragg._typing import ArrayLike
from neighboragg.exceptions import InvalidParameterError
from neighboragg.mislabel._detector import MislabelDetector
from neighboragg.mislabel._result import MislabelResult

__all__ = ["find_mislabeled"]


def find_mislabeled(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    proba: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    clean: ArrayLike | None = None,
    rule: str | None = None,
    alpha: float | None = None,
    noise_rate: float | None = None,
    q: float | None = None,
    budget: int | None = None,
    reliability: str = "margin",
    n_passes: int = 2,
    own_models: bool = True,
    boosting: bool = False,
    cv: int = 5,
    n_neighbors: int = 20,
    duplicates: str = "group",
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> MislabelResult:
    """Find the wrong labels of a data set.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, n_features)
        Features of comparable scale, or embeddings; a data frame is turned into vectors.
    y : array-like of shape (n,)
        Labels to judge, of at least two classes.
    estimator : classifier with `predict_proba`, default=None
        Cross-validated for its opinion on every row.
    proba : array-like of shape (n, n_classes), default=None
        Out-of-fold probabilities instead of an estimator, columns in the sorted order of classes. With neither,
        neighbors and own models judge alone.
    groups : array-like of shape (n,), default=None
        Rows of one group do not vouch for each other.
    clean : array-like of bool of shape (n,) or of int, default=None
        Rows whose labels have been verified, as a mask or by number.
    rule : {"estimated", "coverage", "fdr", "budget"}, default=None
        Which scores are flagged. None follows from what is given: ``"coverage"`` with `alpha` or
        `noise_rate`, ``"fdr"`` with `q`, ``"budget"`` with `budget`, and else ``"estimated"``.
    alpha : float, default=None
        Share of the correctly labeled rows that ``"coverage"`` may flag; 0.05 if None.
    noise_rate : float, default=None
        Share of wrong labels, or an upper bound of it, for ``"coverage"``. None estimates it.
    q : float, default=None
        Expected share of false alarms among the flags of ``"fdr"``; 0.1 if None.
    budget : int, default=None
        Number of rows that ``"budget"`` flags.
    reliability, n_passes, own_models, boosting, cv, n_neighbors, duplicates, random_state, n_jobs, verbose
        As in :class:`MislabelDetector`.

    Returns
    -------
    result : MislabelResult

    See Also
    --------
    MislabelDetector : The same as an object, which can judge further rows.

    Notes
    -----
    The method, the rules and what they promise are described in :class:`MislabelDetector`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from neighboragg.datasets import add_label_noise
    >>> from neighboragg.mislabel import find_mislabeled
    >>> X, y = load_wine(return_X_y=True)
    >>> noisy = add_label_noise(y, rate=0.05, random_state=0)
    >>> result = find_mislabeled(scale(X), noisy.y, budget=9)
    >>> round(float(noisy.mask[result.mask].mean()), 1)
    0.9
    """
    by_value = {"coverage": noise_rate if alpha is None else alpha, "fdr": q, "budget": budget}
    if rule is None:
        implied = [name for name, value in by_value.items() if value is not None]
        if len(implied) > 1:
            raise InvalidParameterError(
                f"find_mislabeled got parameters of several rules ({', '.join(implied)}) and no rule.\n"
                "Hint: pass rule=, or only one of alpha or noise_rate (coverage), q (fdr) and budget."
            )
        rule = implied[0] if implied else "estimated"
    given = {name: value for name, value in (("alpha", alpha), ("q", q)) if value is not None}
    detector = MislabelDetector(
        estimator,
        rule=rule,
        noise_rate=noise_rate,
        budget=budget,
        reliability=reliability,
        n_passes=n_passes,
        own_models=own_models,
        boosting=boosting,
        cv=cv,
        n_neighbors=n_neighbors,
        duplicates=duplicates,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        **given,
    )
    return detector._judge(X, y, proba, groups, clean, keep_models=False)
