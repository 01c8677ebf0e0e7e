"""One thread for matrix products and trees: these are too small to share, least of all on a busy machine."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def single_thread():
    with threadpool_limits(1):
        yield
