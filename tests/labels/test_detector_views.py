"""Several views of a row: each has neighbors of its own, and what is said of a label names them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB

import neighboragg
from benchmarks.datasets import add_label_noise
from neighboragg import MislabelDetector, find_mislabeled
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

RNG = np.random.default_rng(0)
N = 300
# Of four classes, one view tells left from right, the other up from down.
TRUTH = RNG.integers(0, 4, N)
LEFT = np.column_stack([3.0 * (TRUTH % 2), np.zeros(N)]) + RNG.normal(size=(N, 2))
UP = np.column_stack([3.0 * (TRUTH // 2), np.zeros(N), np.zeros(N)]) + RNG.normal(size=(N, 3))
NOISY = add_label_noise(TRUTH, rate=0.06, random_state=0)
VIEWS = {"left": LEFT, "up": UP}
FAST = {"effort": "fast", "features": "passthrough"}


def message_of(function, *arguments, **options):
    with pytest.raises((InvalidInputError, InvalidParameterError)) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.fixture(scope="module")
def both():
    """What two views say together; flags change no score."""
    return find_mislabeled(VIEWS, NOISY.y, flag=20, **FAST)


@pytest.fixture(scope="module")
def left():
    return find_mislabeled(LEFT, NOISY.y, **FAST)


def test_one_view_is_the_same_as_none(left):
    alone = left
    named = find_mislabeled({"left": LEFT}, NOISY.y, **FAST)
    np.testing.assert_array_equal(named.scores, alone.scores)
    np.testing.assert_array_equal(named.given_neighbors, alone.given_neighbors)
    assert named.reasons == alone.reasons


def test_views_complete_each_other(left, both):
    up = find_mislabeled(UP, NOISY.y, **FAST)
    *alone, together = (average_precision_score(NOISY.mask, -result.scores) for result in (left, up, both))
    alone = max(alone)
    assert together > alone + 0.1
    assert together > 0.5


def test_scale_of_a_view_and_order_of_views_do_not_matter(both):
    first = both
    scaled = find_mislabeled({"up": UP * 1e4, "left": LEFT}, NOISY.y, **FAST)
    np.testing.assert_allclose(scaled.scores, first.scores, atol=1e-4)
    # Side by side in one view, the large one would drown the other.
    drowned = find_mislabeled(np.hstack([UP * 1e4, LEFT]), NOISY.y, **FAST)
    assert np.abs(drowned.scores - first.scores).max() > 0.5


def test_reasons_name_the_views_and_neighbors_are_of_the_first(both):
    result = both
    reasons = [reason for row in result.reasons for reason in row]
    assert any(reason.startswith("neighbors in 'left' disagree (") for reason in reasons)
    assert any(reason.startswith("neighbors in 'up' disagree (") for reason in reasons)
    assert not any(reason.startswith("neighbors disagree") for reason in reasons)
    nearest = result.given_neighbors[:, 0]
    np.testing.assert_allclose(
        result.given_distances[:, 0], np.linalg.norm(LEFT - LEFT[nearest], axis=1), rtol=1e-6
    )


def test_a_lone_row_is_isolated_in_the_view_where_it_is():
    up = UP.copy()
    up[5] += 50.0
    labels = TRUTH.copy()
    labels[5] = (labels[5] + 1) % 4
    result = find_mislabeled({"left": LEFT, "up": up}, labels, flag=30, **FAST)
    assert "isolated row in 'up'" in result.reasons[5]
    assert "isolated row in 'left'" not in result.reasons[5]


def test_copies_are_the_same_in_every_view():
    labels = TRUTH.copy()
    left, up = LEFT.copy(), UP.copy()
    labels[1], left[1] = labels[0], left[0]
    result = find_mislabeled({"left": left, "up": up}, labels, **FAST)
    assert result.given_neighbors[0, 0] == 1
    up[1] = up[0]
    result = find_mislabeled({"left": left, "up": up}, labels, **FAST)
    assert 1 not in result.given_neighbors[0]


def test_new_rows_are_judged_by_the_same_views():
    detector = MislabelDetector(**FAST).fit({name: view[:200] for name, view in VIEWS.items()}, TRUTH[:200])
    assert detector.n_features_in_ == 5
    new = {name: view[200:] for name, view in reversed(VIEWS.items())}
    right = detector.score_reliability(new, TRUTH[200:])
    wrong = detector.score_reliability(new, (TRUTH[200:] + 3) % 4)
    assert np.median(right) > np.median(wrong) + 3
    assert message_of(detector.predict, {"left": LEFT, "down": UP}, TRUTH) == (
        "X has the views 'left', 'down', but 'left', 'up' are expected.\n"
        "Hint: use the same names of views in fit, for new rows, and in a mapping of features."
    )
    with pytest.warns(
        UserWarning, match="Most rows of X passed to MislabelDetector are rows it was fitted on"
    ):
        detector.predict({name: view[:200] for name, view in VIEWS.items()}, TRUTH[:200])


@pytest.mark.full
def test_a_mapping_of_features_makes_views_of_one_table(both):
    table = np.hstack([LEFT, UP])
    made = find_mislabeled(
        table,
        NOISY.y,
        effort="fast",
        features={"left": lambda X: X[:, :2], "up": lambda X: X[:, 2:]},
    )
    np.testing.assert_array_equal(made.scores, both.scores)
    # With views as features, an estimator sees the table itself.
    asked = find_mislabeled(
        table, NOISY.y, estimator=GaussianNB(), features={"left": lambda X: X[:, :2], "all": "auto"}
    )
    assert average_precision_score(NOISY.mask, -asked.scores) > 0.4


@pytest.mark.full
def test_views_of_different_kinds():
    words = {
        0: "alder ash birch elm",
        1: "carp eel pike tench",
        2: "crow finch rook wren",
        3: "bee fly gnat wasp",
    }
    texts = [" ".join(RNG.choice(words[label].split(), 4)) for label in TRUTH]
    frame = pd.DataFrame({"a": LEFT[:, 0], "b": RNG.choice(["x", "y"], N)})
    detector = MislabelDetector().fit({"text": texts, "table": frame}, NOISY.y)
    assert average_precision_score(NOISY.mask, -detector.result_.scores) > 0.9
    reasons = {reason.partition(" prefers")[0] for row in detector.result_.reasons for reason in row}
    assert "classifier of words" in reasons
    new = {
        "text": ["crow rook wren finch", "bee gnat"],
        "table": pd.DataFrame({"a": [0.0, 3.0], "b": ["x", "x"]}),
    }
    assert (detector.score_reliability(new, [2, 3]) > detector.score_reliability(new, [3, 2])).all()
    mixed = find_mislabeled(
        {"text": texts, "vectors": LEFT}, NOISY.y, features={"vectors": "passthrough", "text": "auto"}
    )
    assert average_precision_score(NOISY.mask, -mixed.scores) > 0.9


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            {"left": LEFT, "up": UP[:-1]},
            "The views of X passed to MislabelDetector must have the same number of rows. Got 'left' 300, 'up' 299.\n"
            "Hint: pass one vector per row in each view, in the same order.",
        ),
        ({1: LEFT}, "The names of the views of X passed to MislabelDetector must be str. Got 1."),
        (
            {},
            "X passed to MislabelDetector is a dict with the keys .\n"
            "Hint: pass one of its values, or pandas.DataFrame(X) if each value is a column.",
        ),
        (
            {"train": LEFT, "test": UP},
            "X passed to MislabelDetector is a dict with the keys 'train', 'test'.\n"
            "Hint: pass one of its values, or pandas.DataFrame(X) if each value is a column.",
        ),
        (
            {"a": LEFT[:, 0], "b": LEFT[:, 1]},
            "X passed to MislabelDetector must have two dimensions. Got a 1-D array of shape (300,).\n"
            "Hint: Reshape your data: X.reshape(1, -1) for a single row, X.reshape(-1, 1) for a single feature.",
        ),
        (
            {"a": LEFT, "b": pd.DataFrame({"x": UP[:, 0], "y": NOISY.y})},
            "Column 'y' of X passed to MislabelDetector is equal to y in every row.\nHint: drop the labels from X.",
        ),
    ],
    ids=["lengths", "names", "nothing", "split", "columns", "labels"],
)
def test_views_that_are_refused(X, message):
    assert message_of(find_mislabeled, X, NOISY.y) == message


def test_what_does_not_go_with_views():
    assert message_of(find_mislabeled, VIEWS, NOISY.y, estimator=LogisticRegression()) == (
        "MislabelDetector got an estimator and several views of X, of which it would not know which to take.\n"
        "Hint: pass its out-of-fold probabilities as proba; or X as the estimator takes it, and views as a mapping of "
        "features."
    )
    assert message_of(find_mislabeled, VIEWS, NOISY.y, features={"left": "auto"}).startswith(
        "X has the views 'left', 'up', but 'left' are expected.\n"
    )


def test_probabilities_and_groups_go_with_views():
    proba = np.full((N, 4), 0.1)
    proba[np.arange(N), TRUTH] = 0.7
    result = find_mislabeled(VIEWS, NOISY.y, proba=proba, groups=np.arange(N) // 2, **FAST)
    assert average_precision_score(NOISY.mask, -result.scores) > 0.9
    for row in range(N):
        assert row ^ 1 not in result.given_neighbors[row]


def test_saved_and_loaded(tmp_path):
    detector = MislabelDetector(effort="fast").fit(VIEWS, NOISY.y)
    detector.save(tmp_path / "d.nagg")
    again = neighboragg.load(tmp_path / "d.nagg")
    new = {name: view + 0.1 for name, view in VIEWS.items()}
    np.testing.assert_array_equal(again.score_reliability(new, TRUTH), detector.score_reliability(new, TRUTH))
    code = MislabelDetector(effort="fast", features={"a": np.tanh}).fit(LEFT, NOISY.y)
    assert message_of(code.save, tmp_path / "e.nagg") == (
        "This MislabelDetector cannot be saved: its 'features/a' is of the type numpy.ufunc, which neighboragg does "
        "not know, so it could not be loaded again.\n"
        "Hint: callables are code, which is never stored. Pass a transformer instead."
    )


def test_progress_reaches_its_end():
    told = []
    find_mislabeled(VIEWS, NOISY.y, progress=lambda *news: told.append(news))
    _, done, total = told[-1]
    assert done == total > 0
    assert max(news[1] for news in told) == total


@pytest.mark.full
def test_pixels_and_main_directions_of_digits():
    X, y = load_digits(return_X_y=True)
    noisy = add_label_noise(y[:900], rate=0.09, random_state=0)
    views = {"pixels": X[:900], "directions": PCA(10, random_state=0).fit_transform(X[:900])}
    result = find_mislabeled(views, noisy.y, features="passthrough")
    assert noisy.mask[result.mask].mean() > 0.9
    assert result.mask[noisy.mask].mean() > 0.9


def noisy_columns(n=900, n_classes=3):
    """Two columns that tell the class, among many that do not."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, n_classes, n)
    telling = 4.0 * np.eye(n_classes)[y][:, :2] + rng.normal(size=(n, 2))
    return np.hstack([telling, 3.0 * rng.normal(size=(n, 12))]), y


