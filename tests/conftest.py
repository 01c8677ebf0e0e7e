"""What all tests share: one thread for products and trees."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def single_thread():
    """Products and trees of these sizes gain nothing from a second thread, least of all on a busy machine."""
    with threadpool_limits(1):
        yield
