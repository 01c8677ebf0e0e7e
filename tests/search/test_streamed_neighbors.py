"""Streamed search returns the same bits as a search in memory, within its memory limit."""

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

import neighboragg
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import ClasswiseNeighbors, Exact, Streamed, _streamed
from neighboragg.search._blocks import open_rows
from neighboragg.search._streamed import StreamedNeighbors, merge_nearest


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of as many rows as a test wants, however few."""

    def choose(rows):
        monkeypatch.setattr(StreamedNeighbors, "_block_rows", lambda self: rows)

    return choose


def make_data(kind, rng, n=120, n_features=5, n_classes=4):
    X = rng.normal(size=(n, n_features))
    y = rng.integers(0, n_classes, n)
    match kind:
        case "ties":
            X = np.rint(X)
        case "single":
            X = X.astype(np.float32)
        case "one column":
            X = X[:, :1]
        case "sorted":  # a class lives in one block alone
            y = np.sort(y)
        case "rare":
            y[:-2], y[-2:] = 0, [1, 3]
        case "far":
            X += 1e4
        case "wide":
            X = rng.normal(size=(n, 300))
    return X, y


KINDS = ["plain", "ties", "single", "one column", "sorted", "rare", "far", "wide"]


@pytest.mark.full(keep=15)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [3, 50, 1000])
def test_equal_bits_for_blocks_of_any_size(kind, metric, rows, small_blocks):
    X, y = make_data(kind, np.random.default_rng(rows))
    queries, exclude = X[::5], np.arange(len(X))[::5]
    small_blocks(rows)
    exact = ClasswiseNeighbors(3, search=Exact(metric)).fit(X, y, classes=np.arange(4))
    streamed = StreamedNeighbors(3, search=Streamed(metric=metric)).fit(X, y, classes=np.arange(4))
    for options in ({}, {"exclude": exclude}, {"n_neighbors": 30}):
        distances, ids = streamed.kneighbors(queries, **options)
        expected, expected_ids = exact.kneighbors(queries, **options)
        np.testing.assert_array_equal(distances, expected)
        # Rows in one direction have cosines that differ in the last bit or not at all: which comes first is open.
        if (kind, metric) != ("ties", "cosine"):
            np.testing.assert_array_equal(ids, expected_ids)


def test_every_reference_row_leaves_itself_out(small_blocks):
    X, y = make_data("ties", np.random.default_rng(0))
    small_blocks(32)
    for ours, theirs in zip(
        StreamedNeighbors(4).fit(X, y).kneighbors(),
        ClasswiseNeighbors(4).fit(X, y).kneighbors(),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_attributes_are_those_of_the_search_in_memory():
    X, y = make_data("rare", np.random.default_rng(0))
    exact, streamed = ClasswiseNeighbors().fit(X, y), StreamedNeighbors().fit(X, y)
    assert streamed.classes_.tolist() == exact.classes_.tolist()
    assert streamed.class_count_.tolist() == exact.class_count_.tolist()
    assert (streamed.n_samples_fit_, streamed.n_features_in_) == (120, 5)
    assert clone(streamed).get_params() == streamed.get_params()
    assert streamed.kneighbors(np.empty((0, 5)))[0].shape == (0, 3, 5)


def test_merging_in_any_order_is_the_same():
    rng = np.random.default_rng(0)
    X, y = np.rint(rng.normal(size=(90, 2))), rng.integers(0, 2, 90)
    parts = [np.arange(30 * i, 30 * i + 30) for i in range(3)]
    results = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        distances, ids = np.full((5, 2, 4), np.inf), np.full((5, 2, 4), -1)
        for part in (parts[i] for i in order):
            index = ClasswiseNeighbors(4).fit(X[part], y[part], classes=[0, 1])
            found, places = index.kneighbors(X[:5])
            merge_nearest(distances, ids, found, part[places])
        results.append((distances, ids))
    exact = ClasswiseNeighbors(4).fit(X, y).kneighbors(X[:5])
    for distances, ids in results:
        np.testing.assert_array_equal(distances, exact[0])
        np.testing.assert_array_equal(ids, exact[1])


def test_saved_with_its_rows_and_mapped_from_the_file(tmp_path, small_blocks):
    X, y = make_data("plain", np.random.default_rng(0))
    np.save(tmp_path / "rows.npy", X)
    small_blocks(16)
    streamed = StreamedNeighbors(3).fit([tmp_path / "rows.npy", X[:3]], np.append(y, y[:3]))
    streamed.save(tmp_path / "index.nagg")
    for mmap in (False, True):
        again = neighboragg.load(tmp_path / "index.nagg", mmap=mmap)
        for ours, theirs in zip(again.kneighbors(X[:9]), streamed.kneighbors(X[:9]), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_refusals():
    X, y = make_data("plain", np.random.default_rng(0))
    with pytest.raises(InvalidParameterError) as caught:
        StreamedNeighbors(search=Streamed("10 MB")).fit(X, y)
    assert str(caught.value) == (
        "The 'memory' parameter of Streamed must be at least 80 MB, as bytes or as text such as '500 MB' or "
        "'2 GiB'. Got '10 MB' instead."
    )
    for wrong in ("much", "-1 GB", None, True, 1.5):
        with pytest.raises(InvalidParameterError, match="'memory' parameter"):
            StreamedNeighbors(search=Streamed(wrong)).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"same number of rows. Got 120 and 3\."):
        StreamedNeighbors().fit(X, y[:3])
    with pytest.raises(InvalidInputError, match="has no rows"):
        StreamedNeighbors().fit(X[:0], y[:0])
    index = StreamedNeighbors().fit(X, y)
    with pytest.raises(InvalidInputError, match="4 features, but 5 were seen in fit"):
        index.kneighbors(X[:, :4])
    with pytest.raises(InvalidInputError, match=r"Got shape \(1,\)\."):
        index.kneighbors(X[:2], exclude=[1])
    with pytest.raises(InvalidInputError, match=r"below 120, or -1, .* Got the id 120\."):
        index.kneighbors(X[:2], exclude=[0, 120])


@pytest.mark.parametrize(("text", "number"), [("1 GB", 10**9), ("0.5GiB", 2**29), ("300000000", 3 * 10**8)])
def test_memory_as_text_is_memory_as_a_number(text, number):
    X = np.zeros((2, 1))
    sizes = [
        StreamedNeighbors(search=Streamed(memory)).fit(X, [0, 1])._block_rows() for memory in (text, number)
    ]
    assert sizes[0] == sizes[1]


def test_values_that_are_not_numbers_are_noticed_by_the_search(small_blocks):
    X, y = make_data("plain", np.random.default_rng(0))
    X[37, 2] = np.nan
    small_blocks(20)
    index = StreamedNeighbors().fit(X, y)
    with pytest.raises(
        InvalidInputError, match=r"Reference rows 20 to 39 of StreamedNeighbors cannot be searched: .*NaN"
    ):
        index.kneighbors(X[:3])


def test_rows_that_are_gone_are_noticed(small_blocks):
    X, y = make_data("plain", np.random.default_rng(0))
    small_blocks(16)
    (source,) = open_rows(X)
    index = StreamedNeighbors().fit(source, y)
    source.array, source.n_rows = X[:90], 90
    with pytest.raises(InvalidInputError, match="was fitted on 120 rows, but the source now has 90"):
        index.kneighbors(X[:3])


@pytest.mark.parametrize(
    ("n_features", "n_classes", "k", "metric", "dtype"),
    [
        (16, 3, 5, "euclidean", np.float32),
        (16, 3, 5, "cosine", np.float64),
        pytest.param(256, 40, 20, "euclidean", np.float64, marks=pytest.mark.full),
        pytest.param(2, 2, 1, "euclidean", np.float32, marks=pytest.mark.full),
    ],
)
def test_memory_is_kept(n_features, n_classes, k, metric, dtype):
    rng = np.random.default_rng(0)
    memory = 96 * 10**6
    index = StreamedNeighbors(k, search=Streamed(memory, metric=metric))
    n = 2 * (memory - 64 * 10**6) // (_streamed.VALUE_NBYTES[metric] * (n_features + 1))
    X, y = rng.normal(size=(n, n_features)).astype(dtype), rng.integers(0, n_classes, n)
    queries = rng.normal(size=(600, n_features)).astype(dtype)
    index.fit(X, y)
    tracemalloc.start()
    distances, ids = index.kneighbors(queries)
    peak = tracemalloc.get_traced_memory()[1] - distances.nbytes - ids.nbytes
    tracemalloc.stop()
    assert peak < memory


LIMITED = """
import json, resource, sys
import numpy as np
from neighboragg.search import Streamed
from neighboragg.search._streamed import StreamedNeighbors

