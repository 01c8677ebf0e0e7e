"""NeighborAgg: the classifier's probabilities and class-wise neighbors, combined by a learned aggregator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from neighboragg._core.checks import check_choice, check_fitted, check_integer, check_labels, check_proba
from neighboragg._core.progress import announce
from neighboragg._core.threads import ONE_THREAD
from neighboragg._core.types import ArrayLike, FloatArray, IntArray
from neighboragg._core.views import FEATURES, columns_of, learned, stack_views, view_of
from neighboragg._pool.evidence import Evidence, FitData, Opinion
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.opinions import EFFORTS, fit_second_opinion, learns_a_map, resolve_opinions
from neighboragg._pool.pool import Aggregator, PoolAggregator
from neighboragg._pool.row_weights import sample_weights
from neighboragg._store.objects import require
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.methods._explanation import Explanation
from neighboragg.methods._familiarity import (
    N_NEAREST,
    Familiarity,
    Nonconformity,
    are_directions,
    doubt,
    log_distances,
    usual_distances,
)
from neighboragg.methods._method import TrustMethod
from neighboragg.search import (
    Blocks,
    ChainedBlocks,
    ClasswiseNeighbors,
    Exact,
    LinearBlocks,
    Sample,
    Streamed,
    as_blocks,
    check_search,
    gather,
    index_for,
    learn_metric,
    map_rows,
    sample_of,
    stream_rows,
)

GATHERED_ROWS = 4096


class ReferenceSearch(TrustMethod):
    """The half of NeighborAgg that has reference rows and finds neighbors among them."""

    search: Any
    n_jobs: int | None
    random_state: Any
    aggregator_: Aggregator
    components_: dict[str, FloatArray]
    indexes_: dict[str, Any]
    reference_: IntArray
    views_: dict[str, int]
    sample_: Sample | None = None

    def training_sample(self, y: ArrayLike) -> IntArray:
        """The training rows that the learned parts see when rows are streamed.

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
        if isinstance(X, Mapping):
            raise InvalidInputError(
                f"X passed to {owner} has several views, which cannot be combined with Streamed."
            )
        streamed = stream_rows(X, y, classes, self.random_state, owner)
        rows = streamed.sample.rows
        if X_val is None and y_val is None and np.shape(proba_val)[:1] != rows.shape:
            proba_val = check_proba(
                proba_val, "proba_val", owner, n_classes=len(streamed.classes), n_rows=len(streamed.codes)
            )[rows]
        sampled = gather(streamed.blocks, rows, GATHERED_ROWS)
        self.sample_ = streamed.sample
        data = super()._check_fit(
            sampled, streamed.classes[streamed.codes[rows]], X_val, y_val, proba_val, streamed.classes
        )
        return replace(data, streamed=streamed)

    def _check_vectors(self, X: Any, name: str, *, n_features: int | None = None) -> FloatArray:
        if not isinstance(X, Mapping):
            rows = super()._check_vectors(X, name, n_features=n_features)
            if n_features is None:
                self.views_ = {FEATURES: rows.shape[1]}
            return rows
        owner = type(self).__name__
        if n_features is None:
            rows, self.views_ = stack_views(X, name, owner)
            return rows
        # In the order of fit, whatever the order of the mapping.
        given = {view: X[view] for view in self.views_ if view in X}
        rows, widths = stack_views(given if len(given) == len(X) else X, name, owner)
        if widths != self.views_ or len(given) != len(X):
            raise InvalidInputError(
                f"{name} passed to {owner} has the views {widths}, but fit had {self.views_} (with the number of "
                "features of each).\nHint: pass the same views."
            )
        return rows

    def _index_reference(self, data: FitData, k: int) -> IntArray:
        """Index the reference rows in every metric; return the reference id of each validation row, or -1."""
        X: Any
        if data.streamed is None:
            X, codes, ids = data.X, data.codes, np.arange(len(data.X))
        else:
            X, codes, ids = data.streamed.blocks, data.streamed.codes, data.streamed.sample.rows
        n_train, n_val = len(codes), len(data.X_val)
        own = np.full(n_val, -1)
        if data.shared:
            own = ids
        elif self.aggregator_.indexes_validation:
            X = _followed_by(X, data.X_val)
            codes = np.concatenate([codes, data.codes_val])
            own = n_train + np.arange(n_val)
        self.reference_ = np.arange(len(codes))
        names = [
            name
            for view in self.views_
            for name in (view, *([learned(view)] if view in self.components_ else []))
        ]
        classes = np.arange(data.n_classes)
        self.indexes_ = {
            name: self._index_for(name, k).fit(self._mapped(name, X), codes, classes=classes)
            for name in names
        }
        return own

    def _index_for(self, name: str, k: int) -> Any:
        search = check_search(self.search, type(self).__name__)
        return index_for(search, k, search.metric if name in self.views_ else "euclidean", self.n_jobs)

    def _mapped(self, name: str, X: Any) -> Any:
        """Rows in the metric of an index."""
        view = name if name in self.views_ else view_of(name)
        rows = X if len(self.views_) == 1 else X[:, columns_of(self.views_)[view]]
        if name == view:
            return rows
        components = self.components_[view]
        return LinearBlocks(rows, components) if isinstance(rows, Blocks) else map_rows(rows, components)

    def _leading(self) -> tuple[str, ...]:
        """The metric of each view that is expected to be best: the learned one, where there is one."""
        return tuple(learned(view) if view in self.components_ else view for view in self.views_)

    def _parts(self, n: int, n_elements: int) -> Iterator[slice]:
        """Consecutive slices of as many rows as have so many distances."""
        per_row = sum(index.n_neighbors for index in self.indexes_.values()) * len(self.classes_)
        step = max(1, n_elements // per_row)
        return (slice(start, start + step) for start in range(0, n, step))

    def _search(self, X: FloatArray, exclude: IntArray | None) -> dict[str, FloatArray]:
        return {
            name: index.kneighbors(self._mapped(name, X), exclude=exclude)[0]
            for name, index in self.indexes_.items()
        }

    def _reference_ids(self, positions: IntArray | None) -> IntArray | None:
        """Ids in the indexes of rows given by their position in fit; None if none of them is indexed."""
        if positions is None or (positions < 0).all():
            return None
        ids = np.full(int(max(self.reference_.max(), positions.max())) + 1, -1)
        ids[self.reference_] = np.arange(len(self.reference_))
        return np.where(positions < 0, -1, ids[positions])

    def _seen(self, positions: IntArray | None) -> IntArray | None:
        """Positions in the rows of fit as those in what the second opinions were fitted on."""
        return positions if positions is None or self.sample_ is None else self.sample_.places(positions)


def _followed_by(rows: Any, more: FloatArray) -> Any:
    return (
        ChainedBlocks([rows, as_blocks(more)]) if isinstance(rows, Blocks) else np.concatenate([rows, more])
    )


AGGREGATORS: dict[str, type[Aggregator]] = {"network": NetworkAggregator, "pool": PoolAggregator}
# Class-wise distances held at a time while scoring: 2**23 values, 64 MB.
SCORING_ELEMENTS = 2**23
# Those held in fit; rather than more, all are searched for twice.
HELD_ELEMENTS = 2**25
# Training rows that usual distances are taken from: one half among the other.
MOST_MEASURED = 2000
# Validation rows that a pool is fitted on, and classes times rows: with more than 300 classes, fewer rows.
MOST_JUDGED, MOST_JUDGED_VALUES = 5000, 1_500_000


class NeighborAgg(ReferenceSearch):
    """Trust from the K nearest training rows in every class, combined with the classifier's probabilities.

    Parameters
    ----------
    aggregator : {"pool", "network"} or Aggregator, default="pool"
        "pool": a log-linear opinion pool, the best score; "network": the paper's.
    n_neighbors : int, default=None
        Neighbors per class. None takes the aggregator's own: 20 for the pool (50 at best effort), 5 for the network.
    learned_metric : bool, default=True
        Look for neighbors in a learned linear map of the features too, if the aggregator uses it.
    effort : {"fast", "balanced", "best"}, default="balanced"
        Computation that goes into second opinions of ours, which join the pool. "fast": none. "balanced": a kernel
        classifier, for half the cost of the rest again. "best": a kernel classifier with twice the landmarks, another
        in the learned metric, a random forest, extremely randomized trees, gradient boosting (of two classes: of
        large and of small trees), and 50 neighbors per class, for many times the cost.
    second_opinions : "auto", None or list, default="auto"
        Whose log-probabilities join the pool. "auto": those that `effort` stands for. A list takes their place: of
        classifiers, and of "kernel", "smooth kernel", "forest", "extra trees", "boosting" and "shallow boosting". None:
        nobody's.
    search : Exact, Streamed or Approximate, default=None
        How neighbors are searched, from :mod:`neighboragg.search`; None is ``Exact()``. With
        ``Streamed(memory="2 GB")``, `X` of fit may be an array, a memory map or Parquet files, and is read in blocks;
        the metric and the second opinions are then learned from at most 50,000 of its rows, drawn at random, and some
        more of rare classes. With no more rows than that, the result is that of ``Exact()``. Where
        ``Approximate(recall=0.99)`` is used, `indexes_` report the recall in `recall_`.
    n_jobs : int, default=None
        Threads of the search.
    random_state : int, RandomState instance or None, default=0
        Seeds the learned metric, the network and automatic second opinions.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    aggregator_ : Aggregator
        Fitted aggregator.
    reference_ : ndarray
        What the reference rows are: positions in the training rows, followed by the validation rows.
    sample_ : Sample or None
        Training rows that the learned parts have seen, if rows were streamed.
    views_ : dict of str to int
        Number of features of each view; one called "features" where rows were not a mapping.
    components_ : dict of str to ndarray of shape (n_features, rank)
        The learned metric of each view that has one.
    indexes_ : dict of str to ClasswiseNeighbors or StreamedNeighbors
        The reference rows of each view, and in each learned metric.
    familiarity_ : Familiarity
        What validation rows say about how far from its neighbors a row can be.

    Notes
    -----
    For a frozen classifier with probabilities p(x), r_ck(x) is the distance to the k-th nearest reference row
    of class c. The aggregator is fitted on validation rows that the classifier has not seen. With the pool the
    reference rows are training and validation rows, and a validation row leaves itself out; with the network
    they are the training rows, as in the paper.

    Validation rows are easier or harder than others by chance. So the pool weighs them as surveys do: classes, and rows
    with few or many of their 20 nearest neighbors in their own class (in the first view, and with fewer than 5,000
    validation rows), get the shares that they have among training and validation rows, unless these differ by more than
    chance, as where a network knows its training rows by heart.

    A row may have several vectors, such as two layers of a network, or text and table: `X` is then a mapping of names
    to arrays. Each view has neighbors and a learned metric of its own, which are experts of their own in the pool, so
    that validation rows decide what each is worth. Second opinions see all views side by side.

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
    >>> clf = LogisticRegression(max_iter=50, tol=0.1).fit(X[:800] / 16, y[:800])
    >>> method = NeighborAgg().fit(
    ...     X[:800] / 16, y[:800], X_val=X[800:1200] / 16, y_val=y[800:1200],
    ...     proba_val=clf.predict_proba(X[800:1200] / 16))
    >>> trust = method.score_samples(X[1200:] / 16, clf.predict_proba(X[1200:] / 16))
    >>> correct = clf.predict(X[1200:] / 16) == y[1200:]
    >>> bool(trust[correct].mean() > trust[~correct].mean() + 0.3)
    True
    """

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
            In which view to look, where there are several; the first by default.

        Returns
        -------
        distances, indices : ndarray of shape (n, n_classes, n_neighbors)
            Indices count the training rows first, then the validation rows; missing ones are (inf, -1).
        """
        check_fitted(self, "n_features_in_")
        name = check_choice(view or next(iter(self.views_)), "view", type(self).__name__, choices=self.views_)
        rows = self._check_vectors(X, "X", n_features=self.n_features_in_)
        distances, found = self.indexes_[name].kneighbors(self._mapped(name, rows), n_neighbors)
        return distances, np.where(found < 0, -1, self.reference_[found])

    def familiarity(self, X: ArrayLike, proba: ArrayLike, *, left_out: IntArray | None = None) -> FloatArray:
        """Have rows like these been seen: a p-value for each, small for a row that is far from all reference rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
            The classifier's probabilities; rows are compared with validation rows of the same most probable class,
            where there are at least 99 of them.
        left_out : ndarray of int of shape (n,), default=None
            As in :meth:`predict_trust`.

        Returns
        -------
        familiarity : ndarray of shape (n,)
            In (0, 1]. An alarm at p ≤ α is false with probability at most α.

        Notes
        -----
        A conformal p-value: the share of the validation rows, the new row included, that are at least as unusual as the
        new row. Two things add up: the mean log distance to the 5 nearest reference rows of any class, in the features
        and in the learned metric, compared with what is usual for the predicted class; and the entropy of the
        probabilities. Validation rows that are reference rows leave themselves out. A row of `left_out` has been seen,
        and is as familiar as can be. Where all vectors have unit length, nothing is known about a row of length zero,
        and no row is more unusual.

        *Guarantee.* Let the validation rows and a new row be exchangeable: drawn at random from one source, and treated
        alike by all that came before, the classifier and the making of the vectors. Then P(p ≤ α) ≤ α for every α,
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
        return self.trust_and_familiarity(X, proba, left_out=left_out)[1]

    def trust_and_familiarity(
        self, X: ArrayLike, proba: ArrayLike, *, left_out: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """What :meth:`predict_trust` and :meth:`familiarity` say, from one search.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
        left_out : ndarray of int of shape (n,), default=None
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
                own = None if left_out is None else left_out[part]
                evidence = self._evidence(rows[part], values[part], own)
                familiarity[part] = self._familiarity(rows[part], evidence, own)
                trust[part] = self.aggregator_.predict_trust(evidence)
        return trust, familiarity

    def explain(
        self,
        X: ArrayLike,
        proba: ArrayLike,
        *,
        y_pred: ArrayLike | None = None,
        left_out: IntArray | None = None,
    ) -> Explanation:
        """What raised and lowered the trust, by expert and class, and the neighbors behind it.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        proba : array-like of shape (n, n_classes)
        y_pred : array-like of shape (n,), default=None
            Predicted labels; defaults to the most probable class.
        left_out : ndarray of int of shape (n,), default=None
            As in :meth:`predict_trust`.

        Returns
        -------
        explanation : Explanation
        """
        rows, values = self._check_query(X, proba)
        predicted = values.argmax(axis=1) if y_pred is None else self._check_codes(y_pred, "y_pred", rows)
        evidence = self._evidence(rows, values, left_out)
        experts, contributions = self.aggregator_.contributions(evidence)
        familiarity = self._familiarity(rows, evidence, left_out)
        trust = self.aggregator_.predict_trust(evidence)
        first = next(iter(self.views_))
        distances, found = self.indexes_[first].kneighbors(
            self._mapped(first, rows), exclude=self._reference_ids(left_out)
        )
        indices = np.where(found < 0, -1, self.reference_[found])
        return Explanation(
            self.classes_,
            predicted,
            trust,
            experts,
            contributions,
            distances,
            indices,
            proba=values,
            opinions={name: opinion.proba for name, opinion in evidence.opinions.items()},
            guard_weight=float(getattr(self.aggregator_, "guard_weight_", 1.0)),
            familiarity=familiarity,
        )

    def _fit(self, data: FitData) -> None:
        self.aggregator_ = self._resolve_aggregator()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        opinions = resolve_opinions(
            self.second_opinions,
            effort=self.effort,
            n_classes=data.n_classes,
            random_state=seed,
            n_jobs=self.n_jobs,
        )
        opinions = opinions if self.aggregator_.uses_opinions else []
        mapped = bool(self._views_with_a_metric(data)) or any(
            learns_a_map(opinion) for _, opinion in opinions
        )
        judged = self._judged_rows(data, seed, mapped)
        announce("Learning the metric")
        self.components_ = self._learn_components(data, judged, seed)
        exclude = self._index_reference(data, self._resolve_n_neighbors())[judged]
        fitted = []
        for number, (name, estimator) in enumerate(opinions, start=1):
            announce(f"Asking second opinion {number} of {len(opinions)}, {name}")
            fitted.append(fit_second_opinion(name, estimator, data, judged))
        self.opinions_ = [opinion for opinion, _ in fitted]
        nonconformity, unusual = self._nonconformity(data, judged, seed), np.empty(len(judged))

        def evidence_of(part: slice) -> Evidence:
            rows, own = judged[part], exclude[part]
            distances = self._distances(data.X_val[rows], data.n_classes, own)
            unusual[part] = nonconformity(
                data.X_val[rows],
                data.proba_val[rows],
                self._for_familiarity(data.X_val[rows], distances, own),
            )
            said = {opinion.name: Opinion(about.proba[part], about.floor) for opinion, about in fitted}
            return Evidence(data.proba_val[rows], distances, said, self._leading(), weight[part])

        parts = list(self._parts(len(judged), HELD_ELEMENTS))
        announce(f"Weighing experts by {len(judged):,} validation rows")
        weight = self._row_weights(data, judged, seed)
        if len(parts) == 1:  # found once and kept
            held = evidence_of(parts[0])
            self.aggregator_.fit(held, data.codes_val[judged])
        else:  # found again whenever they are needed
            parts = list(self._parts(len(judged), SCORING_ELEMENTS))
            self.aggregator_.fit_parts(lambda: map(evidence_of, parts), data.codes_val[judged])
        predicted = data.proba_val[judged].argmax(axis=1)
        self.familiarity_ = Familiarity(nonconformity, unusual, predicted, data.n_classes)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return self._trust_without(X, proba, None)

    def _trust_without(self, X: FloatArray, proba: FloatArray, left_out: IntArray | None) -> FloatArray:
        trust = np.empty_like(proba)
        for part in self._parts(len(X), SCORING_ELEMENTS):
            own = None if left_out is None else left_out[part]
            trust[part] = self.aggregator_.predict_trust(self._evidence(X[part], proba[part], own))
        return trust

    def _familiarity(self, X: FloatArray, evidence: Evidence, left_out: IntArray | None) -> FloatArray:
        own = self._reference_ids(left_out)
        # A row that leaves itself out of the search for neighbors has been seen nevertheless. If it is a new row that
        # copies a row of fit, validation rows that are copies have found theirs too.
        seen = None if own is None else own >= 0
        distances = self._for_familiarity(X, evidence.distances, own)
        found = self.familiarity_.nonconformity(X, evidence.proba, distances, seen)
        return self.familiarity_.of(found, evidence.proba.argmax(axis=1))

    def _for_familiarity(
        self, X: FloatArray, distances: Mapping[str, FloatArray], exclude: IntArray | None
    ) -> Mapping[str, FloatArray]:
        """Distances found already, or by a search where the aggregator has no use for them."""
        return distances if self.aggregator_.uses_neighbors else self._search(X, exclude)

    def _nonconformity(self, data: FitData, judged: IntArray, seed: int) -> Nonconformity:
        """What is usual for training rows; validation rows take no part, except in the order of their own doubts."""
        rows = np.arange(len(data.X))
        if data.shared and len(judged) < len(rows):
            rows = np.setdiff1d(rows, judged)
        rows = np.random.default_rng(seed).permutation(rows)[:MOST_MEASURED]
        others, measured = np.array_split(rows, 2)
        middle, spread = {}, {}
        for name in self.indexes_:
            found = np.full(len(measured), np.inf)
            if len(measured):
                metric = check_search(self.search, type(self).__name__).metric
                exact = Exact(metric=metric if name in self.views_ else "euclidean")
                index = ClasswiseNeighbors(N_NEAREST, search=exact, n_jobs=self.n_jobs)
                index.fit(self._mapped(name, data.X[others]), np.zeros(len(others), dtype=np.intp))
                found = log_distances(index.kneighbors(self._mapped(name, data.X[measured]))[0])
            middle[name], spread[name] = usual_distances(found, data.codes[measured], data.n_classes)
        return Nonconformity(middle, spread, np.sort(doubt(data.proba_val[judged])), are_directions(data.X))

    def _evidence(self, X: FloatArray, proba: FloatArray, left_out: IntArray | None) -> Evidence:
        return Evidence(
            proba,
            self._distances(X, proba.shape[1], self._reference_ids(left_out)),
            {opinion.name: opinion.ask(X, self._seen(left_out)) for opinion in self.opinions_},
            self._leading(),
        )

    def _distances(
        self, X: FloatArray, n_classes: int, exclude: IntArray | None = None
    ) -> dict[str, FloatArray]:
        """Distances to the nearest reference rows of every class, in every metric."""
        if not self.aggregator_.uses_neighbors:
            return {
                name: np.zeros((len(X), n_classes, index.n_neighbors))
                for name, index in self.indexes_.items()
            }
        return self._search(X, exclude)

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
        raise InvalidParameterError(
            f"The 'aggregator' parameter of {type(self).__name__} must be one of "
            f"{', '.join(map(repr, sorted(AGGREGATORS)))} or an Aggregator. Got {self.aggregator!r} instead."
        )

    def _views_with_a_metric(self, data: FitData) -> list[str]:
        """Views that a metric is learned for."""
        if (
            not (self.learned_metric and self.aggregator_.uses_learned_metric)
            or len(np.unique(data.codes)) < 2
        ):
            return []
        return [view for view, width in self.views_.items() if width > 1]

    def _judged_rows(self, data: FitData, seed: int, mapped: bool) -> IntArray:
        """Validation rows to fit the aggregator on."""
        n = most = len(data.X_val)
        if data.shared and mapped and n >= 4:
            most = n // 2
        if self.aggregator_.indexes_validation:
            most = min(most, MOST_JUDGED, max(1, MOST_JUDGED_VALUES // data.n_classes))
        return np.sort(np.random.default_rng(seed).permutation(n)[:most])

    def _row_weights(self, data: FitData, judged: IntArray, seed: int) -> FloatArray:
        if not self.aggregator_.weighs_rows:
            return np.ones(len(judged))
        first = next(iter(columns_of(self.views_).values()))
        metric = check_search(self.search, type(self).__name__).metric
        return sample_weights(data, judged, first, metric=metric, n_jobs=self.n_jobs, seed=seed)

    def _learn_components(self, data: FitData, judged: IntArray, seed: int) -> dict[str, FloatArray]:
        rows = np.setdiff1d(np.arange(len(data.X)), judged) if data.shared else np.arange(len(data.X))
        if not len(rows):
            return {}
        columns = columns_of(self.views_)
        return {
            view: learn_metric(data.X[rows, columns[view]], data.codes[rows], random_state=seed)
            for view in self._views_with_a_metric(data)
        }

    def _after_load(self) -> None:
        super()._after_load()
        if hasattr(self, "classes_"):
            require(isinstance(self.familiarity_, Familiarity), "it has no familiarity")
            require(self.familiarity_.n_classes == len(self.classes_), "its familiarity has other classes")
            require(sum(self.views_.values()) == self.n_features_in_, "its views are not its features")
