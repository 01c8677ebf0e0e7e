"""From an Arrow table to what a model takes, and to it in portions of one size."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._row_selection import take_rows
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = [
    "as_array",
    "as_frame",
    "as_rows",
    "check_kept",
    "choose_columns",
    "in_portions",
    "listed_names",
    "plain_columns",
]

PURPOSE = "Reading Parquet files"
# More rows than any matrix library computes at once.
PADDING = 64


def as_frame(table: Any) -> Any:
    """A data frame; coded texts as texts, as the codes of one part are not those of another."""
    import_extra("pandas", extra="dask", purpose=PURPOSE)
    return plain_columns(table).to_pandas()


def as_array(table: Any) -> Any:
    """Numbers side by side; a column of vectors gives as many as these are long."""
    frame = as_frame(table)
    parts = []
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype == object:
            try:
                values = np.array([np.asarray(value, dtype=np.float64) for value in values])
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"Column {name!r} holds something else than numbers, or vectors of one length: {error}.\n"
                    "Hint: name the columns of numbers with columns=[…] (--columns)."
                ) from error
        parts.append(values.reshape(len(frame), -1))
    return np.hstack(parts)


def as_rows(table: Any) -> Any:
    """A data frame, or numbers side by side where a column holds vectors."""
    types = import_extra("pyarrow", extra="dask", purpose=PURPOSE).types
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    has_vectors = any(is_kind(field.type) for field in table.schema for is_kind in lists)
    return as_array(table) if has_vectors else as_frame(table)


def plain_columns(table: Any) -> Any:
    """The table with coded columns decoded."""
    types = import_extra("pyarrow", extra="dask", purpose=PURPOSE).types
    for i, field in enumerate(table.schema):
        if types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def in_portions(ask: Callable[[Any], Any], rows: Any, n: int, size: int) -> Iterator[tuple[Any, int]]:
    """Answers for portions of exactly `size` rows and some more, filled up with rows of their own.

    Sums inside a matrix product, and so the last bits of what a classifier says, can depend on the number of rows that
    are asked for together, and the last rows of a product, which are too few for a tile of it, are added up in another
    order. With that number fixed, none of the rows among the last ones, and all in one memory order, a row is answered
    with the same bits in whatever part it is.

    Parameters
    ----------
    ask : callable
        Takes rows, and gives an answer for each.
    rows : array or data frame
    n : int
        Number of rows.
    size : int

    Yields
    ------
    answer : object
        For `size` rows and :data:`PADDING` more.
    n_real : int
        How many of them, from the first, count.
    """
    for start in range(0, n, size):
        n_real = min(size, n - start)
        yield ask(_laid_out(take_rows(rows, start + np.arange(size + PADDING) % n_real))), n_real


def _laid_out(rows: Any) -> Any:
    """The same rows in a memory order that does not depend on what they were taken from; of a single row it does."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows)
    return type(rows)({name: rows[name].array for name in rows.columns}, index=rows.index)


def choose_columns(model: Any, names: Sequence[str], where: str, keep: Sequence[str]) -> list[str]:
    """Columns that a model is asked with, where the user names none."""
    inner = getattr(model, "model", model)
    fitted = getattr(inner, "feature_names_in_", None)
    if fitted is not None:
        return [str(name) for name in fitted]
    columns = [name for name in names if name not in keep]
    wanted = getattr(inner, "n_features_in_", None)
    if wanted is not None and len(columns) not in (1, wanted):
        raise InvalidInputError(
            f"The model takes {wanted} numbers for a row, and {where} has {len(columns)} columns beside those kept.\n"
            "Hint: name the columns of numbers, or the column of vectors, with columns=[…] (--columns)."
        )
    return columns


def listed_names(given: Iterable[str] | None, name: str, owner: str) -> tuple[str, ...]:
    """Columns that a parameter lists, each once; none for None."""
    if isinstance(given, str):
        raise InvalidParameterError(
            f"The {name!r} parameter of {owner} must be a list of names of columns. Got the text {given!r} instead.\n"
            f"Hint: a list of one is [{given!r}]."
        )
    return tuple(dict.fromkeys(map(str, () if given is None else given)))


def check_kept(keep: Sequence[str], results: Collection[str]) -> None:
    """Raise if a column to keep has the name of a result."""
    if clash := [name for name in keep if name in results]:
        raise InvalidInputError(
            f"The column {clash[0]!r} cannot be kept, as results have that name.\nHint: rename it in the input."
        )
