"""NeighborAgg over reference rows that are read in blocks."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import neighboragg
from neighboragg import NeighborAgg, TrustedClassifier
from neighboragg._core.inputs import draw_sample
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import Exact, Streamed
from neighboragg.search import _streamed as _streamed_rows
from neighboragg.search._streamed import StreamedNeighbors

STREAMED = Streamed("100 MB")


@pytest.fixture(scope="module")
def data():
    X, y = load_digits(return_X_y=True)
    drawn = np.random.default_rng(0).permutation(len(X))[
        :1100
    ]  # the file has the digits of one writer together
    X, y = X[drawn] / 16, y[drawn]
    classifier = LogisticRegression(max_iter=50, tol=0.1).fit(X[:400], y[:400])
    return X, y, classifier.predict_proba(X)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(StreamedNeighbors, "_block_rows", lambda self: 150)


def fit(data, X=None, shared=False, **settings):
    rows, y, proba = data
    method = NeighborAgg(**settings)
    X = rows[:700] if X is None else X
    if shared:
        return method.fit(X, y[:700], proba_val=proba[:700])
    return method.fit(X, y[:700], X_val=rows[700:900], y_val=y[700:900], proba_val=proba[700:900])


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "settings", [{}, {"aggregator": "network"}, {"search": Exact("cosine"), "effort": "fast"}], ids=str
)
@pytest.mark.parametrize("shared", [False, True])
def test_equal_bits_where_all_rows_are_in_the_sample(data, settings, shared, tmp_path):
    X, _, proba = data
    np.save(tmp_path / "rows.npy", X[:700])
    in_memory = fit(data, shared=shared, **settings)
    metric = settings["search"].metric if "search" in settings else "euclidean"
    settings = settings | {"search": Streamed("100 MB", metric=metric)}
    streamed = fit(data, tmp_path / "rows.npy", shared=shared, **settings)
    exclude = np.append(np.arange(0, 700, 70), np.full(190, -1))
    queries, said = np.concatenate([X[:700:70], X[910:]]), np.concatenate([proba[:700:70], proba[910:]])
    for options in ({}, {"exclude": exclude}):
        for ours, theirs in zip(
            streamed.trust_and_familiarity(queries, said, **options),
            in_memory.trust_and_familiarity(queries, said, **options),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(streamed.kneighbors(X[900:]), in_memory.kneighbors(X[900:]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_saved_and_mapped(data, tmp_path):
    X, _, proba = data
    streamed = fit(data, search=STREAMED, effort="fast")
    streamed.save(tmp_path / "method.nagg")
    again = neighboragg.load(tmp_path / "method.nagg", mmap=True)
    np.testing.assert_array_equal(
        again.score_samples(X[900:], proba[900:]), streamed.score_samples(X[900:], proba[900:])
    )


def test_learned_from_a_sample_and_searched_among_all(data, monkeypatch):
    X, y, proba = data
    whole = fit(data, search=STREAMED)
    monkeypatch.setattr(_streamed_rows, "MAX_SAMPLED", 300)
    monkeypatch.setattr("neighboragg._core.inputs.MIN_ROWS_PER_CLASS", 10)
    sampled = fit(data, search=STREAMED)
    assert len(sampled.sample_.rows) == 300
    assert sampled.opinions_[0].codes.tolist() == [*y[:700][sampled.sample_.rows], *y[700:900]]
    for ours, theirs in zip(sampled.kneighbors(X[900:]), whole.kneighbors(X[900:]), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    trust, expected = (method.score_samples(X[900:], proba[900:]) for method in (sampled, whole))
    assert np.corrcoef(trust, expected)[0, 1] > 0.9
    assert (trust != expected).any()


def test_rows_of_fit_leave_themselves_out_in_the_sample_or_not(data, monkeypatch):
    X, _, proba = data
    monkeypatch.setattr(_streamed_rows, "MAX_SAMPLED", 300)
    method = fit(data, search=STREAMED)
    rows = np.arange(0, 900, 30)
    seen = method.sample_.positions(rows)
    in_sample = np.isin(rows, method.sample_.rows)
    assert (seen[(rows < 700) & ~in_sample] == -1).all()
    assert (method.sample_.rows[seen[in_sample]] == rows[in_sample]).all()
    n = len(method.sample_.rows)
    assert (seen[rows >= 700] == rows[rows >= 700] - 700 + n).all()
    trust = method.predict_trust(X[rows], proba[rows], exclude=rows)
    assert (trust != method.predict_trust(X[rows], proba[rows])).any()


def test_a_sample_has_rows_of_every_class():
    codes = np.repeat([0, 1, 2], [5000, 60, 3])
    rows = draw_sample(codes, 1000, 0)
    assert np.bincount(codes[rows]).tolist()[1:] == [50, 3]
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, draw_sample(codes, 1000, 0))
    assert draw_sample(codes, 5063, 0).tolist() == list(range(5063))


@pytest.mark.full
def test_in_a_trusted_classifier(data):
    X, y, _ = data
    found = [
        TrustedClassifier(
            LogisticRegression(max_iter=50, tol=0.1), NeighborAgg(search=search), random_state=0
        )
        .fit(X[:600], y[:600])
        .score_samples(X[900:])
        for search in (None, STREAMED)
    ]
    np.testing.assert_array_equal(*found)


def test_refusals(data):
    X, y, proba = data
    with pytest.raises(InvalidParameterError, match="'memory' parameter of Streamed must be at least"):
        fit(data, search=Streamed("1 MB"))
    with pytest.raises(InvalidInputError, match="several views, which Streamed does not support"):
        fit(data, {"a": X[:700], "b": X[:700]}, search=STREAMED)
    with pytest.raises(InvalidInputError, match=r"same number of rows\. Got 699 and 700"):
        fit(data, X[:699], search=STREAMED)
    with pytest.raises(InvalidInputError, match="has no rows"):
        NeighborAgg(search=STREAMED).fit(X[:0], y[:0], proba_val=proba[:0])
