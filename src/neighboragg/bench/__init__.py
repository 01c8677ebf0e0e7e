"""Which trust method is best on your data: `compare`; the paper's own tables are in `neighboragg.bench.paper`."""

from neighboragg._public import publish as _publish
from neighboragg.bench._cells import Cell, make_cell
from neighboragg.bench._compare import compare
from neighboragg.bench._comparison import Comparison
from neighboragg.bench._data import load_matrix
from neighboragg.bench._grid import Grid, Results
from neighboragg.bench._lineup import BASES, BEST, COMPARED, DEFAULT, ENTRANTS, FAST, PAPER_METHOD, Entrant
from neighboragg.bench._machine import machine
from neighboragg.bench._store import ResultStore

__all__ = [
    "BASES",
    "BEST",
    "COMPARED",
    "DEFAULT",
    "ENTRANTS",
    "FAST",
    "PAPER_METHOD",
    "Cell",
    "Comparison",
    "Entrant",
    "Grid",
    "ResultStore",
    "Results",
    "compare",
    "load_matrix",
    "machine",
    "make_cell",
]

_publish(globals())
