"""What may be passed, what may not, and whole messages."""

import numpy as np
import pandas
import polars
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.preprocessing import StandardScaler

from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.features import TabularFeatures
from neighboragg.labels import FDR, Budget, FalseAlarms
from neighboragg.labels._noise import label_reliability

HALF = np.full((80, 2), 0.5)
FAST = {"effort": "fast"}
FLAG = (
    "The 'flag' parameter of MislabelDetector must be 'estimated', a number of labels to flag (an int >= 1), a share "
    "of false alarms (a float in (0, 1)), or a rule."
)
RULES = "Hint: the rules are Estimated(), Budget(100), FalseAlarms(0.05) and FDR(0.1)."
UNIFORM_26 = np.full((1, 26), 1 / 26)


def message_of(error_type, function, *args, **kwargs):
    with pytest.raises(error_type) as error:
        function(*args, **kwargs)
    return str(error.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"flag": "best"}, f"{FLAG} Got 'best' instead.\n{RULES}"),
        ({"flag": True}, f"{FLAG} Got True instead.\n{RULES}"),
        ({"flag": 0}, f"{FLAG} Got 0 instead.\n{RULES}"),
        ({"flag": 1.0}, f"{FLAG} Got 1.0 instead.\n{RULES}"),
        ({"reliability": "r"}, "The 'reliability' parameter of MislabelDetector must be one of 'difference', "
         "'margin', 'odds', 'paper', 'trust'. Got 'r' instead."),
        ({"duplicates": "drop"}, "The 'duplicates' parameter of MislabelDetector must be one of 'group', 'ignore'. "
         "Got 'drop' instead."),
        ({"effort": "more"}, "The 'effort' parameter of MislabelDetector must be one of 'balanced', 'best', 'fast'. "
         "Got 'more' instead."),
        ({"flag": 81}, "Budget(81) exceeds the number of labels that can be flagged, 80.\n"
         "Hint: Budget(80) flags them all."),
        ({"estimator": Perceptron()}, "The 'estimator' parameter of MislabelDetector must be a classifier with "
         "predict_proba. Got Perceptron() instead.\nHint: wrap it, e.g. CalibratedClassifierCV(estimator)."),
        ({"estimator": FrozenEstimator(DummyClassifier())}, "The 'estimator' parameter of MislabelDetector is "
         "frozen, so it cannot be cross-validated. Its probabilities for its own training rows would repeat wrong "
         "labels.\nHint: pass the unfrozen classifier, or pass its out-of-fold probabilities as proba."),
    ],
)  # fmt: skip
def test_parameters_are_checked_in_fit(blobs, parameters, message):
    detector = MislabelDetector(**parameters)
    assert message_of(InvalidParameterError, detector.fit, blobs.X, blobs.y) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": ["a"] * 80}, "y passed to MislabelDetector has only the class 'a'; finding wrong labels takes at "
         "least two.\n"
         "Hint: pass the rows of all classes together."),
        ({"y": np.arange(79) % 2}, "X and y passed to MislabelDetector must have the same number of rows. "
         "Got 80 and 79."),
        ({"y": np.where(np.arange(80) < 3, np.nan, 1.0)}, "y passed to MislabelDetector contains NaN or "
         "infinity.\nHint: drop the rows without a label."),
        ({"X": np.empty((0, 3)), "y": []}, "X passed to MislabelDetector has no rows."),
        ({"proba": np.full((80, 3), 1 / 3)}, "proba passed to MislabelDetector has 3 columns, but there are 2 "
         "classes.\nHint: columns must follow classes_, one per class, as predict_proba returns them."),
        ({"proba": HALF[:70]}, "proba passed to MislabelDetector has 70 rows, but X has 80."),
        ({"proba": HALF * 3}, "Rows of proba passed to MislabelDetector must sum to 1. Row 0 sums to 3.\n"
         "Hint: pass probabilities, not logits or votes."),
        ({"groups": np.arange(79)}, "groups passed to MislabelDetector must contain one value for each of the 80 "
         "rows. Got shape (79,)."),
        ({"groups": ["p"] * 80}, "groups passed to MislabelDetector puts all 80 rows into one group, so no row is "
         "evidence about another.\n"
         "Hint: leave out groups if the rows are independent."),
        ({"verified": [1, 80]}, "verified passed to MislabelDetector must be a mask of the 80 rows, or row numbers "
         "from 0 to 79. Got shape (2,) of dtype int64."),
        ({"verified": [-1]}, "verified passed to MislabelDetector must be a mask of the 80 rows, or row numbers from "
         "0 to 79. Got shape (1,) of dtype int64."),
        ({"verified": [True, False]}, "verified passed to MislabelDetector must be a mask of the 80 rows, or row "
         "numbers from 0 to 79. Got shape (2,) of dtype bool."),
        ({"verified": np.zeros(80, dtype=bool)}, "verified passed to MislabelDetector marks none of the 80 rows.\n"
         "Hint: mark the rows whose labels have been verified, or leave out verified."),
        ({"verified": np.arange(80)}, "verified passed to MislabelDetector marks all of the 80 rows.\n"
         "Hint: mark the rows whose labels have been verified, or leave out verified."),
        ({"flag": FDR(0.1)}, "The rule FDR needs rows whose labels have been verified.\n"
         "Hint: pass verified=rows, a random sample of right labels, or choose another rule."),
        ({"estimator": DummyClassifier(), "proba": HALF}, "MislabelDetector got both an estimator and proba.\n"
         "Hint: pass the estimator to have it cross-validated here, or out-of-fold proba, not both."),
    ],
)  # fmt: skip
def test_data_are_checked(blobs, changes, message):
    arguments = {"X": blobs.X, "y": blobs.y, **changes}
    assert message_of(InvalidInputError, find_mislabeled, **arguments) == message


