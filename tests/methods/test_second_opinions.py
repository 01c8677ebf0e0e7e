"""Second opinions are honest: never asked about rows they were fitted to."""

from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from neighboragg import NeighborAgg
from neighboragg._core.progress import report_to
from neighboragg._pool.pool import PoolAggregator
from neighboragg.exceptions import InvalidParameterError


class Spy(PoolAggregator):
    """Keeps what it was fitted on."""

    def fit(self, evidence, codes):
        self.seen_ = evidence, codes
        return super().fit(evidence, codes)


RNG = np.random.default_rng(0)
# Labels at random: whoever knows them has seen them.
X, y = RNG.normal(size=(240, 4)), RNG.integers(0, 3, 240)
P = np.full((240, 3), 1 / 3)
NONE = np.full(240, -1)


@pytest.fixture
def few_trees(monkeypatch):
    """Boosting of five trees, for what does not depend on their number."""
    few = partial(HistGradientBoostingClassifier, max_iter=5)
    monkeypatch.setattr("neighboragg._pool.opinions.HistGradientBoostingClassifier", few)


MEMORIZERS = {
    "forest": RandomForestClassifier(50, random_state=0),
    "forest of whole trees": ExtraTreesClassifier(30, random_state=0),
    "bagging": BaggingClassifier(DecisionTreeClassifier(), 50, random_state=0),
    "nearest": KNeighborsClassifier(1),
}


def opinion_of(estimator, **data):
    method = NeighborAgg(Spy(), learned_metric=False, n_neighbors=2, second_opinions=[estimator])
    arguments = {"X": X, "y": y, "proba_val": P, **data}
    method.fit(arguments.pop("X"), arguments.pop("y"), **arguments)
    evidence, _ = method.aggregator_.seen_
    (proba,) = evidence.opinions.values()
    return method, proba


@pytest.mark.full(keep=5)
@pytest.mark.parametrize("name", MEMORIZERS)
@pytest.mark.parametrize("shared", [True, False])
def test_no_one_is_asked_about_what_it_has_seen(name, shared):
    data = (
        {}
        if shared
        else {"X": X[:160], "y": y[:160], "X_val": X[160:], "y_val": y[160:], "proba_val": P[160:]}
    )
    method, proba = opinion_of(MEMORIZERS[name], **data)
    asked = y if shared else y[160:]
    assert proba.shape == (len(asked), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba.argmax(axis=1) == asked).mean() < 0.5
    # Fitted in the end, it knows them all.
    assert (method.opinions_[0].predict_proba(X[:160], NONE[:160]).argmax(axis=1) == y[:160]).mean() > 0.95


@pytest.mark.parametrize("name", ["forest", "nearest"])
def test_all_learn_from_validation_rows_in_the_end(name):
    method, _ = opinion_of(
        MEMORIZERS[name], X=X[:160], y=y[:160], X_val=X[160:], y_val=y[160:], proba_val=P[160:]
    )
    assert (method.opinions_[0].predict_proba(X[160:], NONE[160:]).argmax(axis=1) == y[160:]).mean() > 0.95


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("estimator", [LogisticRegression(), "boosting"])
def test_validation_rows_teach_each_other(estimator):
    """So that what is said of them was learned from nearly as many rows as what is said in the end."""
    rows = np.random.default_rng(3).normal(size=(330, 4))
    labels = np.where(np.arange(330) < 30, np.arange(330) % 3, 1 + (rows[:, 0] > 0))
    _, proba = opinion_of(
        estimator,
        X=rows[:30],
        y=labels[:30],
        X_val=rows[30:],
        y_val=labels[30:],
        proba_val=np.full((300, 3), 1 / 3),
    )
    assert (proba.argmax(axis=1) == labels[30:]).mean() > 0.85


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["kernel", "smooth kernel"])
def test_the_map_of_a_kernel_has_not_seen_whom_it_judges(name, shared):
    """In many columns, a map can be found by which rows lie beside others of their class, whatever these are."""
    rng = np.random.default_rng(4)
    rows, labels, even = rng.normal(size=(300, 60)), rng.integers(0, 2, 300), np.full((300, 2), 0.5)
    data = {"X": rows, "y": labels, "proba_val": even}
    if not shared:
        data = {"X": rows[:100], "y": labels[:100], "X_val": rows[100:], "y_val": labels[100:]}
        data["proba_val"] = even[100:]
    method, proba = opinion_of(name, **data)
    _, asked = method.aggregator_.seen_
    assert abs((proba.argmax(axis=1) == asked).mean() - 0.5) < 0.1


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(2, random_state=0), BaggingClassifier(n_estimators=2)]
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores", "ignore:invalid value")
def test_rows_that_every_tree_has_seen(estimator):
    method, proba = opinion_of(estimator)
    assert np.isfinite(proba).all()
    assert np.isfinite(method.predict_trust(X, P)).all()


def test_floors():
    assert opinion_of(MEMORIZERS["forest"])[0].opinions_[0].floor == 1e-2
    assert opinion_of(LogisticRegression())[0].opinions_[0].floor == 1e-4


