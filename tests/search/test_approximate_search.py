"""Approximate search: its recall, its exact distances, and the cases that must be exact."""

import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone

import neighboragg
from neighboragg.exceptions import InvalidParameterError, MissingExtraError, TrustWarning
from neighboragg.search import Approximate, ClasswiseNeighbors, Exact, _approximate, _in_memory

faiss = pytest.importorskip("faiss", reason="wheels are tested without the extra `approximate`")

K = 5


def curved(n, n_features, rng):
    """Rows near a surface of four dimensions, as data are."""
    weights = np.random.default_rng(7).normal(size=(4, n_features))
    return np.tanh(rng.normal(size=(n, 4)) @ weights) + 0.05 * rng.normal(size=(n, n_features))


@pytest.fixture(scope="module")
def data():
    """Two classes with an index, a small one, one of three rows and one without any; and fresh queries."""
    rng = np.random.default_rng(0)
    X = curved(11_503, 8, rng)
    y = np.repeat([0, 4, 1, 2], [5500, 5000, 1000, 3])
    X[y == 4] += 0.3
    order = rng.permutation(len(X))
    return X[order], y[order], curved(1500, 8, rng)


@pytest.fixture(scope="module")
def exact(data):
    X, y, queries = data
    return ClasswiseNeighbors(K).fit(X, y, classes=range(5)).kneighbors(queries)


def neighbors(recall, k=K, **params):
    return ClasswiseNeighbors(k, search=Approximate(recall, always=True, **params))


@pytest.fixture(scope="module")
def index(data):
    X, y, _ = data
    return neighbors(0.95).fit(X, y, classes=range(5))


def assert_same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == other.tobytes()


class TestRecall:
    def test_which_classes_have_an_index(self, index):
        assert index.is_exact_.tolist() == [False, True, True, True, False]
        assert (index.recall_[1:4] == 1).all()
        assert (index.recall_interval_[1:4] == 1).all()

    def test_the_lower_limit_reaches_the_requested_recall(self, index):
        for c in (0, 4):
            low, high = index.recall_interval_[c]
            assert 0.95 <= low < index.recall_[c] <= high <= 1

    def test_fresh_queries_reach_the_estimated_recall(self, index, data, exact):
        """Within the interval of fit, widened by that of the fresh queries themselves (Hoeffding, 1 in 1,000)."""
        distances, _ = index.kneighbors(data[2])
        for c in (0, 4):
            found = np.mean(distances[:, c] <= exact[0][:, c, -1:])
            slack = np.sqrt(np.log(1000) / 2 / len(distances))
            low, high = index.recall_interval_[c]
            assert low - slack <= found <= high + slack
            assert found >= 0.95 - slack
            assert found < 1  # otherwise this module tests nothing

    def test_a_higher_recall_is_searched_for_more_widely(self, data, exact):
        X, y, queries = data
        missed = []
        for recall in (0.5, 0.9, 0.99):
            index = neighbors(recall).fit(X, y, classes=range(5))
            missed.append(np.mean(index.kneighbors(queries)[0] > exact[0]))
        assert missed[0] > missed[1] > missed[2]

    def test_a_recall_that_is_not_reached_is_a_warning_and_an_exact_search(self, data):
        """420 queries are too few to show it, even if they find everything."""
        X, _, queries = data
        y = np.arange(4200) // 4199
        with pytest.warns(TrustWarning) as caught:
            index = neighbors(0.995).fit(X[:4200], y)
        (warning,) = caught
        assert str(warning.message) == (
            "The approximate search of ClasswiseNeighbors does not reach the recall 0.995 in class 0: its recall "
            "is 1.0000, with a lower confidence limit of 0.9913. Classes that miss the recall are searched exactly.\n"
            "Hint: lower the recall."
        )
        assert warning.filename == __file__
        assert index.is_exact_.all()
        assert_same_bits(
            index.kneighbors(queries), ClasswiseNeighbors(K).fit(X[:4200], y).kneighbors(queries)
        )

    @pytest.mark.parametrize("n_different", [1, 50])
    @pytest.mark.filterwarnings("ignore::neighboragg.exceptions.TrustWarning")
    def test_copies_of_few_rows_are_found_or_searched_exactly(self, n_different):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_different, 3))[np.arange(6000) % n_different]
        queries = rng.normal(size=(200, 3))
        expected = ClasswiseNeighbors(K).fit(X, np.zeros(6000)).kneighbors(queries)[0]
        found = neighbors(0.99).fit(X, np.zeros(6000)).kneighbors(queries)[0]
        assert np.mean(found <= expected[:, :, -1:]) > 0.95


