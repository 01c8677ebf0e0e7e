"""MislabelDetector and find_mislabeled."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from neighboragg._core.checks import (
    check_choice,
    check_labels,
    check_proba,
    check_same_length,
    encode_labels,
)
from neighboragg._core.estimators import check_classifier, has_preprocessing
from neighboragg._core.inputs import needs_numbers, refusal_explained, take_rows
from neighboragg._core.progress import LOGGER, Listener, add_total, begin_stage, report_to
from neighboragg._core.stats import by_appearance
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._core.views import FEATURES
from neighboragg._pool.crossfit import CrossFitted, Labels, cross_fit, deal_folds, fold_splits
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import Vectorizer
from neighboragg.labels._groups import (
    check_classes,
    check_proba_as_in_fit,
    check_vectors,
    check_verified,
    group_rows,
    n_rows,
    read_rows,
    refuse_labels_among,
    warn_if_in_sample,
    warn_if_known,
    warn_if_not_predictive,
    width,
)
from neighboragg.labels._label_trust import BuiltinModels, fit_label_trust
from neighboragg.labels._noise import RELIABILITIES, find_label_noise, reliability_scores
from neighboragg.labels._result import Evidence, MislabelResult, NewLabels, build_result, evidence_of_new_rows
from neighboragg.labels._rules import FlagRule, LabelScores, Nothing, as_rule

# Score of a label by the noise model; the other scores are by trust alone.
ODDS = "odds"
EFFORTS = ("fast", "balanced", "best")
N_PASSES, N_FOLDS, N_NEIGHBORS = 2, 5, 20
# Beyond this many rows, neighbors are searched in the features only: a learned metric doubles the memory.
MAX_ROWS_FOR_METRIC = 100_000


class MislabelDetector(Savable, BaseEstimator):
    """Finds wrong labels by out-of-sample models and neighbors, in two passes.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, default=None
        Cross-validated in :meth:`fit` to predict every row. None uses only the neighbors, the built-in models, and
        the probabilities passed to :meth:`fit`, if any.
    features : "auto", "passthrough", transformer, callable or mapping, default="auto"
        How rows become the vectors whose distances matter. "auto":
        :class:`~neighboragg.features.TabularFeatures`, which brings the columns of an array or data frame to
        comparable scales and reads texts. "passthrough": numbers as they are, right for embeddings. A transformer
        is cloned and fitted, without labels. A callable maps rows to an array. A mapping of names to these gives every
        row several vectors: see Notes. The same as in :class:`~neighboragg.TrustedClassifier`, except that a Pipeline's
        own preprocessing is not used.
    flag : FlagRule, "estimated", int or float, default="estimated"
        What to flag: :class:`Estimated`, :class:`Budget`, :class:`FalseAlarms` or :class:`FDR`, or a rule of your
        own. Short forms: ``"estimated"``, an int for the number of labels to flag (:class:`Budget`), a float in
        (0, 1) for the share of the right labels that may be flagged (:class:`FalseAlarms`).
    effort : {"fast", "balanced", "best"}, default="balanced"
        Models fitted in addition to the search for neighbors. "fast": none. "balanced": a logistic regression out of
        fold and extra trees out of bag; for texts, also a logistic regression on their words. "best": gradient
        boosting out of fold as well, for many times the cost.
    reliability : {"odds", "margin", "difference", "trust", "paper"}, default="odds"
        Score of a label. "odds": log odds that it is right, by a model of how wrong labels come about; see Notes. The
        others: of trust alone, see :func:`label_reliability`.
    duplicates : {"group", "ignore"}, default="group"
        Whether rows with identical features form a group, and so do not vouch for each other. Right for
        copies; choose ``"ignore"`` where independent rows coincide, as with few discrete features.
    random_state : int, RandomState instance or None, default=0
        Seeds folds and built-in models.
    n_jobs : int, default=None
        Threads of the search and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    result_ : MislabelResult
        What was found among the rows passed to :meth:`fit`.
    n_features_in_ : int
    classifier_ : object or None
        The cross-validated copies of `estimator`, if one was given.

    See Also
    --------
    find_mislabeled : The same as one function.

    Notes
    -----
    *Evidence*, all out of sample: given probabilities, built-in models, distances to the nearest 1, 5 and 20 rows of
    each class, and the labels of the 20 nearest rows; both also in a learned metric. A log-linear pool turns it into
    trust t_c in every class. As labels are noisy, a second pass weights every row by t_y / max_c t_c in the built-in
    models, the votes and the pool, and takes distances only to rows with a weight above 1/2. The geometric mean of the
    passes, with one temperature, is the label trust. Class-wise distances take 16 · n · n_classes · n_neighbors bytes
    in each metric.

    *P(label is wrong).* A model of random errors (their rate, pairs of classes that are mistaken for each other, and
    how much sharper the right label is known than the given one) is fitted by expectation maximization. Errors that
    look like ambiguity cannot be told from it; they are ranked by how far another class is trusted more. The two are
    mixed by how much the first explains, so small changes of the data do not make the result jump. Errors of a model
    look right to a model: where labels were made by one, the order is good, and the probabilities are far too low.

    *Rows that must not vouch for each other.* Rows of one group, and identical rows, are never neighbors of one
    another and always in the same fold; out-of-fold trees then replace out-of-bag trees, which cannot keep them apart.
    Probabilities passed to :meth:`fit` should come from such folds as well.

    *Several views.* If `X` or `features` is a mapping of names to vectors (layers of a network, two encoders, a text
    and a table), the neighbors in each view are experts of their own in the pool, and reasons name them. Built-in
    models see all views side by side. The result has the neighbors in the first view.

    *A class with one row.* No other row can vouch for it, so its trust is low and its score suspicious, with the reason
    "only row of class …". Often it is a misspelled label. If all rows are in one group, trust is uniform and nothing is
    flagged.

    References
    ----------
    .. [1] Xiong et al., "Birds of a Feather Trust Together: Knowing When to Trust a Classifier via Adaptive
       Neighborhood Aggregation", TMLR 2022, section 3.3.
    .. [2] Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", Journal
       of Artificial Intelligence Research 70, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg import MislabelDetector
    >>> X, y = load_digits(return_X_y=True)
    >>> noisy = y[::3].copy()
    >>> noisy[::10] = (noisy[::10] + 1) % 10  # every tenth label is wrong
    >>> detector = MislabelDetector().fit(X[::3], noisy)
    >>> flagged = detector.result_.mask
    >>> bool((noisy != y[::3])[flagged].mean() > 0.9), bool(flagged[::10].mean() > 0.75)
    (True, True)
    >>> X_new, y_new = X[1::9], y[1::9]
    >>> right, wrong = (detector.predict(X_new, labels).mean() for labels in (y_new, 9 - y_new))
    >>> bool(right < 0.05), bool(wrong > 0.7)
    (True, True)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        features: Any = "auto",
        flag: FlagRule | str | float = "estimated",
        effort: str = "balanced",
        reliability: str = "odds",
        duplicates: str = "group",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.flag = flag
        self.effort = effort
        self.reliability = reliability
        self.duplicates = duplicates
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        proba: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        verified: ArrayLike | None = None,
    ) -> Self:
        """Judge the label of every row.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n, n_features), sequence of str, or mapping
            The rows: a table of numbers, categories and texts, embeddings (with ``features="passthrough"``), or a
            list, 1-D array or Series of texts; or a mapping of names to several of these, views of the same rows.
        y : array-like of shape (n,)
            Labels to judge, of at least two classes.
        proba : array-like of shape (n, n_classes), default=None
            *Out-of-fold* probabilities of a classifier, columns in the sorted order of classes; not together
            with `estimator`.
        groups : array-like of shape (n,), default=None
            Rows of one group (a patient, a video, a source) do not vouch for each other.
        verified : array-like of bool of shape (n,) or of int, default=None
            Mask or numbers of rows whose labels have been verified to be right. They are never flagged, and
            p-values are taken against them. Needed for :class:`FDR`.

        Returns
        -------
        self : MislabelDetector
        """
        self._judge(X, y, proba, groups, verified, keep_models=True)
        return self

    def _judge(
        self,
        X: Any,
        y: ArrayLike,
        proba: ArrayLike | None,
        groups: ArrayLike | None,
        verified: ArrayLike | None,
        *,
        keep_models: bool,
    ) -> MislabelResult:
        """Fit; without its built-in models, the detector cannot judge further rows."""
        owner = type(self).__name__
        self._rule = as_rule(self.flag, owner)
        self._check_params(proba)
        rows = read_rows(X, owner, keep_vectors=has_preprocessing(self.estimator))
        if not n_rows(rows):
            raise InvalidInputError(f"X passed to {owner} has no rows.")
        if isinstance(rows, dict) and self.estimator is not None:
            raise InvalidInputError(
                f"{owner} got an estimator and several views of X, of which it would not know which to take.\n"
                "Hint: pass its out-of-fold probabilities as proba; or X as the estimator takes it, and views as a "
                "mapping of features."
            )
        self.n_features_in_ = width(rows)
        self._vectorizer = Vectorizer(self.features)
        # Without labels: vectors that had seen them would vouch for them.
        vectors, terms = self._vectorizer.fit_represent(rows, None)
        check_vectors(vectors, owner)
        self.classes_, codes = check_classes(y, vectors, owner)
        refuse_labels_among(rows, self.classes_[codes], owner)
        n, n_classes = len(codes), len(self.classes_)
        is_verified = check_verified(verified, n, owner)
        self._rule.check(is_verified)
        rng = check_random_state(self.random_state)
        grouped = group_rows(vectors, codes, groups, join_duplicates=self.duplicates == "group", owner=owner)
        folds = deal_folds(by_appearance(codes), by_appearance(grouped.groups), N_FOLDS, rng)
        self.classifier_ = None if self.estimator is None else self._cross_validate(rows, codes, folds)
        given = None if self.classifier_ is None else self.classifier_.proba
        if proba is not None:
            given = check_proba(proba, "proba", owner, n_classes=n_classes, n_rows=n)
        self._needs_proba = proba is not None
        seed = int(rng.randint(2**31 - 1))
        self._label_trust = fit_label_trust(
            vectors,
            self._vectorizer.views or {FEATURES: vectors.shape[1]},
            Labels(codes, n_classes, grouped.groups, folds),
            BuiltinModels(self.effort, terms, keep_models, seed, self.n_jobs),
            proba=given,
            n_neighbors=N_NEIGHBORS,
            learned_metric=n <= MAX_ROWS_FOR_METRIC,
            n_passes=N_PASSES,
            report=LOGGER.info,
        )
        fitted = self._label_trust
        if proba is not None:
            models = [model.proba for model in fitted.passes[0].models.values()]
            warn_if_in_sample(given, [*fitted.votes.values(), *models], codes, owner)
        weak = warn_if_not_predictive(
            fitted.predictiveness(codes), owner, needs_evidence=self._rule.needs_evidence
        )
        if weak and self._rule.needs_evidence:
            self._rule = Nothing(
                self._rule.name, f"Nothing is flagged, as nothing predicts the labels: {weak}."
            )
        found = find_label_noise(fitted.trust, fitted.first, codes, fitted.is_clustered)
        self._noise = found.noise
        scores = self._scores(fitted.trust, fitted.first, codes, given)
        self._verified_scores = scores[is_verified]
        labels = LabelScores(scores, fitted.trust, codes, is_verified, found)
        flags = self._rule.flag(labels)
        self.result_ = build_result(
            fitted,
            self.classes_,
            labels,
            flags,
            proba=given,
            rule=self._rule.name,
            notes=grouped.notes,
            index=X.index if hasattr(X, "iloc") else None,
        )
        LOGGER.info(f"{self.result_.n_flagged} of {n} labels flagged")
        return self.result_

    def score_reliability(self, X: Any, y: ArrayLike, *, proba: ArrayLike | None = None) -> FloatArray:
        """Reliability of the labels of new rows, judged against the rows passed to :meth:`fit`.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n_features), or mapping
            New rows, as those of fit. Those passed to :meth:`fit` have been judged out of sample in `result_`.
        y : array-like of shape (m,)
            Their labels, all known from :meth:`fit`.
        proba : array-like of shape (m, n_classes), default=None
            Probabilities of the classifier whose probabilities were passed to :meth:`fit`; given if and only
            if those were.

        Returns
        -------
        scores : ndarray of shape (m,)
            Low is suspicious; comparable with ``result_.scores``.
        """
        return self.judge(X, y, proba=proba).scores

    def predict(self, X: Any, y: ArrayLike, *, proba: ArrayLike | None = None) -> BoolArray:
        """Flag the labels of new rows.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (m, n_features), or mapping
        y : array-like of shape (m,)
        proba : array-like of shape (m, n_classes), default=None
            As in :meth:`score_reliability`.

        Returns
        -------
        mask : ndarray of bool of shape (m,)
            True where the score is below ``result_.threshold``; with :class:`FDR`, the discoveries among these
            rows.
        """
        return self.judge(X, y, proba=proba).mask

    def judge(self, X: Any, y: ArrayLike, *, proba: ArrayLike | None = None) -> NewLabels:
        """Scores, flags and suggestions for the labels of new rows, from one search.

        Parameters
        ----------
        X, y, proba : array-like
            As in :meth:`score_reliability`.

        Returns
        -------
        found : NewLabels
        """
        vectors, terms, codes, given = self._read_new(X, y, proba)
        warn_if_known(vectors, self._label_trust.passes[0].neighbors.vectors, type(self).__name__)
        trust, first = self._label_trust.trust_of(vectors, given, terms)
        scores = self._scores(trust, first, codes, given)
        mask = self._rule.flag_new(scores, self.result_.threshold, self._verified_scores)
        return NewLabels.of(self.classes_, codes, trust, scores, mask)

    def evidence(self, X: Any, y: ArrayLike, *, proba: ArrayLike | None = None) -> Evidence:
        """Reasons and neighbors for the labels of new rows.

        Parameters
        ----------
        X, y, proba : array-like
            As in :meth:`score_reliability`.

        Returns
        -------
        evidence : Evidence
            Neighbors are numbers of rows passed to :meth:`fit`.
        """
        vectors, terms, codes, given = self._read_new(X, y, proba)
        return evidence_of_new_rows(self._label_trust, self.classes_, vectors, codes, given, terms)

    def _check_params(self, proba: ArrayLike | None) -> None:
        owner = type(self).__name__
        check_choice(self.reliability, "reliability", owner, choices=(ODDS, *RELIABILITIES))
        check_choice(self.effort, "effort", owner, choices=EFFORTS)
        check_choice(self.duplicates, "duplicates", owner, choices=("group", "ignore"))
        if self.estimator is not None:
            check_classifier(self.estimator, owner, refitted=True)
            if proba is not None:
                raise InvalidInputError(
                    f"{owner} got both an estimator and proba.\n"
                    "Hint: pass the estimator to have it cross-validated here, or out-of-fold proba, not both."
                )

    def _cross_validate(self, rows: Any, codes: IntArray, folds: Array) -> CrossFitted:
        owner = type(self).__name__
        add_total(len(np.unique(folds)))
        begin_stage("Cross-validating the classifier")
        with refusal_explained(rows, "X", owner, needs_numbers(self.estimator)):
            fitted = cross_fit(
                lambda n: clone(self.estimator),
                lambda chosen: take_rows(rows, chosen),
                self.classes_[codes],
                self.classes_,
                fold_splits(folds),
            )
        checked = check_proba(
            fitted.proba, "the output of predict_proba", owner, n_classes=len(self.classes_)
        )
        LOGGER.info(f"classifier cross-validated, accuracy {(checked.argmax(axis=1) == codes).mean():.3f}")
        return replace(fitted, proba=checked)

    def _read_new(
        self, X: Any, y: ArrayLike, proba: ArrayLike | None
    ) -> tuple[FloatArray, Any, IntArray, FloatArray | None]:
        """Vectors and terms of new rows, their labels as positions in the classes, and probabilities."""
        check_is_fitted(self, "result_")
        owner = type(self).__name__
        rows = read_rows(X, owner, keep_vectors=has_preprocessing(self.estimator))
        self._vectorizer.check_columns(rows, owner)
        if width(rows) != self.n_features_in_:
            raise InvalidInputError(
                f"X passed to {owner} has {width(rows)} features, but {self.n_features_in_} were seen in fit."
            )
        vectors, terms = self._vectorizer.represent(rows)
        labels = check_labels(y, "y", owner)
        check_same_length(vectors, "X", labels, "y", owner)
        codes = encode_labels(labels, self.classes_, "y", owner)
        return vectors, terms, codes, self._proba_of_new(rows, proba, len(vectors))

    def _proba_of_new(self, rows: Any, proba: ArrayLike | None, n: int) -> FloatArray | None:
        owner = type(self).__name__
        check_proba_as_in_fit(proba, owner, needed=self._needs_proba)
        if self.classifier_ is not None:
            return self.classifier_.predict_proba(rows)
        if proba is None:
            return None
        return check_proba(proba, "proba", owner, n_classes=len(self.classes_), n_rows=n)

    def _scores(
        self, trust: FloatArray, first: FloatArray, codes: IntArray, proba: FloatArray | None
    ) -> FloatArray:
        if self.reliability == ODDS:
            return self._noise.log_odds(trust, first, codes)
        predicted = None if proba is None else proba.argmax(axis=1)
        return reliability_scores(trust, codes, self.reliability, predicted)


