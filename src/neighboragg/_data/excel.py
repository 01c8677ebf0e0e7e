"""Excel workbooks: the first sheet, with its header in the first row."""

import io
import warnings
import zipfile
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._data.source import Table, label_texts, position_of, replaced_values, unique_names
from neighboragg.exceptions import InvalidInputError

# Parts of a workbook that would be lost, as openpyxl does not read them.
UNREAD_PARTS = ("xl/charts/", "xl/media/", "xl/drawings/", "xl/pivotTables/", "xl/activeX/")


class ExcelTable(Table):
    """The first sheet of a workbook."""

    suffixes = (".xlsx", ".xlsm")

    def __init__(self, path: Path, label: str | None, sep: str | None, encoding: str | None) -> None:
        self.name, self.label, self.notes = str(path), label, []
        self._path = path
        book = self._open(values=True)
        sheet = book.worksheets[0]
        if len(book.worksheets) > 1:
            self.notes.append(f"Read the sheet {sheet.title!r}, the first of {len(book.worksheets)}.")
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        filled = [i for i, row in enumerate(rows) if any(value is not None for value in row)]
        if not filled:
            raise InvalidInputError(f"The first sheet of {path} is empty.")
        self._numbers = filled[1:]
        if not self._numbers:
            raise InvalidInputError(f"{path} has a header and no rows.")
        self._header = ["" if value is None else str(value) for value in rows[filled[0]]]
        self._place = None if label is None else position_of(label, self._header, self.name)
        self._rows = [rows[i] for i in self._numbers]
        self._values = [None if self._place is None else row[self._place] for row in self._rows]
        self.labels = label_texts(self._values, self.name, label)

    @cached_property
    def frame(self) -> Any:
        """The columns beside the label."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        frame = pandas.DataFrame(self._rows, columns=unique_names(self._header)).infer_objects()
        return frame if self._place is None else frame.drop(columns=frame.columns[self._place])

    def place_of(self, row: int) -> str:
        """The row of the sheet, counted from 1."""
        return f"row {self._numbers[row] + 1} of the sheet"

    def cells_of(self, row: int) -> list[tuple[str, Any]]:
        """The values of the cells."""
        return list(zip(self._header, self._rows[row], strict=False))

    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """The workbook with new labels in some rows and without some others."""
        with zipfile.ZipFile(self._path) as parts:
            lost = [part for part in parts.namelist() if part.startswith(UNREAD_PARTS)]
        if lost:
            raise InvalidInputError(
                f"{self.name} holds charts, pictures or the like ({lost[0]}), which would be lost.\n"
                "Hint: save the sheet as CSV, and audit and correct that."
            )
        book = self._open(values=False)
        sheet = book.worksheets[0]
        formulas = any(cell.data_type == "f" for other in book.worksheets for row in other for cell in row)
        if dropped and formulas:
            raise InvalidInputError(
                f"{self.name} has formulas, which would point to other cells once rows are dropped.\n"
                "Hint: save the sheet as CSV, and audit and correct that."
            )
        if self._place is not None:
            for row, value in replaced_values(self._values, self.labels, texts, self.name).items():
                sheet.cell(self._numbers[row] + 1, self._place + 1).value = value
        for row in sorted(dropped, reverse=True):
            sheet.delete_rows(self._numbers[row] + 1)
        sink = io.BytesIO()
        book.save(sink)
        return sink.getvalue()

    def _open(self, *, values: bool) -> Any:
        openpyxl = import_extra("openpyxl", extra="excel", purpose="Reading and writing Excel files")
        try:
            with warnings.catch_warnings():
                # What openpyxl warns about is that it drops something.
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
