"""The compiled search: loading, choosing and calling its libraries."""

import ctypes
import hashlib
import os
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search._kernel._projection import is_worth_a_look, project
from neighboragg.search._reference import Reference

FOLDER = Path(__file__).parent
#: From the fastest to the one that runs on every processor.
VARIANTS = ("avx512", "avx2", "baseline")
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def path_of(variant: str) -> Path:
    """Path of the library for one instruction set; the file need not exist."""
    return FOLDER / f"search_{variant}{SUFFIX}"


def source_digest() -> str:
    """Digest of search.cpp, which is also compiled into the libraries."""
    # Normalize line endings, which depend on the checkout.
    return hashlib.sha256((FOLDER / "search.cpp").read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def load(variant: str) -> ctypes.CDLL:
    """Load the library for one instruction set."""
    library = ctypes.CDLL(str(path_of(variant)))
    library.neighboragg_source_digest.restype = ctypes.c_char_p
    if library.neighboragg_source_digest().decode() != source_digest():
        raise OSError(f"{path_of(variant).name} was compiled from another source; run `make kernel`")
    library.neighboragg_search.restype = ctypes.c_int64
    library.neighboragg_search.argtypes = [
        ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p,
        ctypes.c_void_p,
    ]  # fmt: skip
    return library


LARGEST_K = 64  # the compiled search has the same limit
LARGEST_SIZE = 2**31 - 2**10  # the compiled search uses 32-bit positions
# A projection is dropped if, in a batch of this many queries, a larger share of (query, class) pairs needed more
# candidates; such a pair takes as long as many others.
WATCHED_QUERIES, LARGEST_WIDENED = 512, 0.15

POINTER, INTEGER, BYTES = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char * 0


class Index(ctypes.Structure):
    """The reference rows as the compiled search reads them; matches the structure of this name in search.cpp."""

    _fields_ = (
        ("n_rows", INTEGER),
        ("n_features", INTEGER),
        ("n_classes", INTEGER),
        ("is_double", INTEGER),
        ("rows", POINTER),
        ("table", POINTER),
        ("ids", POINTER),
        ("starts", POINTER),
        ("center", POINTER),
        ("scale", ctypes.c_double),
        ("axes", POINTER),
        ("n_axes", INTEGER),
    )


class Prepared(NamedTuple):
    """An index, and the arrays that it points to."""

    structure: Index
    address: int
    arrays: tuple[Array, ...]
    is_final: bool  # whether the decision about a projection has been made

    @property
    def is_projected(self) -> bool:
        """Whether the table holds projected rows."""
        return bool(self.structure.n_axes < self.structure.n_features)


# Pointers belong to a process, so they are neither pickled nor saved with their rows.
_prepared: "WeakKeyDictionary[Reference, Prepared]" = WeakKeyDictionary()
_projecting = Lock()


def can_search(reference: Reference, k: int) -> bool:
    """Whether the compiled search supports this many neighbors and rows."""
    return k <= LARGEST_K and len(reference.rows) < LARGEST_SIZE


def search_compiled(
    library: ctypes.CDLL,
    reference: Reference,
    rows: FloatArray,
    hidden: IntArray | None,
    distances: FloatArray,
    ids: IntArray,
    *,
    lasting: bool = False,
) -> int:
    """Fill `distances` and `ids`, each (n, C, K), with the nearest rows of each class by (distance, id)."""
    prepared = _prepared.get(reference)
    if prepared is None:
        prepared = _prepared[reference] = _prepare(reference)
    n, _, k = distances.shape
    if lasting and not prepared.is_final and is_worth_a_look(reference, n):
        prepared = _projected(reference, k)
    queries = np.array(rows, dtype=np.float64, order="C")
    own = None if hidden is None else np.array(hidden, dtype=np.int64)
    if not prepared.is_projected:
        return _search(library, prepared, queries, own, distances, ids)
    n_widened = 0
    for start in range(0, n, WATCHED_QUERIES):
        part = slice(start, start + WATCHED_QUERIES)
        found = distances[part]
        n_here = _search(
            library, prepared, queries[part], None if own is None else own[part], found, ids[part]
        )
        # Queries unlike the rows may be far from their subspace, where a projection hardly separates rows.
        if n_here > LARGEST_WIDENED * found.shape[0] * found.shape[1]:
            prepared = _prepared[reference] = _prepare(reference)._replace(is_final=True)
        n_widened += n_here
    return n_widened


def _search(
    library: ctypes.CDLL,
    prepared: Prepared,
    queries: FloatArray,
    own: IntArray | None,
    distances: FloatArray,
    ids: IntArray,
) -> int:
    n, _, k = distances.shape
    n_widened = library.neighboragg_search(
        prepared.address,
        n,
        _values(queries),
        None if own is None else _values(own),
        k,
        _values(distances),
        _values(ids),
    )
    if n_widened < 0:
        raise MemoryError(f"Not enough memory to search {k} neighbors per class for {n} rows.")
    return int(n_widened)


def _values(array: Any) -> Any:
    """A ctypes view of an array; three times as fast as NumPy's own pointer."""
    return BYTES.from_buffer(array)


def _projected(reference: Reference, k: int) -> Prepared:
    """The index with a projected table if that is faster; decided once."""
    with _projecting:
        prepared = _prepared[reference]
        if not prepared.is_final:
            prepared = _prepared[reference] = _prepare(reference, k)
        return prepared


def _prepare(reference: Reference, k: int | None = None) -> Prepared:
    """An index of the full rows or, for k neighbors, of projected rows if that is faster."""
    projection = None if k is None else project(reference, k)
    # Arrays mapped from a file may be unaligned and are copied; others are used directly.
    rows, table = (
        np.require(array, requirements=["C", "A"])
        for array in (reference.rows, reference.table if projection is None else projection.table)
    )
    ids, starts = (
        np.require(array, dtype=np.int64, requirements=["C", "A"])
        for array in (reference.ids, reference.starts)
    )
    center = np.require(reference.normalization.center, dtype=np.float64, requirements=["C", "A"])
    axes = np.empty((0, 0)) if projection is None else projection.axes
    index = Index(
        len(rows),
        rows.shape[1],
        len(starts) - 1,
        rows.dtype == np.float64,
        rows.ctypes.data,
        table.ctypes.data,
        ids.ctypes.data,
        starts.ctypes.data,
        center.ctypes.data,
        reference.normalization.scale,
        None if projection is None else axes.ctypes.data,
        table.shape[1] - 1,
    )
    arrays = (rows, table, ids, starts, center, axes)
    return Prepared(index, ctypes.addressof(index), arrays, is_final=k is not None)


VARIABLE = "NEIGHBORAGG_KERNEL"
MANY_PRODUCTS = 1e11  # queries × rows × features for which NumPy takes ten seconds or more
CHOICES = ("auto", *VARIANTS, "numpy")


@dataclass(frozen=True)
class Kernel:
    """The search in use, and the reason for the choice."""

    name: str
    reason: str
    library: ctypes.CDLL | None = None


def kernel_in_use() -> Kernel:
    """The search selected by the environment variable ``NEIGHBORAGG_KERNEL``; by default the fastest."""
    return _choose(os.environ.get(VARIABLE, "auto"))


def warn_if_slow(kernel: Kernel, reference: Reference, n_queries: int) -> None:
    """Warn once that a long search would be faster if compiled, unless the user selected NumPy."""
    if kernel.library is None and kernel.name != os.environ.get(VARIABLE):
        n_products = n_queries * reference.rows.size
        if n_products > MANY_PRODUCTS:
            _warn_once(kernel.reason)


@cache
def _warn_once(reason: str) -> None:
    warnings.warn(
        f"The search uses NumPy, which is several times slower than the compiled search: {reason}. Results are the "
        "same.\nHint: install a C++ compiler and reinstall neighboragg; neighboragg.show_versions() shows the search "
        "in use.",
        UserWarning,
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
        missing = "there was no C++ compiler when neighboragg was installed"
        reason = f"no compiled search ({error if path_of('baseline').exists() else missing})"
        if wanted != "auto":
            raise _unavailable(wanted, reason) from error
        return Kernel("numpy", reason)
    if wanted == "auto":
        return _fastest(baseline)
    if wanted not in _runnable(baseline):
        raise _unavailable(wanted, "this processor does not support it")
    try:
        library = load(wanted)
    except OSError as error:
        raise _unavailable(wanted, str(error)) from error
    return Kernel(wanted, f"{VARIABLE}={wanted}", library)


def _unavailable(wanted: str, reason: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"The environment variable {VARIABLE} selects {wanted!r}, which is not available: {reason}.\n"
        f"Hint: unset it to use the fastest search available."
    )


def _runnable(baseline: ctypes.CDLL) -> tuple[str, ...]:
    """The variants that this processor supports, fastest first."""
    return VARIANTS[len(VARIANTS) - 1 - int(baseline.neighboragg_processor_level()) :]


def _fastest(baseline: ctypes.CDLL) -> Kernel:
    for variant in _runnable(baseline):
        if variant == "baseline":
            break
        try:
            library = load(variant)
        except OSError:
            continue  # the compiler did not support the instruction set
        if _agree(library, baseline):
            return Kernel(variant, "the fastest that this processor runs", library)
        warnings.warn(
            f"The search compiled for {variant} returns different results than the baseline and is not used.\n"
            f"Hint: please report this with the output of neighboragg.show_versions().",
            RuntimeWarning,
            stacklevel=2,
        )
    return Kernel("baseline", "the fastest that this processor runs", baseline)


def _agree(library: ctypes.CDLL, baseline: ctypes.CDLL) -> bool:
    """Whether two variants return equal bits on a small problem with whole and partial tiles, ties and one query."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 19))
    rows[::3] = np.rint(rows[::3])
    reference = Reference(rows, np.arange(150) % 4 % 3, 4)
    queries = np.concatenate([rows[:30], rng.normal(size=(15, 19))])
    hidden = np.arange(45, dtype=np.int64) - 1
    for n, k in ((45, 5), (1, 5), (45, 20)):
        one, other = (
            _search_once(each, reference, queries[:n], hidden[:n], k) for each in (library, baseline)
        )
        if any(a.tobytes() != b.tobytes() for a, b in zip(one, other, strict=True)):
            return False
    return True


def _search_once(
    library: ctypes.CDLL, reference: Reference, queries: FloatArray, hidden: IntArray, k: int
) -> tuple[FloatArray, IntArray]:
    shape = (len(queries), len(reference.sizes), k)
    distances, ids = np.empty(shape), np.empty(shape, dtype=np.int64)
    search_compiled(library, reference, queries, hidden, distances, ids)
    return distances, ids
