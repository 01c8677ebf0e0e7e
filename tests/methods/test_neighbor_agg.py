"""NeighborAgg: which rows vouch for which, what is learned from whom, and what changes nothing."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import neighboragg
from neighboragg import NeighborAgg
from neighboragg._pool import row_weights
from neighboragg._pool.network import NetworkAggregator
from neighboragg._pool.pool import Aggregator, Contributions, PoolAggregator
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import MaxConfidence, _neighbor_agg
from neighboragg.search import ClasswiseNeighbors, Exact


class Spy(PoolAggregator):
    """Keeps what it was fitted on."""

    def fit(self, evidence, codes):
        self.seen_ = evidence, codes
        return super().fit(evidence, codes)


class NetworkSpy(NetworkAggregator):
    def fit(self, evidence, codes):
        self.seen_ = evidence, codes
        return super().fit(evidence, codes)


def make_rows(n, seed=0):
    """Two classes on a chessboard, which no linear classifier can tell apart."""
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 3))
    return X, (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % 2


X, y = make_rows(200)
X_VAL, Y_VAL = make_rows(80, 1)
X_TEST, Y_TEST = make_rows(150, 2)
# The first two columns are the board; a model of the third knows next to nothing.
MODEL = LogisticRegression().fit(X[:, 2:], y)
P_VAL, P_TEST = MODEL.predict_proba(X_VAL[:, 2:]), MODEL.predict_proba(X_TEST[:, 2:])


def fit(method, **changes):
    return method.fit(X, y, **{"X_val": X_VAL, "y_val": Y_VAL, "proba_val": P_VAL, **changes})


def many_classes(n_classes, n_rows, seed=0):
    """A few rows of each of many classes, and what a classifier says of them."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    rows = rng.normal(size=(n_classes, 6))[codes] + 0.3 * np.random.default_rng(seed + 1).normal(
        size=(n_rows, 6)
    )
    proba = 0.5 * np.eye(n_classes)[codes] + 0.5 / n_classes
    return rows, codes, proba


def test_distances_that_are_not_held_teach_the_same(monkeypatch):
    held = fit(NeighborAgg())
    monkeypatch.setattr(_neighbor_agg, "HELD_ELEMENTS", 7 * 2 * 40)
    monkeypatch.setattr(_neighbor_agg, "SCORING_ELEMENTS", 7 * 2 * 40)
    searched = fit(NeighborAgg())
    np.testing.assert_array_equal(searched.aggregator_.theta_, held.aggregator_.theta_)
    np.testing.assert_array_equal(searched.familiarity_.unusual, held.familiarity_.unusual)


@pytest.mark.full  # of the compiled search: blocks of NumPy's are larger than all of these rows
@pytest.mark.parametrize("stage", ["fit", "score"])
def test_memory_does_not_grow_with_rows_times_classes_times_neighbors(monkeypatch, stage):
    n_classes, n_rows, per_row = 40, 400, 40 * 40
    monkeypatch.setattr(_neighbor_agg, "HELD_ELEMENTS", 50 * per_row)
    monkeypatch.setattr(_neighbor_agg, "SCORING_ELEMENTS", 50 * per_row)
    rows, codes, proba = many_classes(n_classes, 2 * n_rows)
    given = {"X_val": rows[n_rows:], "y_val": codes[n_rows:], "proba_val": proba[n_rows:]}

    def teach():
        return NeighborAgg(effort="fast").fit(rows[:n_rows], codes[:n_rows], **given)

    method = teach()
    tracemalloc.start()
    if stage == "fit":
        teach()
    else:
        method.score_samples(rows[n_rows:] + 0.01, proba[n_rows:])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Distances of all rows in both metrics; what fit holds instead is evidence of 7 experts, copied a few times.
    all_distances = 8 * n_rows * per_row
    assert peak < all_distances


def test_with_very_many_classes_fewer_rows_are_judged():
    rows, codes, proba = many_classes(700, 7000)
    spy = Spy(guard=False)
    method = NeighborAgg(spy, n_neighbors=1, learned_metric=False, effort="fast")
    method.fit(rows[:3500], codes[:3500], X_val=rows[3500:], y_val=codes[3500:], proba_val=proba[3500:])
    assert len(method.aggregator_.seen_[1]) == 1_500_000 // 700


