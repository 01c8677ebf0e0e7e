"""Labels of texts, alone and beside other columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import neighboragg
from neighboragg import MislabelDetector, find_mislabeled

WORDS = {
    "sports": ["goal", "match", "team", "player", "score", "league", "coach", "win", "season", "cup"],
    "cooking": ["flour", "oven", "sugar", "recipe", "bake", "butter", "salt", "pan", "dish", "cook"],
}
WRONG = [5, 40, 77]


def make_texts(n=160):
    """Short texts of two topics with common words between, three of which carry the wrong label."""
    rng = np.random.default_rng(0)
    topics = np.array(["sports", "cooking"])[np.arange(n) % 2]
    common = ["the", "a", "of", "in", "it", "and", "to", "for", "on", "with"]
    texts = [" ".join(rng.permutation([*rng.choice(WORDS[t], 3), *rng.choice(common, 4)])) for t in topics]
    labels = topics.copy()
    labels[WRONG] = np.where(topics[WRONG] == "sports", "cooking", "sports")
    return texts, labels


TEXTS, LABELS = make_texts()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "container", [list, np.array, pd.Series, lambda texts: pd.DataFrame({"text": texts})]
)
def test_texts_are_judged_as_texts(container):
    result = find_mislabeled(container(TEXTS), LABELS)
    assert np.flatnonzero(result.mask).tolist() == WRONG
    assert any(reason.startswith("classifier of words prefers ") for reason in result.reasons[5])


def test_a_column_beside_the_texts_does_not_drown_them():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"length": [len(text) for text in TEXTS], "text": TEXTS, "noise": rng.normal(size=160)}
    )
    result = find_mislabeled(frame, LABELS)
    assert set(WRONG) <= set(np.flatnonzero(result.mask))
    assert result.n_flagged <= 8


@pytest.mark.full
def test_columns_beside_the_texts_are_used():
    """Texts that say nothing about the label, and a number that says all."""
    number = np.where(LABELS == "sports", 1.0, -1.0) + 0.3 * np.random.default_rng(0).normal(size=160)
    labels = LABELS.copy()
    labels[[10, 21]] = labels[[21, 10]]
    shuffled = list(np.random.default_rng(0).permutation(TEXTS))
    result = find_mislabeled(pd.DataFrame({"text": shuffled, "number": number}), labels, flag=5)
    assert {10, 21} <= {*np.flatnonzero(result.mask)}


def test_a_text_pipeline_is_cross_validated():
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    detector = MislabelDetector(pipeline, effort="fast").fit(TEXTS, LABELS)
    assert np.flatnonzero(detector.result_.mask).tolist() == WRONG
    new = ["a goal for the team in the cup", "bake it in the oven with butter"]
    assert detector.predict(new, ["sports", "cooking"]).tolist() == [False, False]
    assert detector.predict(new, ["cooking", "sports"]).tolist() == [True, True]


def test_new_texts_are_judged_by_their_words():
    detector = MislabelDetector().fit(pd.Series(TEXTS), LABELS)
    new = ["a goal for the team in the cup", "bake it in the oven with butter"]
    assert detector.n_features_in_ == 1
    assert detector.predict(new, ["cooking", "sports"]).tolist() == [True, True]
    assert detector.predict(new, ["sports", "cooking"]).tolist() == [False, False]


def test_a_detector_of_texts_is_saved_and_loaded(tmp_path):
    detector = MislabelDetector().fit(TEXTS, LABELS)
    detector.save(tmp_path / "texts.nagg")
    again = neighboragg.load(tmp_path / "texts.nagg")
    new = ["a goal for the team in the cup", "bake it in the oven with butter"]
    scores = detector.score_reliability(new, ["sports", "sports"])
    np.testing.assert_array_equal(again.score_reliability(new, ["sports", "sports"]), scores)


@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
def test_a_callable_is_passed_again_to_load(tmp_path):
    X = np.array([[len(text), text.count("o")] for text in TEXTS], dtype=float)
    detector = MislabelDetector(features=np.sqrt, effort="fast").fit(X, LABELS)
    detector.save(tmp_path / "callable.nagg")
    again = neighboragg.load(tmp_path / "callable.nagg", features=np.sqrt)
    scores = detector.score_reliability(X[:3] + 1, LABELS[:3])
    np.testing.assert_array_equal(again.score_reliability(X[:3] + 1, LABELS[:3]), scores)


@pytest.mark.full
def test_missing_texts_are_empty_ones():
    texts = [None, *TEXTS[1:]]
    result = find_mislabeled(texts, LABELS)
    assert set(WRONG) <= set(np.flatnonzero(result.mask))
