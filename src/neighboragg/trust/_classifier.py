"""TrustedClassifier: a classifier that also scores how far each prediction can be trusted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from neighboragg._core.checks import (
    check_fitted,
    check_labels,
    check_proba,
    check_same_kind,
    check_same_length,
    encode_labels,
)
from neighboragg._core.estimators import check_same_classes, preprocessing_of
from neighboragg._core.inputs import is_frame, reference_names, row_names
from neighboragg._core.types import Array, ArrayLike, FloatArray, IntArray
from neighboragg._report.report import TrustReport, summarize_trust
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import Vectorizer
from neighboragg.methods import (
    Explanation,
    NeighborAgg,
    ReferenceValues,
    RowValues,
    TrustMethod,
    too_many_unfamiliar,
)
from neighboragg.trust._assessment import Assessment
from neighboragg.trust._predictor import (
    Predictions,
    Predictor,
    check_columns,
    refusals_explained,
)
from neighboragg.trust._seen import FittedRows, Seen, check_validation_rows, row_hashes, warn_of_batch
from neighboragg.trust._unseen import (
    Dependence,
    TrainingRows,
    fitted_classifier,
    training_rows,
    with_unseen_rows,
)

NOT_STORED = "The values of the reference rows are not stored with the model."


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


class TrustedClassifier(Savable, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with a trust score for each of its predictions.

    Parameters
    ----------
    estimator : classifier with `predict_proba`
        Fitted in :meth:`fit`, or used unchanged if wrapped in :class:`sklearn.frozen.FrozenEstimator`.
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
    columns_ : ColumnMemory or None
        What the columns of a data frame looked like in fit: types, missing values, categories, and ranges. New rows are
        converted to that where nothing is lost, and a warning names the columns that have changed.

    Notes
    -----
    Labels and probabilities are the classifier's own; trust never changes them. The trust method must see rows
    that the classifier was not trained on, since probabilities of training rows are over-confident.

    Each call runs the classifier's preprocessing and its `predict_proba` once. Labels are those of its `predict`. Where
    `predict` is known to take the most probable class (forests, bagging, trees, boosting, multi-layer perceptrons,
    calibrated classifiers), they are read off the probabilities; any other classifier runs `predict` as well, on rows
    that were preprocessed once.

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
        groups: ArrayLike | None = None,
        groups_val: ArrayLike | None = None,
        time: ArrayLike | None = None,
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
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as its user, page or patient, where new rows will be of other groups. Whole groups
            are held out (or folded), and no row has neighbors in its own group.
        groups_val : array-like, default=None
            Group of each row of `X_val`; given if and only if `groups` and `X_val` are.
        time : array-like of shape (n_samples,), default=None
            Numbers or dates by which rows follow each other. The latest rows are held out, as new rows are later still.

        Returns
        -------
        self : TrustedClassifier
        """
        rows = training_rows(self, X, y, sample_weight, X_val, y_val, Dependence(groups, groups_val, time))
        frames = tuple(given for given in (rows.X, rows.X_val) if given is not None)
        self._row_names = reference_names(frames)
        self._values_in_fit = None
        with refusals_explained(self, rows.X):
            rows, vectors = self._fit_parts(rows)
            self._learn_trust(self._vectorizer.split(vectors), row_hashes(vectors), rows.labels, rows)
        if all(map(is_frame, frames)):
            vectorize = partial(self._vectorizer.transform, preprocessing=preprocessing_of(self.estimator_))
            self._values_in_fit = ReferenceValues(frames, vectorize)
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
        rows = self._checked_rows(X)
        return self.estimator_.predict(rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities, exactly as the classifier predicts them.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        proba : ndarray of shape (n, n_classes)
        """
        rows = self._checked_rows(X)
        return self.estimator_.predict_proba(rows)

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
        found, vectors = self._predict_once(X, labels=False)
        return self.method_.predict_trust(vectors, found.proba, exclude=self._seen(vectors).positions)

    def assess(self, X: Any) -> Assessment:
        """Predicted label, probability, trust and familiarity of every row, all from one pass through the classifier.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)

        Returns
        -------
        assessment : Assessment
            ``print`` it, take its arrays, or turn it into a data frame with ``to_frame()``.
        """
        check_fitted(self, "method_")
        rows, changes = check_columns(self, X)
        found, vectors = self._predict_checked(rows, labels=True)
        labels, proba, seen = found.labels, found.proba, self._seen(vectors)
        if hasattr(self.method_, "trust_and_familiarity"):
            trust, familiarity = self.method_.trust_and_familiarity(vectors, proba, exclude=seen.positions)
        else:
            trust, familiarity = self.method_.predict_trust(vectors, proba, exclude=seen.positions), None
        notes = tuple(note for note in (changes, self._unfamiliar(familiarity)) if note)
        for note in notes:
            warn_of_batch(note, stacklevel=2)
        codes = encode_labels(labels, self.classes_, "y_pred", type(self).__name__)
        predicted = np.arange(len(trust)), codes
        return Assessment(
            predicted=labels,
            probability=proba[predicted],
            trust=trust[predicted],
            proba=proba,
            class_trust=trust,
            index=row_names(X, len(trust)),
            classes=self.classes_,
            familiarity=familiarity,
            seen_in_fit=seen.copies,
            copies_by_chance=seen.by_chance,
            notes=notes,
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
        found, vectors = self._predict_once(X, labels=False)
        labels = check_labels(y, "y", owner)
        check_same_length(vectors, "X", labels, "y", owner)
        codes = encode_labels(labels, self.classes_, "y", owner)
        trust = self.method_.predict_trust(vectors, found.proba, exclude=self._seen(vectors, codes).positions)
        return trust[np.arange(len(codes)), codes]

    @available_if(_has_neighbors("familiarity"))
    def familiarity(self, X: Any) -> FloatArray:
        """P-value of each row; small means unlike anything seen in training."""
        found, vectors = self._predict_once(X, labels=False)
        return self.method_.familiarity(vectors, found.proba, exclude=self._seen(vectors).positions)

    @available_if(_has_neighbors("kneighbors"))
    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[FloatArray, IntArray]:
        """Nearest reference rows of every class, for methods that have neighbors."""
        check_fitted(self, "method_")
        distances, indices = self.method_.kneighbors(vectors_of(self, X), n_neighbors)
        return distances, self._original(indices)

    @available_if(_has_neighbors("explain"))
    def explain(self, X: Any) -> Explanation:
        """What raised and lowered the trust in each row, and the neighbors behind it.

        For frames it shows where neighbors differ, in columns that reach the vectors; a saved model lacks their values.
        """
        rows = self._checked_rows(X)
        found, vectors = self._predict_checked(rows, labels=True)
        exclude = self._seen(vectors).positions
        explanation = self.method_.explain(vectors, found.proba, y_pred=found.labels, exclude=exclude)
        reference = getattr(self, "_values_in_fit", None)
        return replace(
            explanation.renumbered(self._original(explanation.indices)),
            names=row_names(X, len(vectors)) if hasattr(X, "iloc") else None,
            reference_names=self._row_names,
            values=RowValues(rows, reference) if reference and is_frame(rows) else None,
            note=NOT_STORED if reference is None and is_frame(X) else "",
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
        groups: ArrayLike | None = None,
    ) -> TrustReport:
        """Compare trust with the classifier's own confidence on labeled rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features)
            Rows that were not used in fit.
        y : array-like of shape (n,)
            Their labels.
        risks : sequence of float, default=(0.01, 0.02, 0.05)
            Error rates at which to report how many predictions can be accepted.
        confidence_level : float, default=0.95
            Level of the intervals.
        n_resamples : int, default=500
            Bootstrap resamples behind the intervals of AUROC.
        random_state : int, RandomState instance or None, default=0
            Seeds the resampling.
        groups : array-like of shape (n,), default=None
            Group of each row, where rows come in groups; intervals then resample whole groups.

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
        >>> coverage = model.report(X[900:], y[900:], n_resamples=50).to_dict()["coverage_at_risk"][-1]
        >>> bool(coverage["trust"] > coverage["confidence"] + 0.2)
        True
        """
        owner = type(self).__name__
        assessed = self.assess(X)
        labels = check_labels(y, "y", owner)
        check_same_length(assessed, "X", labels, "y", owner)
        check_same_kind(labels, self.classes_, "y", owner)
        encode_labels(labels, self.classes_, "y", owner)  # refuses labels unknown to the model
        correct = assessed.predicted == labels
        # Probabilities that sum to one exactly, as trust methods see them: rounding must not rank.
        proba = check_proba(assessed.proba, "proba", owner, n_classes=len(self.classes_))
        confidence = proba[np.arange(len(labels)), np.searchsorted(self.classes_, assessed.predicted)]
        summary = summarize_trust(
            correct,
            assessed.trust,
            confidence,
            risks=risks,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            random_state=random_state,
            groups=groups,
        )
        return TrustReport(summary, correct, assessed.trust, confidence)

    def __sklearn_tags__(self) -> Any:
        """The tags of the wrapped classifier that apply to this one."""
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except AttributeError:  # not an estimator of scikit-learn's kind: nothing to pass on
            return tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.categorical = inner.input_tags.categorical
        return tags

    def _fit_parts(self, rows: TrainingRows) -> tuple[TrainingRows, FloatArray]:
        """Fit the classifier and the vectorizer; return the rows to learn trust from, and the vectors."""
        rows = with_unseen_rows(self, rows)
        self.validation_indices_ = rows.held_out
        self.estimator_ = fitted_classifier(self.estimator, rows, type(self).__name__)
        self._vectorizer = Vectorizer(self.features)
        return rows, self._vectorizer.fit_transform(rows.X, rows.labels, preprocessing_of(self.estimator_))

    def _learn_trust(self, vectors: Any, hashes: IntArray, labels: Array, rows: TrainingRows) -> None:
        """Fit the trust method on vectors of the training rows, in memory or not."""
        owner = type(self).__name__
        method = NeighborAgg() if self.method is None else self.method
        if not isinstance(method, TrustMethod):
            raise InvalidParameterError(
                f"The 'method' parameter of {owner} must be a trust method of neighboragg.methods. "
                f"Got {method!r} instead."
            )
        vectors_val, proba, seen = None, rows.proba, labels
        if rows.X_val is not None and rows.labels_val is not None:
            found = Predictor(self.estimator_).once(rows.X_val, labels=False)
            proba, vectors_val = found.proba, self._vectorizer.vectors_of(rows.X_val, found.inputs)
            hashes_val = row_hashes(vectors_val)
            if rows.held_out is None:
                check_validation_rows(hashes, hashes_val, owner)
            hashes, seen = np.concatenate([hashes, hashes_val]), np.concatenate([labels, rows.labels_val])
        # Only now, because the classes of a network are known after it has run.
        self.classes_ = np.asarray(getattr(self.estimator_, "classes_", np.unique(labels)))
        self.method_ = clone(method).fit(
            vectors,
            labels,
            X_val=vectors_val,
            y_val=rows.labels_val,
            proba_val=proba,
            classes=self.classes_,
            groups=rows.groups,
            groups_val=rows.groups_val,
        )
        self._n_train = len(labels)
        self._fitted_rows = FittedRows(hashes, encode_labels(seen, self.classes_, "y", owner))

    def _checked_rows(self, X: Any) -> Any:
        """New rows as those of fit were; warns if their columns have changed."""
        check_fitted(self, "method_")
        rows, changes = check_columns(self, X)
        if changes:
            warn_of_batch(changes, stacklevel=3)
        return rows

    def _unfamiliar(self, familiarity: FloatArray | None) -> str:
        """A note if more rows of a batch are unfamiliar than by chance."""
        # Fewer than three rows are always within chance.
        if familiarity is None or len(familiarity) < 3 or not isinstance(self.method_, NeighborAgg):
            return ""
        least = float(self.method_.familiarity_.least().max())
        found = too_many_unfamiliar(familiarity, least)
        return (
            ""
            if found is None
            else (
                f"{found[0]:.0%} of these rows are unlike the training data ({found[1]:.0%} expected by chance); "
                "a promised risk does not cover them. Hint: see the column familiarity; SelectiveClassifier("
                "min_familiarity=…) rejects such rows."
            )
        )

    def _predict_once(self, X: Any, *, labels: bool) -> tuple[Predictions, FloatArray]:
        """Predictions for new rows, and their vectors."""
        return self._predict_checked(self._checked_rows(X), labels=labels)

    def _predict_checked(self, rows: Any, *, labels: bool) -> tuple[Predictions, FloatArray]:
        """Predictions for rows that are as those of fit, and their vectors."""
        with refusals_explained(self, rows):
            found = Predictor(self.estimator_).once(rows, labels=labels)
        return found, self._vectorizer.vectors_of(rows, found.inputs)

    def _seen(self, vectors: FloatArray, codes: IntArray | None = None) -> Seen:
        """Mask of the rows that were seen in fit."""
        return self._fitted_rows.find(vectors, type(self).__name__, codes)

    def _original(self, indices: IntArray) -> IntArray:
        """Positions in the rows passed to fit, from positions in training rows followed by validation rows."""
        if self.validation_indices_ is None:
            return indices
        n = self._n_train + len(self.validation_indices_)
        train = np.setdiff1d(np.arange(n), self.validation_indices_)
        return np.where(indices < 0, -1, np.concatenate([train, self.validation_indices_])[indices])

    def _saved_state(self) -> dict[str, Any]:
        state = self.__getstate__()
        if hasattr(self.cv, "__next__"):
            state["cv"] = None  # an iterator of folds cannot be reused
        return state

    def after_load(self) -> None:
        if hasattr(self, "method_"):
            check_same_classes(self.estimator_, self.classes_, type(self).__name__)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_values_in_fit"}


def vectors_of(model: TrustedClassifier, X: Any) -> FloatArray:
    """Vectors of rows, for a model whose parts are fitted."""
    rows, _ = check_columns(model, X)
    with refusals_explained(model, rows):
        return model._vectorizer.transform(rows, preprocessing_of(model.estimator_))


def fit_on_sample(
    model: TrustedClassifier,
    sample: tuple[Any, Array],
    validation: tuple[Any, Array] | None,
    labels: Array,
    vectorize: Callable[[TrustedClassifier, FloatArray], tuple[Any, IntArray]],
) -> TrustedClassifier:
    """Fit the classifier on a sample, and trust on all rows, which need not be in memory.

    `vectorize` returns vectors of all rows, and their hashes; it has the model with its parts fitted, and the vectors
    of the sample.
    """
    owner = type(model).__name__
    rows = training_rows(model, *sample, None, *(validation or (None, None)))
    with refusals_explained(model, rows.X):
        rows, vectors = model._fit_parts(rows)
    if model._vectorizer.views is not None:
        raise InvalidInputError(
            f"{owner} keeps several views of rows in memory, so it cannot be fitted on files."
        )
    known = np.asarray(model.estimator_.classes_)
    for name, given in (("y", labels), ("y_val", rows.labels_val)):  # before all rows are read
        encode_labels(labels if given is None else given, known, name, owner)
    model._row_names = model._values_in_fit = None
    model._learn_trust(*vectorize(model, vectors), labels, rows)
    return model