def test_neighbors_know_more_than_the_classifier():
    correct = P_TEST.argmax(axis=1) == Y_TEST
    ours, theirs = (
        roc_auc_score(correct, fit(method).score_samples(X_TEST, P_TEST))
        for method in (NeighborAgg(), MaxConfidence())
    )
    assert ours > 0.85
    assert ours > theirs + 0.2


class TestReferenceRows:
    def test_pool_searches_training_and_validation_rows(self):
        method = fit(NeighborAgg(n_neighbors=4))
        assert method.neighborhoods_.n_rows == 280
        distances, indices = method.kneighbors(X_TEST)
        assert distances.shape == (150, 2, 4)
        everything, labels = np.concatenate([X, X_VAL]), np.concatenate([y, Y_VAL])
        np.testing.assert_allclose(
            distances, np.linalg.norm(everything[indices] - X_TEST[:, None, None], axis=3)
        )
        np.testing.assert_array_equal(labels[indices], np.broadcast_to([[0], [1]], (150, 2, 4)))

    def test_network_searches_training_rows(self):
        method = fit(NeighborAgg("network"))
        assert method.neighborhoods_.n_rows == 200
        assert method.kneighbors(X_VAL)[1].shape == (80, 2, 5)
        assert method.spaces_.components == {}

    def test_missing_neighbors(self):
        method = NeighborAgg(n_neighbors=3).fit([[0.0], [1.0]], ["a", "b"], proba_val=[[0.5, 0.5]] * 2)
        distances, indices = method.kneighbors([[0.25]])
        np.testing.assert_array_equal(indices, [[[0, -1, -1], [1, -1, -1]]])
        np.testing.assert_array_equal(distances, [[[0.25, np.inf, np.inf], [0.75, np.inf, np.inf]]])


class TestWhatTheAggregatorSees:
    def test_validation_rows_leave_themselves_out(self):
        evidence, codes = fit(NeighborAgg(Spy())).aggregator_.seen_
        np.testing.assert_array_equal(codes, Y_VAL)
        np.testing.assert_allclose(evidence.proba, P_VAL, rtol=1e-12)
        index = ClasswiseNeighbors(20).fit(np.concatenate([X, X_VAL]), np.concatenate([y, Y_VAL]))
        expected, _ = index.kneighbors(X_VAL, exclude=200 + np.arange(80))
        np.testing.assert_array_equal(evidence.distances["features"], expected)
        assert list(evidence.distances) == ["features", "learned metric"]
        assert (evidence.distances["learned metric"] > 0).all()

    def test_copies_of_a_row_are_found(self):
        evidence, _ = fit(NeighborAgg(Spy()), X_val=X[:80], y_val=y[:80]).aggregator_.seen_
        assert (evidence.distances["features"][np.arange(80), y[:80], 0] == 0).all()

    def test_training_rows_that_vouch_for_themselves(self):
        method = NeighborAgg(Spy(), learned_metric=False, effort="fast")
        method.fit(X, y, proba_val=np.full((200, 2), 0.5))
        evidence, codes = method.aggregator_.seen_
        np.testing.assert_array_equal(codes, y)
        np.testing.assert_array_equal(
            evidence.feature_distances, ClasswiseNeighbors(20).fit(X, y).kneighbors()[0]
        )

    def test_the_learned_metric_is_judged_on_rows_it_has_not_seen(self):
        """Labels at random: a metric judged on its own rows would look good."""
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(120, 30)), rng.integers(0, 2, 120)
        method = NeighborAgg(Spy()).fit(rows, labels, proba_val=np.full((120, 2), 0.5))
        evidence, codes = method.aggregator_.seen_
        assert len(codes) == 60
        nearer = evidence.distances["learned metric"][:, :, 0].argmin(axis=1) == codes
        assert nearer.mean() < 0.7
        fresh = method.predict_trust(rng.normal(size=(200, 30)), np.full((200, 2), 0.5))
        assert np.abs(fresh - 0.5).mean() < 0.1

    def test_a_pool_needs_only_some_of_many_rows(self, monkeypatch):
        monkeypatch.setattr(row_weights, "MAX_POOL_ROWS", 30)
        method = fit(NeighborAgg(Spy(), second_opinions=[LogisticRegression()]))
        evidence, codes = method.aggregator_.seen_
        assert len(codes) == len(evidence) == 30
        # Probabilities tell which rows they are; all that is said of them must be of the same rows.
        rows = np.array([np.abs(P_VAL - proba).sum(axis=1).argmin() for proba in evidence.proba])
        np.testing.assert_array_equal(codes, Y_VAL[rows])
        index = ClasswiseNeighbors(20).fit(np.concatenate([X, X_VAL]), np.concatenate([y, Y_VAL]))
        expected, _ = index.kneighbors(X_VAL[rows], exclude=200 + rows)
        np.testing.assert_array_equal(evidence.feature_distances, expected)
        (proba,) = evidence.opinions.values()
        alike = (
            fit(NeighborAgg(Spy(), second_opinions=[LogisticRegression()]))
            .opinions_[0]
            .predict_proba(X_VAL[rows])
        )
        np.testing.assert_allclose(proba, alike, atol=0.1)
        assert len(fit(NeighborAgg(NetworkSpy())).aggregator_.seen_[1]) == 80

    def test_network_sees_no_validation_row(self):
        evidence, _ = fit(NeighborAgg(NetworkSpy())).aggregator_.seen_
        np.testing.assert_array_equal(
            evidence.feature_distances, ClasswiseNeighbors(5).fit(X, y).kneighbors(X_VAL)[0]
        )
        assert list(evidence.distances) == ["features"]

    def test_cosine(self):
        evidence, _ = fit(NeighborAgg(NetworkSpy(), search=Exact("cosine"))).aggregator_.seen_
        expected, _ = ClasswiseNeighbors(5, search=Exact("cosine")).fit(X, y).kneighbors(X_VAL)
        np.testing.assert_array_equal(evidence.feature_distances, expected)

    @pytest.mark.parametrize(
        ("method", "rows"),
        [(NeighborAgg(learned_metric=False), X), (NeighborAgg(), X[:, :1]), (NeighborAgg("network"), X)],
        ids=["switched off", "one feature", "network"],
    )
    def test_without_learned_metric(self, method, rows):
        method = clone(method).fit(rows, y, proba_val=np.full((200, 2), 0.5))
        assert method.spaces_.components == {}
        assert list(method.neighborhoods_.indexes) == ["features"]


