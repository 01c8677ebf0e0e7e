"""Open a path, several files, a folder, a data frame or a data set as a source of rows."""

import glob
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from neighboragg._core.packages import publish
from neighboragg._data.arrow import FeatherSource
from neighboragg._data.csv import CsvSource
from neighboragg._data.excel import ExcelSource
from neighboragg._data.folder import FolderSource
from neighboragg._data.jsonl import JsonLinesSource
from neighboragg._data.parquet import ParquetSource, holds_parquet
from neighboragg._data.source import FrameSource, Source
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

# To add a format, write a class and list it here with its reading options.
FORMATS: dict[type[Source], tuple[str, ...]] = {
    CsvSource: ("sep", "encoding"),
    JsonLinesSource: ("encoding",),
    ParquetSource: (),
    FeatherSource: (),
    ExcelSource: ("sheet",),
}
COMPRESSIBLE = (CsvSource, JsonLinesSource)


# How texts in any of them are read as numbers and dates.
WRITTEN = ("dayfirst", "decimal", "thousands")


@dataclass(frozen=True, init=False)
class Table:
    """A table in a file, with options of how to read it.

    Parameters
    ----------
    path : path-like, str or list of these
        CSV, JSON lines (each also compressed by gzip), Excel, Feather or Parquet file; several Parquet files as
        a folder, a pattern or a list.
    sep : str, default=None
        Delimiter of a CSV file. None detects it.
    encoding : str, default=None
        Encoding of a CSV or JSON lines file. None means UTF-8, or the encoding of a byte order mark.
    sheet : str, default=None
        Sheet of an Excel workbook. None reads the first.
    dayfirst : bool, default=None
        Whether 03.04.2024 and 03/04/2024 are the third of April. None finds out from all values of a column, or if they
        do not show it, takes the day first between points, and the month first otherwise.
    decimal : str, default=None
        Decimal mark, ``"."`` or ``","``, of numbers that are written as text. None detects it from all values.
    thousands : str, default=None
        Mark between thousands: ``","``, ``"."``, ``"'"`` or a space. None detects it from all values.

    Notes
    -----
    The file is not opened until its rows are needed. A column whose values do not fit `dayfirst`, `decimal` and
    `thousands` is read in another way if one fits.

    Examples
    --------
    >>> from neighboragg import Table
    >>> Table("wines.csv", sep=";")
    Table(path='wines.csv', sep=';', encoding=None, sheet=None, dayfirst=None, decimal=None, thousands=None)
    """

    path: Any
    sep: str | None
    encoding: str | None
    sheet: str | None
    dayfirst: bool | None
    decimal: str | None
    thousands: str | None

    def __init__(
        self,
        path: Any,
        *,
        sep: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        dayfirst: bool | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
    ) -> None:
        given = {"path": path, "sep": sep, "encoding": encoding, "sheet": sheet}
        for name, value in {
            **given,
            "dayfirst": dayfirst,
            "decimal": decimal,
            "thousands": thousands,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        """The options that are set."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "path"}
        return {name: value for name, value in values.items() if value is not None}


def open_source(given: Any) -> Source:
    """Open a source of rows."""
    table = given if isinstance(given, Table) else Table(given)
    given, options = table.path, table.options
    written = {name: options.pop(name) for name in WRITTEN if name in options}
    _check_written(**written)
    if isinstance(given, str | os.PathLike):
        kind, path = _kind_of(given)
    elif isinstance(given, list | tuple) and all(isinstance(one, str | os.PathLike) for one in given):
        kind, path = ParquetSource, given
    elif hasattr(given, "to_pandas") or hasattr(given, "iloc"):
        kind, path = FrameSource, given
    elif hasattr(given, "column_names"):
        raise InvalidInputError(
            f"The rows of a {type(given).__name__} cannot be read more than once.\n"
            "Hint: load the data set without streaming."
        )
    else:
        raise InvalidInputError(
            "A source of rows is a path, a pattern, a list of Parquet files, a data frame or a data set. "
            f"Got {type(given).__name__} instead."
        )
    if unused := [name for name in options if name not in FORMATS.get(kind, ())]:
        takers = ", ".join(
            one.__name__.removesuffix("Source") for one, taken in FORMATS.items() if unused[0] in taken
        )
        raise InvalidParameterError(
            f"The option {unused[0]!r} does not apply to {given}.\nHint: leave it out; it is for {takers} files."
        )
    if written and kind is FolderSource:
        raise InvalidParameterError(
            f"The option {next(iter(written))!r} does not apply to {given}.\nHint: leave it out; it is for tables."
        )
    try:
        source = kind(path, **options)
    except FileNotFoundError as error:
        raise InvalidInputError(f"There is no file {path}.") from error
    except OSError as error:
        raise InvalidInputError(f"Cannot read {path}: {error.strerror or error}.") from error
    source.written = written
    return source


def _check_written(
    dayfirst: bool | None = None, decimal: str | None = None, thousands: str | None = None
) -> None:
    """Raise unless numbers and dates can be written so."""
    for name, value, choices in (
        ("dayfirst", dayfirst, (True, False)),
        ("decimal", decimal, (".", ",")),
        ("thousands", thousands, (",", ".", " ", "'")),
    ):
        if value is not None and (value not in choices or isinstance(value, int) != (name == "dayfirst")):
            raise InvalidParameterError(
                f"{name} must be {' or '.join(map(repr, choices))}. Got {value!r} instead."
            )
    if decimal is not None and decimal == thousands:
        raise InvalidParameterError(f"decimal and thousands cannot both be {decimal!r}.")


def _kind_of(given: str | os.PathLike[str]) -> tuple[type[Any], Any]:
    """The class that reads a path, and its arguments."""
    path = Path(given)
    if path.is_dir():
        return (ParquetSource, given) if holds_parquet(path) else (FolderSource, path)
    if path.exists():
        return format_of(path), path
    if "://" in str(given) or glob.has_magic(str(given)):
        return ParquetSource, given
    if not path.suffix:
        raise InvalidInputError(f"There is no file or folder {path}.")
    return format_of(path), path


def format_of(path: Path) -> type[Source]:
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


publish(globals())
