"""Rows of one group, and copies of a row, do not vouch for each other."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import average_precision_score

from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.exceptions import TrustWarning
from sizes import examples


def copied(data, n_copies):
    """The wrong rows of some digits several times, wrong label and all."""
    wrong = np.flatnonzero(data.wrong[:250])
    rows = np.concatenate([np.arange(250), np.repeat(wrong, n_copies)])
    return data.X[rows], data.y[rows], data.wrong[rows], rows


def test_copies_hide_errors_unless_they_are_grouped(digits):
    X, y, wrong, _ = copied(digits, 3)
    grouped = find_mislabeled(X, y)
    ignored = find_mislabeled(X, y, duplicates="ignore")
    assert average_precision_score(wrong, -grouped.scores) > 0.9
    assert average_precision_score(wrong, -ignored.scores) < 0.6
    share = f"{4 * wrong[:250].sum()} of {len(y)} rows have the same features as another row; "
    assert grouped.notes == (
        f"{share}they do not count as evidence for each other. If they are independent rows, not copies, pass "
        "duplicates='ignore'.",
    )
    assert ignored.notes == (f"{share}they count as evidence for each other (duplicates='ignore').",)
    assert f"Note: {share}" in grouped.summary()


@pytest.mark.full
def test_near_copies_hide_errors_unless_groups_are_given(digits):
    X, y, wrong, rows = copied(digits, 3)
    X = X + 1e-6 * np.random.default_rng(0).normal(size=X.shape)
    alone = find_mislabeled(X, y)
    grouped = find_mislabeled(X, y, groups=[f"source {row}" for row in rows])
    assert alone.notes == grouped.notes == ()
    assert average_precision_score(wrong, -alone.scores) < 0.6
    assert average_precision_score(wrong, -grouped.scores) > 0.9


def test_a_few_duplicates_are_not_worth_a_note_but_disputed_ones_are(blobs):
    X, y = blobs.X.copy(), blobs.y.copy()
    X[1] = X[2]
    assert find_mislabeled(X, y, effort="fast").notes == ()
    # 0.0 and -0.0 are the same number.
    X[1] = X[3] = [0.0, 1.0, 2.0]
    X[3, 0] = -0.0
    result = find_mislabeled(X, y, effort="fast")
    assert result.notes == ("2 rows have the same features as a row with another label.",)
    assert (result.given_distances > 0).all()
    assert (result.suggested_distances > 0).all()
    assert find_mislabeled(X, y, effort="fast", duplicates="ignore").suggested_distances[3, 0] == 0


@st.composite
def grouped_rows(draw):
    """A few points on a grid, so that ties and duplicates are common, with groups small and large."""
    n = draw(st.integers(4, 70))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, draw(st.integers(2, 30)), size=(n, 2)).astype(float)
    y = rng.integers(0, 3, size=n)
    y[:2] = [0, 1]
    groups = rng.integers(0, draw(st.integers(2, n)), size=n)
    groups[:2] = [0, 1]
    return X, y, groups


@pytest.mark.filterwarnings("ignore::neighboragg.exceptions.TrustWarning")
@examples(60)
@given(grouped_rows())
def test_neighbors_are_the_nearest_rows_outside_the_group(drawn):
    X, y, groups = drawn
    settings = {"features": "passthrough", "effort": "fast", "duplicates": "ignore"}
    result = find_mislabeled(X, y, groups=groups, **settings)
    distance = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    distance[groups[:, None] == groups] = np.inf
    for labels, found, distances in (
        (result.given, result.given_neighbors, result.given_distances),
        (result.suggested, result.suggested_neighbors, result.suggested_distances),
    ):
        expected = np.where(labels[:, None] == y, distance, np.inf)
        nearest = np.sort(expected, axis=1)[:, :5]
        np.testing.assert_allclose(distances[:, : nearest.shape[1]], nearest)
        np.testing.assert_array_equal(found < 0, np.isinf(distances))
        at = np.where(found < 0, 0, found)
        taken = np.where(found < 0, np.inf, np.take_along_axis(expected, at, axis=1))
        np.testing.assert_allclose(taken, distances)
        assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in found)


@pytest.mark.filterwarnings("ignore::neighboragg.exceptions.TrustWarning")
@examples(40)
@given(grouped_rows())
def test_identical_rows_never_meet_and_all_numbers_are_finite(drawn):
    X, y, groups = drawn
    result = find_mislabeled(X, y, groups=groups, effort="fast")
    assert (result.given_distances > 0).all()
    assert (result.suggested_distances > 0).all()
    for values in (result.trust, result.scores, result.p_values):
        assert np.isfinite(values).all()
    assert all(bool(reasons) == flagged for reasons, flagged in zip(result.reasons, result.mask, strict=True))


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers the groups, in the first column, that it was trained on, and refuses to judge them."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = set(X[:, 0])
        return self

    def predict_proba(self, X):
        assert self.known_.isdisjoint(X[:, 0])
        assert len(self.known_) > 5
        return np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_groups_are_never_split_by_folds(digits):
    groups = np.random.default_rng(0).integers(0, 40, size=200)
    X = np.column_stack([groups, digits.X[:200]])
    find_mislabeled(X, digits.y[:200], estimator=Spy(), groups=groups, effort="fast")
    # The rows of a group are identical: they stay together unless told otherwise.
    X = np.column_stack([groups, groups % 3])
    find_mislabeled(X, digits.y[:200], estimator=Spy(), effort="fast")
    with pytest.raises(AssertionError):
        find_mislabeled(X, digits.y[:200], estimator=Spy(), effort="fast", duplicates="ignore")


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_rows_tied_together_by_duplicates_are_warned_of(blobs):
    constant = np.ones((80, 2))
    with pytest.warns(TrustWarning) as caught:
        result = find_mislabeled(constant, blobs.y)
    assert [str(warning.message) for warning in caught][:1] == [
        "Identical rows passed to MislabelDetector tie more than half of the 80 rows into one group, so few are "
        "left to vouch for them.\nHint: pass duplicates='ignore' if they are independent rows, not copies."
    ]
    # Nothing is known, so nothing is said.
    np.testing.assert_allclose(result.trust, 0.5)
    assert np.ptp(result.scores) == 0
    assert result.n_flagged == 0
    assert (result.given_neighbors == -1).all()
    with pytest.warns(TrustWarning, match="tie more than half"):
        detector = MislabelDetector(flag=1).fit(constant, blobs.y)
    assert detector.result_.reasons[0] == ("isolated row",)
    assert np.ptp(detector.score_reliability(blobs.X[:3, :2], blobs.y[:3])) == 0


def test_large_given_groups_need_no_warning(blobs):
    groups = np.arange(80) % 4 == 0
    result = find_mislabeled(blobs.X, blobs.y, groups=groups, flag=2)
    assert np.flatnonzero(result.mask).tolist() == [3, 50]
    assert not (groups[result.given_neighbors] == groups[:, None]).any()


@pytest.mark.parametrize("kind", ["float", "object"])
def test_a_missing_group_is_a_group_of_its_own(digits, kind):
    X, y = digits.X[:120], digits.y[:120]
    numbers = np.arange(120, dtype=float)
    numbers[60:64] = 60.0
    own = find_mislabeled(X, y, groups=numbers, effort="fast")
    gaps = numbers.copy()
    gaps[::10] = np.nan
    gaps[60] = 60.0
    if kind == "object":
        gaps = np.array([None if np.isnan(value) else f"source {value}" for value in gaps], dtype=object)
    found = find_mislabeled(X, y, groups=gaps, effort="fast")
    np.testing.assert_array_equal(found.scores, own.scores)
