"""How rows come in: checked, shown to the classifier once, and turned into vectors."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from neighboragg._base_classifier import gives_vectors, has_preprocessing
from neighboragg._inputs import is_frame, needs_numbers, refusal_explained
from neighboragg._row_selection import as_rows
from neighboragg._typing import FloatArray
from neighboragg._validation import check_fitted
from neighboragg.classifier._ask import ask
from neighboragg.features import Vectorizer

__all__ = ["IncomingRows"]


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
