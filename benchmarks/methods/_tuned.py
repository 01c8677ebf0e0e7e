"""A trust method with the setting that does best on validation rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_integer
from neighboragg._core.types import BoolArray, FloatArray, IntArray
from neighboragg._pool.crossfit import deal_folds
from neighboragg._pool.evidence import FitData
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import TrustMethod
from neighboragg.metrics import auroc

__all__ = ["Tuned"]

# Right and wrong predictions of each at least; the standard error of a gain on fewer is itself a guess.
FEWEST = 5


class Tuned(TrustMethod):
    """Another trust method, with the setting that ranks validation rows best.

    Parameters
    ----------
    method : TrustMethod
        The method; it is cloned, and stays as it is.
    grid : dict of str to list, or list of such dicts
        Values to try for parameters of the method, as in :class:`sklearn.model_selection.GridSearchCV`: every
        combination of a dict; names of nested parameters are joined by ``__``.
    cv : int, default=5
        Folds of the validation rows.
    random_state : int, RandomState instance or None, default=0
        Seeds the folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    settings_ : list of dict
        Every setting tried, the method's own first.
    scores_ : ndarray of shape (n_settings,)
        AUROC of each on validation rows that it was not fitted on; NaN if all predictions are right, or all wrong.
    setting_ : dict
        The chosen one.
    method_ : TrustMethod
        The method with that setting, fitted on all rows.

    Notes
    -----
    Each setting is fitted without a fold of the validation rows and asked for the trust in the predictions for that
    fold; its score is the AUROC of that trust, over all folds together, against whether the prediction is right.
    Where the validation rows are the training rows themselves, a fold is left out of both. The best setting takes
    the place of the method's own if it gains more than the standard error of the gain (DeLong's, paired), and there
    are at least 5 right and 5 wrong predictions: a handful of them prefers some setting to any other by chance.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves: A Nonparametric Approach", Biometrics, 1988.

    Examples
    --------
    A fifth of the labels is wrong, so that the nearest row is a poor witness:

    >>> import numpy as np
    >>> from neighboragg.methods import TrustScore, Tuned
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 2)) + 2 * truth[:, None]
    >>> y = np.where(rng.random(600) < 0.2, 1 - truth, truth)
    >>> method = Tuned(TrustScore(), {"n_neighbors": [1, 2, 5, 10, 20]})
    >>> method.fit(X, y, proba_val=np.full((600, 2), [0.6, 0.4])).setting_
    {'n_neighbors': 20}
    """

    def __init__(
        self,
        method: TrustMethod,
        grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        cv: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.grid = grid
        self.cv = cv
        self.random_state = random_state

    def _fit(self, data: FitData) -> None:
        n_folds = check_integer(self.cv, "cv", type(self).__name__, minimum=2)
        self.settings_ = self._resolve_grid()
        self.scores_ = np.full(len(self.settings_), np.nan)
        chosen = 0
        correct = data.proba_val.argmax(axis=1) == data.codes_val
        if 0 < correct.sum() < len(correct):
            rng = check_random_state(self.random_state)
            folds = deal_folds(data.codes_val, np.arange(len(correct)), n_folds, rng)
            trust = [self._held_out_trust(setting, data, folds) for setting in self.settings_]
            self.scores_ = np.array([auroc(correct, values) for values in trust])
            best = int(self.scores_.argmax())
            gain = self.scores_[best] - self.scores_[0]
            if FEWEST <= correct.sum() <= len(correct) - FEWEST:
                chosen = best if gain > gain_error(correct, trust[best], trust[0]) else 0
        self.setting_ = self.settings_[chosen]
        everything = (np.arange(len(rows)) for rows in (data.X, data.X_val))
        self.method_ = self._fitted(self.setting_, data, *everything)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return self.method_.predict_trust(X, proba)

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray) -> FloatArray:
        return self.method_.predict_trust(X, proba, exclude=exclude)

    def _resolve_grid(self) -> list[dict[str, Any]]:
        owner = type(self).__name__
        if not isinstance(self.method, TrustMethod):
            raise InvalidParameterError(
                f"The 'method' parameter of {owner} must be a trust method. Got {self.method!r} instead."
            )
        try:
            combinations = list(ParameterGrid(self.grid))
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(f"The 'grid' parameter of {owner} cannot be used: {error}") from error
        known = self.method.get_params()
        names = {name: None for setting in combinations for name in setting}
        for name in names:
            if name not in known:
                raise InvalidParameterError(
                    f"The 'grid' parameter of {owner} names {name!r}, which is no parameter of "
                    f"{type(self.method).__name__}.\nHint: it has {', '.join(map(repr, sorted(known))) or 'none'}."
                )
        own = {name: known[name] for name in names}
        tried = [{**own, **setting} for setting in combinations]
        return [own, *(setting for setting in tried if setting != own)]

    def _held_out_trust(self, setting: Mapping[str, Any], data: FitData, folds: IntArray) -> FloatArray:
        """Trust in each validation row's prediction, by a method that was not fitted on the row."""
        trust = np.empty(len(folds))
        everything = np.arange(len(data.X))
        for fold in np.unique(folds):
            held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            method = self._fitted(setting, data, rest if data.shared else everything, rest)
            trust[held] = method.score_samples(data.X_val[held], data.proba_val[held])
        return trust

    def _fitted(
        self, setting: Mapping[str, Any], data: FitData, train: IntArray, val: IntArray
    ) -> TrustMethod:
        """The method with a setting, fitted on some of the training and the validation rows."""
        separate = (
            {} if data.shared else {"X_val": data.X_val[val], "y_val": self.classes_[data.codes_val[val]]}
        )
        return (
            clone(self.method)
            .set_params(**setting)
            .fit(
                data.X[train],
                self.classes_[data.codes[train]],
                proba_val=data.proba_val[val],
                classes=self.classes_,
                **separate,
            )
        )


def gain_error(correct: BoolArray, first: FloatArray, second: FloatArray) -> float:
    """Standard error of the difference in AUROC between two trusts in the same rows."""
    difference = placements(correct, first) - placements(correct, second)
    parts = (difference[correct], difference[~correct])
    return float(np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts)))


def placements(correct: BoolArray, trust: FloatArray) -> FloatArray:
    """For each row the share of rows of the other outcome that it is ordered rightly against, ties by half."""
    n_correct, n_wrong = correct.sum(), (~correct).sum()
    above = rankdata(trust)
    above[correct] -= rankdata(trust[correct])
    above[~correct] -= rankdata(trust[~correct])
    return np.where(correct, above / n_wrong, 1.0 - above / n_correct)