def find_mislabeled(
    X: Any,
    y: ArrayLike,
    *,
    estimator: Any = None,
    proba: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    flag: FlagRule | str | float = "estimated",
    random_state: Any = 0,
    progress: Listener | None = None,
    **settings: Any,
) -> MislabelResult:
    """Find the wrong labels of a data set.

    Parameters
    ----------
    X : array-like, data frame or sparse matrix of shape (n, n_features), sequence of str, or mapping
        The rows, as in :meth:`MislabelDetector.fit`; images with ``features=ImageFeatures()``.
    y : array-like of shape (n,)
        Labels to judge, of at least two classes.
    estimator : classifier with `predict_proba`, default=None
        Cross-validated to predict every row.
    proba : array-like of shape (n, n_classes), default=None
        Out-of-fold probabilities instead of an estimator, columns in the sorted order of classes. Without both, only
        neighbors and built-in models are used.
    groups : array-like of shape (n,), default=None
        Rows of one group do not vouch for each other.
    verified : array-like of bool of shape (n,) or of int, default=None
        Rows whose labels have been verified to be right, as a mask or by number; never flagged.
    flag : FlagRule, "estimated", int or float, default="estimated"
        What to flag, as in :class:`MislabelDetector`; an int is the number of labels to flag, a float in (0, 1) the
        share of the right labels that may be flagged.
    random_state : int, RandomState instance or None, default=0
        Seeds folds and built-in models.
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` with a text and two numbers while the work goes on; `total` is 0 as
        long as it is not known.
    **settings : dict
        Any other parameter of :class:`MislabelDetector`.

    Returns
    -------
    result : MislabelResult

    See Also
    --------
    MislabelDetector : The same as an object, which can judge further rows.

    Notes
    -----
    The method is described in :class:`MislabelDetector`, what each rule promises in its own class.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from neighboragg import find_mislabeled
    >>> X, y = load_wine(return_X_y=True)
    >>> noisy = y.copy()
    >>> noisy[::20] = (noisy[::20] + 1) % 3  # nine wrong labels
    >>> result = find_mislabeled(X, noisy, flag=9)
    >>> int((noisy != y)[result.mask].sum())
    8
    """
    detector = MislabelDetector(estimator, flag=flag, random_state=random_state, **settings)
    with report_to(progress):
        return detector._judge(X, y, proba, groups, verified, keep_models=False)