class TestWhatIsFound:
    def test_distances_have_the_bits_of_the_exact_search(self, index, data):
        X, y, queries = data
        distances, ids = index.kneighbors(queries)
        # Every row of every class, by the exact search: the distance of a row is that of its id.
        everything = ClasswiseNeighbors(5500).fit(X, y, classes=range(5))
        every, every_ids = everything.kneighbors(queries[:40])
        for c in range(5):
            by_id = np.full((40, len(X) + 1), np.inf)
            np.put_along_axis(by_id, every_ids[:, c], every[:, c], axis=1)
            by_id[:, -1] = np.inf
            expected = np.take_along_axis(by_id, ids[:40, c], axis=1)
            assert expected.tobytes() == distances[:40, c].tobytes()

    def test_in_order_without_repetition_and_of_the_class(self, index, data):
        _, y, queries = data
        distances, ids = index.kneighbors(queries)
        for c, size in enumerate([5500, 1000, 3, 0, 5000]):
            found = ids[:, c]
            assert ((found >= 0).sum(axis=1) == min(K, size)).all()
            assert (y[found[found >= 0]] == c).all()
            assert (np.diff(np.sort(found[:, : min(K, size)], axis=1), axis=1) > 0).all()
        assert (distances[..., 1:] >= distances[..., :-1]).all()
        np.testing.assert_array_equal(ids < 0, np.isinf(distances))

    def test_ties_are_ordered_by_row_number(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(2500, 3)), 2, axis=0)
        index = neighbors(0.9, 4).fit(X, np.zeros(5000))
        assert not index.is_exact_.any()
        distances, ids = index.kneighbors(rng.normal(size=(300, 3)))
        tied = distances[..., 1:] == distances[..., :-1]
        assert tied.mean() > 0.5
        assert (ids[..., 1:] > ids[..., :-1])[tied].all()

    def test_classes_without_an_index_have_the_bits_of_the_exact_search(self, index, data, exact):
        found = index.kneighbors(data[2])
        assert_same_bits([part[:, 1:4] for part in found], [part[:, 1:4] for part in exact])

    def test_rows_that_leave_themselves_out(self, index, data):
        X, y, _ = data
        own = np.arange(0, len(X), 7)
        _, ids = index.kneighbors(X[own], exclude=own)
        assert (ids != own[:, None, None]).all()
        sizes = np.array([5500, 1000, 3, 0, 5000]) - (y[own][:, None] == np.arange(5))
        np.testing.assert_array_equal((ids >= 0).sum(axis=2), np.minimum(sizes, K))
        exact_ids = ClasswiseNeighbors(K).fit(X, y, classes=range(5)).kneighbors(X[own], exclude=own)[1]
        assert np.mean(ids == exact_ids) > 0.95

    def test_excluding_nothing_changes_nothing(self, index, data):
        queries = data[2][:50]
        assert_same_bits(index.kneighbors(queries, exclude=np.full(50, -1)), index.kneighbors(queries))

    def test_fewer_neighbors_are_the_first_of_them(self, index, data):
        queries = data[2][:100]
        assert_same_bits(index.kneighbors(queries, 2), [part[..., :2] for part in index.kneighbors(queries)])

    def test_more_neighbors_than_the_recall_is_of_are_exact(self, index, data):
        X, y, queries = data
        expected = ClasswiseNeighbors(K + 1).fit(X, y, classes=range(5)).kneighbors(queries)
        assert_same_bits(index.kneighbors(queries, K + 1), expected)

    def test_queries_that_an_index_finds_too_little_for_are_searched_exactly(self, data, monkeypatch):
        X, y, queries = data
        index = neighbors(0.5).fit(X, y, classes=range(5))
        candidates = _approximate.ClassIndex.nearest

        def hardly(self, *args):
            distances, places = candidates(self, *args)
            distances[::3, 1:], places[::3, 1:] = np.inf, -1
            return distances, places

        monkeypatch.setattr(_approximate.ClassIndex, "nearest", hardly)
        found = index.kneighbors(queries)
        expected = ClasswiseNeighbors(K).fit(X, y, classes=range(5)).kneighbors(queries)
        assert_same_bits([part[::3] for part in found], [part[::3] for part in expected])

    def test_cosine(self, data):
        X, y, queries = data
        found = neighbors(0.9, metric="cosine").fit(X, y).kneighbors(queries)
        expected = ClasswiseNeighbors(K, search=Exact("cosine")).fit(X, y).kneighbors(queries)
        same = found[1] == expected[1]
        assert same.mean() > 0.85
        assert found[0][same].tobytes() == expected[0][same].tobytes()

    def test_values_far_beyond_single_precision(self, data):
        X, y, queries = data
        index = neighbors(0.9).fit(X * 1e100, y)
        small = neighbors(0.9).fit(X, y)
        assert np.mean(index.kneighbors(queries * 1e100)[1] == small.kneighbors(queries)[1]) > 0.99
        far = index.kneighbors(np.full((2, 8), 1e140))
        assert np.isfinite(far[0][:, 0]).all()


