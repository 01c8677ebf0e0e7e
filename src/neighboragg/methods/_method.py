"""The contract of trust methods: arrays in, trust out."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from neighboragg._core.checks import (
    check_fitted,
    check_labels,
    check_proba,
    check_rows,
    check_same_length,
    encode_labels,
)
from neighboragg._core.stats import agreement
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._pool.evidence import FitData
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError, TrustWarning

# Classes that a message names.
MAX_SHOWN = 10


class TrustMethod(Savable, BaseEstimator, ABC):
    """A score of how far each prediction of a frozen classifier can be trusted.

    Every method learns from the same arrays and returns the same shapes, so methods are interchangeable in
    :class:`~neighboragg.TrustedClassifier`. Subclasses implement `_fit` and `_trust`.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        proba_val: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        groups_val: ArrayLike | None = None,
    ) -> Self:
        """Fit on training rows and on validation rows that the classifier was not trained on.

        Parameters
        ----------
        X : array-like of shape (n_train, n_features)
            Vectors of the training rows (features, or a network's embeddings).
        y : array-like of shape (n_train,)
            Their labels.
        proba_val : array-like of shape (n_val, n_classes)
            The classifier's probabilities for the validation rows; columns as `classes_`.
        X_val : array-like of shape (n_val, n_features), default=None
            Vectors of the validation rows. None means that `proba_val` are out-of-fold probabilities of the
            training rows themselves.
        y_val : array-like of shape (n_val,), default=None
            Labels of the validation rows; given if and only if `X_val` is.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the probability columns (sorted), where `y` may lack some. Defaults to
            the labels in `y`.
        groups : array-like of shape (n_train,), default=None
            Group of each training row, such as the user, the page or the day it is from, if new rows will be from
            other groups. A method that learns from neighbors then never uses a row's own group.
        groups_val : array-like of shape (n_val,), default=None
            Group of each validation row; given if and only if `groups` and `X_val` are.

        Returns
        -------
        self : TrustMethod
        """
        data = self._check_fit(X, y, X_val, y_val, proba_val, classes)
        self._fit(replace(data, groups=self._check_groups(data, groups, groups_val)))
        return self

    def predict_trust(self, X: ArrayLike, proba: ArrayLike, *, exclude: IntArray | None = None) -> FloatArray:
        """Trust in every class.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
            The classifier's probabilities.
        exclude : ndarray of int of shape (n,), default=None
            For each row a row of fit that must not be its neighbor, as itself: a position in the training rows,
            followed by the validation rows, or -1. Methods without neighbors ignore it.

        Returns
        -------
        trust : ndarray of shape (n, n_classes)
            Columns as `classes_`; higher is more trusted.
        """
        rows, values = self._check_query(X, proba)
        return self._trust(rows, values) if exclude is None else self._trust_without(rows, values, exclude)

    def score_samples(self, X: ArrayLike, proba: ArrayLike, *, y_pred: ArrayLike | None = None) -> FloatArray:
        """Trust in the predicted class.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
            The classifier's probabilities.
        y_pred : array-like of shape (n,), default=None
            Predicted labels; defaults to the most probable class.

        Returns
        -------
        trust : ndarray of shape (n,)
        """
        rows, values = self._check_query(X, proba)
        predicted = values.argmax(axis=1) if y_pred is None else self._check_codes(y_pred, "y_pred", rows)
        return self._trust(rows, values)[np.arange(len(rows)), predicted]

    def score_labels(self, X: ArrayLike, y: ArrayLike, proba: ArrayLike) -> FloatArray:
        """Trust in given labels.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
            Labels to score.
        proba : array-like of shape (n, n_classes)
            The classifier's probabilities.

        Returns
        -------
        trust : ndarray of shape (n,)
        """
        rows, values = self._check_query(X, proba)
        codes = self._check_codes(y, "y", rows)
        return self._trust(rows, values)[np.arange(len(rows)), codes]

    @abstractmethod
    def _fit(self, data: FitData) -> None:
        """Learn from validated arrays."""

    @abstractmethod
    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        """Trust in every class for validated arrays."""

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray) -> FloatArray:
        """The same where each row leaves a row of fit out."""
        return self._trust(X, proba)

    def _check_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        proba_val: ArrayLike,
        classes: ArrayLike | None,
    ) -> FitData:
        owner = type(self).__name__
        rows, labels = self._check_vectors(X, "X"), check_labels(y, "y", owner)
        check_same_length(rows, "X", labels, "y", owner)
        if not len(rows):
            raise InvalidInputError(f"X passed to {owner} has no rows.")
        if (X_val is None) != (y_val is None):
            given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
            raise InvalidInputError(
                f"{owner}.fit got {given} without {missing}.\nHint: pass both for separate validation rows, or "
                "neither if proba_val contains out-of-fold probabilities of the training rows."
            )
        self.classes_ = np.unique(labels) if classes is None else self._check_classes(classes)
        self.n_features_in_ = rows.shape[1]
        codes = encode_labels(labels, self.classes_, "y", owner)
        if X_val is None or y_val is None:
            rows_val, codes_val = rows, codes
        else:
            rows_val = self._check_vectors(X_val, "X_val", n_features=self.n_features_in_)
            labels_val = check_labels(y_val, "y_val", owner)
            check_same_length(rows_val, "X_val", labels_val, "y_val", owner)
            codes_val = encode_labels(labels_val, self.classes_, "y_val", owner)
        if not len(rows_val):
            raise InvalidInputError(
                f"X_val passed to {owner} has no rows.\n"
                "Hint: hold out some rows that the classifier was not trained on."
            )
        n_classes = len(self.classes_)
        proba = check_proba(proba_val, "proba_val", owner, n_classes=n_classes, n_rows=len(rows_val))
        self._warn_of_disagreement(codes_val, proba)
        return FitData(rows, codes, rows_val, codes_val, proba, n_classes)

    def _warn_of_disagreement(self, codes: IntArray, proba: FloatArray) -> None:
        """Warn if the most probable classes are unrelated to the labels, or match them in another column order."""
        found = agreement(codes, proba.argmax(axis=1), proba.shape[1])
        agreeing = (
            f"proba_val passed to {type(self).__name__} agrees with the labels in {found.agreeing:,} of "
            f"{len(codes):,} rows"
        )
        if found.order is not None:
            order = ", ".join(repr(label) for label in self.classes_[found.order[:MAX_SHOWN]].tolist())
            more = ", …" if len(found.order) > MAX_SHOWN else ""
            warnings.warn(
                f"{agreeing}, but it would agree in {found.reordered:,} if its columns were {order}{more}.\n"
                "Hint: order the columns as the sorted classes, and check that rows and labels belong together.",
                TrustWarning,
                stacklevel=4,
            )
        elif found.is_chance:
            warnings.warn(
                f"{agreeing}, and unrelated probabilities would in about {found.by_chance:,.0f}.\n"
                "Hint: check that the rows of proba_val and of the labels are in the same order; trust in a classifier "
                "at chance level relies only on the neighbors.",
                TrustWarning,
                stacklevel=4,
            )

    def _check_groups(
        self, data: FitData, groups: ArrayLike | None, groups_val: ArrayLike | None
    ) -> tuple[IntArray, IntArray] | None:
        """Numbers of the groups of training and validation rows."""
        owner = type(self).__name__
        if groups is None and groups_val is None:
            return None
        if groups is None or (groups_val is None) != data.shared:
            raise InvalidInputError(
                f"{owner}.fit needs the groups of the training rows and, where X_val is given, those of its rows.\n"
                "Hint: pass groups=, and groups_val= together with X_val."
            )
        own = check_labels(groups, "groups", owner)
        others = own if groups_val is None else check_labels(groups_val, "groups_val", owner)
        for name, values, rows in (("groups", own, data.codes), ("groups_val", others, data.codes_val)):
            if len(values) != len(rows):
                raise InvalidInputError(
                    f"{name} passed to {owner} must have one value for each row. Got {len(values)} for {len(rows)} "
                    "rows."
                )
        numbers = np.unique(np.concatenate([own, others]), return_inverse=True)[1]
        return numbers[: len(own)], numbers[len(own) :]

    def _check_vectors(self, X: Any, name: str, *, n_features: int | None = None) -> FloatArray:
        """One vector for each row; `n_features` is None for the rows that decide it."""
        return check_rows(X, name, type(self).__name__, n_features=n_features)

    def _check_classes(self, classes: ArrayLike) -> Array:
        given = np.asarray(classes)
        if len(given) and (given.ndim != 1 or not (given[:-1] < given[1:]).all()):
            raise InvalidInputError(
                f"classes passed to {type(self).__name__} must be sorted and without repetition. "
                f"Got {given.tolist()!r}.\nHint: order the columns of proba_val in the same way."
            )
        return given

    def _check_query(self, X: ArrayLike, proba: ArrayLike) -> tuple[FloatArray, FloatArray]:
        check_fitted(self, "n_features_in_")
        owner = type(self).__name__
        rows = self._check_vectors(X, "X", n_features=self.n_features_in_)
        return rows, check_proba(proba, "proba", owner, n_classes=len(self.classes_), n_rows=len(rows))

    def _check_codes(self, y: ArrayLike, name: str, rows: Array) -> IntArray:
        owner = type(self).__name__
        labels = check_labels(y, name, owner)
        check_same_length(rows, "X", labels, name, owner)
        return encode_labels(labels, self.classes_, name, owner)
