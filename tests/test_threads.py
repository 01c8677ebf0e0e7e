"""Matrix products are limited to one thread in any calling thread, and released afterward."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from neighboragg import MislabelDetector, NeighborAgg
from neighboragg._core.threads import ONE_THREAD
from neighboragg.search import ClasswiseNeighbors


def product_threads(*, of_openmp=False):
    """Threads of matrix libraries; those of OpenMP, as faiss brings one, have a limit for each thread that asks."""
    return {
        library["num_threads"]
        for library in threadpool_info()
        if library["user_api"] == "blas" and (of_openmp or library["threading_layer"] != "openmp")
    }


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads for products, set by the main thread, which under threadpoolctl 3.8 then owns the setting."""
    with threadpool_limits(2, user_api="blas"):
        if product_threads() != {2}:
            pytest.skip("the matrix library of this machine has one thread only")
        yield


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_limit_holds_for_a_second_thread():
    def inside():
        with ONE_THREAD:
            return product_threads()

    assert in_another_thread(inside) == {1}
    assert product_threads() == {2}


def test_the_limit_holds_again_in_the_main_thread_after_another_had_it():
    in_another_thread(ONE_THREAD.__enter__)
    in_another_thread(lambda: ONE_THREAD.__exit__(None, None, None))
    with ONE_THREAD:
        assert product_threads() == {1}
    assert product_threads() == {2}


def test_threads_that_overlap_share_the_limit_and_the_last_one_releases_it():
    both_inside, first_has_left = Barrier(2), Barrier(2)
    seen = []

    def first():
        with ONE_THREAD:
            both_inside.wait(10)
        first_has_left.wait(10)

    def second():
        with ONE_THREAD:
            both_inside.wait(10)
            first_has_left.wait(10)
            seen.append(product_threads())

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(first), pool.submit(second)]:
            future.result()
    assert seen == [{1}]
    assert product_threads() == {2}


def test_the_limit_may_be_nested():
    with ONE_THREAD:
        with ONE_THREAD:
            assert product_threads() == {1}
        assert product_threads() == {1}
    assert product_threads() == {2}


def test_the_limit_holds_for_a_library_that_is_loaded_later():
    with ONE_THREAD:
        pass
    pytest.importorskip("faiss")  # brings a matrix library of its own
    with threadpool_limits(2, user_api="blas"):
        with ONE_THREAD:
            assert product_threads(of_openmp=True) == {1}
        assert product_threads(of_openmp=True) == {2}


def test_a_limit_that_the_user_sets_around_it_is_restored():
    with threadpool_limits(1, user_api="blas"), ONE_THREAD:
        pass
    assert product_threads() == {2}


def test_searches_at_once_leave_the_threads_of_products_as_they_were():
    X = np.random.default_rng(0).normal(size=(400, 8))
    index = ClasswiseNeighbors(3).fit(X, np.arange(400) % 4)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: index.kneighbors(X), range(40)))
    assert product_threads() == {2}


@pytest.mark.full(keep=2)
@pytest.mark.filterwarnings("ignore:What was passed to MislabelDetector predicts")
@pytest.mark.parametrize(
    ("n_rows", "n_jobs", "expected"), [(400, 2, 2), (60, 2, 1), (400, None, 1), (60, None, 1)]
)
def test_boosting_is_bound_to_as_many_threads_as_it_may_use(monkeypatch, n_rows, n_jobs, expected):
    """Threads of OpenMP spin while they wait: on a busy machine a small fit takes many times its CPU time."""
    monkeypatch.setattr("neighboragg._core.threads.ROWS_FOR_THREADS", 300)
    seen = set()

    class Spy(HistGradientBoostingClassifier):
        def fit(self, X, y, sample_weight=None):
            seen.update(openmp_threads())
            return super().fit(X, y, sample_weight)

    few = partial(Spy, max_iter=2)
    monkeypatch.setattr("neighboragg._pool.opinions.HistGradientBoostingClassifier", few)
    monkeypatch.setattr("neighboragg.labels._label_trust.HistGradientBoostingClassifier", few)
    rng = np.random.default_rng(0)
    X, y, proba = rng.normal(size=(n_rows, 3)), np.arange(n_rows) % 2, np.full((n_rows, 2), 0.5)
    with threadpool_limits(2, user_api="openmp"):
        assert max(openmp_threads()) == 2
        NeighborAgg(second_opinions=["shallow boosting"], learned_metric=False, n_jobs=n_jobs).fit(
            X, y, proba_val=proba
        )
        MislabelDetector(effort="best", n_jobs=n_jobs).fit(X, y)
        assert max(openmp_threads()) == 2
    assert max(seen) == expected


def openmp_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}
