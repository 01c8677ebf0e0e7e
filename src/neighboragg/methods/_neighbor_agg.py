"""NeighborAgg: the classifier's probabilities and class-wise neighbors, combined by a learned aggregator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_choice, check_fitted, check_integer, check_labels, check_proba
from neighboragg._core.estimators import WRAPPED, refuse_network
from neighboragg._core.progress import begin_stage
from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import ArrayLike, FloatArray, IntArray
from neighboragg._core.views import FEATURES, columns_of, stack_known_views, stack_views
from neighboragg._pool.evidence import Evidence, FitData
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.opinions import (
    EFFORTS,
    SecondOpinion,
    fit_second_opinions,
    learns_a_map,
    resolve_opinions,
)
from neighboragg._pool.pool import Aggregator, PoolAggregator
from neighboragg._pool.row_groups import without_own_groups
from neighboragg._pool.row_weights import choose_pool_rows, sample_weights
from neighboragg._pool.spaces import Neighborhoods, Neighbors, Spaces
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods._explanation import Explanation
from neighboragg.methods._familiarity import Familiarity, learn_nonconformity
from neighboragg.methods._method import TrustMethod
from neighboragg.search import Sample, Streamed, check_search, sample_of, stream_rows

AGGREGATORS: dict[str, type[Aggregator]] = {"network": NetworkAggregator, "pool": PoolAggregator}
# Class-wise distances in memory at a time while scoring: 2**23 values, 64 MB.
SCORING_ELEMENTS = 2**23
# Those in memory in fit; rather than more, the pool searches twice.
HELD_ELEMENTS = 2**25


class NeighborAgg(TrustMethod):
    """Trust from the K nearest training rows in every class, combined with the classifier's probabilities.

    Parameters
    ----------
    aggregator : {"pool", "network"} or Aggregator, default="pool"
        "pool": a log-linear opinion pool, the best score; "network": the paper's.
    n_neighbors : int, default=None
        Neighbors per class. None takes the aggregator's own: 20 for the pool (50 at best effort), 5 for the network.
    learned_metric : bool, default=True
        Search for neighbors in a learned linear map of the features too, if the aggregator uses it.
    effort : {"fast", "balanced", "best"}, default="balanced"
        Computation spent on built-in second opinions, which join the pool. "fast": none. "balanced": a kernel
        classifier, which adds about half the cost of the rest. "best": a kernel classifier with twice the landmarks,
        another in the learned metric, a random forest, extremely randomized trees, gradient boosting (with two
        classes: of large and of small trees), and 50 neighbors per class, for many times the cost.
    second_opinions : "auto", None or list, default="auto"
        Classifiers whose log-probabilities join the pool. "auto": those of `effort`. A list replaces them; it may hold
        classifiers and the names "kernel", "smooth kernel", "forest", "extra trees", "boosting" and "shallow boosting".
        None: no second opinion.
    search : Exact, Streamed or Approximate, default=None
        How neighbors are searched, from :mod:`neighboragg.search`; None is ``Exact()``. With
        ``Streamed(memory="2 GB")``, `X` of fit may be an array, a memory map or Parquet files, and is read in blocks;
        the metric and the second opinions are then learned from at most 50,000 of its rows, drawn at random, and some
        more of rare classes. With no more rows than that, the result is that of ``Exact()``. With
        ``Approximate(recall=0.99)``, the indexes in ``neighborhoods_.indexes`` report the recall in `recall_`.
    n_jobs : int, default=None
        Number of threads of the search.
    random_state : int, RandomState instance or None, default=0
        Seeds the learned metric, the network and automatic second opinions.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    aggregator_ : Aggregator
        Fitted aggregator.
    spaces_ : Spaces
        ``spaces_.views`` has the number of features of each view ("features" where rows were not a mapping),
        ``spaces_.components`` the learned metric of each view that has one, of shape (n_features, rank).
    neighborhoods_ : Neighborhoods
        ``neighborhoods_.indexes`` has an index of the reference rows for each view and for each learned metric.
    opinions_ : list
        Fitted second opinions.
    sample_ : Sample or None
        Training rows that the learned parts have seen, if rows were streamed.
    familiarity_ : Familiarity
        How far from their neighbors the validation rows are.

    Notes
    -----
    For a frozen classifier with probabilities p(x), r_ck(x) is the distance to the k-th nearest reference row
    of class c. The aggregator is fitted on validation rows that the classifier has not seen. With the pool the
    reference rows are training and validation rows, and a validation row leaves itself out; with the network
    they are the training rows, as in the paper.

    Validation rows can be easier or harder than others by chance. The pool weighs them as surveys do: classes, and rows
    with few or many of their 20 nearest neighbors in their own class (in the first view, and with fewer than 5,000
    validation rows), get their shares among training and validation rows. Shares that differ by more than chance, as
    when a network has memorized its training rows, are left as they are.

    A row may have several vectors, such as two layers of a network, or text and table: `X` is then a mapping of names
    to arrays. Each view has its own neighbors and learned metric, which are experts of their own in the pool, and
    validation rows decide what each is worth. Second opinions see all views side by side.

    References
    ----------
    Xiong, Li, Feng, Deng, Zhang and Hooi, "Birds of a Feather Trust Together: Knowing When to Trust a Classifier
    via Adaptive Neighborhood Aggregation", TMLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg.methods import NeighborAgg
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> clf = LogisticRegression(max_iter=50, tol=0.1).fit(X[::3], y[::3])
    >>> method = NeighborAgg().fit(
    ...     X[::3], y[::3], X_val=X[1::3], y_val=y[1::3], proba_val=clf.predict_proba(X[1::3]))
    >>> trust = method.score_samples(X[2::3], clf.predict_proba(X[2::3]))
    >>> correct = clf.predict(X[2::3]) == y[2::3]
    >>> bool(trust[correct].mean() > trust[~correct].mean() + 0.3)
    True
    """

    aggregator_: Aggregator
    spaces_: Spaces
    neighborhoods_: Neighborhoods
    opinions_: list[SecondOpinion]
    sample_: Sample | None = None

    def __init__(
        self,
        aggregator: str | Aggregator = "pool",
        *,
        n_neighbors: int | None = None,
        learned_metric: bool = True,
        effort: str = "balanced",
        second_opinions: str | Sequence[Any] | None = "auto",
        search: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.aggregator = aggregator
        self.n_neighbors = n_neighbors
        self.learned_metric = learned_metric
        self.effort = effort
        self.second_opinions = second_opinions
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state

    def training_sample(self, y: ArrayLike) -> IntArray:
        """The training rows that the learned parts see if rows are streamed.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels of all training rows.

        Returns
        -------
        rows : ndarray of int
            Positions, ascending. If there are no validation rows, `fit` takes the out-of-fold probabilities of these
            instead of those of all rows.
        """
        codes = np.unique(check_labels(y, "y", type(self).__name__), return_inverse=True)[1]
        return sample_of(codes, self.random_state).rows

    def kneighbors(
        self, X: ArrayLike, n_neighbors: int | None = None, *, view: str | None = None
    ) -> tuple[FloatArray, IntArray]:
        """Nearest reference rows of every class in the feature space.

        Parameters
        ----------
        X : array-like of shape (n, n_features), or mapping of views as in fit
        n_neighbors : int, default=None
            Neighbors per class; defaults to those used for the trust.
        view : str, default=None
            The view to search, where there are several; the first by default.

        Returns
        -------
        distances, indices : ndarray of shape (n, n_classes, n_neighbors)
            Indices count the training rows first, then the validation rows; missing ones are (inf, -1).
        """
        check_fitted(self, "n_features_in_")
        spaces = self.spaces_
        name = check_choice(view or spaces.first, "view", type(self).__name__, choices=spaces.views)
        rows = self._check_vectors(X, "X", n_features=self.n_features_in_)
        return self.neighborhoods_.find_in(name, rows, n_neighbors)

    def familiarity(self, X: ArrayLike, proba: ArrayLike, *, exclude: IntArray | None = None) -> FloatArray:
        """P-value for "rows like this have been seen"; small for a row that is far from all reference rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
            The classifier's probabilities; rows are compared with validation rows of the same most probable class,
            where there are at least 99 of them.
        exclude : ndarray of int of shape (n,), default=None
            As in :meth:`predict_trust`.

        Returns
        -------
        familiarity : ndarray of shape (n,)
            In (0, 1]. An alarm at p ≤ α is false with probability at most α.

        Notes
        -----
        A conformal p-value: the share of the validation rows, with the new row among them, that are at least as unusual
        as the new row. Two numbers are added: the mean log distance to the 5 nearest reference rows of any class, in
        the features and in the learned metric, compared with the usual one of the predicted class; and the entropy of
        the probabilities. A row of `exclude` has been seen, so no row is more familiar. If all vectors have unit
        length, a row of length zero is the most unusual.

        *Guarantee.* Let the validation rows and a new row be exchangeable: drawn at random from one source, and treated
        alike by all earlier steps, the classifier and the making of the vectors. Then P(p ≤ α) ≤ α for every α,
        exactly, over the draw of both, with ties, and within every group of classes that is compared. For one fitted
        model the share of false alarms varies around α like a Beta distribution with as many rows as validation rows.

        *Where it is approximate.* Without `X_val`, the probabilities are out of fold, and may favor other classes than
        the final classifier does; vectors may be scaled with the rows themselves.

        Examples
        --------
        >>> import numpy as np
        >>> from neighboragg.methods import NeighborAgg
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
        >>> P = np.full((200, 2), 0.5)
        >>> method = NeighborAgg().fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:], proba_val=P)
        >>> usual, far = method.familiarity([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], P[:2])
        >>> bool(usual > 0.5), float(far.round(3))
        (True, 0.005)
        """
        return self.trust_and_familiarity(X, proba, exclude=exclude)[1]

    def trust_and_familiarity(
        self, X: ArrayLike, proba: ArrayLike, *, exclude: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The results of :meth:`predict_trust` and :meth:`familiarity`, from one search.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
        exclude : ndarray of int of shape (n,), default=None
            As in :meth:`predict_trust`.

        Returns
        -------
        trust : ndarray of shape (n, n_classes)
        familiarity : ndarray of shape (n,)
        """
        rows, values = self._check_query(X, proba)
        trust, familiarity = np.empty_like(values), np.empty(len(rows))
        with ONE_THREAD:  # once for all searches and opinions
            for part in self._parts(len(rows), SCORING_ELEMENTS):
                evidence, found = self._evidence(rows[part], values[part], _at(exclude, part), search=True)
                familiarity[part] = self._p_values(rows[part], evidence.proba, found, _at(exclude, part))
                trust[part] = self.aggregator_.predict_trust(evidence)
        return trust, familiarity

    def explain(
        self,
        X: ArrayLike,
        proba: ArrayLike,
        *,
        y_pred: ArrayLike | None = None,
        exclude: IntArray | None = None,
    ) -> Explanation:
        """What raised and lowered the trust, by expert and class, and the neighbors behind it.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
        y_pred : array-like of shape (n,), default=None
            Predicted labels; defaults to the most probable class.
        exclude : ndarray of int of shape (n,), default=None
            As in :meth:`predict_trust`.

        Returns
        -------
        explanation : Explanation
        """
        rows, values = self._check_query(X, proba)
        predicted = values.argmax(axis=1) if y_pred is None else self._check_codes(y_pred, "y_pred", rows)
        evidence, found = self._evidence(rows, values, exclude, search=True)
        names, groups, spaces, contributions = self.aggregator_.contributions(evidence)
        shown = found[self.spaces_.first]
        return Explanation(
            self.classes_,
            predicted,
            self.aggregator_.predict_trust(evidence),
            names,
            contributions,
            shown.distances,
            self.neighborhoods_.positions(shown.ids),
            groups=groups,
            spaces=spaces,
            proba=values,
            opinions=evidence.opinions,
            guard_weight=float(getattr(self.aggregator_, "guard_weight_", 1.0)),
            familiarity=self._p_values(rows, values, found, exclude),
        )

    def _check_fit(
        self,
        X: Any,
        y: ArrayLike,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        proba_val: ArrayLike,
        classes: ArrayLike | None,
    ) -> FitData:
        self.sample_ = None
        owner = type(self).__name__
        if not isinstance(check_search(self.search, owner), Streamed):
            return super()._check_fit(X, y, X_val, y_val, proba_val, classes)
        streamed = stream_rows(X, y, classes, self.random_state, owner)
        self.sample_ = streamed.sample
        rows = streamed.sample.rows
        if X_val is None and y_val is None and np.shape(proba_val)[:1] != rows.shape:
            proba_val = check_proba(
                proba_val, "proba_val", owner, n_classes=len(streamed.classes), n_rows=len(streamed.codes)
            )[rows]
        labels = streamed.classes[streamed.codes[rows]]
        data = super()._check_fit(streamed.sampled_rows(), labels, X_val, y_val, proba_val, streamed.classes)
        return replace(data, streamed=streamed)

    def _check_vectors(self, X: Any, name: str, *, n_features: int | None = None) -> FloatArray:
        if not isinstance(X, Mapping):
            rows = super()._check_vectors(X, name, n_features=n_features)
            if n_features is None:
                self.spaces_ = Spaces({FEATURES: rows.shape[1]})
            return rows
        owner = type(self).__name__
        if n_features is not None:
            return stack_known_views(X, self.spaces_.views, name, owner)
        rows, views = stack_views(X, name, owner)
        self.spaces_ = Spaces(views)
        return rows

    def _fit(self, data: FitData) -> None:
        self.aggregator_ = self._resolve_aggregator()
        # One draw, whatever is learned: the order of draws is part of the results.
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        first = columns_of(self.spaces_.views)[self.spaces_.first]
        data, rows_of_fit = without_own_groups(
            data,
            first,
            indexes_validation=self.aggregator_.indexes_validation,
            owner=type(self).__name__,
            n_jobs=self.n_jobs,
            seed=seed,
        )
        opinions = resolve_opinions(
            self.second_opinions,
            effort=self.effort,
            n_classes=data.n_classes,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        opinions = opinions if self.aggregator_.uses_opinions else []
        learns = self.learned_metric and self.aggregator_.uses_learned_metric
        views = self.spaces_.views_to_learn(data.codes) if learns else []
        mapped = bool(views) or any(learns_a_map(opinion) for _, opinion in opinions)
        pool_rows = choose_pool_rows(data, mapped, limited=self.aggregator_.indexes_validation, seed=seed)
        begin_stage("Learning the metric")
        self.spaces_ = self.spaces_.with_metrics(views, data, pool_rows, seed)
        search = check_search(self.search, type(self).__name__)
        self.neighborhoods_ = Neighborhoods.of(
            self.spaces_,
            data,
            with_validation=self.aggregator_.indexes_validation,
            search=search,
            rows_of_fit=rows_of_fit,
            n_neighbors=self._resolve_n_neighbors(),
            n_jobs=self.n_jobs,
        )
        self.opinions_, proba_of = fit_second_opinions(opinions, data, pool_rows)
        begin_stage(f"Weighing experts by {len(pool_rows):,} validation rows")
        weight: FloatArray = np.ones(len(pool_rows))
        if self.aggregator_.weighs_rows:
            weight = sample_weights(
                data, pool_rows, first, metric=search.metric, n_jobs=self.n_jobs, seed=seed
            )
        positions = data.positions_of_validation[pool_rows]
        nonconformity = learn_nonconformity(
            data, pool_rows, self.spaces_, metric=search.metric, n_jobs=self.n_jobs, seed=seed
        )
        unusual = np.empty(len(pool_rows))

        def evidence_of(part: slice) -> Evidence:
            rows = pool_rows[part]
            found = self._find(data.X_val[rows], positions[part])
            unusual[part] = nonconformity(data.X_val[rows], data.proba_val[rows], _distances(found))
            opinions = {name: proba[part] for name, proba in proba_of.items()}
            return self._as_evidence(data.proba_val[rows], found, opinions, weight[part])

        parts = list(self._parts(len(pool_rows), HELD_ELEMENTS))
        if isinstance(self.aggregator_, PoolAggregator) and len(parts) > 1:  # searched again when needed
            parts = list(self._parts(len(pool_rows), SCORING_ELEMENTS))
            self.aggregator_.fit_parts(lambda: map(evidence_of, parts), data.codes_val[pool_rows])
        else:
            self.aggregator_.fit(evidence_of(slice(len(pool_rows))), data.codes_val[pool_rows])
        predicted = data.proba_val[pool_rows].argmax(axis=1)
        self.familiarity_ = Familiarity(nonconformity, unusual, predicted, data.n_classes)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return self._trust_without(X, proba, None)

    def _trust_without(self, X: FloatArray, proba: FloatArray, exclude: IntArray | None) -> FloatArray:
        trust = np.empty_like(proba)
        for part in self._parts(len(X), SCORING_ELEMENTS):
            evidence, _ = self._evidence(X[part], proba[part], _at(exclude, part))
            trust[part] = self.aggregator_.predict_trust(evidence)
        return trust

    def _evidence(
        self, X: FloatArray, proba: FloatArray, exclude: IntArray | None, *, search: bool = False
    ) -> tuple[Evidence, dict[str, Neighbors]]:
        """Evidence about new rows, and their neighbors; without `search`, only if the aggregator uses them."""
        found = self._find(X, exclude) if search or self.aggregator_.uses_neighbors else {}
        seen = self.neighborhoods_.ids(exclude)
        if exclude is not None and self.sample_ is not None:
            seen = self.sample_.positions(exclude)
        opinions = {opinion.name: opinion.predict_proba(X, seen) for opinion in self.opinions_}
        return self._as_evidence(proba, found, opinions), found

    def _as_evidence(
        self,
        proba: FloatArray,
        found: dict[str, Neighbors],
        opinions: dict[str, FloatArray],
        weight: FloatArray | None = None,
    ) -> Evidence:
        distances = _distances(found)
        if not self.aggregator_.uses_neighbors:
            indexes = self.neighborhoods_.indexes
            distances = {name: np.zeros((*proba.shape, index.n_neighbors)) for name, index in indexes.items()}
        floors = {opinion.name: opinion.floor for opinion in self.opinions_}
        return Evidence(proba, distances, opinions, floors, weight=weight)

    def _find(self, X: FloatArray, positions: IntArray | None) -> dict[str, Neighbors]:
        return self.neighborhoods_.find(X, self.neighborhoods_.ids(positions))

    def _p_values(
        self, X: FloatArray, proba: FloatArray, found: dict[str, Neighbors], exclude: IntArray | None
    ) -> FloatArray:
        ids = self.neighborhoods_.ids(exclude)
        # A row that leaves itself out of the search for neighbors has been seen nevertheless. If it is a new row that
        # copies a row of fit, validation rows that are copies have found theirs too.
        seen = None if ids is None else ids >= 0
        unusual = self.familiarity_.nonconformity(X, proba, _distances(found), seen)
        return self.familiarity_.of(unusual, proba.argmax(axis=1))

    def _parts(self, n: int, n_elements: int) -> Iterator[slice]:
        """Consecutive slices of as many rows as have so many distances."""
        step = max(1, n_elements // (self.neighborhoods_.distances_per_row * len(self.classes_)))
        return (slice(start, start + step) for start in range(0, n, step))

    def _resolve_n_neighbors(self) -> int:
        if self.n_neighbors is not None:
            return check_integer(self.n_neighbors, "n_neighbors", type(self).__name__, minimum=1)
        of_effort = EFFORTS[self.effort].n_neighbors if self.aggregator_.uses_opinions else None
        return of_effort or self.aggregator_.default_n_neighbors

    def _resolve_aggregator(self) -> Aggregator:
        if isinstance(self.aggregator, Aggregator):
            return clone(self.aggregator)
        if isinstance(self.aggregator, str) and self.aggregator in AGGREGATORS:
            return AGGREGATORS[self.aggregator]()
        refuse_network(self.aggregator, "aggregator", type(self).__name__, WRAPPED)
        raise InvalidParameterError(
            f"The 'aggregator' parameter of {type(self).__name__} must be one of "
            f"{', '.join(map(repr, sorted(AGGREGATORS)))} or an Aggregator. Got {self.aggregator!r} instead."
        )


def _distances(found: Mapping[str, Neighbors]) -> dict[str, FloatArray]:
    return {name: neighbors.distances for name, neighbors in found.items()}


def _at(positions: IntArray | None, part: slice) -> IntArray | None:
    return None if positions is None else positions[part]
