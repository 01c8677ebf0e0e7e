"""Each row is checked once and the classifier asked once."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from neighboragg._core.checks import check_fitted
from neighboragg._core.estimators import gives_vectors, has_preprocessing, preprocessed, unfrozen
from neighboragg._core.inputs import as_rows, is_frame, needs_numbers, refusal_explained, take_rows
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.features import Vectorizer

# Where `predict` and `predict_proba` are defined in classifiers whose `predict` takes the argmax of what
# `predict_proba` returns. A subclass that overrides either is not among them.
MOST_PROBABLE = {
    ("sklearn.calibration.CalibratedClassifierCV",) * 2,
    ("sklearn.ensemble._bagging.BaggingClassifier",) * 2,
    ("sklearn.ensemble._forest.ForestClassifier",) * 2,
    ("sklearn.neural_network._multilayer_perceptron.MLPClassifier",) * 2,
    ("sklearn.tree._classes.BaseDecisionTree", "sklearn.tree._classes.DecisionTreeClassifier"),
    ("lightgbm.sklearn.LGBMClassifier",) * 2,
    ("xgboost.sklearn.XGBClassifier",) * 2,
}
# For these, row by row, `predict` takes the argmax of scores that `predict_proba` maps to probabilities without
# changing their order. Only rows where rounding could have made or broken a tie are asked for their label.
SAME_ORDER = {
    ("sklearn.ensemble._gb.GradientBoostingClassifier",) * 2,
    ("sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",) * 2,
}
# The same, but scores depend on the batch in their last bits, so that with a near tie the whole batch is asked for.
SAME_ORDER_IN_A_BATCH = {
    (
        "sklearn.linear_model._base.LinearClassifierMixin",
        "sklearn.linear_model._logistic.LogisticRegression",
    ),
}
READ_OFF = MOST_PROBABLE | SAME_ORDER | SAME_ORDER_IN_A_BATCH
NEAR_TIE = 1e-6
NO_ROWS = np.empty(0, dtype=np.intp)
# Objectives of boosting libraries with which the above holds; None is their default.
PROBABILITY_OBJECTIVES = {None, "binary", "binary:logistic", "multi:softprob", "multiclass"}
# Asked through, as they only pass on what the estimator inside says: attribute that holds it.
SEARCH = ("sklearn.model_selection._search.BaseSearchCV",) * 2
PIPELINE = ("sklearn.pipeline.Pipeline",) * 2


@dataclass(frozen=True)
class Answer:
    """What a classifier says of a batch of rows, and the rows as its last step saw them."""

    labels: Array | None
    proba: FloatArray
    inputs: Any


def ask(estimator: Any, X: Any, *, labels: bool = True) -> Answer:
    """Ask for probabilities, and for labels if wanted, with each step of the classifier run once."""
    if gives_vectors(estimator):
        network = unfrozen(estimator)
        found = network.embed(X)
        return Answer(network.classes_[found.proba.argmax(axis=1)], found.proba, found.stacked)
    if not has_preprocessing(estimator):
        return Answer(*_labels_and_proba(estimator, X, labels), X)
    inner = unfrozen(estimator)
    inputs = preprocessed(inner, X)
    if _defined_in(inner) == PIPELINE:
        return Answer(*_labels_and_proba(inner.steps[-1][1], inputs, labels), inputs)
    return Answer(*_labels_and_proba(inner, X, labels), inputs)


def _labels_and_proba(estimator: Any, X: Any, labels: bool) -> tuple[Array | None, FloatArray]:
    """What `predict` (if wanted) and `predict_proba` return."""
    inner = unfrozen(estimator)
    if not labels:
        return None, inner.predict_proba(X)
    origin = _defined_in(inner)
    if origin == SEARCH:
        return _labels_and_proba(inner.best_estimator_, X, labels)
    if origin == PIPELINE and len(inner.steps) > 1:
        return _labels_and_proba(inner.steps[-1][1], preprocessed(inner, X), labels)
    proba = inner.predict_proba(X)
    if origin in READ_OFF and _gives_probabilities(inner):
        said = inner.classes_[proba.argmax(axis=1)]
        if origin in MOST_PROBABLE or not len(close := _near_ties(proba)):
            return said, proba
        if origin in SAME_ORDER:
            said[close] = inner.predict(take_rows(X, close))
            return said, proba
    said = np.asarray(inner.predict(X))
    # CatBoost returns a column for more than two classes.
    return (said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said), proba


def _near_ties(proba: FloatArray) -> IntArray:
    """Rows whose two largest probabilities are so near that rounding may have changed their order."""
    near_the_top = proba > proba.max(axis=1, keepdims=True) - NEAR_TIE
    if np.count_nonzero(near_the_top) == len(proba):
        return NO_ROWS
    return (near_the_top.sum(axis=1) > 1).nonzero()[0]


def _defined_in(estimator: Any) -> tuple[str, str] | None:
    """Classes that define `predict` and `predict_proba` of the estimator, unless it overrides them itself."""
    if {"predict", "predict_proba"} & getattr(estimator, "__dict__", {}).keys():
        return None
    kind: Any = type(estimator)
    return _definer(kind, "predict"), _definer(kind, "predict_proba")


@lru_cache
def _definer(kind: type, method: str) -> str:
    """The class that defines a method, by its full name."""
    function = getattr(kind, method, None)
    path = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return path.removesuffix(f".{method}")


def _gives_probabilities(estimator: Any) -> bool:
    """Whether there is one output, with probabilities in the order of the classes."""
    classes, objective = getattr(estimator, "classes_", None), getattr(estimator, "objective", None)
    return (
        isinstance(classes, np.ndarray)
        and len(classes) > 1
        and (objective is None or isinstance(objective, str))
        and objective in PROBABILITY_OBJECTIVES
    )


class IncomingRows:
    """The half of TrustedClassifier that rows pass through before trust is computed."""

    estimator: Any
    estimator_: Any
    _vectorizer: Vectorizer

    def _check_rows(self, X: Any) -> Any:
        check_fitted(self, "method_")
        return self._check_columns(X)

    def _as_rows(self, X: Any) -> Any:
        if gives_vectors(self.estimator):
            return X  # in whatever form the network takes it
        # The first step of a Pipeline may know what to do with a column of vectors.
        return as_rows(X, type(self).__name__, keep_vectors=has_preprocessing(self.estimator))

    def _refusal_explained(self, X: Any) -> AbstractContextManager[None]:
        if has_preprocessing(self.estimator):
            return nullcontext()
        return refusal_explained(X, "X", type(self).__name__, needs_numbers(self.estimator))

    def _check_columns(self, X: Any) -> Any:
        X = self._as_rows(X)
        if not (self._has_columns_of_fit(X) or gives_vectors(self.estimator)):
            validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _has_columns_of_fit(self, X: Any) -> bool:
        """Whether columns are plainly those of fit; if not, scikit-learn says what is wrong, or that nothing is."""
        names = getattr(self, "feature_names_in_", None)
        if is_frame(X):
            return names is not None and list(X.columns) == names.tolist()
        return (
            names is None
            and type(X) is np.ndarray
            and X.ndim == 2
            and X.shape[1] == getattr(self, "n_features_in_", None)
        )

    def _ask(self, X: Any, *, labels: bool) -> tuple[Any, FloatArray, FloatArray]:
        """Labels (None unless wanted), probabilities and vectors of new rows."""
        rows = self._check_rows(X)
        with self._refusal_explained(rows):
            said = ask(self.estimator_, rows, labels=labels)
        return said.labels, said.proba, self._vectors(rows, said.inputs)

    def _vectors(self, rows: Any, inputs: Any) -> FloatArray:
        """Vectors of rows that the classifier's preprocessing has turned into `inputs` already."""
        return self._vectorizer.vectors_of(rows, inputs)
