"""What is collected: tests and examples of the parts that are installed, all of them or the quick run."""

import os
from collections import Counter
from importlib.util import find_spec

import pytest
from hypothesis import settings

import neighboragg
import sizes

collect_ignore_glob = (
    []
    if find_spec("torch")
    else [
        "tests/torch_networks*",
        "benchmarks/tests/images*",
        "src/neighboragg/torch*",
        "benchmarks/images*",
    ]
)

# Some virtual machines show the processor's AMX tiles and do not grant them, on which PyTorch fails or dies.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

FULL = pytest.mark.full.mark
# Seeds are fixed: what fails here fails everywhere.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=100)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run every test, with all cases and draws")


def pytest_configure(config):
    sizes.FULL = config.getoption("--full")
    settings.load_profile("full" if sizes.FULL else "quick")
    for name in neighboragg.__all__:
        getattr(neighboragg, name)  # examples are collected from what a package has imported


def pytest_collection_modifyitems(config, items):
    """Leave tests marked `full` to the full run; of one marked `full(keep=n)` the first n cases stay."""
    if sizes.FULL:
        return
    cases = Counter()
    chosen, left = [], []
    for item in items:
        # Examples in docstrings show how things are used; that they are right is what tests are for.
        mark = FULL if isinstance(item, pytest.DoctestItem) else item.get_closest_marker("full")
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        quick = mark is None or cases[function] <= mark.kwargs.get("keep", 0)
        (chosen if quick else left).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=left)