def test_budget_counts_only_rows_that_may_be_flagged(blobs):
    found = message_of(
        InvalidParameterError, find_mislabeled, blobs.X, blobs.y, flag=80, verified=np.arange(10)
    )
    assert found == (
        "Budget(80) exceeds the number of labels that can be flagged, 70.\nHint: Budget(70) flags them all."
    )


@pytest.mark.parametrize(
    ("rule", "arguments", "message"),
    [
        (Budget, (0,), "The 'n' parameter of Budget must be an int >= 1. Got 0 instead."),
        (FalseAlarms, (1.0,), "The 'level' parameter of FalseAlarms must be a number in (0, 1). Got 1.0 instead."),
        (FDR, (0,), "The 'level' parameter of FDR must be a number in (0, 1). Got 0 instead."),
    ],
)  # fmt: skip
def test_rules_are_checked_when_they_are_made(rule, arguments, message):
    assert message_of(InvalidParameterError, rule, *arguments) == message


def test_noise_rates_are_checked():
    assert message_of(InvalidParameterError, FalseAlarms, 0.1, noise_rate=1.0) == (
        "The 'noise_rate' parameter of FalseAlarms must be a number in [0, 1). Got 1.0 instead."
    )


def test_too_few_rows_for_a_share_of_false_alarms(blobs):
    found = message_of(InvalidParameterError, find_mislabeled, blobs.X[35:45], blobs.y[35:45], flag=0.05)
    assert found == (
        "The 'alpha' parameter of cmd_threshold must be a number in (1 / (N + 1), 1), which for N = 10 scores "
        "begins above 0.09091. Got 0.05 instead.\nHint: pass a larger alpha, or at least 20 scores."
    )


def test_missing_values_are_refused_only_where_numbers_are_taken_as_they_are(blobs):
    X = blobs.X.copy()
    X[0, 0] = np.nan
    assert message_of(ValueError, find_mislabeled, X, blobs.y, features="passthrough").startswith(
        "Input X contains NaN.\nfeatures='passthrough'"
    )
    assert np.flatnonzero(find_mislabeled(X, blobs.y, flag=2, **FAST).mask).tolist() == [3, 50]


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_features_say_how_rows_become_vectors(blobs):
    """The first column alone tells the classes apart, but in small numbers."""
    X = np.column_stack([blobs.X[:, 0], 1e4 * np.random.default_rng(0).normal(size=80)])
    alone = find_mislabeled(X[:, :1], blobs.y, features="passthrough", flag=2, **FAST)
    for features in (StandardScaler(), lambda rows: rows[:, :1]):
        detector = MislabelDetector(features=features, flag=4, **FAST).fit(X, blobs.y)
        assert {3, 50} <= {*np.flatnonzero(detector.result_.mask)}
        assert detector.predict(X[:2] + 0.01, ["right", "left"]).tolist() == [True, False]
    np.testing.assert_array_equal(detector.result_.scores, alone.scores)
    assert {3, 50} <= {*np.flatnonzero(find_mislabeled(X, blobs.y, flag=4, **FAST).mask)}
    raw = find_mislabeled(X, blobs.y, features="passthrough", flag=4, **FAST)
    assert not {3, 50} <= {*np.flatnonzero(raw.mask)}


