"""Excel workbooks: one sheet, with its header in the first row that is not empty."""

import io
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._core.types import IntArray
from neighboragg._data.source import HeldSource, position_of
from neighboragg.exceptions import InvalidInputError

# Parts of a workbook that would be lost, as openpyxl does not read them.
UNREAD_PARTS = ("xl/charts/", "xl/media/", "xl/drawings/", "xl/pivotTables/", "xl/activeX/")


class ExcelSource(HeldSource):
    """A sheet of a workbook; the first if none is named."""

    suffixes = (".xlsx", ".xlsm")

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        self.name, self.notes = str(path), []
        self._path = path
        book = self._open(values=True)
        titles = [one.title for one in book.worksheets]
        if sheet is not None and sheet not in titles:
            raise InvalidInputError(
                f"There is no sheet {sheet!r} in {path}.\nHint: the sheets are {', '.join(map(repr, titles))}."
            )
        self._sheet = titles[0] if sheet is None else sheet
        if sheet is None and len(titles) > 1:
            self.notes.append(
                f"Read the sheet {self._sheet!r}, the first of {len(titles)}; choose another with --sheet."
            )
        rows = [list(row) for row in book[self._sheet].iter_rows(values_only=True)]
        filled = [i for i, row in enumerate(rows) if any(value is not None for value in row)]
        if not filled:
            raise InvalidInputError(f"The sheet {self._sheet!r} of {path} is empty.")
        self._numbers = filled[1:]
        if not self._numbers:
            raise InvalidInputError(f"{path} contains only a header.")
        self.header = ["" if value is None else str(value) for value in rows[filled[0]]]
        self._rows = [rows[i] for i in self._numbers]

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def frame(self) -> Any:
        """All columns."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        return pandas.DataFrame(self._rows, columns=self.columns).infer_objects()

    def values(self, column: str) -> list[Any]:
        """The values of the cells of a column."""
        place = position_of(column, self.header, self.name)
        return [row[place] for row in self._rows]

    def place_of(self, row: int) -> str:
        """The row of the sheet, counted from 1."""
        return f"row {self._numbers[row] + 1} of the sheet"

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The values of the cells."""
        return [list(zip(self.header, self._rows[row], strict=False)) for row in rows]

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """The workbook with new labels in some rows and without some others."""
        with zipfile.ZipFile(self._path) as parts:
            lost = [part for part in parts.namelist() if part.startswith(UNREAD_PARTS)]
        if lost:
            raise InvalidInputError(
                f"{self.name} contains charts, images or similar parts ({lost[0]}) that would be lost.\n"
                "Hint: save the sheet as CSV, and audit and correct that."
            )
        book = self._open(values=False)
        sheet = book[self._sheet]
        formulas = any(cell.data_type == "f" for other in book.worksheets for row in other for cell in row)
        if dropped and formulas:
            raise InvalidInputError(
                f"{self.name} has formulas, which would refer to other cells once rows are dropped.\n"
                "Hint: save the sheet as CSV, and audit and correct that."
            )
        place = position_of(column, self.header, self.name)
        for row, value in self.new_values(column, texts).items():
            sheet.cell(self._numbers[row] + 1, place + 1).value = value
        for row in sorted(dropped, reverse=True):
            sheet.delete_rows(self._numbers[row] + 1)
        sink = io.BytesIO()
        book.save(sink)
        yield "", sink.getvalue()

    def _open(self, *, values: bool) -> Any:
        openpyxl = import_extra("openpyxl", extra="excel", purpose="Reading and writing Excel files")
        try:
            with warnings.catch_warnings():
                # openpyxl warns when it drops parts of the file.
                warnings.simplefilter("ignore" if values else "error")
                return openpyxl.load_workbook(
                    self._path, data_only=values, keep_vba=self._path.suffix == ".xlsm"
                )
        except (
            zipfile.BadZipFile,
            KeyError,
            ValueError,
            EOFError,
            openpyxl.utils.exceptions.InvalidFileException,
        ) as error:
            raise InvalidInputError(
                f"{self.name} is not a complete Excel workbook: {error}\nHint: save it again as .xlsx."
            ) from error
        except UserWarning as warning:
            raise InvalidInputError(
                f"{self.name} cannot be written back unchanged: {warning}\n"
                "Hint: save the sheet as CSV, and audit and correct that."
            ) from warning
