"""Wrong labels put in on purpose, and known, so that finding them can be measured."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from neighboragg._core.checks import (
    check_choice,
    check_labels,
    check_proba,
    check_real,
    check_rows,
    check_same_length,
)
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError

__all__ = ["NoisyLabels", "add_label_noise", "plausible_proba"]

KINDS = ("symmetric", "class_dependent", "instance_dependent", "plausible")
OWNER = "add_label_noise"
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels with errors, and where the errors are.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels, of the dtype that was given.
    mask : ndarray of shape (n_samples,), bool
        True where the label was changed.

    Examples
    --------
    >>> from benchmarks.datasets import add_label_noise
    >>> noisy = add_label_noise(["a", "b", "c", "a", "b", "c"], rate=0.5, random_state=0)
    >>> int(noisy.mask.sum())
    3
    """

    y: Array
    mask: BoolArray


def add_label_noise(
    y: ArrayLike,
    *,
    rate: float,
    kind: str = "symmetric",
    X: ArrayLike | None = None,
    proba: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NoisyLabels:
    """Change a given share of labels to another class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of at least two classes, numbers or strings.
    rate : float
        Share of labels to change, in [0, 1).
    kind : {"symmetric", "class_dependent", "instance_dependent", "plausible"}, default="symmetric"
        Which rows become which class; see Notes.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows, for ``"instance_dependent"`` and ``"plausible"`` without `proba`.
    proba : array-like of shape (n_samples, n_classes) or None, default=None
        Out-of-fold probabilities, columns in sorted order of the classes, for ``"instance_dependent"`` and
        ``"plausible"``; `X` is then not needed, and not used.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    noisy : NoisyLabels
        Noisy labels and the mask of changed ones.

    Raises
    ------
    InvalidParameterError
        If `rate` or `kind` is not among the allowed values.
    InvalidInputError
        If there is one class only, or neither `X` nor `proba` where one is needed.

    Notes
    -----
    Exactly ``round(rate * n_samples)`` labels change.

    - ``"symmetric"``: rows uniformly at random, each to one of the other classes uniformly at random.
    - ``"class_dependent"``: rows uniformly at random; each class is confused with one other, its successor
      in a random cycle through all classes.
    - ``"instance_dependent"``: rows drawn one after the other without replacement, with probability
      proportional to the largest probability of a wrong class, and changed to that class: the errors that
      people make. Without `proba`, probabilities are those of a logistic regression on standardized `X`,
      5-fold.
    - ``"plausible"``: a row and its wrong class are drawn together, without replacement of rows, with probability
      proportional to that of the class. Without `proba`, probabilities are those of :func:`plausible_proba`, whose
      models are others than those that the detectors here ask.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.datasets import add_label_noise, make_moons_trust
    >>> X, y = make_moons_trust(400, random_state=0)
    >>> noisy = add_label_noise(y, rate=0.1, kind="instance_dependent", X=X, random_state=0)
    >>> int(noisy.mask.sum()), int((noisy.y != y).sum())
    (40, 40)
    """
    labels = check_labels(y, "y", OWNER)
    rate = check_real(rate, "rate", OWNER, low=0.0, high=1.0, closed="left")
    kind = check_choice(kind, "kind", OWNER, choices=KINDS)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y passed to {OWNER} has {len(classes)} class{'' if len(classes) == 1 else 'es'}; "
            "a label can be changed only if there are at least two."
        )
    rng = check_random_state(random_state)
    n_changed = round(rate * len(labels))
    if kind in _DRAWS:
        said = _probabilities(X, proba, codes, len(classes), kind, rng)
        rows, targets = _DRAWS[kind](codes, said, n_changed, rng)
    else:
        rows = rng.permutation(len(labels))[:n_changed]
        targets = _TARGETS[kind](codes[rows], len(classes), rng)
    noisy, mask = labels.copy(), np.zeros(len(labels), dtype=bool)
    noisy[rows], mask[rows] = classes[targets], True
    return NoisyLabels(noisy, mask)


def _any_other_class(codes: IntArray, n_classes: int, rng: np.random.RandomState) -> IntArray:
    return (codes + rng.randint(1, n_classes, size=len(codes))) % n_classes


def _partner_class(codes: IntArray, n_classes: int, rng: np.random.RandomState) -> IntArray:
    cycle = rng.permutation(n_classes)
    partner = np.empty(n_classes, dtype=np.intp)
    partner[cycle] = np.roll(cycle, -1)
    return partner[codes]


_TARGETS = {"symmetric": _any_other_class, "class_dependent": _partner_class}


