"""Class-wise search against brute force, with equal bits for any split of the work."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_distances

import neighboragg
from brute_force import nearest_by_class
from neighboragg.search import ClasswiseNeighbors, Exact, _in_memory
from neighboragg.search import _exact_search as _numpy_search
from sizes import examples

# Sums of a few small integers are exact in double precision: ties are ties, and the order by id is decided.
EXACT_KINDS = ("duplicates", "lattice", "constant")
KINDS = (*EXACT_KINDS, "random", "far", "outlier", "tiny", "huge", "wide", "subnormal")


def make_rows(kind, n, n_features, rng):
    rows = rng.normal(size=(n, n_features))
    match kind:
        case "duplicates":
            return np.rint(rows)
        case "lattice":
            return (
                np.indices((3,) * n_features).reshape(n_features, -1).T[rng.integers(0, 3**n_features, n)]
                * 1.0
            )
        case "constant":
            return np.full((n, n_features), 3.0)
        case "far":
            return rows + 1e4
        case "outlier":
            rows[rng.integers(n)] = 1e6
        case "tiny":
            return rows * 1e-20
        case "huge":
            return rows * 1e100
        case "wide":
            return rows * 10.0 ** rng.integers(-30, 140, size=(n, 1))
        case "subnormal":
            return rows * 5e-324
    return rows


def brute_force(X, y, queries, k, *, n_classes, exclude=None):
    """Distances and ids by (distance, id), and all distances, in double precision."""
    X, queries = X.astype(np.float64), queries.astype(np.float64)
    every = np.sqrt(((queries[:, None, :] - X) ** 2).sum(axis=2))
    return *nearest_by_class(every, y, k, n_classes, exclude), every


def assert_same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


@st.composite
def problems(draw):
    kind, dtype = draw(st.sampled_from(KINDS)), draw(st.sampled_from([np.float32, np.float64]))
    if kind in ("huge", "wide", "subnormal"):
        dtype = np.float64
    n_features = draw(st.integers(1, 4))
    n, n_queries = draw(st.integers(1, 150)), draw(st.integers(0, 12))
    n_classes, k = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = make_rows(kind, n, n_features, rng).astype(dtype)
    fresh = make_rows(kind, max(n_queries, 1), n_features, rng).astype(dtype)[:n_queries]
    queries = np.where(rng.random((n_queries, 1)) < 0.5, X[rng.integers(0, n, n_queries)], fresh)
    return kind, X, rng.integers(0, n_classes, n), queries, k, n_classes


@examples(250)
@given(problems(), st.booleans())
def test_agrees_with_brute_force(problem, exclude_some):
    kind, X, y, queries, k, n_classes = problem
    exclude = None
    if exclude_some:
        exclude = np.random.default_rng(0).integers(-1, len(X), len(queries))
    index = ClasswiseNeighbors(k).fit(X, y, classes=np.arange(n_classes))
    distances, indices = index.kneighbors(queries, exclude=exclude)
    expected, expected_ids, every = brute_force(X, y, queries, k, n_classes=n_classes, exclude=exclude)
    np.testing.assert_allclose(distances, expected, rtol=1e-6, atol=0)
    assert (distances[:, :, 1:] >= distances[:, :, :-1]).all()
    if kind in EXACT_KINDS:
        np.testing.assert_array_equal(indices, expected_ids)
    # Elsewhere another row may stand in the place only if it is as near, to rounding.
    differs = indices != expected_ids
    rows = np.nonzero(differs)[0]
    np.testing.assert_allclose(every[rows, indices[differs]], expected[differs], rtol=1e-12, atol=1e-160)
    np.testing.assert_array_equal(indices < 0, np.isinf(distances))
    for c in range(n_classes):
        assert (y[indices[:, c][indices[:, c] >= 0]] == c).all()
    ordered = np.sort(indices, axis=2)
    assert ((np.diff(ordered, axis=2) > 0) | (ordered[:, :, 1:] < 0)).all()


@examples(100)
@given(problems())
def test_equal_bits_for_batches_jobs_and_query_order(problem):
    _, X, y, queries, k, n_classes = problem
    index = ClasswiseNeighbors(k).fit(X, y, classes=np.arange(n_classes))
    expected = index.kneighbors(queries)
    for n_rows, n_jobs in ((1, 1), (3, 2), (5, 1), (1000, 2)):
        with patch.multiple(_in_memory, BATCH_ROWS=n_rows, TILE_ROWS=1):
            assert_same_bits(index.set_params(n_jobs=n_jobs).kneighbors(queries), expected)
    order = np.random.default_rng(0).permutation(len(queries))
    assert_same_bits(index.kneighbors(queries[order]), [part[order] for part in expected])


@pytest.mark.parametrize("n_features", [1, 3, 8, 17, 200])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_equal_bits_for_single_rows_copies_and_blocking(n_features, metric, monkeypatch):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(400, n_features)).astype(np.float32)
    X[100:150] = np.rint(X[100:150])
    y = rng.choice(5, 400, p=[0.5, 0.3, 0.1, 0.09, 0.01])
    queries = np.concatenate([X[90:120], rng.normal(size=(20, n_features)).astype(np.float32)])
    index = ClasswiseNeighbors(4, search=Exact(metric)).fit(X, y)
    expected = index.kneighbors(queries)
    one_by_one = [index.kneighbors(queries[i : i + 1]) for i in range(len(queries))]
    assert_same_bits([np.concatenate(part) for part in zip(*one_by_one, strict=True)], expected)
    doubles = clone(index).fit(X.astype(np.float64), y)
    for fitted in (index, doubles):
        for dtype in (np.float32, np.float64):
            assert_same_bits(fitted.kneighbors(queries.astype(dtype)), expected)
    assert_same_bits(index.kneighbors(np.asfortranarray(queries)), expected)
    assert_same_bits(index.kneighbors(queries.tolist()), expected)
    # Memory limits of NumPy's search decide on blocks of the work, not on its result.
    monkeypatch.setenv("NEIGHBORAGG_KERNEL", "numpy")
    for panel, product, cache in ((1, 1, 1), (37, 300, 64), (10**6, 10**7, 10**7)):
        monkeypatch.setattr(_numpy_search, "PANEL_ROWS", panel)
        monkeypatch.setattr(_numpy_search, "PRODUCT_ELEMENTS", product)
        monkeypatch.setattr(_numpy_search, "CACHE_ELEMENTS", cache)
        assert_same_bits(index.kneighbors(queries), expected)


@pytest.mark.parametrize("n_features", [1, 2, 3, 5])
def test_of_many_copies_those_with_the_lowest_ids_are_found(n_features):
    """Copies differ by rounding in the product that proposes them, which must not pass for a difference."""
    values = np.random.default_rng(0).normal(size=(300, n_features))
    index = ClasswiseNeighbors(3).fit(np.tile(values, (40, 1)), np.zeros(40 * 300))
    distances, ids = index.kneighbors(values)
    np.testing.assert_array_equal(distances, 0.0)
    np.testing.assert_array_equal(ids[:, 0], np.arange(300)[:, None] + 300 * np.arange(3))


def test_many_small_classes_and_a_large_one():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(2500, 6)), rng.normal(size=(40, 6))
    y = np.where(np.arange(2500) < 1300, 7, rng.integers(0, 300, 2500))
    found = ClasswiseNeighbors(3).fit(X, y, classes=np.arange(300)).kneighbors(queries)
    expected = brute_force(X, y, queries, 3, n_classes=300)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("outlier", [1e6, 1e20, 1e22, 1e30, 1e38, 1e150])
def test_an_outlier_does_not_hide_the_other_rows(outlier):
    # All else is next to nothing in units of the outlier, and its squares underflow single precision.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 2
    X[0, 0] = outlier
    queries = np.concatenate([rng.normal(size=(50, 2)), X[:1]])
    found = ClasswiseNeighbors(3).fit(X, y).kneighbors(queries)
    expected = brute_force(X, y, queries, 3, n_classes=2)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], expected[1])


def test_outliers_that_the_frame_has_not_seen():
    # Center and scale come from every second row; rows beyond the range of single precision are told apart.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 1))
    X[1:61:2, 0] = 1e20 * np.arange(1, 31)
    queries = np.array([[1.4e20], [7.6e20], [29.9e20], [0.1]])
    found = ClasswiseNeighbors(1).fit(X, np.zeros(20_000)).kneighbors(queries)
    expected = brute_force(X, np.zeros(20_000), queries, 1, n_classes=1)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("queries", [np.ones((3, 2)) * 1e140, np.array([[0.0, -1e150]]), np.zeros((2, 2))])
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-20, 1.0, 1e149])
def test_queries_of_another_order_of_magnitude(queries, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)) * scale, np.arange(60) % 2
    found = ClasswiseNeighbors(3).fit(X, y).kneighbors(queries)
    expected = brute_force(X, y, queries, 3, n_classes=2)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], expected[1])


class TestSelfExclusion:
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    y = np.array(["a", "a", "a", "b", "b"])

    def test_reference_rows_leave_themselves_out_by_identity(self):
        distances, indices = ClasswiseNeighbors(2).fit(self.X, self.y).kneighbors()
        np.testing.assert_array_equal(indices[:, 0], [[1, 2], [0, 2], [0, 1], [2, 0], [0, 1]])
        np.testing.assert_array_equal(indices[:, 1], [[4, 3], [4, 3], [4, 3], [4, -1], [3, -1]])
        # Row 1 is a copy of row 0 and is found at distance 0; so is row 4, in another class.
        assert distances[0, 0, 0] == distances[0, 1, 0] == 0
        assert np.isinf(distances[3, 1, 1])

    def test_equal_to_excluding_the_own_ids(self):
        index = ClasswiseNeighbors(3).fit(self.X, self.y)
        assert_same_bits(index.kneighbors(self.X, exclude=np.arange(5)), index.kneighbors())

    def test_minus_one_excludes_nothing(self):
        index = ClasswiseNeighbors(2).fit(self.X, self.y)
        assert_same_bits(index.kneighbors(self.X, exclude=np.full(5, -1)), index.kneighbors(self.X))
        _, indices = index.kneighbors(self.X[:2], exclude=[-1, 0])
        np.testing.assert_array_equal(indices[:, 0], [[0, 1], [1, 2]])

    @pytest.mark.parametrize("metric", ["euclidean", "cosine"])
    def test_on_many_rows_with_copies(self, metric):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(60, 3)), 3, axis=0)
        y = rng.integers(0, 3, 180)
        distances, indices = ClasswiseNeighbors(70, search=Exact(metric)).fit(X, y).kneighbors()
        own = np.arange(180)
        assert (indices != own[:, None, None]).all()
        np.testing.assert_array_equal(
            (indices >= 0).sum(axis=2), np.bincount(y)[None, :] - (y[:, None] == np.arange(3))
        )
        copies = (own // 3)[:, None, None] == indices // 3
        assert (copies & (indices >= 0)).sum() == 360
        np.testing.assert_allclose(distances[copies & (indices >= 0)], 0, atol=1e-15)


class TestMissingNeighbors:
    def test_more_neighbors_than_rows(self):
        X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 3])
        index = ClasswiseNeighbors(5).fit(X, y, classes=[0, 1, 2, 3])
        distances, indices = index.kneighbors([[0.0]])
        np.testing.assert_array_equal(
            indices[0], [[0, 1, 2, -1, -1], [3, 4, -1, -1, -1], [-1] * 5, [5, -1, -1, -1, -1]]
        )
        inf = np.inf
        np.testing.assert_array_equal(
            distances[0], [[0, 1, 2, inf, inf], [3, 4, inf, inf, inf], [inf] * 5, [5, inf, inf, inf, inf]]
        )
        np.testing.assert_array_equal(index.class_count_, [3, 2, 0, 1])
        assert index.n_samples_fit_ == 6

    def test_a_search_for_more_neighbors_than_configured(self):
        X, y = np.arange(6.0)[:, None], [0] * 6
        distances, _ = ClasswiseNeighbors(1).fit(X, y).kneighbors([[0.0]], 4)
        np.testing.assert_array_equal(distances, [[[0, 1, 2, 3]]])

    def test_a_single_reference_row(self):
        distances, indices = ClasswiseNeighbors(2).fit([[1.0]], ["x"]).kneighbors()
        assert np.isinf(distances).all()
        assert (indices == -1).all()

    def test_no_queries(self):
        distances, indices = ClasswiseNeighbors(2, n_jobs=2).fit([[1.0]], ["x"]).kneighbors(np.empty((0, 1)))
        assert distances.shape == indices.shape == (0, 1, 2)

    def test_cosine_of_missing_neighbors_is_infinite(self):
        distances, _ = ClasswiseNeighbors(2, search=Exact("cosine")).fit([[1.0]], ["x"]).kneighbors([[2.0]])
        np.testing.assert_array_equal(distances, [[[0.0, np.inf]]])


def test_fit_forgets():
    index = ClasswiseNeighbors(1).fit([[0.0, 0.0]], ["old"]).fit([[1.0]], ["new"])
    assert index.classes_.tolist() == ["new"]
    assert index.n_features_in_ == 1
    assert index.n_samples_fit_ == 1


class TestCosine:
    def test_equals_scikit_learn(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 4)) * rng.choice([1e-8, 1.0, 1e8], (80, 1))
        queries = np.concatenate([rng.normal(size=(10, 4)), X[:3] * 7.0])
        distances, indices = (
            ClasswiseNeighbors(80, search=Exact("cosine")).fit(X, np.zeros(80)).kneighbors(queries)
        )
        expected = cosine_distances(queries, X)
        np.testing.assert_allclose(distances[:, 0], np.sort(expected, axis=1), rtol=1e-6, atol=1e-14)
        np.testing.assert_allclose(
            np.take_along_axis(expected, indices[:, 0], axis=1), distances[:, 0], rtol=1e-6, atol=1e-14
        )

    def test_zero_rows(self):
        X = np.array([[0.0, 0.0], [1.0, 2.0], [-3.0, 0.5]])
        index = ClasswiseNeighbors(1, search=Exact("cosine")).fit(X, [0, 1, 2])
        distances, _ = index.kneighbors([[0.0, 0.0], [5.0, -1.0]])
        np.testing.assert_allclose(distances[0, :, 0], [0, 1, 1], rtol=1e-15)
        np.testing.assert_allclose(
            distances[1, :, 0], [1, *cosine_distances([[5.0, -1.0]], X[1:])[0]], rtol=1e-12
        )

    def test_length_does_not_matter(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
        lengths = 2.0 ** rng.integers(-40, 40, size=(50, 1))
        index = ClasswiseNeighbors(4, search=Exact("cosine")).fit(X, y)
        assert_same_bits(index.kneighbors(X * lengths), index.kneighbors(X))
        assert_same_bits(clone(index).fit(X * lengths, y).kneighbors(X), index.kneighbors(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_saved_and_loaded_gives_equal_bits(metric, dtype, tmp_path):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(2, 90, 3)).astype(dtype)
    y = rng.choice(["x", "y", "z"], 90)
    index = ClasswiseNeighbors(4, search=Exact(metric)).fit(X, y, classes=["w", "x", "y", "z"])
    index.save(tmp_path / "index.nagg")
    loaded = neighboragg.load(tmp_path / "index.nagg")
    assert repr(loaded) == repr(index)
    assert loaded.classes_.tolist() == ["w", "x", "y", "z"]
    assert loaded.n_features_in_ == 3
    assert loaded.n_samples_fit_ == 90
    np.testing.assert_array_equal(loaded.class_count_, index.class_count_)
    assert_same_bits(loaded.kneighbors(queries), index.kneighbors(queries))
    assert_same_bits(loaded.kneighbors(), index.kneighbors())


@pytest.mark.parametrize("labels", [np.array([3, -1, 3]), np.array(["b", "a", "b"]), [True, False, True]])
def test_labels_of_any_kind_order_the_class_axis(labels):
    index = ClasswiseNeighbors(1).fit([[0.0], [1.0], [2.0]], labels)
    np.testing.assert_array_equal(index.classes_, np.unique(labels))
    np.testing.assert_array_equal(index.kneighbors([[0.1]])[1], [[[1], [0]]])
