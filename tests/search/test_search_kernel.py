"""The compiled search: equal bits in every variant and NumPy, and the fallback if it is not available."""

import copy
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neighboragg
from brute_force import nearest_by_class
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.search import ClasswiseNeighbors, _in_memory
from neighboragg.search import _kernel as _call
from neighboragg.search import _kernel as _choice
from neighboragg.search import _kernel as _library
from neighboragg.search._kernel import kernel_in_use
from sizes import examples

PROJECT = Path(__file__).parents[2]
BUILD = PROJECT / "tools" / "build_kernel.py"


def available():
    """The names of the searches that this installation and processor have."""
    names = ["numpy"]
    with pytest.MonkeyPatch.context() as patch:
        for name in _library.VARIANTS:
            patch.setenv(_choice.VARIABLE, name)
            try:
                names.append(kernel_in_use().name)
            except InvalidParameterError:
                continue
    return names


AVAILABLE = available()
needs_compiled = pytest.mark.skipif(AVAILABLE == ["numpy"], reason="installed without a compiler")


def search(name, index, queries, exclude=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(_choice.VARIABLE, name)
        assert kernel_in_use().name == name
        return index.kneighbors(queries, exclude=exclude)


def distances_to_all(X, queries):
    """In double precision, added in the order that the search promises."""
    squares = (queries.astype(np.float64)[:, None, :] - X.astype(np.float64)) ** 2
    sums = [np.zeros(squares.shape[:2]) for _ in range(8)]
    for j in range(squares.shape[2]):
        sums[j % 8] += squares[:, :, j]
    s = sums
    return np.sqrt(((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))


def brute_force(X, y, queries, k, n_classes, exclude=None):
    return nearest_by_class(distances_to_all(X, queries), y, k, n_classes, exclude)


def same_bits(found, expected):
    return all(
        one.dtype == other.dtype and one.tobytes() == other.tobytes()
        for one, other in zip(found, expected, strict=True)
    )


KINDS = {
    "random": lambda rows, rng: rows,
    "ties": lambda rows, rng: np.rint(rows),
    "copies": lambda rows, rng: rows[rng.integers(0, max(1, len(rows) // 7), len(rows))],
    "constant": lambda rows, rng: np.full_like(rows, 3.0),
    "offset": lambda rows, rng: rows * 1e-3 + 1e8,
    "outliers": lambda rows, rng: rows * np.where(rng.random((len(rows), 1)) < 0.05, 1e20, 1.0),
    "huge": lambda rows, rng: rows * 1e148,
    "tiny": lambda rows, rng: rows * 1e-300,
    "subnormal": lambda rows, rng: rows * 5e-324,
    "wide": lambda rows, rng: rows * 10.0 ** rng.integers(-30, 140, (len(rows), 1)),
    "scales": lambda rows, rng: rows * np.exp(5 * rng.normal(size=rows.shape[1])),
}


@st.composite
def problems(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    single = draw(st.booleans()) and kind not in ("huge", "tiny", "subnormal", "wide")
    n, n_queries = draw(st.integers(1, 200)), draw(st.sampled_from([0, 1, 2, 8, 9, 31, 32, 33, 41, 70]))
    d = draw(st.sampled_from([1, 2, 7, 8, 9, 16, 24, 130, 257]))
    n_classes = draw(st.sampled_from([1, 2, 5, 30]))
    # Lists of every length that the compiled search has, the first and the last that need it; beyond 64, NumPy's.
    k = draw(st.sampled_from([1, 2, 5, 7, 8, 15, 16, 20, 23, 31, 32, 47, 48, 64, 65]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = KINDS[kind](rng.normal(size=(n, d)), rng).astype(np.float32 if single else np.float64)
    fresh = KINDS[kind](rng.normal(size=(n_queries, d)), rng).astype(X.dtype)
    own = rng.integers(0, n, n_queries)
    queries = np.where(rng.random((n_queries, 1)) < 0.5, X[own], fresh)
    y = rng.integers(0, n_classes, n)
    y[y == 1] = 0  # a class without rows
    exclude = np.where(rng.random(n_queries) < 0.7, own, -1) if draw(st.booleans()) else None
    return X, y, queries, k, n_classes, exclude


WHOLE = {"BATCH_ROWS": _in_memory.BATCH_ROWS}


def in_batches_of(n_rows):
    return {"BATCH_ROWS": n_rows, "TILE_ROWS": 1}


def check_problem(problem):
    X, y, queries, k, n_classes, exclude = problem
    expected = brute_force(X, y, queries, k, n_classes, exclude)
    index = ClasswiseNeighbors(k).fit(X, y, classes=np.arange(n_classes))
    for name in AVAILABLE:
        for batch, n_jobs in ((WHOLE, 1), (WHOLE, 2), (in_batches_of(1), 1), (in_batches_of(13), 2)):
            with patch.multiple(_in_memory, **batch):
                found = search(name, index.set_params(n_jobs=n_jobs), queries, exclude)
            assert same_bits(found, expected), (name, batch, n_jobs)


@examples(25)
@given(problems())
def test_every_variant_has_the_bits_of_brute_force(problem):
    check_problem(problem)


@pytest.mark.full
@examples(100)
@given(problems())
def test_every_variant_has_the_bits_of_brute_force_in_many_cases(problem):
    check_problem(problem)


@pytest.mark.full(keep=2)
@pytest.mark.parametrize(("n", "d", "n_classes"), [(5000, 16, 26), (3000, 300, 3), (4000, 5, 1000)])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_equal_bits_over_many_panels_and_groups(n, d, n_classes, k):
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, d)).astype(np.float32), rng.integers(0, n_classes, n)
    X[::5] = np.rint(X[::5])
    own = rng.integers(0, n, 700)
    queries = X[own]
    index = ClasswiseNeighbors(k).fit(X, y, classes=np.arange(n_classes))
    expected = brute_force(X, y, queries[:50], k, n_classes, own[:50])
    results = [search(name, index, queries, own) for name in AVAILABLE]
    assert same_bits([part[:50] for part in results[0]], expected)
    for result in results[1:]:
        assert same_bits(result, results[0])
    with patch.multiple(_in_memory, **in_batches_of(1)):
        for name in AVAILABLE:
            assert same_bits(search(name, index, queries[:50], own[:50]), expected)


@pytest.mark.full(keep=2)
@needs_compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [5, 20])
def test_rows_close_to_a_space_of_few_dimensions_are_found_from_there(k, dtype):
    rng = np.random.default_rng(k)
    n, d = 6000, 64
    flat = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d))
    X, y = (flat + 0.02 * rng.normal(size=(n, d))).astype(dtype), rng.integers(0, 4, n)
    X[: n // 3] = X[n // 3 : 2 * (n // 3)]  # copies
    own = rng.integers(0, n, 1200)
    queries = X[own]
    queries[::30] += rng.normal(size=(40, d)).astype(dtype)  # far from that space
    queries[1] *= 1e6
    queries[2] *= 1e20
    index = ClasswiseNeighbors(k).fit(X, y)
    expected = search("numpy", index, queries, own)
    assert same_bits([part[:20] for part in expected], brute_force(X, y, queries[:20], k, 4, own[:20]))
    compiled = [name for name in AVAILABLE if name != "numpy"]
    for name in compiled:
        assert same_bits(search(name, index, queries, own), expected)
    assert _call._prepared[index._reference].structure.n_axes < d // 2
    with patch.multiple(_in_memory, **in_batches_of(1)):
        for name in compiled:
            found = search(name, index, queries[:100], own[:100])
            assert same_bits(found, [part[:100] for part in expected])


@needs_compiled
def test_queries_far_from_the_space_of_the_rows_are_compared_with_whole_rows_in_the_end():
    rng = np.random.default_rng(0)
    n, d = 6000, 64
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + 0.02 * rng.normal(size=(n, d))
    queries = X[:1500] + rng.normal(size=(1500, d))
    compiled = [name for name in AVAILABLE if name != "numpy"]
    index = ClasswiseNeighbors(5).fit(X, np.arange(n) % 4)
    expected = search("numpy", index, queries)
    for name in compiled:
        _call._prepared.clear()
        search(name, index, X[:1100])
        assert _call._prepared[index._reference].is_projected
        assert same_bits(search(name, index, queries), expected)
        assert not _call._prepared[index._reference].is_projected
        assert same_bits(search(name, index, queries), expected)


@pytest.mark.full
@needs_compiled
@pytest.mark.parametrize("outlier", [1.0, 1e30])
def test_rows_that_need_all_of_their_dimensions_are_not_projected(outlier):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 48)), rng.integers(0, 2, 5000)
    if outlier > 1:  # so far out that single precision says nothing about it
        X = X[:, :4] @ rng.normal(size=(4, 48))
        X[7] *= outlier
    index = ClasswiseNeighbors(3).fit(X, y)
    expected = search("numpy", index, X[:1100])
    for name in AVAILABLE:
        assert same_bits(search(name, index, X[:1100]), expected)
    assert _call._prepared[index._reference].structure.n_axes == 48


def test_of_equal_distances_the_lower_id_comes_first_even_if_squares_differ():
    # The squares differ in the last bit and their roots do not.
    X = np.array([[1.0, 2.0**-26], [1.0, 0.0]])
    distances = distances_to_all(X, np.zeros((1, 2)))[0]
    assert (X**2).sum(axis=1)[0] > (X**2).sum(axis=1)[1]
    assert distances[0] == distances[1]
    index = ClasswiseNeighbors(1).fit(X, [0, 0])
    for name in AVAILABLE:
        assert search(name, index, np.zeros((1, 2)))[1].tolist() == [[[0]]]


def test_too_large_values_are_refused_by_all():
    index = ClasswiseNeighbors(1).fit([[0.0]], [0])
    for name in AVAILABLE:
        with pytest.raises(
            InvalidInputError, match=re.escape("contains the value 1e+300, which is too large")
        ):
            search(name, index, np.array([[1e300]]))


@needs_compiled
def test_candidates_that_are_not_certain_are_widened():
    X = np.tile(np.arange(4.0), 50)[:, None]
    index = ClasswiseNeighbors(3).fit(X, np.zeros(200))
    kernel = _choice._choose("baseline")
    distances, ids = np.empty((1, 1, 3)), np.empty((1, 1, 3), dtype=np.int64)
    n_widened = _call.search_compiled(kernel.library, index._reference, X[:1], None, distances, ids)
    assert n_widened == 1
    np.testing.assert_array_equal(ids[0, 0], [0, 4, 8])


def test_a_copied_or_mapped_index_searches_as_before(tmp_path):
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(101, 3)).astype(np.float32), rng.normal(size=(40, 3))
    index = ClasswiseNeighbors(3).fit(X, rng.integers(0, 3, 101))
    expected = index.kneighbors(queries)
    index.save(tmp_path / "index.nagg")
    others = [
        copy.deepcopy(index),
        neighboragg.load(tmp_path / "index.nagg"),
        neighboragg.load(tmp_path / "index.nagg", mmap=True),
    ]
    for other in others:
        for name in AVAILABLE:
            assert same_bits(search(name, other, queries), expected)


class TestChoice:
    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch):
        """Each test chooses anew, and leaves no choice behind."""
        monkeypatch.delenv(_choice.VARIABLE, raising=False)
        for cached in (_choice._choose, _choice._warn_once):
            cached.cache_clear()
        yield
        for cached in (_choice._choose, _choice._warn_once):
            cached.cache_clear()

    @needs_compiled
    def test_the_fastest_is_used_without_a_word(self):
        kernel = kernel_in_use()
        assert kernel.name == next(name for name in _library.VARIANTS if name in AVAILABLE)
        assert kernel.reason == "the fastest that this processor runs"

    def test_unknown_names(self, monkeypatch, capsys):
        monkeypatch.setenv(_choice.VARIABLE, "fast")
        message = (
            "The environment variable NEIGHBORAGG_KERNEL must be one of 'auto', 'avx512', 'avx2', 'baseline', 'numpy'. "
            "Got 'fast' instead."
        )
        with pytest.raises(InvalidParameterError, match=re.escape(message)):
            kernel_in_use()
        neighboragg.show_versions()
        assert f"none: {message}" in capsys.readouterr().out

    @needs_compiled
    def test_a_variant_that_the_processor_does_not_have(self, monkeypatch):
        monkeypatch.setattr(_choice, "_runnable", lambda baseline: ("baseline",))
        monkeypatch.setenv(_choice.VARIABLE, "avx512")
        with pytest.raises(InvalidParameterError) as caught:
            kernel_in_use()
        assert str(caught.value) == (
            "The environment variable NEIGHBORAGG_KERNEL selects 'avx512', which is not available: this processor does "
            "not support it.\nHint: unset it to use the fastest search available."
        )

    @needs_compiled
    @pytest.mark.skipif(len(AVAILABLE) < 3, reason="the processor has one variant only")
    def test_a_variant_with_other_results_is_not_used(self, monkeypatch):
        monkeypatch.setattr(_choice, "_agree", lambda library, baseline: False)
        with pytest.warns(RuntimeWarning, match="returns different results than the baseline"):
            assert kernel_in_use().name == "baseline"

    @needs_compiled
    def test_other_results_are_noticed(self, monkeypatch):
        baseline = _library.load("baseline")
        assert _choice._agree(baseline, baseline)
        right = _choice._search_once

        def wrong(library, *problem):
            distances, ids = right(library, *problem)
            if library is not baseline:
                distances[-1, 0, 0] = np.nextafter(distances[-1, 0, 0], 0)
            return distances, ids

        monkeypatch.setattr(_choice, "_search_once", wrong)
        assert not _choice._agree(_library.load("baseline"), baseline)

    def test_without_libraries_numpy_searches(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setattr(_library, "FOLDER", tmp_path)
        kernel = kernel_in_use()
        assert (kernel.name, kernel.library) == ("numpy", None)
        reason = "no compiled search (there was no C++ compiler when neighboragg was installed)"
        assert kernel.reason == reason
        neighboragg.show_versions()
        assert re.search(rf"^search +numpy: {re.escape(reason)}$", capsys.readouterr().out, re.MULTILINE)
        monkeypatch.setenv(_choice.VARIABLE, "baseline")
        with pytest.raises(
            InvalidParameterError, match="selects 'baseline', which is not available: no compiled search"
        ):
            kernel_in_use()

    @needs_compiled
    def test_a_library_of_another_source_is_not_used(self, monkeypatch, tmp_path):
        shutil.copy(_library.path_of("baseline"), tmp_path)
        source = (_library.FOLDER / "search.cpp").read_text()
        (tmp_path / "search.cpp").write_text(source + "// changed\n")
        monkeypatch.setattr(_library, "FOLDER", tmp_path)
        kernel = kernel_in_use()
        assert kernel.name == "numpy"
        assert "was compiled from another source; run `make kernel`" in kernel.reason

    def test_a_large_search_without_the_kernel_warns_once(self, monkeypatch, tmp_path):
        monkeypatch.setattr(_library, "FOLDER", tmp_path)
        monkeypatch.setattr(_choice, "MANY_PRODUCTS", 100)
        index = ClasswiseNeighbors(1).fit(np.arange(20.0)[:, None], [0] * 20)
        index.kneighbors([[1.0]])
        with pytest.warns(UserWarning, match="Results are the same") as caught:
            index.kneighbors(np.ones((6, 1)))
        assert caught[0].filename == __file__
        index.kneighbors(np.ones((6, 1)))

    def test_selecting_numpy_does_not_warn(self, monkeypatch):
        monkeypatch.setattr(_choice, "MANY_PRODUCTS", 0)
        monkeypatch.setenv(_choice.VARIABLE, "numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ClasswiseNeighbors(1).fit([[0.0]], [0]).kneighbors([[1.0]])


def test_show_versions(capsys):
    neighboragg.show_versions()
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert shown["numpy"] == np.__version__
    assert shown["search"] == f"{kernel_in_use().name}: {kernel_in_use().reason}"


class TestBuild:
    @pytest.fixture
    def folder(self, tmp_path):
        shutil.copy(_library.FOLDER / "search.cpp", tmp_path)
        return tmp_path

    @pytest.mark.parametrize("compiler", ["/bin/false", "no-such-compiler"])
    def test_without_a_compiler_it_says_so(self, compiler, folder, monkeypatch):
        monkeypatch.setenv("CXX", compiler)
        tool = runpy.run_path(str(BUILD))
        with pytest.raises(tool["BuildError"], match=compiler):
            tool["build"](folder)
        assert [path.name for path in folder.iterdir()] == ["search.cpp"]

    @pytest.mark.full
    @pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here")
    def test_sanitizers_find_nothing(self, tmp_path):
        flags = [[], ["-mavx2", "-mfma"]] if "avx2" in AVAILABLE else [[]]
        for extra in flags:
            command = [
                "g++", "-std=c++17", "-O1", "-g", "-ffp-contract=off", "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all", *extra, f"-I{_library.FOLDER}",
                str(Path(__file__).with_name("sanitized_search.cpp")), "-o", str(tmp_path / "driver"),
            ]  # fmt: skip
            subprocess.run(command, check=True)
            done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (0, "0 of 576 wrong\n"), done.stderr[-3000:]


@needs_compiled
@pytest.mark.full
def test_the_search_leaves_the_threads_of_products_alone():
    """With the compiled search, nothing asks for the thread pools of other libraries."""
    program = (
        "import numpy as np, neighboragg._core.threads as threads\n"
        "threads._OneThread.__enter__ = lambda self: 1 / 0\n"
        "from neighboragg.search import ClasswiseNeighbors, kernel_in_use\n"
        "assert kernel_in_use().name != 'numpy'\n"
        "ClasswiseNeighbors(2, n_jobs=2).fit(np.arange(500.)[:, None], [0] * 500).kneighbors()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