def test_names():
    method = NeighborAgg(
        learned_metric=False, n_neighbors=2, second_opinions=[LogisticRegression(), DummyClassifier()]
    )
    method.fit(X, y, proba_val=P)
    assert method.aggregator_.expert_names == [
        "classifier",
        "1 nearest (features)",
        "2 nearest (features)",
        "LogisticRegression #1",
        "DummyClassifier #2",
    ]


def test_estimators_given_are_not_touched():
    estimator = RandomForestClassifier(50, random_state=0)
    opinion_of(estimator)
    assert not hasattr(estimator, "classes_")
    assert estimator.oob_score is False


def test_a_good_opinion_helps():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 10))
    labels = (rows[:, 0] > 0).astype(int)
    even = np.full((300, 2), 0.5)
    method = NeighborAgg(learned_metric=False, second_opinions=[DecisionTreeClassifier(max_depth=1)])
    method.fit(rows, labels, proba_val=even)
    assert method.score_labels(rows, labels, even).mean() > 0.9
    assert method.aggregator_.theta_.argmax() == len(method.aggregator_.theta_) - 1


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(60, random_state=0)])
def test_a_class_of_one_row_beside_another(estimator):
    """Out of fold, the rest of the rows is of a single class."""
    labels = np.array(["rare"] + ["usual"] * 39)
    method = NeighborAgg(learned_metric=False, second_opinions=[estimator])
    method.fit(X[:40], labels, proba_val=np.full((40, 2), 0.5))
    trust = method.predict_trust(X[:40], np.full((40, 2), 0.5))
    assert np.isfinite(trust).all()


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(60, random_state=0)])
def test_a_single_row_or_class(estimator):
    method = NeighborAgg(second_opinions=[estimator])
    rows = slice(0, 1) if isinstance(estimator, LogisticRegression) else slice(0, 30)
    n = len(y[rows])
    method.fit(X[rows], np.zeros(n), proba_val=np.full((n, 2), 0.5), classes=[0, 1])
    assert np.isfinite(method.predict_trust(X[:5], P[:5, :2] * 1.5)).all()


class TestBoosting:
    HELD_OUT: ClassVar = {
        "X": X[:160],
        "y": y[:160],
        "X_val": X[160:],
        "y_val": y[160:],
        "proba_val": P[160:],
    }

    @pytest.mark.parametrize(
        ("name", "n_classes", "trees"),
        [
            ("boosting", 2, [(31, 20), (31, 5)]),
            ("boosting", 3, [(31, 20)]),
            ("shallow boosting", 2, [(7, 5)]),
            ("shallow boosting", 3, [(7, 5)]),
        ],
    )
    def test_is_the_mean_of_three_views_for_each_size_of_trees(self, name, n_classes, trees, few_trees):
        method, _ = opinion_of(name, X=X, y=y % n_classes, proba_val=np.full((240, n_classes), 1 / n_classes))
        (opinion,) = method.opinions_
        members = [
            member.predict_proba(rows if axes is None else np.c_[rows, rows @ axes])
            for rows in [X[:50]]
            for member, axes in opinion.members
        ]
        np.testing.assert_allclose(opinion.predict_proba(X[:50]), np.mean(members, axis=0))
        n = len(trees)
        assert [axes is None for _, axes in opinion.members] == [True] * 2 * n + [False] * n
        sizes = [
            (member.estimator.max_leaf_nodes, member.estimator.min_samples_leaf)
            for member, _ in opinion.members
        ]
        assert sizes == trees * 3
        assert (members[0] != members[1]).any()

    @pytest.mark.full
    def test_small_trees_for_noise_and_large_ones_for_detail(self):
        rng = np.random.default_rng(5)
        rows = rng.normal(size=(2500, 3))
        noise = (1.5 * rows[:, 0] + rows[:, 1] + rng.logistic(size=2500) > 0).astype(int)
        chess = np.floor(1.5 * rows[:, :2]).astype(int).sum(axis=1) % 2
        fit, val, new = np.split(np.arange(2500), [800, 1000])
        better = []
        for labels in (noise, chess):
            method = NeighborAgg(second_opinions=["boosting", "shallow boosting"], n_neighbors=2)
            held_out = {"X_val": rows[val], "y_val": labels[val], "proba_val": np.full((len(val), 2), 0.5)}
            method.fit(rows[fit], labels[fit], **held_out)
            said = {opinion.name: opinion.predict_proba(rows[new]) for opinion in method.opinions_}
            skill = {
                name: np.log(proba[np.arange(len(new)), labels[new]]).mean() for name, proba in said.items()
            }
            better.append(max(skill, key=skill.__getitem__))
        assert better == ["shallow boosting", "boosting"]

    @pytest.mark.full
    @pytest.mark.parametrize("shared", [True, False])
    def test_is_not_asked_about_what_it_has_seen(self, shared):
        method, proba = opinion_of("boosting", **({} if shared else self.HELD_OUT))
        (opinion,) = method.opinions_
        _, asked = method.aggregator_.seen_
        assert len(proba) == len(asked)
        assert (proba.argmax(axis=1) == asked).mean() < 0.5
        # In the end it has seen all.
        assert (opinion.predict_proba(X).argmax(axis=1) == y).mean() > 0.9

    @pytest.mark.full
    def test_learns_axes_that_no_column_has(self):
        """Classes that differ in the sum of all columns, of which each alone knows next to nothing."""
        rng = np.random.default_rng(2)
        rows = rng.normal(size=(700, 12))
        labels = (rows.sum(axis=1) > 0).astype(int)
        data = {"X_val": rows[300:500], "y_val": labels[300:500], "proba_val": np.full((200, 2), 0.5)}
        method = NeighborAgg(n_neighbors=2, second_opinions=["boosting"]).fit(
            rows[:300], labels[:300], **data
        )
        (opinion,) = method.opinions_
        right = [
            (
                member.predict_proba(
                    rows[500:] if axes is None else np.c_[rows[500:], rows[500:] @ axes]
                ).argmax(1)
                == labels[500:]
            ).mean()
            for member, axes in opinion.members
        ]
        assert min(right[4:]) > max(right[:4]) + 0.05  # two sizes of trees in each of three views

    @pytest.mark.parametrize("columns", [slice(0, 1), slice(0, 4)], ids=["one column", "one class"])
    def test_nothing_to_learn_axes_from(self, columns, few_trees):
        rows, labels = X[:60, columns], y[:60] * (columns.stop == 1)
        method = NeighborAgg(second_opinions=["boosting", "smooth kernel"], n_neighbors=2)
        method.fit(rows, labels, proba_val=P[:60], classes=[0, 1, 2])
        assert np.isfinite(method.predict_trust(rows, P[:60])).all()
        assert all(axes is None for _, axes in method.opinions_[0].members)