class TestWhatChangesNothing:
    @pytest.mark.parametrize("aggregator", ["pool", "network"])
    def test_jobs_and_parts(self, aggregator, monkeypatch):
        trust = fit(NeighborAgg(aggregator)).predict_trust(X_TEST, P_TEST)
        found = fit(NeighborAgg(aggregator, n_jobs=2)).predict_trust(X_TEST, P_TEST)
        np.testing.assert_array_equal(found, trust)
        monkeypatch.setattr(_neighbor_agg, "SCORING_ELEMENTS", 1000)
        np.testing.assert_allclose(
            fit(NeighborAgg(aggregator)).predict_trust(X_TEST, P_TEST), trust, rtol=1e-12
        )

    def test_an_aggregator_given_is_not_touched(self):
        pool = PoolAggregator(penalty=3.0)
        method = fit(NeighborAgg(pool))
        assert not hasattr(pool, "theta_")
        assert method.aggregator_ is not pool
        assert method.aggregator_.penalty == 3.0
        assert method.set_params(aggregator__penalty=2.0).aggregator.penalty == 2.0

    @pytest.mark.parametrize("seed", [5, np.int64(5)])
    def test_same_seed_same_trust(self, seed):
        first, second = (fit(NeighborAgg(random_state=s)).predict_trust(X_TEST, P_TEST) for s in (seed, 5))
        np.testing.assert_array_equal(first, second)

    def test_seed_as_generator_or_none(self):
        first, second = (
            fit(NeighborAgg(random_state=np.random.RandomState(5))).predict_trust(X_TEST, P_TEST)
            for _ in range(2)
        )
        np.testing.assert_array_equal(first, second)
        assert np.isfinite(fit(NeighborAgg(random_state=None)).predict_trust(X_TEST, P_TEST)).all()


