"""Rows that depend on each other: groups and time in fit, in a promise, and in a report."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB

from neighboragg import NeighborAgg, SelectiveClassifier, TrustedClassifier
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.metrics import auroc, bootstrap_interval
from sizes import draws

FAST = NeighborAgg(effort="fast")


def copies(n_groups, seed, size=5):
    """Groups of near copies; a third of the groups have the other label, all rows of them."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_groups, 4))
    labels = ((centers[:, 0] > 0) ^ (rng.random(n_groups) < 0.3)).astype(int)
    groups = np.repeat(np.arange(n_groups), size)
    return centers[groups] + 0.02 * rng.normal(size=(len(groups), 4)), labels[groups], groups + 10_000 * seed


def test_whole_groups_are_held_out():
    X, y, groups = copies(100, 0)
    model = TrustedClassifier(GaussianNB(), FAST, random_state=0).fit(X, y, groups=groups)
    held_out = model.validation_indices_
    assert 0.15 < len(held_out) / len(y) < 0.25
    assert not np.isin(np.delete(groups, held_out), groups[held_out]).any()


@pytest.mark.parametrize("way", ["given", "held out", "folds"])
def test_groups_do_not_vouch_for_themselves(way):
    X, y, groups = copies(200, 1)
    X_new, y_new, _ = copies(200, 2)
    given = {}
    if way == "given":
        X_val, y_val, groups_val = copies(80, 3)
        given = {"X_val": X_val, "y_val": y_val, "groups_val": groups_val}
    model = TrustedClassifier(LogisticRegression(), FAST, cv=4 if way == "folds" else None, random_state=0)
    assessed = model.fit(X, y, groups=groups, **given).assess(X_new)
    correct = assessed.predicted == y_new
    assert abs(assessed.trust.mean() - correct.mean()) < 0.12  # .29 too high without groups
    assert (assessed.familiarity <= 0.05).mean() < 0.15


def test_validation_rows_that_come_in_groups_are_noticed():
    X, y, _ = copies(200, 1)
    X_val, y_val, _ = copies(80, 3)
    with pytest.warns(TrustWarning, match=r"^(9\d|100)% of the validation rows .* come in groups"):
        model = TrustedClassifier(LogisticRegression(), FAST).fit(X, y, X_val=X_val, y_val=y_val)
    X_new, y_new, _ = copies(200, 2)
    assessed = model.assess(X_new)
    assert abs(assessed.trust.mean() - (assessed.predicted == y_new).mean()) < 0.12


def test_rows_without_groups_raise_no_suspicion():
    rng = np.random.default_rng(0)
    for _ in range(draws(100)):
        X = rng.normal(size=(240, 3))
        y = (X[:, 0] + rng.normal(size=240) > 0).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "proba_val")
            NeighborAgg("pool", effort="fast", learned_metric=False).fit(
                X[:140], y[:140], X_val=X[140:], y_val=y[140:], proba_val=np.full((100, 2), 0.5)
            )


def test_neighbors_of_other_groups_keep_their_positions():
    X, y, groups = copies(60, 4)
    proba = np.full((len(y), 2), 0.5)
    method = NeighborAgg(effort="fast", learned_metric=False)
    method.fit(X, y, proba_val=proba, groups=groups)
    distances, found = method.kneighbors(X[:9])
    for row, near, classes in zip(X[:9], distances, found, strict=True):
        for c in range(2):
            exists = classes[c] >= 0
            assert (y[classes[c][exists]] == c).all()
            np.testing.assert_allclose(np.linalg.norm(X[classes[c][exists]] - row, axis=1), near[c][exists])


