"""Requirements on the wrapped classifier, and access to its parts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from neighboragg._core.types import Array
from neighboragg.exceptions import InvalidParameterError


def check_classifier(estimator: Any, owner: str, *, refitted: bool = False) -> None:
    """Raise unless `estimator` is a classifier with probabilities; with `refitted`, it must not be frozen."""
    frozen = [part for part in (estimator, *parts_of(estimator)) if is_frozen(part)]
    if refitted and any(hasattr(part, "predict") for part in frozen):
        which = (
            "is frozen" if frozen[0] is estimator else f"is a {type(estimator).__name__} with a frozen part"
        )
        raise InvalidParameterError(
            f"The 'estimator' parameter of {owner} {which}, so it cannot be cross-validated. Its probabilities "
            "for its own training rows would repeat wrong labels.\n"
            "Hint: pass the unfrozen classifier, or pass its out-of-fold probabilities as proba."
        )
    refuse_network(estimator, "estimator", owner, OUT_OF_FOLD if refitted else WRAPPED)
    if not (hasattr(estimator, "fit") and _gives_probabilities(estimator)):
        calibrates = hasattr(estimator, "decision_function")
        hint = "\nHint: wrap it, e.g. CalibratedClassifierCV(estimator)." if calibrates else ""
        raise InvalidParameterError(
            f"The 'estimator' parameter of {owner} must be a classifier with predict_proba. "
            f"Got {estimator!r} instead.{hint}"
        )


# What to do with a PyTorch network, by what a caller needs.
WRAPPED = "wrap it, TrustedClassifier(TorchClassifier(network)), with TorchClassifier from neighboragg.torch."
OUT_OF_FOLD = "pass proba with its out-of-fold probabilities."
EMBEDDED = "pass its vectors as rows, neighboragg.torch.embed(network, X).embeddings."


def refuse_network(value: Any, name: str, owner: str, hint: str) -> None:
    """Raise for a PyTorch network that is not wrapped; PyTorch itself is not imported."""
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(value).__mro__]
    if "torch.nn.modules.module.Module" in kinds and not hasattr(value, "predict_proba"):
        raise InvalidParameterError(
            f"The '{name}' parameter of {owner} cannot be a bare PyTorch network. Got a {type(value).__name__}.\n"
            f"Hint: {hint}"
        )


def _gives_probabilities(estimator: Any) -> bool:
    """Whether it has `predict_proba` now or after fit."""
    inner = estimator
    while isinstance(inner, Pipeline | GridSearchCV | RandomizedSearchCV):
        inner = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner.estimator
    # Unfitted stacking hides predict_proba, but its default final estimator is a logistic regression.
    by_default = isinstance(inner, StackingClassifier) and inner.final_estimator is None
    return by_default or hasattr(estimator, "predict_proba")


def check_same_classes(estimator: Any, classes: Array, owner: str) -> None:
    """Raise if the classes of a classifier differ from those of a saved model."""
    known = np.asarray(getattr(estimator, "classes_", classes))
    if known.tolist() != classes.tolist():
        raise InvalidParameterError(
            f"The estimator for the loaded {owner} has the classes {known.tolist()}, but the model was "
            f"saved with {classes.tolist()}.\nHint: pass the classifier that was used to fit the model."
        )


def is_frozen(estimator: Any) -> bool:
    """Whether it is already trained and must not be fitted again."""
    return isinstance(estimator, FrozenEstimator) or getattr(estimator, "is_frozen", False) is True


def gives_vectors(estimator: Any) -> bool:
    """Whether its `embed` method returns probabilities and vectors from one pass over any kind of rows."""
    return hasattr(unfrozen(estimator), "embed")


def unfrozen(estimator: Any) -> Any:
    """The estimator inside any FrozenEstimator."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def parts_of(estimator: Any) -> Iterator[Any]:
    """All nested estimators of an estimator, except those inside frozen ones."""
    if hasattr(estimator, "get_params") and not isinstance(estimator, type | FrozenEstimator):
        for value in estimator.get_params(deep=False).values():
            yield from _estimators_in(value)


def _estimators_in(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _estimators_in(item)
    elif hasattr(value, "fit"):
        yield value
        yield from parts_of(value)


def preprocessing_of(estimator: Any) -> Any:
    """The part of a classifier that makes vectors: all but the last step of a Pipeline, or a whole network."""
    inner = unfrozen(estimator)
    if gives_vectors(inner):
        return inner
    return inner[:-1] if has_preprocessing(inner) else None


def has_preprocessing(estimator: Any) -> bool:
    """Whether a part of the classifier makes vectors; cheaper than slicing a Pipeline."""
    inner = unfrozen(estimator)
    return (isinstance(inner, Pipeline) and len(inner.steps) > 1) or gives_vectors(inner)


def preprocessed(pipeline: Pipeline, X: Any) -> Any:
    """Transform rows by all steps but the last."""
    if type(pipeline) is not Pipeline:
        return pipeline[:-1].transform(X)
    # The same as a Pipeline of these steps, without its check that each step is fitted.
    for _, step in pipeline.steps[:-1]:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


def weight_parameter(estimator: Any, owner: str) -> str:
    """Name of the `fit` parameter for sample weights."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if has_fit_parameter(last, "sample_weight"):
            return f"{name}__sample_weight"
    elif has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    raise InvalidParameterError(
        f"{owner} got sample_weight, but {type(estimator).__name__}.fit does not accept it.\n"
        "Hint: leave out sample_weight, or use a classifier that supports it."
    )
