"""A setting chosen on validation rows: honestly, only for a reason, and never on the rows it is judged by."""

import numpy as np
import pytest

from benchmarks.methods import KNNVote, Tuned
from neighboragg import NeighborAgg
from neighboragg._pool.network import NetworkAggregator
from neighboragg.exceptions import InvalidParameterError
from neighboragg.methods import TopLabelCalibration, TrustScore
from neighboragg.metrics import auroc

RANKS = {"n_neighbors": [1, 2, 5, 20]}


def noisy_rows(n, seed, noise=0.2):
    """Two clouds; a share of the labels is wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 2)) + 2 * truth[:, None]
    return X, np.where(rng.random(n) < noise, 1 - truth, truth)


def guessed(n, seed):
    """Probabilities that know nothing: half of the predictions are wrong."""
    return np.random.default_rng(seed).dirichlet([2, 2], n)


@pytest.fixture(scope="module")
def separate():
    X, y = noisy_rows(300, 0)
    X_val, y_val = noisy_rows(200, 1)
    return {"X": X, "y": y, "X_val": X_val, "y_val": y_val, "proba_val": guessed(200, 2)}


def test_the_rank_that_noise_asks_for(separate):
    method = Tuned(TrustScore(), RANKS).fit(**separate)
    assert method.setting_ == {"n_neighbors": 20}
    assert method.method_.n_neighbors == 20
    assert method.method.n_neighbors == 2
    X, P = noisy_rows(100, 3)[0], guessed(100, 4)
    plain = TrustScore(n_neighbors=20).fit(**separate)
    assert method.predict_trust(X, P).tobytes() == plain.predict_trust(X, P).tobytes()
    own = np.arange(100)
    np.testing.assert_array_equal(
        method.predict_trust(separate["X"][:100], P, exclude=own),
        plain.predict_trust(separate["X"][:100], P, exclude=own),
    )


def test_scores_are_those_of_validation_rows(separate):
    """A method that learns nothing from validation rows has the same trust in them whatever the fold."""
    method = Tuned(TrustScore(), RANKS).fit(**separate)
    assert method.settings_ == [{"n_neighbors": rank} for rank in (2, 1, 5, 20)]  # its own first
    correct = separate["proba_val"].argmax(axis=1) == separate["y_val"]
    for setting, score in zip(method.settings_, method.scores_, strict=True):
        trust = TrustScore(**setting).fit(**separate).score_samples(separate["X_val"], separate["proba_val"])
        assert score == pytest.approx(auroc(correct, trust))


def test_a_row_does_not_vouch_for_itself():
    """Labels by chance: the nearest row, which would be the row itself, must know nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    method = Tuned(KNNVote(), {"n_neighbors": [1, 10]}).fit(X, y, proba_val=guessed(400, 1))
    np.testing.assert_allclose(method.scores_, 0.5, atol=0.1)
    assert method.setting_ == {"n_neighbors": 10}


def test_bins_are_not_judged_by_the_rows_they_were_made_of():
    """Bins of a single row know every validation label, and nothing about others."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet([4, 1], 300)
    y = np.where(rng.random(300) < P[:, 0], 0, 1)
    method = Tuned(TopLabelCalibration(), {"points_per_bin": [1, 50]}).fit(np.zeros((300, 1)), y, proba_val=P)
    assert method.setting_ == {"points_per_bin": 50}
    assert method.scores_.max() < 0.9


def test_the_choice_is_a_function_of_the_data_and_the_seed(separate):
    first, second = (
        Tuned(TopLabelCalibration(), {"points_per_bin": [5, 20]}).fit(**separate) for _ in range(2)
    )
    np.testing.assert_array_equal(first.scores_, second.scores_)


@pytest.mark.parametrize("right", [True, False])
def test_without_both_outcomes_the_method_keeps_its_own_setting(separate, right):
    labels = separate["y_val"] if right else 1 - separate["y_val"]
    method = Tuned(TrustScore(n_neighbors=7), RANKS).fit(**{**separate, "proba_val": np.eye(2)[labels]})
    assert method.setting_ == {"n_neighbors": 7}
    assert np.isnan(method.scores_).all()


@pytest.mark.parametrize(("n_errors", "rank"), [(1, 1), (4, 1), (5, 20)])
def test_a_handful_of_errors_is_no_reason(n_errors, rank):
    """Labels of training rows are often wrong, so that a higher rank is better, seen on few wrong predictions."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 6 * y[:, None]
    given = np.where(rng.random(400) < 0.3, 1 - y, y)
    labels = y[200:].copy()
    labels[:n_errors] = 1 - labels[:n_errors]
    method = Tuned(TrustScore(n_neighbors=1), {"n_neighbors": [20]}).fit(
        X[:200], given[:200], X_val=X[200:], y_val=y[200:], proba_val=np.eye(2)[labels]
    )
    assert method.scores_[1] > method.scores_[0]
    assert method.setting_ == {"n_neighbors": rank}


@pytest.mark.full
def test_chance_seldom_moves_a_setting():
    """Labels by chance and two settings: a gain beyond its standard error has probability 16% or so."""
    moved = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, X_val = rng.normal(size=(40, 2)), rng.normal(size=(60, 2))
        method = Tuned(TrustScore(n_neighbors=1), {"n_neighbors": [10]}, cv=2).fit(
            X, np.arange(40) % 2, X_val=X_val, y_val=rng.integers(0, 2, 60), proba_val=guessed(60, seed)
        )
        moved += method.setting_ != {"n_neighbors": 1}
    assert 15 <= moved <= 52  # 32 expected; beyond three standard deviations on either side is refused


def test_several_grids_and_nested_names(separate):
    network = NeighborAgg(NetworkAggregator(max_iter=5))
    grid = [{"aggregator__penalty": [1e-4, 1e-2]}, {"n_neighbors": [3]}]
    method = Tuned(network, grid, cv=2).fit(**separate)
    assert method.settings_ == [
        {"aggregator__penalty": 1e-4, "n_neighbors": None},
        {"aggregator__penalty": 1e-2, "n_neighbors": None},
        {"aggregator__penalty": 1e-4, "n_neighbors": 3},
    ]
    assert method.method_.aggregator.penalty == method.setting_["aggregator__penalty"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"method": "trust"},
            "The 'method' parameter of Tuned must be a trust method. Got 'trust' instead.",
        ),
        (
            {"grid": {"rank": [1]}},
            "The 'grid' parameter of Tuned names 'rank', which is no parameter of TrustScore.\nHint: it has 'alpha', "
            "'filter_neighbors', 'filtering', 'n_jobs', 'n_neighbors'.",
        ),
        ({"cv": 1}, "The 'cv' parameter of Tuned must be an int >= 2. Got 1 instead."),
    ],
)
def test_parameters(separate, params, message):
    with pytest.raises(InvalidParameterError) as caught:
        Tuned(**{"method": TrustScore(), "grid": RANKS, **params}).fit(**separate)
    assert str(caught.value) == message


@pytest.mark.parametrize("grid", [{"n_neighbors": 3}, {"n_neighbors": []}, 5])
def test_a_grid_that_is_none(separate, grid):
    with pytest.raises(InvalidParameterError, match=r"^The .grid. parameter of Tuned cannot be used"):
        Tuned(TrustScore(), grid).fit(**separate)


def test_a_wrong_value_is_told_by_the_method(separate):
    with pytest.raises(InvalidParameterError) as caught:
        Tuned(TrustScore(), {"n_neighbors": [2, 0]}).fit(**separate)
    assert str(caught.value) == (
        "The 'n_neighbors' parameter of TrustScore must be an int >= 1. Got 0 instead."
    )