def test_a_learned_metric_finds_more_where_distances_say_little(monkeypatch):
    X, y = noisy_columns()
    noisy = add_label_noise(y, rate=0.08, random_state=0)
    found = {True: find_mislabeled(X, noisy.y, flag=60, **FAST)}
    monkeypatch.setattr("neighboragg.labels._detector.MAX_ROWS_FOR_METRIC", 0)
    found[False] = find_mislabeled(X, noisy.y, flag=60, **FAST)
    quality = {key: average_precision_score(noisy.mask, -result.scores) for key, result in found.items()}
    assert quality[True] > quality[False] + 0.04
    learned, plain = (
        np.array([any(reason.startswith(what) for reason in reasons) for reasons in found[True].reasons])
        for what in ("neighbors in a learned metric disagree (", "neighbors disagree (")
    )
    assert learned.any()
    assert plain.any()
    assert not (learned & plain).any()


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_a_learned_metric_does_not_vouch_for_the_labels_it_was_learned_from():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 40)), rng.integers(0, 2, 300)
    result = find_mislabeled(X, y, **FAST)
    assert (result.label_trust > 0.5).mean() < 0.6


def test_learned_metrics_of_views_for_new_rows_groups_and_files(tmp_path):
    X, y = noisy_columns()
    views = {"first": X[:400, :7], "second": X[:400, 7:]}
    detector = MislabelDetector(**FAST)
    detector.fit({name: view[:300] for name, view in views.items()}, y[:300], groups=np.arange(300) // 3)
    new = {name: view[300:] for name, view in views.items()}
    right, wrong = (detector.score_reliability(new, labels) for labels in (y[300:400], (y[300:400] + 1) % 3))
    assert np.median(right) > np.median(wrong) + 2
    detector.save(tmp_path / "d.nagg")
    np.testing.assert_array_equal(
        neighboragg.load(tmp_path / "d.nagg").score_reliability(new, y[300:400]), right
    )
    assert message_of(find_mislabeled, {"learned metric": X}, y, **FAST) == (
        "A view cannot be called 'learned metric', because the learned metric of another could have this name.\n"
        "Hint: give it another name."
    )