class TestReproducible:
    def test_equal_bits_for_batches_and_threads(self, index, data):
        queries = data[2][:300]
        expected = index.kneighbors(queries)
        for n_rows, n_jobs in ((1, 1), (19, 2), (64, 1)):
            with patch.multiple(_in_memory, BATCH_ROWS=n_rows, TILE_ROWS=1):
                assert_same_bits(index.set_params(n_jobs=n_jobs).kneighbors(queries), expected)
        index.set_params(n_jobs=None)

    def test_a_second_fit_and_more_threads_give_equal_bits(self, index, data):
        X, y, queries = data
        again = clone(index).set_params(n_jobs=2).fit(X, y, classes=range(5))
        assert_same_bits(again.kneighbors(queries), index.kneighbors(queries))
        assert_same_bits((again.recall_, again.recall_interval_), (index.recall_, index.recall_interval_))

    def test_saved_and_loaded(self, index, data, tmp_path):
        index.save(tmp_path / "index.nagg")
        loaded = neighboragg.load(tmp_path / "index.nagg")
        assert repr(loaded) == repr(index)
        assert loaded.is_exact_.tolist() == index.is_exact_.tolist()
        assert_same_bits((loaded.recall_, loaded.recall_interval_), (index.recall_, index.recall_interval_))
        assert_same_bits(loaded.kneighbors(data[2]), index.kneighbors(data[2]))

    def test_searched_from_several_threads_at_once_after_loading(self, index, data, tmp_path):
        index.save(tmp_path / "index.nagg")
        loaded = neighboragg.load(tmp_path / "index.nagg")
        expected = index.kneighbors(data[2][:200])
        with ThreadPoolExecutor(3) as pool:
            for found in pool.map(lambda _: loaded.kneighbors(data[2][:200]), range(3)):
                assert_same_bits(found, expected)

    def test_the_threads_of_faiss_are_left_as_they_were(self, data):
        X, y, queries = data
        before = faiss.omp_get_max_threads()
        try:
            faiss.omp_set_num_threads(3)
            neighbors(0.5).fit(X, y).kneighbors(queries[:5])
            assert faiss.omp_get_max_threads() == 3
        finally:
            faiss.omp_set_num_threads(before)


class TestAuto:
    def test_is_exact_for_most(self, data, exact):
        X, y, queries = data
        index = ClasswiseNeighbors(K, search=Approximate()).fit(X, y, classes=range(5))
        assert index.is_exact_.all()
        assert_same_bits(index.kneighbors(queries), exact)

    def test_makes_lists_of_a_large_class_where_few_of_them_are_read(self):
        rng = np.random.default_rng(0)
        X, y = curved(210_000, 8, rng), np.repeat([0, 1], [200_000, 10_000])
        index = ClasswiseNeighbors(K, search=Approximate(0.9)).fit(X, y)
        assert index.is_exact_.tolist() == [False, True]

    def test_and_not_where_most_would_have_to_be_read(self):
        """Without any structure in 32 dimensions, neighbors are everywhere."""
        X = np.random.default_rng(0).normal(size=(100_000, 32))
        index = ClasswiseNeighbors(K, search=Approximate()).fit(X, np.zeros(100_000))
        assert index.is_exact_.all()


@pytest.mark.parametrize("recall", [1.0, 0, "high"])
def test_recalls_that_cannot_be_shown(recall):
    with pytest.raises(InvalidParameterError) as caught:
        ClasswiseNeighbors(search=Approximate(recall)).fit([[0.0]], ["a"])
    assert str(caught.value) == (
        f"The 'recall' parameter of Approximate must be a number in (0, 0.995]. Got {recall!r} instead."
    )


def test_few_rows_are_always_searched_exactly():
    index = neighbors(0.99, 2).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    assert index.is_exact_.all()
    np.testing.assert_array_equal(index.kneighbors([[2.0]])[1], [[[1, 0], [2, -1]]])


class TestWithoutFaiss:
    @pytest.fixture(autouse=True)
    def not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "faiss", None)

    def test_the_extra_is_named(self):
        with pytest.raises(MissingExtraError) as caught:
            neighbors(0.99, 1).fit([[0.0]], [0])
        assert str(caught.value) == (
            "The approximate search of ClasswiseNeighbors needs the package 'faiss', which is not installed.\n"
            'Hint: pip install "neighboragg[approximate]"'
        )

    def test_a_loaded_index_says_so_too(self, index, data, tmp_path):
        index.save(tmp_path / "index.nagg")
        with pytest.raises(MissingExtraError, match=r"neighboragg\[approximate\]"):
            neighboragg.load(tmp_path / "index.nagg").kneighbors(data[2])

    def test_auto_is_exact(self, data, exact, monkeypatch):
        monkeypatch.setattr(_approximate, "SMALLEST_WORTHWHILE", 1000)
        X, y, queries = data
        index = ClasswiseNeighbors(K, search=Approximate()).fit(X, y, classes=range(5))
        assert_same_bits(index.kneighbors(queries), exact)
