"""Data of any size: the same work in one process that streams, and on a Dask cluster."""

from neighboragg._public import publish as _publish
from neighboragg.distributed._cluster import connect
from neighboragg.distributed._fit import fit
from neighboragg.distributed._input import holds_parquet, list_files
from neighboragg.distributed._mislabel import find_mislabeled
from neighboragg.distributed._read import take_rows
from neighboragg.distributed._run import PartsFailedError, Written
from neighboragg.distributed._score import score

__all__ = [
    "PartsFailedError",
    "Written",
    "connect",
    "find_mislabeled",
    "fit",
    "holds_parquet",
    "list_files",
    "score",
    "take_rows",
]

_publish(globals())
