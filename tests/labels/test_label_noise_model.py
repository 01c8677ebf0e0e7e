"""P(label is wrong): found where errors are random, honest where they look like ambiguity, and without jumps."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits, make_blobs

from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector, find_mislabeled, load
from neighboragg.labels._noise import find_label_noise, flags_per_doubted, likely_f1_count, likely_share
from neighboragg.labels._noise_model import fit_noise_model


def calibrated(n, n_classes, sharpness, seed):
    """Trust, and labels drawn from it: doubtful rows, and not one error."""
    rng = np.random.default_rng(seed)
    trust = softmax(sharpness * rng.normal(size=(n, n_classes)), axis=1)
    codes = (trust.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    return trust, codes


def tempered(trust, codes):
    """What a pool makes of it: a power of the trust, the one that fits the given labels best."""
    powers = np.linspace(0.3, 1.2, 46)
    sharpened = [softmax(power * np.log(trust), axis=1) for power in powers]
    fits = [np.log(t[np.arange(len(codes)), codes]).sum() for t in sharpened]
    return sharpened[int(np.argmax(fits))]


def with_errors(trust, codes, rate, seed, partner=False):
    """The same with a share of labels exchanged, and the trust as it is when fitted to those."""
    n, n_classes = trust.shape
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < rate
    step = 1 if partner else rng.integers(1, n_classes, size=n)
    noisy = np.where(wrong, (codes + step) % n_classes, codes)
    return tempered(trust, noisy), noisy, wrong


def found(trust, codes):
    return find_label_noise(trust, trust, codes, np.ones(trust.shape[1], dtype=bool))


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("partner", [False, True])
@pytest.mark.parametrize("rate", [0.03, 0.1, 0.2])
@pytest.mark.parametrize("n_classes", [3, 8])
def test_random_errors_are_counted_and_probabilities_are_calibrated(n_classes, rate, partner):
    trust, noisy, wrong = with_errors(*calibrated(3000, n_classes, 6.0, 0), rate, 1, partner)
    result = found(trust, noisy)
    assert result.noise.randomness > 0.9
    assert result.rate == pytest.approx(wrong.mean(), abs=0.03)
    sure = result.p_wrong > 0.5
    assert wrong[sure].mean() == pytest.approx(result.p_wrong[sure].mean(), abs=0.1)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_labels_that_are_what_trust_expects_hold_no_random_errors(n_classes):
    trust, codes = calibrated(3000, n_classes, 3.0, 0)
    result = found(trust, codes)
    assert result.noise.randomness < 0.3
    assert result.p_random.mean() < 0.01


def test_many_plausible_errors_are_more_than_are_doubted():
    trust, codes = calibrated(3000, 4, 2.0, 0)
    result = found(trust, codes)
    assert result.noise.randomness < 0.3
    assert 0.12 < result.doubted.mean() < result.rate
    everyone = np.ones(3000, dtype=bool)
    assert result.doubted.sum() < result.n_to_flag(everyone) <= round(3000 * result.rate)


def test_the_share_of_plausible_errors_grows_from_that_of_the_doubted_without_a_jump():
    doubted = np.linspace(0, 1, 1001)
    for doubt in (0.0, 0.05, 0.3, 1.0):
        share = np.array([likely_share(c, doubt) for c in doubted])
        assert (share >= doubted).all()
        assert (share <= np.maximum(doubted, doubt)).all()
        np.testing.assert_array_equal(share[:61], doubted[:61])
        assert (np.diff(share) >= 0).all() and np.diff(share).max() < 0.007
    assert likely_share(0.10, 0.3) == pytest.approx(0.129, abs=0.001)


def test_flags_are_the_doubted_up_to_where_clean_classes_overlap_and_the_expected_beyond():
    doubted = np.linspace(0.001, 0.4, 400)
    flagged = np.array([d * flags_per_doubted(d, likely_share(d, 0.5)) for d in doubted])
    likely = np.array([likely_share(d, 0.5) for d in doubted])
    np.testing.assert_allclose(flagged[doubted <= 0.12], doubted[doubted <= 0.12])
    np.testing.assert_allclose(flagged[doubted >= 0.16], likely[doubted >= 0.16])
    assert (np.diff(flagged) >= -1e-12).all() and np.diff(flagged).max() < 0.005


def test_pairs_of_classes_are_learned():
    trust, noisy, _ = with_errors(*calibrated(3000, 5, 6.0, 0), 0.1, 1, partner=True)
    pairs = fit_noise_model(trust, noisy).pairs
    for right in range(5):
        assert pairs[right].argmax() == (right + 1) % 5
    np.testing.assert_array_equal(np.diag(pairs), 0.0)


@pytest.mark.full
def test_nothing_jumps_as_random_errors_come_in_one_by_one():
    trust, codes = calibrated(1500, 4, 5.0, 0)
    rng = np.random.default_rng(1)
    order, step = rng.permutation(1500), rng.integers(1, 4, size=1500)
    rates, counts = [], []
    for n_wrong in range(0, 90, 3):
        noisy = codes.copy()
        chosen = order[:n_wrong]
        noisy[chosen] = (codes[chosen] + step[chosen]) % 4
        result = found(tempered(trust, noisy), noisy)
        rates.append(result.rate)
        counts.append(result.n_to_flag(np.ones(1500, dtype=bool)))
    assert np.abs(np.diff(rates)).max() < 0.012
    assert np.abs(np.diff(counts)).max() < 0.012 * 1500


def test_the_count_of_flags_maximizes_the_expected_f1():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.beta(0.3, 2.0, size=40)
        ordered = np.sort(p)[::-1]
        f1 = [2 * ordered[:k].sum() / (k + p.sum()) for k in range(1, 41)]
        assert likely_f1_count(p) == np.argmax(f1) + 1
    assert likely_f1_count(np.full(40, 0.01)) == 0
    assert likely_f1_count(np.zeros(0)) == 0


@pytest.mark.full
@pytest.mark.parametrize("n_rare", [1, 6, 20])
@pytest.mark.parametrize("names", ["same", "own"])
def test_rare_labels_leave_the_flags_of_other_rows_alone(n_rare, names):
    X, y = make_blobs(800, centers=6, n_features=4, cluster_std=3.0, random_state=0)
    labels = y.astype("U9")
    settings = {"features": "passthrough", "effort": "fast"}
    before = find_mislabeled(X, labels, **settings)
    changed = labels.copy()
    rare = np.random.default_rng(n_rare).permutation(800)[:n_rare]
    changed[rare] = "RARE" if names == "same" else [f"RARE {i}" for i in range(n_rare)]
    after = find_mislabeled(X, changed, **settings)
    assert after.mask[rare].all()
    others = int(np.delete(after.mask, rare).sum())
    assert abs(others - before.n_flagged) <= max(5, 0.2 * before.n_flagged)
    assert (after.p_wrong[rare] > 0.5).all()


@pytest.mark.parametrize("labels", [np.arange(60), np.r_[np.zeros(50, int), np.arange(1, 11)]])
@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_labels_of_which_hardly_any_is_shared(labels):
    X = np.random.default_rng(0).normal(size=(60, 3))
    result = find_mislabeled(X, labels, effort="fast")
    assert ((result.p_wrong >= 0) & (result.p_wrong <= 1)).all()
    assert np.isfinite(result.scores).all()
    assert 0 <= result.noise_rate <= 1


@pytest.mark.full
def test_published_labels_of_digits_are_hardly_doubted():
    X, y = load_digits(return_X_y=True)
    result = find_mislabeled(X, y)
    assert result.n_flagged <= 5
    assert result.noise_rate < 0.01


def test_p_wrong_survives_saving_and_judges_new_rows(tmp_path):
    X, y = load_digits(return_X_y=True)
    noisy = add_label_noise(y[:900], rate=0.1, random_state=0)
    detector = MislabelDetector(effort="fast").fit(X[:900], noisy.y)
    result = detector.result_
    assert result.randomness > 0.9
    assert result.noise_rate == pytest.approx(0.1, abs=0.03)
    assert "The errors look random." in result.summary()
    detector.save(tmp_path / "detector.nagg")
    again = load(tmp_path / "detector.nagg")
    np.testing.assert_array_equal(again.result_.p_wrong, result.p_wrong)
    assert again.result_.noise_rate == result.noise_rate
    right, wrong = (
        again.score_reliability(X[900:1000], labels) for labels in (y[900:1000], (y[900:1000] + 1) % 10)
    )
    np.testing.assert_array_equal(right, detector.score_reliability(X[900:1000], y[900:1000]))
    assert (right > 0).mean() > 0.9 and (wrong < 0).mean() > 0.9
