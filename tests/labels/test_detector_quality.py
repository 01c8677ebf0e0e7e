"""Does it find the wrong labels, and better than the obvious scores do?"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.labels._noise import label_reliability


def normalized_margin(proba, y):
    rest = proba.copy()
    rest[np.arange(len(y)), y] = -1.0
    return proba[np.arange(len(y)), y] - rest.max(axis=1)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("name", ["digits", "digits_in_pairs"])
def test_it_ranks_wrong_labels_better_than_the_margin_of_the_probabilities(name, detector, request):
    data = request.getfixturevalue(name)
    result = detector.result_ if name == "digits" else find_mislabeled(data.X, data.y, proba=data.proba)
    baseline = average_precision_score(data.wrong, -normalized_margin(data.proba, data.y))
    ours = average_precision_score(data.wrong, -result.scores)
    assert ours > 0.93
    assert ours > baseline + 0.05
    found = result.mask & data.wrong
    assert found.sum() > 0.9 * result.mask.sum()
    assert found.sum() > 0.6 * data.wrong.sum()
    assert (result.suggested[found] == data.true[found]).mean() > 0.9
    assert abs(result.noise_rate - 0.1) < 0.04


def test_the_second_pass_helps_where_errors_gather(digits_in_pairs, monkeypatch):
    data = digits_in_pairs
    noisy = add_label_noise(data.true, rate=0.3, kind="class_dependent", random_state=0)
    found = []
    for n_passes in (1, 2):
        monkeypatch.setattr("neighboragg.labels._detector.N_PASSES", n_passes)
        result = find_mislabeled(data.X, noisy.y, effort="fast")
        found.append(average_precision_score(noisy.mask, -result.scores))
    assert found[1] > found[0] + 0.02


def test_scores_are_log_odds_that_labels_are_right(detector):
    result = detector.result_
    np.testing.assert_allclose(result.scores, np.log1p(-result.p_wrong) - np.log(result.p_wrong), atol=1e-3)
    assert result.noise_rate == pytest.approx(result.p_wrong.mean())


def test_trust_makes_suggestions_and_other_scores(digits):
    result = find_mislabeled(digits.X, digits.y, proba=digits.proba, reliability="margin", effort="fast")
    np.testing.assert_allclose(result.trust.sum(axis=1), 1.0)
    np.testing.assert_allclose(result.scores, label_reliability(result.trust, digits.y), atol=1e-12)
    np.testing.assert_array_equal(result.label_trust, result.trust[np.arange(500), digits.y])
    np.testing.assert_array_equal(result.suggested_trust, result.trust[np.arange(500), result.suggested])
    assert (result.suggested != result.given).all()
    np.testing.assert_array_equal(result.scores < 0, result.label_trust < result.suggested_trust)


def test_the_temperature_is_the_most_likely_one(detector, digits):
    trust = detector.result_.trust

    def likelihood(power):
        sharpened = trust**power
        return np.log(sharpened[np.arange(500), digits.y] / sharpened.sum(axis=1)).sum()

    assert likelihood(1.0) > max(likelihood(0.9), likelihood(1.1))


def test_the_reliability_of_the_paper_puts_the_clearest_errors_last(digits):
    """Among disagreements it is upside down: measured, not only claimed."""
    ap = {}
    for kind in ("margin", "trust", "paper"):
        result = find_mislabeled(digits.X, digits.y, proba=digits.proba, reliability=kind, effort="fast")
        ap[kind] = average_precision_score(digits.wrong, -result.scores)
        if kind == "paper":
            disagrees = digits.proba.argmax(axis=1) != digits.y
            np.testing.assert_array_equal(result.scores < 0, disagrees)
            among = disagrees & (result.trust.max(axis=1) > 0)
            assert roc_auc_score(digits.wrong[among], -result.scores[among]) < 0.5
            assert roc_auc_score(digits.wrong[among], -result.label_trust[among]) > 0.8
    assert min(ap["margin"], ap["trust"]) > ap["paper"] + 0.2


def test_neighbors_alone_and_with_models_find_errors(digits):
    for effort in ("fast", "balanced"):
        result = find_mislabeled(digits.X, digits.y, effort=effort)
        assert average_precision_score(digits.wrong, -result.scores) > 0.9


def test_boosting_joins(blobs):
    plain = find_mislabeled(blobs.X, blobs.y)
    result = find_mislabeled(blobs.X, blobs.y, effort="best", flag=2)
    assert not np.array_equal(plain.scores, result.scores)
    assert np.flatnonzero(result.mask).tolist() == [3, 50]
    assert "boosting prefers 'left' (" in " ".join(result.reasons[3])


def test_an_estimator_is_cross_validated_here(digits):
    """A classifier that knows all it was shown by heart repeats no wrong label, as it is not shown it."""
    memory = KNeighborsClassifier(1)
    result = find_mislabeled(digits.X, digits.y, estimator=memory, effort="fast")
    assert not hasattr(memory, "classes_")
    assert average_precision_score(digits.wrong, -result.scores) > 0.9
    said = MislabelDetector(memory, effort="fast").fit(digits.X, digits.y).classifier_.proba
    assert (said.argmax(axis=1)[digits.wrong] == digits.y[digits.wrong]).mean() < 0.2
    assert (said.argmax(axis=1)[~digits.wrong] == digits.y[~digits.wrong]).mean() > 0.7


def test_new_rows_are_judged_against_the_fitted_ones(digits):
    detector = MislabelDetector(GaussianNB(var_smoothing=1e-2)).fit(digits.X, digits.y)
    flipped = (digits.y_new + 3) % 10
    right, wrong = (detector.score_reliability(digits.X_new, y) for y in (digits.y_new, flipped))
    assert roc_auc_score(np.repeat([1, 0], 200), np.concatenate([right, wrong])) > 0.99
    assert detector.predict(digits.X_new, flipped).mean() > 0.8
    assert detector.predict(digits.X_new, digits.y_new).mean() < 0.05
    np.testing.assert_array_equal(detector.predict(digits.X_new, flipped), wrong < detector.result_.threshold)
    # A row's score does not depend on which others are asked about.
    np.testing.assert_allclose(detector.score_reliability(digits.X_new[:7], flipped[:7]), wrong[:7])


def test_new_rows_take_probabilities_if_fit_did(detector, digits):
    model = LogisticRegression(C=0.05).fit(digits.X, digits.y)
    scores = detector.score_reliability(digits.X_new, digits.y_new, proba=model.predict_proba(digits.X_new))
    against = detector.score_reliability(
        digits.X_new, digits.y_new, proba=model.predict_proba(digits.X_new)[:, ::-1]
    )
    assert scores.mean() > against.mean()


def test_the_result_is_a_function_of_data_and_seed(blobs):
    first, again, other = (find_mislabeled(blobs.X, blobs.y, random_state=seed).scores for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    threads = find_mislabeled(blobs.X, blobs.y, n_jobs=2).scores
    np.testing.assert_allclose(threads, first)


def test_labels_of_one_row_do_not_teach_the_pool_to_ignore_distances(monkeypatch):
    """Of a lone label no neighbor is found, which says what the label is: such rows must not take part in the fit.

    If they did, distances would get no weight, and only the votes of the nearest rows would count.
    """
    monkeypatch.setattr(
        "neighboragg.labels._detector.N_PASSES", 1
    )  # the second pass trusts such rows less anyway
    rng = np.random.default_rng(0)
    y = np.where(np.arange(120) % 2, "left", "right").astype("U9")
    X = rng.normal(size=(120, 2)) + 3.0 * (y == "right")[:, None]
    y[:20] = [f"lone {i}" for i in range(20)]
    X[:20] += [0.0, 20.0]
    detector = MislabelDetector(features="passthrough", effort="fast", reliability="margin").fit(X, y)
    # All 20 nearest rows of both are on the left, but the second is on the way to the right.
    new = np.array([[-1.0, -1.0], [0.4, 0.4]])
    nearest = np.argsort(((X - new[:, None]) ** 2).sum(axis=2), axis=1)[:, :20]
    assert (y[nearest] == "left").all()
    inside, between = detector.score_reliability(new, ["left", "left"])
    assert inside > between + 0.1
