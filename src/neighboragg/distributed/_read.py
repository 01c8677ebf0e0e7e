"""Some rows of Parquet files of any size, as a data frame."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from neighboragg._typing import ArrayLike, IntArray
from neighboragg._validation import check_integer
from neighboragg.distributed._executor import executor_for
from neighboragg.distributed._gather import places_in, read_rows
from neighboragg.distributed._input import column_names, cut, find_files, first_with_rows
from neighboragg.distributed._rows import as_frame, listed_names
from neighboragg.exceptions import InvalidInputError

__all__ = ["take_rows"]


def take_rows(
    source: Any,
    rows: int | ArrayLike,
    *,
    columns: Sequence[str] | None = None,
    client: Any = None,
    part_rows: int = 65_536,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Any:
    """Read some rows of Parquet files of any size.

    Parameters
    ----------
    source : path-like, str or list of these
        As in :func:`score`.
    rows : int or array-like of int
        How many to draw at random, all if there are no more; or their numbers in all files together, counted from 0,
        each of which is taken once.
    columns : sequence of str, default=None
        None takes all.
    client, part_rows, n_jobs
        As in :func:`score`.
    random_state : int, default=0
        Draws the rows.

    Returns
    -------
    frame : pandas.DataFrame
        In the order of the files, with the numbers of the rows as its index.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from neighboragg.distributed import take_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"x": range(0, 100, 10)}).to_parquet(pathlib.Path(folder) / "rows.parquet")
    ...     frame = take_rows(folder, [7, 2])
    >>> frame["x"].to_dict()
    {2: 20, 7: 70}
    """
    check_integer(part_rows, "part_rows", "take_rows", minimum=1)
    files = find_files(source)
    wanted = _wanted(rows, sum(file.rows for file in files), random_state)
    names = listed_names(columns, "columns", "take_rows") or tuple(column_names(first_with_rows(files)))
    parts = cut(files, part_rows)
    needed = [part for part in parts if len(places_in(wanted, part))]
    frame = as_frame(read_rows(executor_for(client, n_jobs), needed or parts[:1], names, wanted))
    return frame.set_index(wanted)


def _wanted(rows: int | ArrayLike, n_rows: int, random_state: int) -> IntArray:
    """Numbers of rows, ascending."""
    if isinstance(rows, bool | Integral):
        n_wanted = min(check_integer(rows, "rows", "take_rows", minimum=1), n_rows)
        return np.sort(np.random.default_rng(random_state).choice(n_rows, n_wanted, replace=False))
    given = np.asarray(rows)
    if given.size and (given.ndim != 1 or given.dtype.kind not in "iu"):
        raise InvalidInputError(
            f"The 'rows' parameter of take_rows must be a number of rows, or a list of whole numbers of rows. "
            f"Got an array of {given.dtype} of shape {given.shape}.\n"
            "Hint: np.flatnonzero(mask) gives the numbers of the rows of a mask."
        )
    wanted = np.unique(given).astype(np.int64)
    if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < n_rows:
        raise InvalidInputError(f"There are {n_rows} rows. Got the numbers {wanted[0]} to {wanted[-1]}.")
    return wanted
