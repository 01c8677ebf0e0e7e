"""The classifier inside a model: rows are checked once, and each of its steps runs once."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from neighboragg._core.estimators import gives_vectors, has_preprocessing, preprocessed, unfrozen
from neighboragg._core.inputs import as_rows, is_frame, needs_numbers, refusal_explained, take_rows
from neighboragg._core.types import Array, FloatArray, IntArray

# Where `predict` and `predict_proba` are defined in classifiers whose `predict` takes the argmax of what
# `predict_proba` returns. This does not apply to a subclass that overrides either.
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
# changing their order. `predict` runs only on rows where rounding could have made or broken a tie.
SAME_ORDER = {
    ("sklearn.ensemble._gb.GradientBoostingClassifier",) * 2,
    ("sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",) * 2,
}
# The same, but scores depend on the batch in their last bits, so with a near tie `predict` runs on the whole batch.
SAME_ORDER_IN_A_BATCH = {
    (
        "sklearn.linear_model._base.LinearClassifierMixin",
        "sklearn.linear_model._logistic.LogisticRegression",
    ),
}
READ_OFF = MOST_PROBABLE | SAME_ORDER | SAME_ORDER_IN_A_BATCH
NEAR_TIE = 1e-6
# Changed columns that a message names.
MAX_NAMED = 5
NO_ROWS = np.empty(0, dtype=np.intp)
# Objectives of boosting libraries with which the above holds; None is their default.
PROBABILITY_OBJECTIVES = {None, "binary", "binary:logistic", "multi:softprob", "multiclass"}
# These only pass on what the estimator inside them returns.
SEARCH = ("sklearn.model_selection._search.BaseSearchCV",) * 2
PIPELINE = ("sklearn.pipeline.Pipeline",) * 2


@dataclass(frozen=True)
class Predictions:
    """Labels (None unless wanted) and probabilities of a batch of rows, and the input of the classifier's last step."""

    labels: Any
    proba: FloatArray
    inputs: Any


@dataclass(frozen=True)
class Predictor:
    """A fitted classifier, each step of which runs once for a batch of rows."""

    estimator: Any

    def once(self, X: Any, *, labels: bool = True) -> Predictions:
        """Probabilities of rows, and labels if wanted."""
        if gives_vectors(self.estimator):
            network = unfrozen(self.estimator)
            found = network.embed(X)
            return Predictions(network.classes_[found.proba.argmax(axis=1)], found.proba, found.stacked)
        if not has_preprocessing(self.estimator):
            return Predictions(*_labels_and_proba(self.estimator, X, labels), X)
        inner = unfrozen(self.estimator)
        inputs = preprocessed(inner, X)
        last = inner.steps[-1][1] if _defined_in(inner) == PIPELINE else inner
        return Predictions(*_labels_and_proba(last, inputs, labels), inputs)


def _labels_and_proba(estimator: Any, X: Any, labels: bool) -> tuple[Array | None, FloatArray]:
    """The results of `predict` (if wanted) and `predict_proba`."""
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
        predicted = inner.classes_[proba.argmax(axis=1)]
        if origin in MOST_PROBABLE or not len(close := _near_ties(proba)):
            return predicted, proba
        if origin in SAME_ORDER:
            predicted[close] = inner.predict(take_rows(X, close))
            return predicted, proba
    predicted = np.asarray(inner.predict(X))
    # CatBoost returns a column for more than two classes.
    return (predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted), proba


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


def incoming_rows(model: Any, X: Any) -> Any:
    """Rows of any supported kind in a form that the classifier of a model accepts."""
    if gives_vectors(model.estimator):
        return X  # a network accepts rows of any kind
    # The first step of a Pipeline may handle a column of vectors itself.
    return as_rows(X, type(model).__name__, keep_vectors=has_preprocessing(model.estimator))


def check_columns(model: Any, X: Any) -> tuple[Any, str]:
    """Incoming rows, converted to the columns of fit, and a description of changes in them."""
    X = incoming_rows(model, X)
    if not (_has_columns_of_fit(model, X) or gives_vectors(model.estimator)):
        validate_data(model, X, reset=False, skip_check_array=True)
    if model.columns_ is None or not is_frame(X):
        return X, ""
    X, lines = model.columns_.conform(X)
    if not lines:
        return X, ""
    more = f" And {len(lines) - MAX_NAMED} more columns." if len(lines) > MAX_NAMED else ""
    return X, (
        f"Columns of these {len(X):,} rows are unlike those of fit: {' '.join(lines[:MAX_NAMED])}{more} "
        "Predictions and promises may not hold for them. Hint: prepare the columns as those of the training rows."
    )


def refusals_explained(model: Any, X: Any) -> AbstractContextManager[None]:
    """Name the value and the remedy where the classifier refuses rows that are not numbers."""
    if has_preprocessing(model.estimator):
        return nullcontext()
    return refusal_explained(X, "X", type(model).__name__, needs_numbers(model.estimator))


def _has_columns_of_fit(model: Any, X: Any) -> bool:
    """Whether the columns equal the columns of fit; if not, scikit-learn decides, and explains its refusal."""
    names = getattr(model, "feature_names_in_", None)
    if is_frame(X):
        return names is not None and list(X.columns) == names.tolist()
    return (
        names is None
        and type(X) is np.ndarray
        and X.ndim == 2
        and X.shape[1] == getattr(model, "n_features_in_", None)
    )
