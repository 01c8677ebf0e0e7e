"""The classifier that is wrapped: what it must be able to do, and what is inside it."""

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from neighboragg._typing import Array
from neighboragg.exceptions import InvalidParameterError

__all__ = [
    "check_classifier",
    "check_same_classes",
    "preprocessing_of",
    "refuse_supervised_vectors",
    "unfrozen",
    "weight_parameter",
]


def check_classifier(estimator: Any, owner: str, *, refitted: bool = False) -> None:
    """Raise unless `estimator` gives probabilities and can be fitted, or is frozen and need not be `refitted`."""
    if isinstance(estimator, FrozenEstimator) and refitted:
        raise InvalidParameterError(
            f"The 'estimator' parameter of {owner} is frozen, and so cannot be cross-validated; its probabilities "
            "of rows it was trained on repeat wrong labels.\n"
            "Hint: pass the classifier itself, or proba with its out-of-fold probabilities."
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        raise InvalidParameterError(
            f"The 'estimator' parameter of {owner} must be a classifier with predict_proba. "
            f"Got {estimator!r} instead.\n"
            "Hint: wrap it, e.g. CalibratedClassifierCV(estimator)."
        )


def check_same_classes(estimator: Any, classes: Array, owner: str) -> None:
    """Raise if a classifier knows other classes than a saved model does."""
    known = np.asarray(getattr(estimator, "classes_", classes))
    if known.tolist() != classes.tolist():
        raise InvalidParameterError(
            f"The estimator for the loaded {owner} has the classes {known.tolist()}, but the model was "
            f"saved with {classes.tolist()}.\nHint: pass the classifier that the model was fitted with."
        )


def unfrozen(estimator: Any) -> Any:
    """The estimator itself, where it is frozen."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def preprocessing_of(estimator: Any) -> Any:
    """The steps before the classifier, if it is a Pipeline that has some."""
    inner = unfrozen(estimator)
    return inner[:-1] if isinstance(inner, Pipeline) and len(inner.steps) > 1 else None


def refuse_supervised_vectors(estimator: Any, features: Any, owner: str) -> None:
    """Raise if vectors would be learned from the labels of the rows that trust is then learned from."""
    steps = [features]
    if isinstance(features, str) and features == "auto" and isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps[:-1]]
    nested = [part for step in steps if hasattr(step, "get_params") for part in step.get_params().values()]
    for step in [*steps, *nested]:
        if hasattr(step, "transform") and get_tags(step).target_tags.required:
            raise InvalidParameterError(
                f"{owner} with cv cannot use vectors of {type(step).__name__}, which learns from "
                "labels: rows would look closer to their own class than new rows do.\n"
                "Hint: leave out cv to hold out validation rows, or pass features='passthrough' or a "
                "transformer that needs no labels."
            )


def weight_parameter(estimator: Any, owner: str) -> str:
    """Name under which `fit` takes sample weights."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if has_fit_parameter(last, "sample_weight"):
            return f"{name}__sample_weight"
    elif has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    raise InvalidParameterError(
        f"{owner} got sample_weight, but {type(estimator).__name__}.fit does not take it."
    )
