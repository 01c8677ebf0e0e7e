"""Calls the compiled search; ctypes releases the interpreter's lock meanwhile."""

import ctypes
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._typing import Array, FloatArray, IntArray
from neighboragg.neighbors._kernel._projection import is_worth_a_look, project
from neighboragg.neighbors._reference import Reference

__all__ = ["LARGEST_K", "can_search", "search_compiled"]

LARGEST_K = 64  # the compiled search has the same number
LARGEST_SIZE = 2**31 - 2**10  # positions are 32-bit there
# Queries after which a projection has to have shown its worth: for no more than this share of the pairs of a query and
# a class did its candidates have to be widened, each of which takes as long as many that were certain.
WATCHED_QUERIES, LARGEST_WIDENED = 512, 0.15

POINTER, INTEGER, BYTES = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char * 0


class Index(ctypes.Structure):
    """The reference rows as the compiled search knows them; see the structure of that name there."""

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
    is_final: bool  # whether it was decided if rows are projected

    @property
    def is_projected(self) -> bool:
        """Whether the table holds projected rows."""
        return bool(self.structure.n_axes < self.structure.n_features)


# Pointers belong to a process: they are neither pickled nor saved with the rows they point to.
_prepared: "WeakKeyDictionary[Reference, Prepared]" = WeakKeyDictionary()
_projecting = Lock()


def can_search(reference: Reference, k: int) -> bool:
    """Whether the compiled search is made for so many neighbors and rows."""
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
    """Fill `distances` and `ids`, each (n, C, K), with the nearest rows of each class by (distance, id).

    `hidden` holds the position of the reference row that each query must not find, -1 for none. Rows that last are
    projected for later searches, where that makes them faster. Returns for how many pairs of a query and a class the
    first candidates were not certain.
    """
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
        # Queries unlike the rows may lie far from their space, where a projection hardly tells rows apart.
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
        raise MemoryError(f"No memory to search {n} rows for {k} neighbors in each class.")
    return int(n_widened)


def _values(array: Any) -> Any:
    """What the search may write to; to ask NumPy for the address takes three times as long."""
    return BYTES.from_buffer(array)


def _projected(reference: Reference, k: int) -> Prepared:
    """The same with a projected table, if that is faster; found out once."""
    with _projecting:
        prepared = _prepared[reference]
        if not prepared.is_final:
            prepared = _prepared[reference] = _prepare(reference, k)
        return prepared


def _prepare(reference: Reference, k: int | None = None) -> Prepared:
    """An index of the whole rows, or for k neighbors of projected ones where that is faster."""
    projection = None if k is None else project(reference, k)
    # Arrays mapped from a file may begin anywhere; the others are used as they are.
    rows, table = (
        np.require(array, requirements=["C", "A"])
        for array in (reference.rows, reference.table if projection is None else projection.table)
    )
    ids, starts = (
        np.require(array, dtype=np.int64, requirements=["C", "A"])
        for array in (reference.ids, reference.starts)
    )
    center = np.require(reference.frame.center, dtype=np.float64, requirements=["C", "A"])
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
        reference.frame.scale,
        None if projection is None else axes.ctypes.data,
        table.shape[1] - 1,
    )
    arrays = (rows, table, ids, starts, center, axes)
    return Prepared(index, ctypes.addressof(index), arrays, is_final=k is not None)
