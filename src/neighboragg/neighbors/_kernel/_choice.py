"""Which search is in use: the fastest that this processor runs and that proves itself, else NumPy."""

import ctypes
import os
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np

from neighboragg._typing import FloatArray, IntArray
from neighboragg.exceptions import InvalidParameterError, SlowSearchWarning
from neighboragg.neighbors._kernel._call import search_compiled
from neighboragg.neighbors._kernel._library import VARIANTS, load, path_of
from neighboragg.neighbors._reference import Reference

__all__ = ["Kernel", "kernel_in_use", "warn_if_slow"]

VARIABLE = "NEIGHBORAGG_KERNEL"
MANY_PRODUCTS = 1e11  # queries × rows × features that take NumPy ten seconds and more
CHOICES = ("auto", *VARIANTS, "numpy")


@dataclass(frozen=True)
class Kernel:
    """The search in use, and why it is that one.

    Attributes
    ----------
    name : {"avx512", "avx2", "baseline", "numpy"}
        What it was compiled for; "numpy" if it is not compiled.
    reason : str
        Why it is this one.
    library : ctypes.CDLL or None
        What was compiled.
    """

    name: str
    reason: str
    library: ctypes.CDLL | None = None


def kernel_in_use() -> Kernel:
    """The search that the environment variable ``NEIGHBORAGG_KERNEL`` asks for; by default the fastest.

    Returns
    -------
    kernel : Kernel

    Examples
    --------
    >>> from neighboragg.neighbors import kernel_in_use
    >>> kernel_in_use().name in ("avx512", "avx2", "baseline", "numpy")
    True
    """
    return _choose(os.environ.get(VARIABLE, "auto"))


def warn_if_slow(kernel: Kernel, reference: Reference, n_queries: int) -> None:
    """Say once that a search of many seconds would be faster compiled, unless NumPy's was asked for."""
    if kernel.library is None and kernel.name != os.environ.get(VARIABLE):
        n_products = n_queries * reference.rows.size
        if n_products > MANY_PRODUCTS:
            _warn_once(kernel.reason)


@cache
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"This search is NumPy's, several times slower than the compiled one: {reason}. Results are the same.\n"
        "Hint: install a C++ compiler and neighboragg again; neighboragg.show_versions() says which is in use.",
        SlowSearchWarning,
        stacklevel=7,
    )


@cache
def _choose(wanted: str) -> Kernel:
    if wanted not in CHOICES:
        names = ", ".join(repr(name) for name in CHOICES)
        raise InvalidParameterError(
            f"The environment variable {VARIABLE} must be one of {names}. Got {wanted!r} instead."
        )
    if wanted == "numpy":
        return Kernel("numpy", f"{VARIABLE}=numpy")
    try:
        baseline = load("baseline")
    except OSError as error:
        missing = "it was not compiled: no C++ compiler when neighboragg was installed"
        reason = f"no compiled search ({error if path_of('baseline').exists() else missing})"
        if wanted != "auto":
            raise _unavailable(wanted, reason) from error
        return Kernel("numpy", reason)
    if wanted == "auto":
        return _fastest(baseline)
    if wanted not in _runnable(baseline):
        raise _unavailable(wanted, "this processor does not have it")
    try:
        library = load(wanted)
    except OSError as error:
        raise _unavailable(wanted, str(error)) from error
    return Kernel(wanted, f"{VARIABLE}={wanted}", library)


def _unavailable(wanted: str, reason: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"The environment variable {VARIABLE} asks for {wanted!r}: {reason}.\n"
        f"Hint: unset it; the fastest search that is available is then used."
    )


def _runnable(baseline: ctypes.CDLL) -> tuple[str, ...]:
    """The variants for this processor, the fastest first."""
    return VARIANTS[len(VARIANTS) - 1 - int(baseline.neighboragg_processor_level()) :]


def _fastest(baseline: ctypes.CDLL) -> Kernel:
    for variant in _runnable(baseline):
        if variant == "baseline":
            break
        try:
            library = load(variant)
        except OSError:
            continue  # the compiler did not know the instruction set
        if _agree(library, baseline):
            return Kernel(variant, "the fastest that this processor runs", library)
        warnings.warn(
            f"The search compiled for {variant} gives other results than the one for every processor, and is "
            f"not used.\nHint: please report it with the output of neighboragg.show_versions().",
            RuntimeWarning,
            stacklevel=2,
        )
    return Kernel("baseline", "the fastest that this processor runs", baseline)


def _agree(library: ctypes.CDLL, baseline: ctypes.CDLL) -> bool:
    """Whether two variants give equal bits on a small problem: whole and partial tiles, ties, one query."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 19))
    rows[::3] = np.rint(rows[::3])
    reference = Reference(rows, np.arange(150) % 4 % 3, 4)
    queries = np.concatenate([rows[:30], rng.normal(size=(15, 19))])
    hidden = np.arange(45, dtype=np.int64) - 1
    for n, k in ((45, 5), (1, 5), (45, 20)):
        one, other = (_search(each, reference, queries[:n], hidden[:n], k) for each in (library, baseline))
        if any(a.tobytes() != b.tobytes() for a, b in zip(one, other, strict=True)):
            return False
    return True


def _search(
    library: ctypes.CDLL, reference: Reference, queries: FloatArray, hidden: IntArray, k: int
) -> tuple[FloatArray, IntArray]:
    shape = (len(queries), len(reference.sizes), k)
    distances, ids = np.empty(shape), np.empty(shape, dtype=np.int64)
    search_compiled(library, reference, queries, hidden, distances, ids)
    return distances, ids
