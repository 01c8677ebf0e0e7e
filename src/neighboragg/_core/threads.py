"""Numbers of threads, and limits on the threads of matrix products and boosting."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

import threadpoolctl
from joblib import effective_n_jobs, parallel_config

from neighboragg.exceptions import InvalidParameterError

# With fewer rows, boosting does not benefit from a second thread.
ROWS_FOR_THREADS = 20_000


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for an `n_jobs` parameter, regardless of limits on processes."""
    if n_jobs == 0:
        raise InvalidParameterError(
            "The 'n_jobs' parameter must not be 0.\n"
            "Hint: pass a number of threads, -1 for one per core, or None for one."
        )
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))


@contextmanager
def boosting_threads(n_rows: int, n_jobs: int | None) -> Iterator[None]:
    """Limit the threads of scikit-learn's boosting, which uses all cores and does not have `n_jobs`."""
    most = n_threads(n_jobs) if n_rows >= ROWS_FOR_THREADS else 1
    libraries = [(library, library.num_threads) for library in _libraries(len(sys.modules), "openmp")]
    try:
        for library, before in libraries:
            library.set_num_threads(min(before, most))
        yield
    finally:
        for library, before in libraries:
            library.set_num_threads(before)


class _OneThread:
    """Context that limits matrix products to one thread; it is reentrant, and several threads may enter it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_inside = 0
        self.before: list[tuple[threadpoolctl.LibController, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            if self.n_inside == 0:
                found = [(library, library.num_threads) for library in _libraries(len(sys.modules), "blas")]
                self.before = [(library, threads) for library, threads in found if threads != 1]
                if self.before:
                    _set_threads([(library, 1) for library, _ in self.before])
            self.n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_inside -= 1
            # Only the last thread to leave restores the number of threads.
            if self.n_inside == 0 and self.before:
                _set_threads(self.before)


@lru_cache(maxsize=2)
def _libraries(n_modules: int, user_api: str) -> list[threadpoolctl.LibController]:
    """The loaded libraries of one kind; cached, because listing them takes longer than a small search."""
    return threadpoolctl.ThreadpoolController().select(user_api=user_api).lib_controllers


def _set_threads(numbers: list[tuple[threadpoolctl.LibController, int]]) -> None:
    """Set the threads of each matrix library."""
    # Since threadpoolctl 3.8, only the thread that first set the limit of OpenBLAS may change it, and calls by other
    # threads are silently ignored. The lock of _OneThread already provides the order that this rule enforces.
    _disown()
    for library, number in numbers:
        library.set_num_threads(number)
    _disown()


def _disown() -> None:
    """Allow any thread to set limits, as threadpoolctl before 3.8 always does."""
    disown = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if disown is not None:
        disown(force=True)


ONE_THREAD = _OneThread()