@pytest.mark.parametrize(
    "method",
    [
        NeighborAgg(PoolAggregator(penalty=2.0, neighbor_counts=(1, 2)), n_neighbors=6),
        NeighborAgg(NetworkAggregator(activation="relu"), random_state=np.random.RandomState(0)),
        NeighborAgg(random_state=None, search=Exact("cosine")),
        NeighborAgg(second_opinions=[LogisticRegression()]),
    ],
    ids=["pool", "network", "cosine", "opinion"],
)
def test_parameters_that_are_objects_are_saved(method, tmp_path):
    method = fit(clone(method))
    method.save(tmp_path / "method.nagg")
    loaded = neighboragg.load(tmp_path / "method.nagg")
    if isinstance(method.random_state, np.random.RandomState):
        method.random_state = None  # a generator is not saved: its past does not matter once fitted
    assert repr(loaded) == repr(method)
    assert isinstance(method.aggregator_, type(loaded.aggregator_))
    np.testing.assert_array_equal(loaded.predict_trust(X_TEST, P_TEST), method.predict_trust(X_TEST, P_TEST))
    for ours, theirs in zip(loaded.kneighbors(X_TEST), method.kneighbors(X_TEST), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert str(loaded.explain(X_TEST[:1], P_TEST[:1])) == str(method.explain(X_TEST[:1], P_TEST[:1]))


class Parrot(Aggregator):
    """Repeats the classifier."""

    default_n_neighbors, uses_learned_metric, indexes_validation = 1, False, False

    def fit(self, evidence, codes):
        return self

    def predict_trust(self, evidence):
        return evidence.proba

    def contributions(self, evidence):
        return Contributions(["classifier"], ["classifier"], [""], np.log(evidence.proba)[:, :, None])


@pytest.mark.parametrize("aggregator", [Spy(), NetworkSpy(max_iter=5)], ids=["pool", "network"])
def test_a_derived_aggregator_is_not_saved_as_what_it_derives_from(aggregator, tmp_path):
    method = fit(NeighborAgg(clone(aggregator)))
    with pytest.raises(InvalidParameterError) as caught:
        method.save(tmp_path / "method.nagg")
    assert str(caught.value) == (
        f"This NeighborAgg cannot be saved: its 'aggregator' is of the type {__name__}.{type(aggregator).__name__}, "
        "which neighboragg does not know, so it could not be loaded again."
    )


def test_an_aggregator_of_the_users_own(tmp_path):
    method = fit(NeighborAgg(Parrot()))
    np.testing.assert_allclose(method.predict_trust(X_TEST, P_TEST), P_TEST)
    assert method.kneighbors(X_TEST)[0].shape == (150, 2, 1)
    with pytest.raises(InvalidParameterError) as caught:
        method.save(tmp_path / "method.nagg")
    assert str(caught.value) == (
        f"This NeighborAgg cannot be saved: its 'aggregator' is of the type {__name__}.Parrot, which neighboragg does "
        "not know, so it could not be loaded again."
    )


PARAMETERS = [
    (
        {"aggregator": "forest"},
        "The 'aggregator' parameter of NeighborAgg must be one of 'network', 'pool' or an Aggregator. "
        "Got 'forest' instead.",
    ),
    (
        {"aggregator": None},
        "The 'aggregator' parameter of NeighborAgg must be one of 'network', 'pool' or an Aggregator. "
        "Got None instead.",
    ),
    ({"n_neighbors": 0}, "The 'n_neighbors' parameter of NeighborAgg must be an int >= 1. Got 0 instead."),
    (
        {"search": Exact("manhattan")},
        "The 'metric' parameter of Exact must be one of 'cosine', 'euclidean'. Got 'manhattan' instead.",
    ),
    (
        {"second_opinions": "all"},
        "The 'second_opinions' parameter of NeighborAgg must be 'auto', None or a list of classifiers and names. "
        "Got 'all' instead.\nHint: a list of one is ['all'].",
    ),
    (
        {"second_opinions": [LogisticRegression(), 7]},
        "Second opinion 1 of NeighborAgg must be a classifier with predict_proba, or one of 'kernel', "
        "'smooth kernel', 'forest', 'extra trees', 'boosting', 'shallow boosting'. Got 7 instead.",
    ),
    (
        {"second_opinions": ["forest", "forest"]},
        "Second opinion 1 of NeighborAgg, 'forest', is listed twice.",
    ),
    (
        {"effort": "more"},
        "The 'effort' parameter of NeighborAgg must be one of 'balanced', 'best', 'fast'. Got 'more' instead.",
    ),
]


@pytest.mark.parametrize(("params", "message"), PARAMETERS)
def test_parameters(params, message):
    with pytest.raises(InvalidParameterError) as caught:
        fit(NeighborAgg(**params))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "call",
    [lambda method: method.kneighbors(X), lambda method: method.explain(X_TEST, P_TEST)],
    ids=["kneighbors", "explain"],
)
def test_not_fitted(call):
    with pytest.raises(NotFittedError) as caught:
        call(NeighborAgg())
    assert str(caught.value) == (
        "This NeighborAgg instance is not fitted yet. Call 'fit' with appropriate arguments before using this "
        "estimator."
    )
