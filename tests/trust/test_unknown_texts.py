"""Texts that make no sense to a model are unfamiliar to it, whatever makes vectors of them."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from neighboragg import NeighborAgg, TrustedClassifier

BEGINNINGS = (
    "how many people live in",
    "how much does it cost to visit",
    "who was the first mayor of",
    "who wrote a book about",
)
SYLLABLES = (
    "ber",
    "lin",
    "ma",
    "drid",
    "ro",
    "me",
    "os",
    "lo",
    "par",
    "is",
    "vi",
    "en",
    "na",
    "lon",
    "don",
    "ath",
)
VECTORIZERS = {
    "words": TfidfVectorizer(),
    "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "counts": CountVectorizer(),
    "few words": TfidfVectorizer(max_features=60),
}


def questions(rng, n):
    """Questions about towns, and whether they ask for a person."""
    towns = ["".join(rng.choice(SYLLABLES, 2)) for _ in range(40)]
    which = rng.integers(0, 4, n)
    return [f"{BEGINNINGS[i]} {rng.choice(towns)} and {rng.choice(towns)}" for i in which], which >= 2


def gibberish(rng, n):
    return [" ".join("".join(rng.choice([*"qxzjkvwfgh"], 5)) for _ in range(5)) for _ in range(n)]


@pytest.fixture(scope="module", params=VECTORIZERS)
def model(request):
    texts, asks_for_a_person = questions(np.random.default_rng(0), 600)
    pipeline = make_pipeline(VECTORIZERS[request.param], LogisticRegression())
    method = NeighborAgg(effort="fast")
    return TrustedClassifier(pipeline, method, random_state=0).fit(texts, asks_for_a_person)


@pytest.mark.parametrize(
    "texts",
    [
        gibberish(np.random.default_rng(1), 50),
        ["", "   ", "?!"],
        ["日本語のテキスト", "Где находится столица"],
    ],
    ids=["gibberish", "empty", "other scripts"],
)
def test_texts_that_make_no_sense_are_unfamiliar(model, texts):
    usual, _ = questions(np.random.default_rng(0), 900)
    p = model.familiarity([*usual[600:], *texts])
    assert roc_auc_score(np.arange(len(p)) >= 300, -p) >= 0.95
    assert (p[:300] <= 0.05).mean() < 0.12


def test_a_text_without_a_known_word_has_the_smallest_p_value(model):
    p = model.familiarity(["", "日本語"])
    np.testing.assert_array_equal(
        p, model.method_.familiarity_.least()[model.predict_proba(["", "日本語"]).argmax(axis=1)]
    )
