"""Matrix products on one thread, where more would mostly wait for each other."""

from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

__all__ = ["ONE_THREAD"]


class _OneThread:
    """Limits matrix products to one thread while anybody is within; threads may enter together, and again."""

    def __init__(self) -> None:
        self.lock, self.n_inside = Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            if self.n_inside == 0:
                self.limiter = _libraries().limit(limits=1, user_api="blas")
            self.n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.n_inside -= 1
            # Only the last restores: an earlier one would take another's limit for the original.
            if self.n_inside == 0:
                self.limiter.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    """The loaded matrix libraries; looking for them takes longer than a small search."""
    return ThreadpoolController()


ONE_THREAD = _OneThread()
