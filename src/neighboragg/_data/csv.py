"""Delimited text: where each record begins and ends, its cells, and edits of single cells."""

import csv
import gzip
import io
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, IntArray
from neighboragg._data.source import HeldSource, blank_to_empty, position_of
from neighboragg._data.text import is_compressed, read_text
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_CHARACTERS, SAMPLE_RECORDS = 200_000, 200
QUOTE = '"'


class CsvSource(HeldSource):
    """Comma-separated values, or with another delimiter; compressed by gzip or not."""

    suffixes = (".csv", ".tsv", ".txt")

    def __init__(self, path: Path, sep: str | None = None, encoding: str | None = None) -> None:
        self.name, self.notes = str(path), []
        self._compressed = is_compressed(path)
        self._source = read_text(path, encoding)
        if not self._source.text.strip():
            raise InvalidInputError(f"{path} is empty.")
        self.sep = sniff_delimiter(self._source.text) if sep is None else check_delimiter(sep)
        self._map()

    def __len__(self) -> int:
        return len(self._starts)

    @cached_property
    def frame(self) -> Any:
        """All columns as read by pandas."""
        names = [str(j) for j in range(len(self.header) + self._trailing)]
        frame = self._read(names)
        if len(frame) != len(self):
            raise InvalidInputError(
                f"{self.name} has {len(self):,} records, but pandas reads {len(frame):,}.\n"
                "Hint: look for stray quotation marks, and remove lines that are not records."
            )
        frame = frame.drop(columns=names[len(self.header) :])
        if doubtful := [name for name in frame.columns if _may_be_thousands(frame[name])]:
            texts = self._read(names, usecols=doubtful, dtype=str)
            is_named = self.written.get("decimal") == "," or self.written.get("thousands") == "."
            for name in doubtful:
                if _is_in_doubt(texts[name], is_named=is_named):
                    frame[name] = texts[name]
        frame.columns = self.columns
        return frame

    def _read(self, names: list[str], **options: Any) -> Any:
        """The records as pandas reads them."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        return pandas.read_csv(
            io.StringIO(self._source.text[self._header_end :], newline=""),
            sep=self.sep,
            header=None,
            names=names,
            index_col=False,
            low_memory=False,
            encoding_errors="strict",
            **options,
        )

    def values(self, column: str) -> Sequence[str]:
        """The cells of a column as text, because pandas would read the label 01 as a number."""
        place = position_of(column, self.header, self.name)
        with _any_field_size():
            records = csv.reader(_Lines(self._source.text[self._header_end :]), delimiter=self.sep)
            return [record[place] for record in records if not _is_blank(record)]

    def texts(self, column: str) -> Array:
        """Every cell of a column as it is written; empty if it is blank."""
        return blank_to_empty(self.values(column))

    def place_of(self, row: int) -> str:
        """The line of the file on which a row begins, counted from 1."""
        return f"line {self._lines[row]}"

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The texts of the cells."""
        return [
            [(name, value) for name, (_, _, value) in zip(self.header, self._spans(int(row)), strict=False)]
            for row in rows
        ]

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """The file with new labels in some rows and without some others; every other byte is the same."""
        place, values = position_of(column, self.header, self.name), self.values(column)
        gone = {int(row) for row in dropped}
        edits = [(int(self._starts[row]), int(self._ends[row]), "") for row in gone]
        for row, text in texts.items():
            if row not in gone:
                left, right, value = self._spans(row)[place]
                if value != values[row]:  # two readers of one record disagree
                    raise InvalidInputError(
                        f"The label in {self.place_of(row)} of {self.name} cannot be located."
                    )
                start, end = int(self._starts[row]) + left, int(self._starts[row]) + right
                old = self._source.text[start:end]
                edits.append((start, end, self._quoted(text, always=old.startswith(QUOTE))))
        contents = self._source.edited(sorted(edits))
        yield "", gzip.compress(contents, mtime=0) if self._compressed else contents

    def _map(self) -> None:
        """Note where every record begins and ends."""
        lines = _Lines(self._source.text)
        reader = csv.reader(lines, delimiter=self.sep)
        starts, ends = [], []
        self._lines: list[int] = []
        width: int | None = None
        with _any_field_size():
            self.header = next((record for record in reader if not _is_blank(record)), [])
            self._header_end = lines.position
            begin, line = lines.position, reader.line_num + 1
            for record in reader:
                if not _is_blank(record):
                    width = self._check_width(record, width, line)
                    starts.append(begin)
                    ends.append(lines.position)
                    self._lines.append(line)
                begin, line = lines.position, reader.line_num + 1
        if width is None:
            raise InvalidInputError(f"{self.name} contains only a header.")
        self._starts, self._ends = np.array(starts), np.array(ends)
        self._check_closed()
        self._trailing = width - len(self.header)

    def _check_width(self, record: list[str], width: int | None, line: int) -> int:
        """Raise unless the record has one field per column; an extra empty field at the end is allowed."""
        n = len(self.header)
        spare = len(record) == n + 1 and not record[-1]
        if len(record) in (n, width) and (len(record) == n or spare):
            return len(record)
        if width is None and spare:
            return len(record)
        if width == n + 1 or (width is None and len(record) == n + 1):
            hint = (
                "name every column in the header; if the first field of each line is a row name, as in files "
                "from R, the header lacks a name for it (write.table with col.names=NA)."
            )
        else:
            hint = "quote fields that contain the delimiter and fill up short lines, or name the delimiter (--sep)."
        raise InvalidInputError(
            f"Line {line} of {self.name} has {len(record)} fields, but the header has {n} (delimiter {self.sep!r})."
            f"\nHint: {hint}"
        )

    def _check_closed(self) -> None:
        """Raise if a quotation mark is never closed; the rest of the file would become one cell."""
        start, end = int(self._starts[-1]), int(self._ends[-1])
        if not field_spans(self._source.text[start:end], self.sep)[1]:
            raise InvalidInputError(
                f"A quotation mark in the record that begins in {self.place_of(-1)} of {self.name} is not closed."
                '\nHint: write a quotation mark inside a field twice ("").'
            )

    def _spans(self, row: int) -> list[tuple[int, int, str]]:
        """Start, end and value of each cell of a row, counted from its beginning."""
        return field_spans(self._source.text[int(self._starts[row]) : int(self._ends[row])], self.sep)[0]

    def _quoted(self, text: str, *, always: bool) -> str:
        if always or any(mark in text for mark in (self.sep, QUOTE, "\r", "\n")):
            return QUOTE + text.replace(QUOTE, 2 * QUOTE) + QUOTE
        return text