folder, allowed = sys.argv[1], int(sys.argv[2])

def memory_of_its_own():
    for line in open("/proc/self/status"):
        if line.startswith("VmData"):
            return int(line.split()[1]) * 1024

# Code and libraries are there already; what comes on top is limited.
resource.setrlimit(resource.RLIMIT_DATA, (memory_of_its_own() + allowed, resource.RLIM_INFINITY))
rows = np.load(f"{folder}/rows.npy", mmap_mode="r")
refused = False
try:
    np.array(rows)
except MemoryError:
    refused = True
index = StreamedNeighbors(3, search=Streamed(allowed)).fit(rows, np.load(f"{folder}/labels.npy"))
distances, ids = index.kneighbors(np.load(f"{folder}/queries.npy"))
np.savez(f"{folder}/found.npz", distances=distances, ids=ids)
print(json.dumps({"refused": refused, "times": rows.nbytes / allowed}))
"""


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of a process's data is Linux's")
def test_an_index_of_four_times_the_memory_allowed(tmp_path):
    rng = np.random.default_rng(0)
    allowed = 84 * 10**6
    n = 4 * allowed // (8 * 256) + 1
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype=np.float64, shape=(n, 256))
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.random(size=X[start : start + 10_000].shape)
    y, queries = rng.integers(0, 3, n), rng.random(size=(20, 256))
    np.save(tmp_path / "labels.npy", y)
    np.save(tmp_path / "queries.npy", queries)
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(allowed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["refused"]  # the limit holds
    assert said["times"] >= 4
    found = np.load(tmp_path / "found.npz")
    distances, ids = ClasswiseNeighbors(3).fit(X, y).kneighbors(queries)
    np.testing.assert_array_equal(found["distances"], distances)
    np.testing.assert_array_equal(found["ids"], ids)
