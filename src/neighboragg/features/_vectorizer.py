"""The fitted preprocessing from rows to vectors, and embeddings reduced to their main axes."""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from neighboragg._core.checks import check_rows
from neighboragg._core.estimators import gives_vectors
from neighboragg._core.types import Array, FloatArray
from neighboragg._core.views import split_views
from neighboragg._store.objects import Stored
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features._tabular import RowVectors, TabularFeatures

MAX_DIMENSIONS = 100
# More rows than this do not change the main directions.
MAX_ROWS = 10_000


class EmbeddedFeatures(Stored):
    """Views of a network as vectors of moderate length, side by side."""

    def fit(self, views: Mapping[str, FloatArray]) -> Self:
        """Learn the main directions of all views but the first."""
        self.widths = {name: vectors.shape[1] for name, vectors in views.items()}
        wide = [name for name in list(views)[1:] if self.widths[name] > MAX_DIMENSIONS]
        self.directions = {name: _main_directions(views[name]) for name in wide}
        self.views = self.widths | dict.fromkeys(wide, MAX_DIMENSIONS)
        return self

    def transform(self, stacked: FloatArray) -> FloatArray:
        """Vectors of rows, from all outputs of the network side by side."""
        given = check_rows(
            stacked, "the embeddings of the network", "features", n_features=sum(self.widths.values())
        )
        views = split_views(given, self.widths)
        for name, (mean, directions) in self.directions.items():
            # Row by row, to give a row the same bits in any batch.
            views[name] = np.einsum("nd,dr->nr", views[name] - mean, directions)
        return given if len(views) == 1 else np.hstack(list(views.values()))