def _confusable(
    codes: IntArray, proba: FloatArray, n_changed: int, rng: np.random.RandomState
) -> tuple[IntArray, IntArray]:
    """Draw rows weighted by the probability of their best wrong class; return them and that class."""
    wrong = proba.copy()
    wrong[np.arange(len(codes)), codes] = -1.0
    best = wrong.argmax(axis=1)
    weight = np.maximum(wrong.max(axis=1), np.finfo(np.float64).tiny)
    # The largest of log weights plus Gumbel noise are successive draws without replacement.
    keys = np.log(weight) + rng.gumbel(size=len(codes))
    rows = np.argsort(-keys, kind="stable")[:n_changed]
    return rows, best[rows]


def _drawn(
    codes: IntArray, proba: FloatArray, n_changed: int, rng: np.random.RandomState
) -> tuple[IntArray, IntArray]:
    """Draw rows and wrong classes together, weighted by the probability of the class."""
    log_weight = np.log(np.maximum(proba, np.finfo(np.float64).tiny))
    log_weight[np.arange(len(codes)), codes] = -np.inf
    keys = log_weight + rng.gumbel(size=proba.shape)
    # A row's largest key is its first draw; later ones of the same row do not count.
    rows = np.argsort(-keys.max(axis=1), kind="stable")[:n_changed]
    return rows, keys[rows].argmax(axis=1)


_DRAWS = {"instance_dependent": _confusable, "plausible": _drawn}


def plausible_proba(
    X: ArrayLike, y: ArrayLike, *, random_state: int | np.random.RandomState | None = None
) -> FloatArray:
    """What a small network and the 10 nearest rows make of each row, out of fold and averaged.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    random_state : int, RandomState or None, default=None
        Seed of folds and network.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
        Columns in sorted order of the classes.

    Examples
    --------
    >>> from benchmarks.datasets import make_moons_trust, plausible_proba
    >>> X, y = make_moons_trust(200, random_state=0)
    >>> plausible_proba(X, y, random_state=0).shape
    (200, 2)
    """
    rows = check_rows(X, "X", "plausible_proba")
    labels = check_labels(y, "y", "plausible_proba")
    check_same_length(rows, "X", labels, "y", "plausible_proba")
    classes, codes = np.unique(labels, return_inverse=True)
    return _second_opinion(rows, codes, len(classes), check_random_state(random_state))


def _second_opinion(X: FloatArray, codes: IntArray, n_classes: int, rng: np.random.RandomState) -> FloatArray:
    """Mean of network and neighbors, out of fold."""
    seed = int(rng.randint(2**31 - 1))
    network = MLPClassifier((64,), max_iter=60, n_iter_no_change=60, random_state=seed)
    # No more neighbors than the rows outside a fold.
    models = (network, KNeighborsClassifier(max(1, min(10, len(codes) // 2))))
    proba = [_out_of_fold(X, codes, n_classes, model, np.random.RandomState(seed)) for model in models]
    return np.asarray(np.mean(proba, axis=0))


def _probabilities(
    X: ArrayLike | None,
    proba: ArrayLike | None,
    codes: IntArray,
    n_classes: int,
    kind: str,
    rng: np.random.RandomState,
) -> FloatArray:
    if proba is not None:
        values = check_proba(proba, "proba", OWNER, n_classes=n_classes)
        check_same_length(values, "proba", codes, "y", OWNER)
        return values
    if X is None:
        raise InvalidInputError(
            f"{OWNER} with kind={kind!r} needs to know which rows are confusable.\n"
            "Hint: pass proba, out-of-fold probabilities (cross_val_predict(..., method='predict_proba')), "
            "or X."
        )
    rows = check_rows(X, "X", OWNER)
    check_same_length(rows, "X", codes, "y", OWNER)
    if kind == "plausible":
        return _second_opinion(rows, codes, n_classes, rng)
    return _out_of_fold(rows, codes, n_classes, LogisticRegression(max_iter=1000), rng)


def _out_of_fold(
    X: FloatArray, codes: IntArray, n_classes: int, classifier: ClassifierMixin, rng: np.random.RandomState
) -> FloatArray:
    """Return 5-fold probabilities of a classifier on standardized rows; classes of one row are allowed."""
    # Dealing out the rows class by class stratifies the folds, whatever the size of the classes.
    folds = np.empty(len(codes), dtype=np.intp)
    folds[np.lexsort((rng.random_sample(len(codes)), codes))] = np.arange(len(codes)) % N_FOLDS
    proba = np.zeros((len(codes), n_classes))
    for fold in np.unique(folds):
        test = folds == fold
        seen = np.unique(codes[~test])
        if len(seen) == 1:
            proba[test, seen[0]] = 1.0
            continue
        model = make_pipeline(StandardScaler(), clone(classifier))
        with warnings.catch_warnings():
            # A network need not have learned the last digit to make mistakes.
            warnings.simplefilter("ignore", ConvergenceWarning)
            proba[np.ix_(test, seen)] = model.fit(X[~test], codes[~test]).predict_proba(X[test])
    return proba
