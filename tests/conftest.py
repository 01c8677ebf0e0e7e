"""What all tests share: one thread for products and trees, and examples of docstrings among the slow ones."""

import pytest
from threadpoolctl import threadpool_limits


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="module")
def single_thread():
    """Products and trees of these sizes gain nothing from a second thread, least of all on a busy machine."""
    with threadpool_limits(1):
        yield