def test_the_latest_rows_are_held_out():
    X, y, _ = copies(60, 5)
    time = np.random.default_rng(0).permutation(len(y)) // 3
    model = TrustedClassifier(GaussianNB(), FAST, validation_fraction=0.3).fit(X, y, time=time)
    held_out = model.validation_indices_
    assert time[held_out].min() > np.delete(time, held_out).max()
    assert 0.27 < len(held_out) / len(y) < 0.33
    dates = np.datetime64("2026-01-01") + time
    again = TrustedClassifier(GaussianNB(), FAST, validation_fraction=0.3).fit(X, y, time=dates)
    np.testing.assert_array_equal(again.validation_indices_, held_out)


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({}, {"groups": np.arange(300), "time": np.arange(300)}, "got groups and time.\nHint: pass one"),
        ({"cv": 3}, {"time": np.arange(300)}, "got time and cv, but time says which rows to hold out."),
        ({}, {"groups": np.arange(299)}, "one value for each row, shape (300,). Got (299,)."),
        ({}, {"groups": [None] * 300}, "groups passed to TrustedClassifier has missing values."),
        ({}, {"groups": np.zeros(300)}, "cannot hold out validation rows: n_samples=300 and they cannot be divided"),
        ({}, {"groups_val": np.zeros(9)}, "got groups_val without X_val."),
        ({"cv": KFold(3, shuffle=True)}, {"groups": np.repeat(np.arange(60), 5)}, "Hint: cv=5, or GroupKFold(5)."),
    ],
    ids=["both", "time and folds", "length", "missing", "one group", "groups_val", "folds"],
)  # fmt: skip
def test_errors(settings, arguments, message):
    X, y, _ = copies(60, 5)
    with pytest.raises(InvalidInputError) as caught:
        TrustedClassifier(GaussianNB(), FAST, **settings).fit(X, y, **arguments)
    assert message in str(caught.value)


def test_folds_by_group():
    X, y, groups = copies(60, 5)
    TrustedClassifier(GaussianNB(), FAST, cv=GroupKFold(3)).fit(X, y, groups=groups)


def test_a_promise_about_rows_of_new_groups_holds():
    """Groups of ten rows that are all right or all wrong: as independent rows they would promise too much."""
    X, y, _ = copies(400, 6)
    model = TrustedClassifier(GaussianNB(), FAST, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    broken, n = 0, draws(60)
    for _ in range(n):
        centers = rng.normal(size=(60, 4))
        labels = ((centers[:, 0] > 0) ^ (rng.random(60) < 0.3)).astype(int)
        groups = np.repeat(np.arange(60), 10)
        rows = centers[groups] + 0.02 * rng.normal(size=(600, 4))
        safe = SelectiveClassifier(model, target_risk=0.35, confidence_level=0.8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            safe.calibrate(rows, labels[groups], groups=groups)
            if not safe.promised_:
                continue
            new = rng.normal(size=(2000, 4))
            truth = ((new[:, 0] > 0) ^ (rng.random(2000) < 0.3)).astype(int)
            assessed = safe.assess(new)
        broken += (assessed.predicted != truth)[assessed.accepted].mean() > 0.37
    assert broken <= binom.isf(1e-3, n, 0.2)


def test_intervals_resample_whole_groups():
    rng = np.random.default_rng(0)
    trust = np.repeat(rng.uniform(size=40), 20)
    correct = np.repeat(rng.uniform(size=40) < 0.7, 20)
    groups = np.repeat(np.arange(40), 20)
    alone = bootstrap_interval(auroc, correct, trust, random_state=0, n_resamples=200)
    together = bootstrap_interval(auroc, correct, trust, random_state=0, n_resamples=200, groups=groups)
    assert together.estimate == alone.estimate
    assert together.high - together.low > 3 * (alone.high - alone.low)
    order = rng.permutation(800)
    again = bootstrap_interval(
        auroc, correct[order], trust[order], random_state=0, n_resamples=200, groups=groups[order]
    )
    assert (again.low, again.high) == (together.low, together.high)
    with pytest.raises(InvalidInputError, match="groups passed to bootstrap_interval must have one value"):
        bootstrap_interval(auroc, correct, trust, groups=groups[:9])


def test_a_report_about_groups_is_less_sure():
    X, y, groups = copies(100, 7, size=20)
    model = TrustedClassifier(GaussianNB(), FAST, random_state=0).fit(*copies(100, 8)[:2])
    plain, grouped = (
        model.report(X, y, n_resamples=100, **given).to_dict() for given in ({}, {"groups": groups})
    )
    for name in ("accuracy",):
        assert grouped[name]["estimate"] == pytest.approx(plain[name]["estimate"])
        assert grouped[name]["high"] - grouped[name]["low"] > 2 * (plain[name]["high"] - plain[name]["low"])
