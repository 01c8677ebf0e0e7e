"""Any file as a table, by its name."""

import os
from pathlib import Path
from typing import Any

from neighboragg._data.arrow import FeatherTable, ParquetTable
from neighboragg._data.csv import CsvTable
from neighboragg._data.excel import ExcelTable
from neighboragg._data.folder import FolderTable
from neighboragg._data.jsonl import JsonLinesTable
from neighboragg._data.source import FrameTable, Table
from neighboragg.exceptions import InvalidInputError

# A further format is one class, and its name here.
FORMATS: tuple[type[Any], ...] = (CsvTable, JsonLinesTable, ParquetTable, FeatherTable, ExcelTable)
COMPRESSIBLE = (CsvTable, JsonLinesTable)


def read_table(
    source: Any,
    label: str | None = None,
    *,
    sep: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table with the text of its labels."""
    if hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "to_pandas")):
        return FrameTable(source, label)
    if not isinstance(source, str | os.PathLike):
        raise InvalidInputError(
            f"A table is the path of a file or a data frame. Got {type(source).__name__} instead."
        )
    path = Path(source)
    if path.is_dir():
        _refuse_column(label, path)
        return FolderTable(path)
    if not path.suffix and not path.exists():
        raise InvalidInputError(f"There is no file or folder {path}.")
    kind = format_of(path)
    try:
        path.open("rb").close()
        return kind(path, label, sep, encoding)
    except FileNotFoundError as error:
        raise InvalidInputError(f"There is no file {path}.") from error
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from error


def _refuse_column(label: str | None, folder: Path) -> None:
    if label is not None:
        raise InvalidInputError(
            f"{folder} is a folder: of pictures, labeled by the folders in it. It has no column {label!r}.\n"
            "Hint: leave out the label column, or name a file."
        )


def format_of(path: Path) -> type[Any]:
    """The class that reads files of that name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if compressed else suffixes)[-1:] or [""]
    for kind in COMPRESSIBLE if compressed else FORMATS:
        if suffix[0] in kind.suffixes:
            return kind
    raise InvalidInputError(
        f"Cannot tell the format of {path}.\n"
        "Hint: use .csv, .tsv or .jsonl (each also with .gz), .parquet, .feather or .xlsx."
    )
