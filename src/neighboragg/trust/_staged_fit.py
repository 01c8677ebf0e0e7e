"""Fitting in stages, where the training rows are never in memory together."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from neighboragg._core.checks import check_labels, encode_labels
from neighboragg._core.estimators import gives_vectors, is_frozen, preprocessing_of
from neighboragg._core.inputs import take_rows
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods import NeighborAgg
from neighboragg.search import Approximate, Blocks, Streamed, check_search
from neighboragg.trust._classifier import TrustedClassifier
from neighboragg.trust._predictor import ask
from neighboragg.trust._seen import refuse_frozen_parts, refuse_supervised_vectors, row_hashes
from neighboragg.trust._unseen import out_of_fold


@dataclass(eq=False)
class StagedFit(Savable):
    """A :class:`TrustedClassifier` on its way: what is learned from a sample first, then trust from all rows."""

    model: TrustedClassifier
    proba: FloatArray | None
    n_features: int
    single: bool

    @staticmethod
    def method_of(model: TrustedClassifier) -> NeighborAgg:
        """The trust method, made to read its rows in blocks."""
        method = NeighborAgg() if model.method is None else model.method
        if not isinstance(method, NeighborAgg):
            raise InvalidParameterError(
                f"The 'method' parameter of {type(model).__name__} must be a NeighborAgg for rows that are not in "
                f"memory, as no other method reads them in blocks. Got {method!r} instead."
            )
        search = check_search(method.search, type(method).__name__)
        if isinstance(search, Approximate):
            raise InvalidParameterError(
                f"The 'search' parameter of {type(method).__name__} must be a Streamed for rows that are not in "
                f"memory. Got {search!r} instead."
            )
        method = clone(method)
        return (
            method
            if isinstance(search, Streamed)
            else method.set_params(search=Streamed(metric=search.metric))
        )

    @staticmethod
    def check(model: TrustedClassifier, *, validated: bool) -> None:
        """Refuse a model that cannot be fitted in stages, before any row is read."""
        owner = type(model).__name__
        if gives_vectors(model.estimator):
            raise InvalidInputError(
                f"The network of this {owner} takes rows in memory.\n"
                "Hint: write its embeddings to a column of vectors, and fit a classifier with predict_proba on these."
            )
        if not validated and (model.cv is None or is_frozen(model.estimator)):
            raise InvalidInputError(
                f"{owner} needs rows that the classifier was not trained on to learn trust from.\n"
                "Hint: pass validation rows, or set cv=5 for a classifier that is not frozen."
            )

    @classmethod
    def begin(cls, model: TrustedClassifier, X: Any, y: ArrayLike, *, validated: bool) -> Self:
        """Fit the classifier, unless it is frozen, and what makes vectors."""
        owner = type(model).__name__
        cls.check(model, validated=validated)
        model = clone(model)
        X = model._as_rows(X)
        labels = model._check_training(X, y)
        model.validation_indices_, model._row_names, model._frames_in_fit = None, None, None
        proba = None
        with model._refusal_explained(X):
            if not validated:
                refuse_frozen_parts(model.estimator, model.features, owner)
                refuse_supervised_vectors(model.estimator, model.features, X, labels, owner)
                proba = out_of_fold(model.estimator, X, labels, model.cv, None, owner)
            model._fit_estimator(X, labels, None)
            if is_frozen(model.estimator):
                # What it would say no to at the end, it is asked for before all rows are read.
                ask(model.estimator_, take_rows(X, np.arange(1)), labels=False)
                encode_labels(labels, model.estimator_.classes_, "y", owner)
            vectors = model._fit_vectorizer(X, labels)
        if model._vectorizer.views is not None:
            raise InvalidInputError(f"Several views of rows are kept in memory by {owner}, so not here.")
        return cls(model, proba, vectors.shape[1], bool(vectors.dtype == np.float32))

    def vectors(self, X: Any) -> FloatArray:
        """Vectors of training rows."""
        rows = self.model._check_columns(X)
        with self.model._refusal_explained(rows):
            found = self.model._vectorizer.transform(rows, preprocessing_of(self.model.estimator_))
        return found.astype(np.float32 if self.single else np.float64, copy=False)

    def hashes(self, vectors: FloatArray) -> IntArray:
        """A number for each row, by which it is known again."""
        return row_hashes(vectors)

    def finish(
        self, vectors: Blocks, hashes: IntArray, y: Array, X_val: Any = None, y_val: ArrayLike | None = None
    ) -> TrustedClassifier:
        """Learn trust."""
        model, owner = self.model, type(self.model).__name__
        labels_val = None
        if X_val is not None and y_val is not None:
            X_val, labels_val = model._check_columns(X_val), check_labels(y_val, "y_val", owner)
        method = self.method_of(model)
        model._fit_on_vectors(method, vectors, hashes, y, X_val, labels_val, self.proba)
        return model