class TestProgress:
    def test_steps_are_logged(self, caplog):
        method = NeighborAgg(Spy(), second_opinions=["kernel", LogisticRegression()], n_neighbors=2)
        with caplog.at_level("INFO", logger="neighboragg"):
            method.fit(X, y, proba_val=P)
        assert caplog.messages == [
            "Learning the metric",
            "Fitting second opinion 1 of 2, kernel",
            "Fitting second opinion 2 of 2, LogisticRegression #2",
            f"Weighing experts by {len(method.aggregator_.seen_[1])} validation rows",
        ]

    def test_steps_are_told_before_they_are_done(self):
        """Else a bar that waits for more than this would be full too early."""
        told = []
        with report_to(lambda *message: told.append(message)):
            NeighborAgg(second_opinions=[LogisticRegression()], n_neighbors=2).fit(X, y, proba_val=P)
        opinion = "Fitting second opinion 1 of 1, LogisticRegression #1"
        parts = [(done, total) for stage, done, total in told if stage == opinion]
        assert parts == [(0, 0), *((done, 5) for done in range(1, 6))]

    def test_what_a_listener_does_is_not_told(self):
        heard = []

        def fits_itself(*message):
            heard.append(message)
            NeighborAgg(n_neighbors=2).fit(X[:30], y[:30], proba_val=P[:30])

        with report_to(fits_itself):
            NeighborAgg(second_opinions=None, n_neighbors=2).fit(X, y, proba_val=P)
        assert [stage.split(" by ")[0] for stage, _, _ in heard] == [
            "Learning the metric",
            "Weighing experts",
        ]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_trees_join_where_there_are_two_classes(n_classes, few_trees):
    even = np.full((90, n_classes), 1 / n_classes)
    method = NeighborAgg(effort="best").fit(X[:90], y[:90] % n_classes, proba_val=even)
    names = [opinion.name for opinion in method.opinions_]
    assert names[-1] == ("shallow boosting" if n_classes == 2 else "boosting")


def test_neighbors_at_best_effort():
    """Asked for by number they are as many as that, and the paper's network has its own."""
    method = NeighborAgg(second_opinions=None, effort="best").fit(X, y, proba_val=P)
    assert method.kneighbors(X[:1])[0].shape == (1, 3, 50)
    assert [name for name in method.aggregator_.expert_names if "features" in name] == [
        "1 nearest (features)",
        "12 nearest (features)",
        "50 nearest (features)",
    ]
    fewer = NeighborAgg(second_opinions=None, effort="best", n_neighbors=3).fit(X, y, proba_val=P)
    assert fewer.kneighbors(X[:1])[0].shape == (1, 3, 3)


def test_not_a_classifier_with_probabilities():
    with pytest.raises(InvalidParameterError) as caught:
        opinion_of(RidgeClassifier())
    assert str(caught.value) == (
        "Second opinion 0 of NeighborAgg must be a classifier with predict_proba, or one of 'kernel', 'smooth "
        "kernel', 'forest', 'extra trees', 'boosting', 'shallow boosting'. Got RidgeClassifier() instead."
    )


def test_a_frozen_second_opinion_is_refused():
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(InvalidParameterError) as caught:
        NeighborAgg(second_opinions=[frozen]).fit(X, y, proba_val=np.full((20, 2), 0.5))
    assert str(caught.value) == (
        "Second opinion 0 of NeighborAgg is frozen, but second opinions are fitted here.\n"
        "Hint: pass the classifier itself."
    )
