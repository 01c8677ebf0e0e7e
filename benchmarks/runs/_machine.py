"""Versions and hardware that go with every result."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import neighboragg

__all__ = ["machine"]


def machine(*more: str) -> dict[str, Any]:
    """Versions of the libraries and the hardware, to be written down with every result.

    Parameters
    ----------
    *more : str
        Packages to name beside numpy, scipy and scikit-learn.

    Returns
    -------
    about : dict
        Ready for JSON.

    Examples
    --------
    >>> from benchmarks.runs import machine
    >>> list(machine("joblib"))
    ['neighboragg', 'python', 'numpy', 'scipy', 'scikit-learn', 'joblib', 'processor', 'cores']
    """
    return {
        "neighboragg": neighboragg.__version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "scipy", "scikit-learn", *more)},
        "processor": _processor(),
        "cores": os.cpu_count(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # vendored or built in place
        return "unknown"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
