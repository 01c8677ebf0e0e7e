"""Rows that the classifier was not trained on: how to get them, and checks against leaks."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from neighboragg._core.checks import check_labels, check_real, check_row_values, check_same_length
from neighboragg._core.estimators import (
    check_classifier,
    gives_vectors,
    is_frozen,
    parts_of,
    unfrozen,
    weight_parameter,
)
from neighboragg._core.inputs import holdout_mask, is_missing, refuse_labels_as_column, take_rows
from neighboragg._core.types import Array, BoolArray, FloatArray, IntArray
from neighboragg._pool.crossfit import cross_fit
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.features import ColumnMemory
from neighboragg.trust._predictor import check_columns, incoming_rows, refusals_explained
from neighboragg.trust._seen import warn_of_batch


@dataclass(frozen=True)
class Dependence:
    """What rows depend on each other by: groups, or time."""

    groups: Any = None
    groups_val: Any = None
    time: Any = None

    def check(self, n: int, *, has_validation: bool, has_folds: bool, owner: str) -> "Dependence":
        """The same as arrays, one value for each of the n training rows."""
        if self.groups is not None and self.time is not None:
            raise InvalidInputError(f"{owner}.fit got groups and time.\nHint: pass one of them.")
        if self.time is not None and (has_validation or has_folds):
            other = "X_val" if has_validation else "cv"
            raise InvalidInputError(
                f"{owner}.fit got time and {other}, but time says which rows to hold out.\n"
                f"Hint: leave out one of them."
            )
        if self.groups_val is not None and not has_validation:
            raise InvalidInputError(f"{owner}.fit got groups_val without X_val.\nHint: pass groups alone.")
        arrays = {}
        for name in ("groups", "time"):
            if (given := getattr(self, name)) is None:
                continue
            values = check_row_values(given, name, owner, n_rows=n)
            if np.array([is_missing(value) for value in values]).any():
                raise InvalidInputError(
                    f"{name} passed to {owner} has missing values.\nHint: drop these rows."
                )
            arrays[name] = values
        return replace(self, **arrays)


INDEPENDENT = Dependence()


@dataclass(frozen=True)
class TrainingRows:
    """Rows to train the classifier on, and rows or out-of-fold probabilities to learn trust from."""

    X: Any
    labels: Array
    weight: FloatArray | None
    X_val: Any = None
    labels_val: Array | None = None
    #: Out-of-fold probabilities of the training rows, where no validation rows are set aside.
    proba: FloatArray | None = None
    #: Positions of the validation rows, where they were drawn from the training rows.
    held_out: IntArray | None = None
    groups: Array | None = None
    groups_val: Any = None
    time: Array | None = None


def training_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    X_val: Any,
    y_val: Any,
    dependence: Dependence = INDEPENDENT,
) -> TrainingRows:
    """The arguments of fit of a model, checked."""
    owner = type(model).__name__
    X = incoming_rows(model, X)
    labels = _checked_labels(model, X, y)
    model.columns_ = ColumnMemory.of(X)
    has_validation = X_val is not None or y_val is not None
    dependence = dependence.check(
        len(labels), has_validation=has_validation, has_folds=model.cv is not None, owner=owner
    )
    depends: dict[str, Any] = vars(dependence)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight is not None:
        check_same_length(labels, "X", weight, "sample_weight", owner)
    if X_val is None and y_val is None:
        if is_frozen(model.estimator):
            raise InvalidInputError(
                f"{owner} got a frozen classifier but no X_val and y_val. Probabilities on the rows "
                "it was trained on are over-confident, so trust cannot be learned from them.\n"
                "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows the classifier has not seen."
            )
        refuse_frozen_parts(model.estimator, model.features, owner)
        return TrainingRows(X, labels, weight, **depends)
    if X_val is None or y_val is None:
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise InvalidInputError(f"{owner}.fit got {given} without {missing}.\nHint: pass both, or neither.")
    _warn_of_refit(model.estimator, owner)
    with refusals_explained(model, X):
        X_val, changes = check_columns(model, X_val)
        if changes:
            warn_of_batch(f"In X_val: {changes}", stacklevel=3)
        return TrainingRows(X, labels, weight, X_val, check_labels(y_val, "y_val", owner), **depends)


def _checked_labels(model: Any, X: Any, y: Any) -> Array:
    owner = type(model).__name__
    if y is None:
        raise InvalidInputError(f"{owner} requires y to be passed, but the target y is None.")
    labels = check_labels(y, "y", owner)
    check_classifier(model.estimator, owner)
    if gives_vectors(model.estimator):
        return labels
    validate_data(model, X, skip_check_array=True)
    if X.shape[0] != len(labels):
        raise InvalidInputError(
            f"X and y passed to {owner} must have the same number of rows. "
            f"Got {X.shape[0]} and {len(labels)}."
        )
    refuse_labels_as_column(X, labels, owner)
    return labels


def _warn_of_refit(estimator: Any, owner: str) -> None:
    """Warn if a classifier that is fitted already, without a frozen part, is about to be fitted again."""
    if any(map(is_frozen, (estimator, *parts_of(estimator)))):
        return
    try:
        needs_fit = get_tags(estimator).requires_fit
        check_is_fitted(estimator)
    except (NotFittedError, TypeError, AttributeError):
        return
    if needs_fit:
        warnings.warn(
            f"The {type(estimator).__name__} passed to {owner} is fitted already and will be fitted again on X and y.\n"
            f"Hint: to keep it as it is, {owner}(FrozenEstimator(classifier)), with "
            "from sklearn.frozen import FrozenEstimator.",
            TrustWarning,
            stacklevel=4,
        )


def with_unseen_rows(model: Any, rows: TrainingRows) -> TrainingRows:
    """The rows with some set aside for validation, or with out-of-fold probabilities, unless validation is given."""
    owner = type(model).__name__
    if rows.X_val is not None:
        return rows
    if model.cv is not None:
        refuse_supervised_vectors(model.estimator, model.features, owner)
        proba = out_of_fold(model.estimator, rows, model.cv, owner)
        return replace(rows, proba=proba)
    share = check_real(model.validation_fraction, "validation_fraction", owner, low=0, high=1)
    codes = np.unique(rows.labels, return_inverse=True)[1]
    rng = check_random_state(model.random_state)
    if rows.time is not None:
        held_out = _latest(rows.time, share)
    elif rows.groups is not None:
        held_out = _whole_groups(rows.groups, share, rng)
    else:
        held_out = holdout_mask(codes, share, rng)
    if not held_out.any() or held_out.all():
        why = "no class has two" if rows.time is None and rows.groups is None else "they cannot be divided"
        raise InvalidInputError(
            f"{owner} cannot hold out validation rows: n_samples={len(codes)} and {why}.\n"
            "Hint: pass more rows, or X_val and y_val."
        )
    train, val = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    return TrainingRows(
        X=take_rows(rows.X, train),
        labels=rows.labels[train],
        weight=None if rows.weight is None else rows.weight[train],
        X_val=take_rows(rows.X, val),
        labels_val=rows.labels[val],
        held_out=val,
        groups=None if rows.groups is None else rows.groups[train],
        groups_val=None if rows.groups is None else rows.groups[val],
    )


def _latest(time: Array, share: float) -> BoolArray:
    """About that share of the rows, later than all others; rows of one time stay together."""
    order = np.sort(time)
    return np.asarray(time > order[max(0, len(time) - 1 - max(1, round(share * len(time))))])


def _whole_groups(groups: Array, share: float, rng: np.random.RandomState) -> BoolArray:
    """Groups drawn at random until they have about that share of the rows."""
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    drawn = rng.permutation(codes.max() + 1)
    before = np.cumsum(np.bincount(codes)[drawn]) - np.bincount(codes)[drawn]
    return np.isin(codes, drawn[before < share * len(codes)])


def fitted_classifier(estimator: Any, rows: TrainingRows, owner: str) -> Any:
    """The classifier, fitted unless it is frozen."""
    if is_frozen(estimator):
        return estimator
    params = {} if rows.weight is None else {weight_parameter(estimator, owner): rows.weight}
    return clone(estimator).fit(rows.X, rows.labels, **params)


def out_of_fold(estimator: Any, rows: TrainingRows, cv: Any, owner: str) -> FloatArray:
    """Probabilities of every row by classifiers trained without it, and without its group."""
    X, labels, weight = rows.X, rows.labels, rows.weight
    if rows.groups is not None and isinstance(cv, int):
        cv = StratifiedGroupKFold(cv)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "The groups parameter is ignored"
        )  # whether it matters is checked below
        splits = list(check_cv(cv, labels, classifier=True).split(X, labels, rows.groups))
    if rows.groups is not None and any(
        np.isin(rows.groups[test], rows.groups[train]).any() for train, test in splits
    ):
        raise InvalidInputError(
            f"cv passed to {owner} has rows of one group in training and in test.\n"
            "Hint: cv=5, or GroupKFold(5)."
        )
    tested = np.concatenate([test for _, test in splits])
    if (lacking := np.setdiff1d(np.arange(len(labels)), tested)).size:
        raise InvalidInputError(
            f"cv passed to {owner} leaves {len(lacking)} rows without an out-of-fold prediction, "
            f"the first is row {lacking[0]}.\n"
            "Hint: use a partition of the rows, such as cv=5; for rows in the order of time, leave out cv and pass "
            "time= to fit."
        )
    return cross_fit(
        lambda n: clone(estimator),
        lambda rows: take_rows(X, rows),
        labels,
        np.unique(labels),
        splits,
        weight=weight,
        weight_name="" if weight is None else weight_parameter(estimator, owner),
    ).proba


def refuse_supervised_vectors(estimator: Any, features: Any, owner: str) -> None:
    """Raise if vectors would be learned from labels of the rows that trust is learned from."""
    if isinstance(features, Mapping):
        for view in features.values():
            refuse_supervised_vectors(estimator, view, owner)
        return
    transformer = features
    if isinstance(features, str) and features == "auto" and isinstance(estimator, Pipeline):
        transformer = Pipeline(estimator.steps[:-1]) if len(estimator.steps) > 1 else None
    if not hasattr(transformer, "fit") or not _learns_from_labels(transformer):
        return
    raise InvalidParameterError(
        f"{owner} with cv cannot use vectors of {_culprit(transformer)}, which learns from labels: rows would look "
        "closer to their own class than new rows do.\n"
        "Hint: leave out cv to hold out validation rows, or pass features='passthrough' or a "
        "transformer that needs no labels."
    )


def refuse_frozen_parts(estimator: Any, features: Any, owner: str) -> None:
    """Raise if an inner estimator was trained before, maybe on the rows to hold out."""
    views = tuple(features.values()) if isinstance(features, Mapping) else (features,)
    for outer in (estimator, *views):
        for part in (outer, *parts_of(outer)):
            inner = unfrozen(part)
            if inner is part or not (hasattr(inner, "predict") or _learns_from_labels(inner)):
                continue
            where = "as features" if part is outer else f"inside {type(outer).__name__}"
            raise InvalidInputError(
                f"{owner} got a frozen {type(inner).__name__} {where} but no X_val and "
                "y_val. Its predictions for the rows it was trained on are over-confident, so trust cannot be learned "
                "from them.\n"
                "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows it has not seen."
            )


def _learns_from_labels(transformer: Any) -> bool:
    """Whether its tags require labels, or a part of it selects features or predicts."""
    return any(_needs_labels(part) for part in (transformer, *parts_of(transformer)))


def _needs_labels(part: Any) -> bool:
    kind = type(part)
    selects = kind.__module__.startswith("sklearn.feature_selection") and kind.__name__ != "VarianceThreshold"
    return hasattr(part, "fit") and (
        selects or hasattr(part, "predict") or get_tags(part).target_tags.required
    )


def _culprit(transformer: Any) -> str:
    """Name of the step that learns from labels, according to its tags."""
    steps = (part for part in parts_of(transformer) if hasattr(part, "transform") and _needs_labels(part))
    return type(next(steps, transformer)).__name__
