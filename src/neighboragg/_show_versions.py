"""Information for bug reports: versions, the machine, and the search in use."""

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from neighboragg._core.packages import publish
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search import kernel_in_use

PACKAGES = (
    "neighboragg", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "pandas", "pyarrow",
    "matplotlib", "skops", "torch", "faiss-cpu",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of neighboragg and its dependencies, the machine, and the search in use.

    The search is compiled for AVX-512, AVX2 or any processor (``avx512``, ``avx2``, ``baseline``). If no compiler was
    available when neighboragg was installed, it falls back to NumPy (``numpy``). Results are the same. Set the
    environment variable ``NEIGHBORAGG_KERNEL`` to one of these names to choose a search.

    Examples
    --------
    >>> import neighboragg
    >>> neighboragg.show_versions()  # doctest: +ELLIPSIS
    python        ...
    neighboragg   ...
    """
    versions = {
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        "machine": f"{platform.platform()}, {os.cpu_count()} processors",
        "search": _search(),
    }
    width = max(map(len, versions)) + 1
    sys.stdout.write("".join(f"{name:<{width}}{value}\n" for name, value in versions.items()))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _search() -> str:
    try:
        kernel = kernel_in_use()
    except InvalidParameterError as error:
        return f"none: {error}"
    return f"{kernel.name}: {kernel.reason}"


publish(globals())