def test_arrays_mean_the_same_as_in_a_trusted_classifier(blobs):
    X = blobs.X * [1.0, 100.0, 0.01]
    result = find_mislabeled(X, blobs.y, **FAST)
    by_hand = find_mislabeled(TabularFeatures().fit_transform(X), blobs.y, features="passthrough", **FAST)
    np.testing.assert_array_equal(result.scores, by_hand.scores)


def test_a_transformer_does_not_see_labels(blobs):
    assert "y" in message_of(
        TypeError, find_mislabeled, blobs.X, blobs.y, features=LinearDiscriminantAnalysis()
    )


def test_columns_that_say_nothing_are_refused(blobs):
    frame = pandas.DataFrame({"id": [f"row-{i}" for i in range(200)]})
    assert message_of(InvalidInputError, find_mislabeled, frame, np.arange(200) % 2) == (
        "X passed to MislabelDetector has nothing to compare rows by: no numbers, no repeated category, and no "
        "texts with a word in common.\n"
        "Hint: pass embeddings of the rows, or further columns."
    )


def test_new_rows_are_checked(blobs):
    with pytest.raises(NotFittedError):
        MislabelDetector().predict(blobs.X, blobs.y)
    detector = MislabelDetector(**FAST).fit(blobs.X, blobs.y)
    check = detector.score_reliability
    assert message_of(InvalidInputError, check, blobs.X[:2, :2], ["left"] * 2) == (
        "X passed to MislabelDetector has 2 features, but 3 were seen in fit."
    )
    assert message_of(InvalidInputError, check, blobs.X[:2], ["left"]) == (
        "X and y passed to MislabelDetector must have the same number of rows. Got 2 and 1."
    )
    assert message_of(InvalidInputError, check, blobs.X[:1], ["up"]) == (
        "y passed to MislabelDetector contains labels that are not among the 2 known classes: 'up'.\n"
        "Hint: known classes are 'left', 'right'."
    )
    assert message_of(InvalidInputError, check, blobs.X[:1], ["left"], proba=HALF[:1]) == (
        "MislabelDetector got proba, but fit had none.\n"
        "Hint: pass probabilities of the same classifier to fit and for new rows, or to neither."
    )
    detector.fit(blobs.X, blobs.y, proba=HALF)
    assert message_of(InvalidInputError, check, blobs.X[:1], ["left"]) == (
        "MislabelDetector needs proba, as fit had proba.\n"
        "Hint: pass probabilities of the same classifier to fit and for new rows, or to neither."
    )
    assert message_of(InvalidInputError, check, blobs.X[:1], ["left"], proba=HALF[:2]) == (
        "proba passed to MislabelDetector has 2 rows, but X has 1."
    )


def test_label_reliability_is_checked():
    assert message_of(InvalidParameterError, label_reliability, [[0.5, 0.5]], [0], kind="best") == (
        "The 'kind' parameter of label_reliability must be one of 'difference', 'margin', 'paper', 'trust'. "
        "Got 'best' instead."
    )
    assert message_of(InvalidInputError, label_reliability, [[1.0]], [0]) == (
        "trust passed to label_reliability has 1 column; scoring labels takes at least two classes."
    )
    assert message_of(InvalidInputError, label_reliability, UNIFORM_26, [26]) == (
        "y_codes passed to label_reliability must lie in 0 to 25, one per column of trust. Got 26 at position 0.\n"
        "Hint: classes, y_codes = np.unique(y, return_inverse=True)."
    )


def test_it_is_an_estimator():
    detector = MislabelDetector(LogisticRegression(), flag="nonsense")
    copy = clone(detector)
    assert copy is not detector
    assert copy.get_params()["flag"] == "nonsense"
    assert copy.set_params(estimator__C=2.0).estimator.C == 2.0


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(
    "names",
    [("left", "right"), (0, 1), (-3, 10**12), (False, True), (0.0, 1.0), (np.str_("é"), np.str_("日本"))],
    ids=str,
)
def test_labels_of_any_kind(blobs, names):
    y = np.array(names)[(blobs.y == "right").astype(int)]
    result = find_mislabeled(blobs.X, y, flag=2, **FAST)
    assert np.flatnonzero(result.mask).tolist() == [3, 50]
    assert result.given.dtype == result.suggested.dtype == result.classes.dtype == y.dtype
    np.testing.assert_array_equal(result.given, y)
    assert result.suggested[3] == names[0]
    as_list = find_mislabeled(blobs.X.tolist(), y.tolist(), flag=2, **FAST)
    np.testing.assert_array_equal(as_list.scores, result.scores)


