"""The ways to fit: with given validation rows, with rows held out, or with out-of-fold probabilities."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from neighboragg._base_classifier import (
    check_classifier,
    gives_vectors,
    is_frozen,
    preprocessing_of,
    weight_parameter,
)
from neighboragg._inputs import refuse_labels_as_column
from neighboragg._row_selection import reference_names, take_rows
from neighboragg._typing import Array, ArrayLike, FloatArray, IntArray
from neighboragg._validation import check_labels, check_real, encode_labels
from neighboragg.classifier._ask import ask
from neighboragg.classifier._fitted_rows import FittedRows, row_hashes
from neighboragg.classifier._incoming_rows import IncomingRows
from neighboragg.classifier._label_leakage import refuse_supervised_vectors
from neighboragg.classifier._unseen_rows import hold_out, out_of_fold
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import Vectorizer
from neighboragg.methods import NeighborAgg, TrustMethod

__all__ = ["Fitting"]


class Fitting(IncomingRows):
    """The half of TrustedClassifier that learns: the classifier, then the trust method."""

    method: TrustMethod | None
    features: Any
    validation_fraction: float
    cv: Any
    random_state: Any
    validation_indices_: IntArray | None

    def _check_training(self, X: Any, y: ArrayLike) -> Array:
        owner = type(self).__name__
        if y is None:
            raise InvalidInputError(f"{owner} requires y to be passed, but the target y is None.")
        labels = check_labels(y, "y", owner)
        check_classifier(self.estimator, owner)
        if gives_vectors(self.estimator):
            return labels
        validate_data(self, X, skip_check_array=True)
        if X.shape[0] != len(labels):
            raise InvalidInputError(
                f"X and y passed to {owner} must have the same number of rows. "
                f"Got {X.shape[0]} and {len(labels)}."
            )
        refuse_labels_as_column(X, labels, owner)
        return labels

    def _fit_with_validation(
        self, X: Any, labels: Array, weight: FloatArray | None, X_val: Any, y_val: ArrayLike | None
    ) -> None:
        owner = type(self).__name__
        if X_val is None or y_val is None:
            given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
            raise InvalidInputError(
                f"{owner}.fit got {given} without {missing}.\nHint: pass both, or neither."
            )
        X_val = self._check_columns(X_val)
        self._remember_frames(X, X_val)
        labels_val = check_labels(y_val, "y_val", owner)
        self._fit_estimator(X, labels, weight)
        self._fit_method(X, labels, X_val, labels_val)

    def _fit_with_holdout(self, X: Any, labels: Array, weight: FloatArray | None) -> None:
        owner = type(self).__name__
        fraction = check_real(self.validation_fraction, "validation_fraction", owner, low=0, high=1)
        train, val = hold_out(labels, fraction, check_random_state(self.random_state), owner)
        X_train = take_rows(X, train)
        self._fit_estimator(X_train, labels[train], None if weight is None else weight[train])
        self._fit_method(X_train, labels[train], take_rows(X, val), labels[val])
        self.validation_indices_ = val

    def _fit_cross_validated(self, X: Any, labels: Array, weight: FloatArray | None) -> None:
        owner = type(self).__name__
        refuse_supervised_vectors(self.estimator, self.features, X, labels, owner)
        proba = out_of_fold(self.estimator, X, labels, self.cv, weight, owner)
        self._fit_estimator(X, labels, weight)
        self._fit_method(X, labels, proba=proba)

    def _fit_estimator(self, X: Any, labels: Array, weight: FloatArray | None) -> None:
        if is_frozen(self.estimator):
            self.estimator_ = self.estimator
        else:
            params = {} if weight is None else {weight_parameter(self.estimator, type(self).__name__): weight}
            self.estimator_ = clone(self.estimator).fit(X, labels, **params)

    def _fit_method(
        self,
        X: Any,
        labels: Array,
        X_val: Any = None,
        labels_val: Array | None = None,
        proba: FloatArray | None = None,
    ) -> None:
        """Fit on validation rows, or on out-of-fold probabilities of the training rows."""
        vectors = self._fit_vectorizer(X, labels)
        method = NeighborAgg() if self.method is None else self.method
        if not isinstance(method, TrustMethod):
            raise InvalidParameterError(
                f"The 'method' parameter of {type(self).__name__} must be a trust method of neighboragg.methods. "
                f"Got {method!r} instead."
            )
        rows = self._vectorizer.split(vectors)
        self._fit_on_vectors(method, rows, row_hashes(vectors), labels, X_val, labels_val, proba)

    def _fit_vectorizer(self, X: Any, labels: Array) -> FloatArray:
        self._vectorizer = Vectorizer(self.features)
        return self._vectorizer.fit_transform(X, labels, preprocessing_of(self.estimator_))

    def _fit_on_vectors(
        self,
        method: TrustMethod,
        vectors: Any,
        hashes: IntArray,
        labels: Array,
        X_val: Any,
        labels_val: Array | None,
        proba: FloatArray | None,
    ) -> None:
        """Fit on vectors of the training rows, which need not be in memory; `hashes` are those of their rows."""
        vectors_val = None
        if X_val is not None:
            said = ask(self.estimator_, X_val, labels=False)
            proba, vectors_val = said.proba, self._vectors(X_val, said.inputs)
            hashes = np.concatenate([hashes, row_hashes(vectors_val)])
        # Now: a network knows its classes when it has run.
        self.classes_ = np.asarray(getattr(self.estimator_, "classes_", np.unique(labels)))
        self.method_ = clone(method).fit(
            vectors, labels, X_val=vectors_val, y_val=labels_val, proba_val=proba, classes=self.classes_
        )
        self._n_train = len(labels)
        seen = labels if labels_val is None else np.concatenate([labels, labels_val])
        self._fitted_rows = FittedRows(hashes, encode_labels(seen, self.classes_, "y", type(self).__name__))

    def _remember_frames(self, *frames: Any) -> None:
        """Keep what rows of data frames are called, and the frames themselves as long as this object lives."""
        self._row_names = reference_names(frames)
        self._frames_in_fit = frames if all(hasattr(frame, "columns") for frame in frames) else None
