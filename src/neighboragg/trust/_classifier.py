"""TrustedClassifier: a classifier that also scores how far each prediction can be trusted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from neighboragg._core.checks import (
    check_labels,
    check_proba,
    check_real,
    check_same_kind,
    check_same_length,
    encode_labels,
)
from neighboragg._core.estimators import (
    check_classifier,
    check_same_classes,
    gives_vectors,
    is_frozen,
    preprocessing_of,
    weight_parameter,
)
from neighboragg._core.inputs import reference_names, refuse_labels_as_column, row_names, take_rows
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._report.report import TrustReport, summarize_trust
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import Vectorizer
from neighboragg.methods import Explanation, NeighborAgg, RowValues, TrustMethod
from neighboragg.trust._assessment import Assessment
from neighboragg.trust._predictor import IncomingRows, ask
from neighboragg.trust._seen import FittedRows, refuse_frozen_parts, refuse_supervised_vectors, row_hashes
from neighboragg.trust._unseen import hold_out, out_of_fold


class Saving:
    """The half of TrustedClassifier that goes to a file and comes back."""

    features: Any
    cv: Any
    estimator_: Any
    classes_: Array
    method_: TrustMethod
    _vectorizer: Vectorizer
    _fitted_rows: FittedRows

    def _saved_state(self) -> dict[str, Any]:
        state = self.__getstate__()
        if hasattr(self.cv, "__next__"):
            state["cv"] = None  # folds that have been used up
        return state

    def _after_load(self) -> None:
        if hasattr(self, "method_"):
            check_same_classes(self.estimator_, self.classes_, type(self).__name__)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_frames_in_fit"}


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


def _has_neighbors(name: str) -> Callable[["TrustedClassifier"], bool]:
    """Check, for `available_if`, that the trust method can show neighbors, fitted or not."""

    def check(model: "TrustedClassifier") -> bool:
        method = getattr(model, "method_", model.method)
        if method is None or hasattr(method, name):
            return True
        raise AttributeError(
            f"{name} needs a method with neighbors; {type(method).__name__} has none.\n"
            "Hint: method=NeighborAgg()."
        )

    return check


class TrustedClassifier(Fitting, Saving, Savable, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with a trust score for each of its predictions.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        Fitted in :meth:`fit`, or taken as it is when wrapped in :class:`sklearn.frozen.FrozenEstimator`.
        A network is wrapped in :class:`neighboragg.torch.TorchClassifier`.
    method : TrustMethod, default=None
        How trust is computed; None means :class:`~neighboragg.NeighborAgg` with its defaults.
    features : "auto", "passthrough", transformer, callable or mapping, default="auto"
        How rows become the vectors whose distances matter. "auto": the preprocessing of a
        :class:`~sklearn.pipeline.Pipeline` if `estimator` is one, then
        :class:`~neighboragg.features.TabularFeatures`, which brings the columns of an array or data frame to
        comparable scales. "passthrough": numbers as they are, right for embeddings.
        A transformer is cloned and fitted on the training rows. A callable maps rows to an array, such as a
        network's backbone. A mapping of names to any of these gives each row several vectors, each with neighbors of
        its own, as in ``{"text": TfidfAndSVD(), "table": "auto"}``.
    validation_fraction : float, default=0.2
        Share of the rows held out to learn trust from, when neither `cv` nor validation rows are given.
    cv : int, cross-validation generator or iterable, default=None
        Learn trust from out-of-fold probabilities of all rows, then refit the classifier on all rows, instead
        of holding rows out.
    random_state : int, RandomState instance or None, default=None
        Seeds the hold-out split.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, as the classifier orders them.
    estimator_ : classifier
        The fitted classifier.
    method_ : TrustMethod
        The fitted trust method.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen in fit, if all are strings.
    validation_indices_ : ndarray or None
        Positions of the rows that were held out; None if rows were given or cross-validated.

    Notes
    -----
    Labels and probabilities are the classifier's own; trust never changes them. The trust method must see rows
    that the classifier was not trained on, since probabilities of training rows are over-confident.

    Each call runs the classifier's preprocessing once and asks the classifier once. Labels are those of its
    `predict`. Where `predict` is known to take the most probable class (forests, bagging, trees, boosting,
    multi-layer perceptrons, calibrated classifiers), they are read off the probabilities; any other classifier is
    asked for both, on rows that were preprocessed once.

    `sample_weight` goes to the classifier only. As rows are held out (or folded) at random, a row of weight zero
    is not the same as no row, and a row of weight two not the same as the row twice.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from neighboragg import TrustedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = TrustedClassifier(clf, random_state=0).fit(X[:400], y[:400])
    >>> trust = model.score_samples(X[400:])
    >>> wrong = model.predict(X[400:]) != y[400:]
    >>> bool(trust[wrong].mean() < trust[~wrong].mean())
    True
    """

    def __init__(
        self,
        estimator: Any,
        method: TrustMethod | None = None,
        *,
        features: Any = "auto",
        validation_fraction: float = 0.2,
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.features = features
        self.validation_fraction = validation_fraction
        self.cv = cv
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the classifier (unless frozen) and the trust method.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows. For a frozen classifier, the rows it was trained on.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the classifier.
        X_val : array-like, data frame or sparse matrix, default=None
            Rows the classifier was not trained on. Needed for a frozen classifier.
        y_val : array-like, default=None

        Returns
        -------
        self : TrustedClassifier
        """
        X = self._as_rows(X)
        labels = self._check_training(X, y)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None:
            check_same_length(labels, "X", weight, "sample_weight", type(self).__name__)
        self.validation_indices_: IntArray | None = None
        if X_val is not None or y_val is not None:
            with self._refusal_explained(X):
                self._fit_with_validation(X, labels, weight, X_val, y_val)
        elif is_frozen(self.estimator):
            raise InvalidInputError(
                f"{type(self).__name__} got a frozen classifier but no X_val and y_val. Probabilities on the rows "
                "it was trained on are over-confident, so trust cannot be learned from them.\n"
                "Hint: fit(X_train, y_train, X_val=X_val, y_val=y_val) with rows the classifier has not seen."
            )
        else:
            refuse_frozen_parts(self.estimator, self.features, type(self).__name__)
            self._remember_frames(X)
            way = self._fit_with_holdout if self.cv is None else self._fit_cross_validated
            with self._refusal_explained(X):
                way(X, labels, weight)
        return self

    def predict(self, X: Any) -> Array:
        """Labels, exactly as the classifier predicts them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        y_pred : ndarray of shape (n,)
        """
        X = self._check_rows(X)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, exactly as the classifier predicts them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        proba : ndarray of shape (n, n_classes)
        """
        X = self._check_rows(X)
        return self.estimator_.predict_proba(X)

    def predict_trust(self, X: Any) -> FloatArray:
        """Trust in every class.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        trust : ndarray of shape (n, n_classes)
            Columns as `classes_`.
        """
        _, proba, vectors = self._ask(X, labels=False)
        return self.method_.predict_trust(vectors, proba, left_out=self._own(vectors))

    def assess(self, X: Any) -> Assessment:
        """Label, probability, trust and familiarity of every row, all from one pass through the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        assessment : Assessment
            ``print`` it, take its arrays, or turn it into a data frame with ``to_frame()``.
        """
        labels, proba, vectors = self._ask(X, labels=True)
        own, familiarity = self._own(vectors), None
        if hasattr(self.method_, "trust_and_familiarity"):
            trust, familiarity = self.method_.trust_and_familiarity(vectors, proba, left_out=own)
        else:
            trust = self.method_.predict_trust(vectors, proba, left_out=own)
        predicted = np.arange(len(trust)), encode_labels(labels, self.classes_, "y_pred", type(self).__name__)
        return Assessment(
            label=labels,
            probability=proba[predicted],
            trust=trust[predicted],
            proba=proba,
            class_trust=trust,
            index=row_names(X, len(trust)),
            classes=self.classes_,
            familiarity=familiarity,
        )

    def score_samples(self, X: Any) -> FloatArray:
        """Trust in the predicted labels; higher is more trusted.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        trust : ndarray of shape (n,)
        """
        return self.assess(X).trust

    def score_labels(self, X: Any, y: ArrayLike) -> FloatArray:
        """Trust in given labels; low means that the label is suspicious.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        trust : ndarray of shape (n,)
        """
        owner = type(self).__name__
        _, proba, vectors = self._ask(X, labels=False)
        labels = check_labels(y, "y", owner)
        check_same_length(vectors, "X", labels, "y", owner)
        codes = encode_labels(labels, self.classes_, "y", owner)
        trust = self.method_.predict_trust(vectors, proba, left_out=self._own(vectors, codes))
        return trust[np.arange(len(codes)), codes]

    @available_if(_has_neighbors("familiarity"))
    def familiarity(self, X: Any) -> FloatArray:
        """Have rows like these been seen: a p-value for each, small for a row unlike all others."""
        _, proba, vectors = self._ask(X, labels=False)
        return self.method_.familiarity(vectors, proba, left_out=self._own(vectors))

    @available_if(_has_neighbors("kneighbors"))
    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[FloatArray, IntArray]:
        """Nearest reference rows of every class, for methods that have neighbors."""
        rows = self._check_rows(X)
        vectors = self._vectorizer.transform(rows, preprocessing_of(self.estimator_))
        distances, indices = self.method_.kneighbors(vectors, n_neighbors)
        return distances, self._original(indices)

    @available_if(_has_neighbors("explain"))
    def explain(self, X: Any) -> Explanation:
        """What raised and lowered the trust in each row, and the neighbors behind it."""
        labels, proba, vectors = self._ask(X, labels=True)
        explanation = self.method_.explain(vectors, proba, y_pred=labels, left_out=self._own(vectors))
        frames = getattr(self, "_frames_in_fit", None)
        return replace(
            explanation.renumbered(self._original(explanation.indices)),
            names=row_names(X, len(vectors)) if hasattr(X, "iloc") else None,
            reference_names=self._row_names,
            values=RowValues(self._as_rows(X), frames) if frames and hasattr(X, "columns") else None,
        )

    def report(
        self,
        X: Any,
        y: ArrayLike,
        *,
        risks: Sequence[float] = (0.01, 0.02, 0.05),
        confidence_level: float = 0.95,
        n_resamples: int = 500,
        random_state: Any = 0,
    ) -> TrustReport:
        """Did trust help here: how it does on labeled rows, beside the classifier's own confidence.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
            Rows that took no part in fit.
        y : array-like of shape (n,)
            Their labels.
        risks : sequence of float, default=(0.01, 0.02, 0.05)
            Error rates at which to say how many predictions can be kept.
        confidence_level : float, default=0.95
            Level of the intervals.
        n_resamples : int, default=500
            Bootstrap resamples behind the intervals of AUROC.
        random_state : int, RandomState instance or None, default=0
            Seeds the resampling.

        Returns
        -------
        report : TrustReport
            ``print`` it, ``report.plot()`` it, or take its numbers with ``report.to_dict()``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from neighboragg import TrustedClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[:900], y[:900])
        >>> kept = model.report(X[900:], y[900:], n_resamples=50).to_dict()["coverage_at_risk"][-1]
        >>> bool(kept["trust"] > kept["confidence"] + 0.2)
        True
        """
        owner = type(self).__name__
        assessed = self.assess(X)
        labels = check_labels(y, "y", owner)
        check_same_length(assessed, "X", labels, "y", owner)
        check_same_kind(labels, self.classes_, "y", owner)
        correct = assessed.label == labels
        # Probabilities that sum to one exactly, as trust methods see them: rounding must not rank.
        proba = check_proba(assessed.proba, "proba", owner, n_classes=len(self.classes_))
        confidence = proba[np.arange(len(labels)), np.searchsorted(self.classes_, assessed.label)]
        summary = summarize_trust(
            correct,
            assessed.trust,
            confidence,
            risks=risks,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        return TrustReport(summary, correct, assessed.trust, confidence)

    def __sklearn_tags__(self) -> Any:
        """Tags of the wrapped classifier, as far as they pass through."""
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except AttributeError:  # not an estimator of scikit-learn's kind: nothing to pass on
            return tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        return tags

    def _own(self, vectors: FloatArray, codes: IntArray | None = None) -> IntArray | None:
        """Rows of fit that these are themselves; not to be their own neighbors."""
        return self._fitted_rows.find(vectors, type(self).__name__, codes)

    def _original(self, indices: IntArray) -> IntArray:
        """Positions in the rows passed to fit, from positions in training rows followed by validation rows."""
        if self.validation_indices_ is None:
            return indices
        n = self._n_train + len(self.validation_indices_)
        train = np.setdiff1d(np.arange(n), self.validation_indices_)
        return np.where(indices < 0, -1, np.concatenate([train, self.validation_indices_])[indices])