class _Lines:
    """Lines of a text with their ends, and the reading position."""

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="")
        self.position = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.position += len(line)
        return line


def field_spans(record: str, sep: str) -> tuple[list[tuple[int, int, str]], bool]:
    """Start, end and value of each field of one record, and whether all quotation marks are closed."""
    spans: list[tuple[int, int, str]] = []
    value: list[str] = []
    start, quoted, i = 0, False, 0
    while i < len(record):
        char = record[i]
        if quoted:
            if char != QUOTE:
                value.append(char)
            elif record[i + 1 : i + 2] == QUOTE:
                value.append(QUOTE)
                i += 1
            else:
                quoted = False
        elif char == QUOTE and i == start:
            quoted = True
        elif char == sep:
            spans.append((start, i, "".join(value)))
            start, value = i + 1, []
        elif char in "\r\n":
            break
        else:
            value.append(char)
        i += 1
    spans.append((start, i, "".join(value)))
    return spans, not quoted


def sniff_delimiter(text: str) -> str:
    """The delimiter that splits the first records into the same number of fields, and into the most."""
    sample = text[:SAMPLE_CHARACTERS]
    found = {sep: _regularity(sample, sep, cut=len(text) > len(sample)) for sep in DELIMITERS}
    # A space counts as a delimiter only if it splits every line into the same number of fields.
    regular, _ = _regularity(sample, " ", cut=len(text) > len(sample))
    best = max(DELIMITERS, key=lambda sep: found[sep])
    if found[best] == (0.0, 1) and regular == 1.0:
        return " "
    return best


def _regularity(sample: str, sep: str, *, cut: bool) -> tuple[float, int]:
    """Share of the records with as many fields as the header, or one more, and the number of those fields."""
    widths = []
    with _any_field_size():
        for record in csv.reader(io.StringIO(sample, newline=""), delimiter=sep):
            if not _is_blank(record):
                widths.append(len(record))
            if len(widths) == SAMPLE_RECORDS:
                break
        else:
            if cut and len(widths) > 2:
                del widths[-1]
    n = widths[0] if widths else 1
    if n < 2:
        return 0.0, 1
    alike = [width in (n, n + 1) for width in widths]
    return sum(alike) / len(alike), n


def check_delimiter(sep: str) -> str:
    """Return a delimiter of one character; "tab" and a literal backslash-t stand for a tab."""
    sep = {"tab": "\t", "\\t": "\t", "space": " "}.get(sep, sep)
    if len(sep) != 1 or sep in '"\r\n':
        raise InvalidParameterError(
            f"The delimiter must be one character other than a quotation mark or line end. Got {sep!r} instead.\n"
            "Hint: for example ',', ';', '|' or 'tab'."
        )
    return sep


def _is_blank(record: list[str]) -> bool:
    """Whether a line is empty or contains only spaces."""
    return not record or (len(record) == 1 and record[0].isspace())


@contextmanager
def _any_field_size() -> Iterator[None]:
    """Allow longer fields than the csv module does by default."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _may_be_thousands(column: Any) -> bool:
    """Whether the fractions that pandas read could have been thousands: 1.562 and 13.456, but not 0.5 or 1.5625."""
    if column.dtype.kind != "f":
        return False
    values = column.to_numpy()[column.notna().to_numpy()]
    parts = np.abs(values[values != np.floor(values)])
    return bool(
        np.isclose(1000 * parts, np.rint(1000 * parts)).all() and ((parts > 1) & (parts < 1000)).all()
    )


def _is_in_doubt(texts: Any, *, is_named: bool) -> bool:
    """Whether every point comes before three digits, and numbers below 1,000 have none or the point is named a mark."""
    known = texts.dropna().str.strip()
    marked = known.str.contains(".", regex=False)
    return bool(
        marked.any()
        and known[marked].str.fullmatch(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}").all()
        and (is_named or (not marked.all() and known[~marked].str.fullmatch("[+-]?[0-9]{1,3}").all()))
    )