def test_the_names_of_labels_do_not_matter(blobs):
    """Classes in the opposite order, so that columns and tie-breaks are turned around."""
    first = find_mislabeled(blobs.X, blobs.y, **FAST)
    turned = find_mislabeled(blobs.X, np.where(blobs.y == "left", "z", "a"), **FAST)
    np.testing.assert_allclose(turned.scores, first.scores)
    np.testing.assert_allclose(turned.trust, first.trust[:, ::-1])


def test_single_precision_is_enough(blobs):
    X = blobs.X.astype(np.float32)
    single, double = (find_mislabeled(X.astype(kind), blobs.y) for kind in ("f4", "f8"))
    np.testing.assert_allclose(single.scores, double.scores, rtol=1e-6)


def test_twenty_six_classes():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    y = np.repeat(letters, 8)
    X = 4.0 * np.repeat(rng.normal(size=(26, 6)), 8, axis=0) + 0.5 * rng.normal(size=(208, 6))
    y[100] = "a"
    result = find_mislabeled(X, y, flag=1)
    assert result.trust.shape == (208, 26)
    assert np.flatnonzero(result.mask).tolist() == [100]
    assert result.suggested[100] == "m"


def test_a_class_with_one_row_is_suspicious_and_says_why(blobs):
    y = blobs.true.astype("U9")
    y[5] = "lfet"
    result = find_mislabeled(blobs.X, y, flag=1)
    assert np.flatnonzero(result.mask).tolist() == [5]
    assert result.suggested[5] == "left"
    assert result.reasons[5][0] == "only row of class 'lfet'"
    assert (result.given_neighbors[5] == -1).all()
    detector = MislabelDetector(LogisticRegression(), **FAST).fit(blobs.X, y)
    assert detector.predict(blobs.X[6:8] + 0.01, ["left", "lfet"]).tolist() == [False, True]


def test_classes_of_one_row_only_say_nothing(blobs):
    with pytest.warns(TrustWarning, match="0 of 0 labels are predicted"):
        result = find_mislabeled(blobs.X[:4], ["a", "b", "c", "d"])
    np.testing.assert_allclose(result.trust, 0.25)
    assert result.n_flagged == 0


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize(
    "settings", [{}, {"estimator": LogisticRegression()}, FAST], ids=["own", "both", "fast"]
)
@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_few_rows(n, settings):
    rng = np.random.default_rng(n)
    y = np.arange(n) % 2
    result = find_mislabeled(rng.normal(size=(n, 2)), y, flag=n, **settings)
    assert np.isfinite(result.trust).all()
    assert np.isfinite(result.scores).all()
    assert all(result.reasons)


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_constant_and_huge_features_do_no_harm(blobs):
    X = np.column_stack([blobs.X, np.full(80, 7.0)])
    for rows in (X, X * 1e100):
        result = find_mislabeled(rows, blobs.y, flag=2)
        assert np.flatnonzero(result.mask).tolist() == [3, 50]
    # Nothing but constants, and told not to mind: finite, and no error.
    said = find_mislabeled(np.ones((80, 2)), blobs.y, duplicates="ignore")
    assert np.isfinite(said.scores).all()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_labels_at_random_do_not_turn_the_evidence_around():
    """Leaving a row out makes its class rarer around it; the pool must not learn to believe the opposite."""
    rng = np.random.default_rng(0)
    correlations = []
    for _ in range(40):
        X, y = rng.normal(size=(14, 2)), np.arange(14) % 2
        result = find_mislabeled(X, y, effort="fast")
        votes = (y[_nearest(X, 3)] == y[:, None]).mean(axis=1)
        if np.ptp(result.scores) > 1e-9:
            correlations.append(np.corrcoef(votes, result.scores)[0, 1])
        else:
            np.testing.assert_allclose(result.trust, 0.5)
    assert 10 < len(correlations) < 30
    assert np.mean(correlations) > 0.2


def _nearest(X, k):
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1)[:, :k]


