"""The classifier that is wrapped: what it must be able to do, and what is inside it."""

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
    """Raise unless `estimator` gives probabilities and can be fitted, or is frozen and need not be `refitted`."""
    frozen = [part for part in (estimator, *parts_of(estimator)) if is_frozen(part)]
    if refitted and any(hasattr(part, "predict") for part in frozen):
        which = (
            "is frozen" if frozen[0] is estimator else f"is a {type(estimator).__name__} with a frozen part"
        )
        raise InvalidParameterError(
            f"The 'estimator' parameter of {owner} {which}, and so cannot be cross-validated; its probabilities "
            "of rows it was trained on repeat wrong labels.\n"
            "Hint: pass the classifier itself, or proba with its out-of-fold probabilities."
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
    """Whether it has `predict_proba`, or will have it when it is fitted."""
    inner = estimator
    while isinstance(inner, Pipeline | GridSearchCV | RandomizedSearchCV):
        inner = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner.estimator
    # The default of stacking is a logistic regression, which it does not admit before it is fitted.
    by_default = isinstance(inner, StackingClassifier) and inner.final_estimator is None
    return by_default or hasattr(estimator, "predict_proba")


def check_same_classes(estimator: Any, classes: Array, owner: str) -> None:
    """Raise if a classifier knows other classes than a saved model does."""
    known = np.asarray(getattr(estimator, "classes_", classes))
    if known.tolist() != classes.tolist():
        raise InvalidParameterError(
            f"The estimator for the loaded {owner} has the classes {known.tolist()}, but the model was "
            f"saved with {classes.tolist()}.\nHint: pass the classifier that the model was fitted with."
        )


def is_frozen(estimator: Any) -> bool:
    """Whether it is trained already, and not to be fitted again."""
    return isinstance(estimator, FrozenEstimator) or getattr(estimator, "is_frozen", False) is True


def gives_vectors(estimator: Any) -> bool:
    """Whether one pass through it, by `embed`, gives probabilities and vectors of rows that may be of any kind."""
    return hasattr(unfrozen(estimator), "embed")


def unfrozen(estimator: Any) -> Any:
    """The estimator itself, where it is frozen."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def parts_of(estimator: Any) -> Iterator[Any]:
    """Every estimator inside another, however deep; what is frozen is not looked into."""
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
    """What makes vectors inside the classifier: the steps before the last of a Pipeline, or all of a network."""
    inner = unfrozen(estimator)
    if gives_vectors(inner):
        return inner
    return inner[:-1] if has_preprocessing(inner) else None


def has_preprocessing(estimator: Any) -> bool:
    """Whether something inside the classifier makes vectors; a Pipeline need not be cut in two to know."""
    inner = unfrozen(estimator)
    return (isinstance(inner, Pipeline) and len(inner.steps) > 1) or gives_vectors(inner)


def preprocessed(pipeline: Pipeline, X: Any) -> Any:
    """Rows after the steps before the last."""
    if type(pipeline) is not Pipeline:
        return pipeline[:-1].transform(X)
    # Step by step, as a Pipeline of these steps would, but without asking first whether each of them is fitted.
    for _, step in pipeline.steps[:-1]:
        if step is not None and step != "passthrough":
            X = step.transform(X)
    return X


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
