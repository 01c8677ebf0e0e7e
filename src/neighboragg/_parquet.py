"""Parquet files, opened so that little of them is in memory at a time."""

from typing import Any

from neighboragg._optional import import_extra
from neighboragg.exceptions import InvalidInputError

__all__ = ["open_parquet"]

# Of a column while it is read: without it whole columns of a row group would be in memory.
BUFFER_NBYTES = 2**20


def open_parquet(path: str, filesystem: Any, purpose: str, *, called: str | None = None) -> Any:
    """Open a file, which must be complete; `called` is its name in messages, if another."""
    arrow = import_extra("pyarrow", extra="dask", purpose=purpose)
    parquet = import_extra("pyarrow.parquet", extra="dask", purpose=purpose)
    name = called or path
    try:
        return parquet.ParquetFile(
            path,
            filesystem=filesystem,
            buffer_size=BUFFER_NBYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    except FileNotFoundError as error:
        raise InvalidInputError(f"There is no file {name}.") from error
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidInputError(
            f"{name} is not a complete Parquet file: {reason}\nHint: wait until it is written, or write it again."
        ) from error