def _main_directions(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    chosen = np.unique(np.linspace(0, len(vectors) - 1, MAX_ROWS).astype(int))
    rows = np.asarray(vectors[chosen], dtype=np.float64)
    mean = rows.mean(axis=0)
    rows -= mean
    _, directions = np.linalg.eigh(rows.T @ rows)
    kept = directions[:, ::-1][:, :MAX_DIMENSIONS]
    dtype = vectors.dtype
    return mean.astype(dtype), np.ascontiguousarray(kept, dtype=dtype)


class Vectorizer(Stored):
    """Turns rows into vectors, according to the `features` parameter of an estimator."""

    def __init__(self, features: Any) -> None:
        self.kind, self.transformer, self.function = _resolve_features(features)
        self.columns: list[str] | None = None
        self.views: dict[str, int] | None = None
        self.network: EmbeddedFeatures | None = None
        self.parts = (
            {str(name): Vectorizer(part) for name, part in features.items()} if self.kind == "views" else {}
        )

    def fit_transform(self, X: Any, y: Array | None, preprocessing: Any = None) -> FloatArray:
        """Fit on training rows, and return their vectors; `preprocessing` is fitted already, or None."""
        return self.fit_represent(X, y, preprocessing).vectors

    def fit_represent(self, X: Any, y: Array | None, preprocessing: Any = None) -> RowVectors:
        """The same, with the terms of texts."""
        self.columns = _column_names(X)
        # To a network a mapping is one input with several names, such as tokens.
        if isinstance(X, Mapping) and self.kind != "views" and not gives_vectors(preprocessing):
            same = self.function or self.transformer or self.kind
            self.kind, self.parts = "views", {name: Vectorizer(same) for name in X}
        if self.kind == "views":
            found = {
                name: self.parts[name].fit_represent(rows, y, preprocessing)
                for name, rows in self._rows_of_views(X).items()
            }
            self.views = {name: rows.vectors.shape[1] for name, rows in found.items()}
            return _side_by_side(list(found.values()))
        if self.kind == "auto" and gives_vectors(preprocessing):
            found = preprocessing.embed(X)
            self.network = EmbeddedFeatures().fit(found.views)
            self.views = self.network.views if len(found.views) > 1 else None
            return self.represent(found.stacked)
        if self.kind == "auto":
            self.transformer = TabularFeatures(standardize=preprocessing is None)
            return self.transformer.fit_represent(X if preprocessing is None else preprocessing.transform(X))
        if self.kind == "transformer":
            self.transformer = clone(self.transformer)
            vectors = check_rows(self.transformer.fit_transform(X, y), "transformed X", "features")
            return RowVectors(vectors, None)
        return self.represent(X)

    def transform(self, X: Any, preprocessing: Any = None) -> FloatArray:
        """Vectors of new rows."""
        used = preprocessing is not None and any(part.kind == "auto" for part in (self, *self.parts.values()))
        return self.vectors_of(X, preprocessing.transform(X) if used else X)

    def vectors_of(self, X: Any, preprocessed: Any) -> FloatArray:
        """Vectors of new rows, given before and after the preprocessing of the classifier."""
        if self.kind == "views":
            return np.hstack([part.vectors_of(X, preprocessed) for part in self.parts.values()])
        return self.represent(preprocessed if self.kind == "auto" else X).vectors

    def split(self, vectors: FloatArray) -> Any:
        """The views by name, or the vectors themselves if there is one view."""
        return vectors if self.views is None else split_views(vectors, self.views)

    def represent(self, X: Any) -> RowVectors:
        """Vectors and terms of preprocessed new rows."""
        if self.kind == "views":
            return _side_by_side(
                [self.parts[name].represent(rows) for name, rows in self._rows_of_views(X).items()]
            )
        if self.network is not None:
            return RowVectors(self.network.transform(X), None)
        if self.kind == "auto":
            rows: RowVectors = self.transformer.represent(X)
            return RowVectors(check_rows(rows.vectors, "transformed X", "features"), rows.terms)
        if self.kind == "passthrough":
            return RowVectors(check_rows(X, "X", "features='passthrough'"), None)
        if self.function is not None:
            return RowVectors(check_rows(self.function(X), "the output of the callable", "features"), None)
        return RowVectors(check_rows(self.transformer.transform(X), "transformed X", "features"), None)

    def check_columns(self, X: Any, owner: str) -> None:
        """Raise if the columns of new rows differ from the columns in fit."""
        if isinstance(X, Mapping):
            for name, rows in self._rows_of_views(X).items():
                self.parts[name].check_columns(rows, owner)
        names = _column_names(X)
        if names is not None and self.columns is not None and names != self.columns:
            raise InvalidInputError(
                f"X passed to {owner} has the columns {names}, but fit had {self.columns}.\n"
                "Hint: pass the same columns in the same order."
            )

    def _rows_of_views(self, X: Any) -> dict[str, Any]:
        """The input of each view: all rows, or the rows under its name, in the order of fit."""
        if not isinstance(X, Mapping):
            return dict.fromkeys(self.parts, X)
        if set(X) != set(self.parts):
            raise InvalidInputError(
                f"X has the views {', '.join(map(repr, X))}, but {', '.join(map(repr, self.parts))} are expected.\n"
                "Hint: use the same names of views in fit, for new rows, and in a mapping of features."
            )
        return {name: X[name] for name in self.parts}


def _resolve_features(features: Any) -> tuple[str, Any, Callable[[Any], Any] | None]:
    """Kind, transformer and function of a `features` parameter."""
    if isinstance(features, str) and features in ("auto", "passthrough"):
        return features, None, None
    if isinstance(features, Mapping) and features:
        return "views", None, None
    if hasattr(features, "transform"):
        return "transformer", features, None
    if callable(features):
        return "callable", None, features
    raise InvalidParameterError(
        "The 'features' parameter must be 'auto', 'passthrough', a transformer, a callable, or a mapping of names to "
        f"these. Got {features!r} instead."
    )


def _side_by_side(views: list[RowVectors]) -> RowVectors:
    terms = [rows.terms for rows in views if rows.terms is not None]
    return RowVectors(
        np.hstack([rows.vectors for rows in views]), sparse.csr_array(sparse.hstack(terms)) if terms else None
    )


def _column_names(X: Any) -> list[str] | None:
    return [str(name) for name in X.columns] if hasattr(X, "columns") else None