def test_tables_become_vectors(blobs):
    frame = pandas.DataFrame(blobs.X, columns=["a", "b", "c"])
    frame["color"] = np.where(blobs.true == "left", "red", "blue")
    frame.loc[10, "a"] = np.nan
    detector = MislabelDetector(flag=2, effort="fast").fit(frame, blobs.y)
    assert detector.n_features_in_ == 4
    assert np.flatnonzero(detector.result_.mask).tolist() == [3, 50]
    again = find_mislabeled(polars.from_pandas(frame), blobs.y, flag=2, effort="fast")
    np.testing.assert_allclose(again.scores, detector.result_.scores)
    objects = find_mislabeled(frame.to_numpy(dtype=object), blobs.y, flag=2, effort="fast")
    np.testing.assert_allclose(objects.scores, detector.result_.scores)
    near = frame[:2].assign(b=frame["b"][:2] + 0.05)
    assert detector.predict(near, ["right", "left"]).tolist() == [True, False]
    assert message_of(InvalidInputError, detector.predict, near[["b", "a", "c", "color"]], ["left"] * 2) == (
        "X passed to MislabelDetector has the columns ['b', 'a', 'c', 'color'], but fit had "
        "['a', 'b', 'c', 'color'].\nHint: pass the same columns in the same order."
    )


def test_an_estimator_sees_the_table_itself(blobs):
    frame = pandas.DataFrame(blobs.X, columns=["a", "b", "c"])

    class NeedsFrame(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            assert list(X.columns) == ["a", "b", "c"]
            assert set(y) == {"left", "right"}
            return super().fit(X, y, sample_weight)

    detector = MislabelDetector(NeedsFrame(), **FAST).fit(frame, blobs.y)
    assert detector.classifier_.proba.shape == (80, 2)
    assert detector.predict(frame[:2] + 0.05, ["right", "left"]).tolist() == [True, False]


def test_sparse_rows(blobs):
    X = sparse.csr_matrix(np.maximum(blobs.X, 0))
    detector = MislabelDetector(LogisticRegression(), flag=2, **FAST).fit(X, blobs.y)
    assert np.flatnonzero(detector.result_.mask).tolist() == [3, 50]
    assert detector.predict(X[:2] * 1.05, ["right", "left"]).tolist() == [True, False]


def test_numbers_in_a_column_of_objects_are_labels(blobs):
    codes = (blobs.y == "right").astype(int)
    plain = find_mislabeled(blobs.X, codes, **FAST)
    np.testing.assert_array_equal(find_mislabeled(blobs.X, codes.astype(object), **FAST).scores, plain.scores)


@pytest.mark.parametrize("missing", [None, np.nan], ids=["none", "nan"])
def test_missing_labels_are_named(blobs, missing):
    y = blobs.y.astype(object)
    y[4] = missing
    assert message_of(InvalidInputError, find_mislabeled, blobs.X, y) == (
        "y passed to MislabelDetector contains missing labels, first in row 4.\nHint: drop the rows without a label."
    )


def test_whole_numbers_are_row_numbers_not_a_mask(blobs):
    message = message_of(InvalidInputError, find_mislabeled, blobs.X, blobs.y, verified=[1] * 30 + [0] * 50)
    assert message == (
        "verified passed to MislabelDetector names the same row more than once.\n"
        "Hint: whole numbers are row numbers; pass booleans for a mask."
    )


def test_probabilities_that_are_none_are_refused(blobs):
    class Broken(DummyClassifier):
        def predict_proba(self, X):
            return 2.0 * super().predict_proba(X)

    assert message_of(InvalidInputError, find_mislabeled, blobs.X, blobs.y, estimator=Broken()) == (
        "Rows of the output of predict_proba passed to MislabelDetector must sum to 1. Row 0 sums to 2.\n"
        "Hint: pass probabilities, not logits or votes."
    )


def test_it_logs_its_steps(blobs, caplog):
    with caplog.at_level("INFO", logger="neighboragg"):
        find_mislabeled(blobs.X, blobs.y, flag=2, estimator=DummyClassifier(), **FAST)
    outcomes = [
        "classifier cross-validated, accuracy 0.500",
        "pass 1 of 2: 80 of 80 rows reliable",
        "pass 2 of 2: 78 of 80 rows reliable",
        "2 of 80 labels flagged",
    ]
    assert [text for text in caplog.messages if text in outcomes] == outcomes
    assert "Fitting models, pass 1 of 2" in caplog.messages


def test_random_state_may_be_a_generator_or_none(blobs):
    for seed in (np.random.RandomState(0), None):
        result = find_mislabeled(blobs.X, blobs.y, random_state=seed, flag=2)
        assert np.flatnonzero(result.mask).tolist() == [3, 50]
