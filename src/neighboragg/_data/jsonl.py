"""JSON lines: one object per line, edited in place."""

import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._core.types import IntArray
from neighboragg._data.source import HeldSource
from neighboragg._data.text import is_compressed, read_text
from neighboragg.exceptions import InvalidInputError

_DECODER = json.JSONDecoder()
_SPACES = " \t\r\n"


class JsonLinesSource(HeldSource):
    """One JSON object per line, optionally compressed by gzip."""

    suffixes = (".jsonl", ".ndjson")

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.name, self.notes = str(path), []
        self._compressed = is_compressed(path)
        self._source = read_text(path, encoding)
        self._spans: list[tuple[int, int]] = []
        self._lines: list[int] = []
        self._records: list[dict[str, Any]] = []
        begin = 0
        for number, line in enumerate(self._source.text.split("\n"), start=1):
            end = min(begin + len(line) + 1, len(self._source.text))
            if line.strip():
                self._records.append(self._parsed(line, number))
                self._spans.append((begin, end))
                self._lines.append(number)
            begin = end
        if not self._records:
            raise InvalidInputError(f"{path} is empty.")
        self.header = list(dict.fromkeys(name for record in self._records for name in record))

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def frame(self) -> Any:
        """The keys as columns."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        return pandas.DataFrame(self._records, columns=self.header).set_axis(self.columns, axis=1)

    def values(self, column: str) -> list[Any]:
        """The values of a key; None where it is missing."""
        key = self.header[self.columns.index(self.named(column))]
        return [record.get(key) for record in self._records]

    def place_of(self, row: int) -> str:
        """The line of the file, counted from 1."""
        return f"line {self._lines[row]}"

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The values of the keys."""
        return [list(self._records[row].items()) for row in rows]

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """The file with new labels in some lines and without some others; every other byte is the same."""
        gone = {int(row) for row in dropped}
        edits = [(*self._spans[row], "") for row in gone]
        for row, value in self.new_values(column, texts).items():
            if row not in gone:
                start, end = self._spans[row]
                left, right = value_span(self._source.text[start:end], column)
                edits.append((start + left, start + right, json.dumps(value, ensure_ascii=False)))
        contents = self._source.edited(sorted(edits))
        yield "", gzip.compress(contents, mtime=0) if self._compressed else contents

    def _parsed(self, line: str, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except JSONDecodeError as error:
            raise InvalidInputError(
                f"Line {number} of {self.name} is not JSON: {error.msg} at character {error.pos + 1}."
            ) from error
        if not isinstance(record, dict):
            raise InvalidInputError(
                f"Line {number} of {self.name} is not a JSON object.\nHint: write one object per line: "
                '{"text": "…", "label": "…"}'
            )
        return record


def value_span(line: str, key: str) -> tuple[int, int]:
    """Start and end of the value of a key in the object on a line; the last duplicate counts, as in json."""
    span = None
    i = _skip(line, line.index("{") + 1)
    while line[i] != "}":
        name, i = _DECODER.raw_decode(line, i)
        start = _skip(line, _skip(line, i) + 1)
        _, i = _DECODER.raw_decode(line, start)
        if name == key:
            span = start, i
        i = _skip(line, i)
        if line[i] == ",":
            i = _skip(line, i + 1)
    if span is None:
        raise InvalidInputError(f"A line without {key!r} cannot get a new label: {line.strip()[:80]}")
    return span


def _skip(line: str, i: int) -> int:
    while line[i] in _SPACES:
        i += 1
    return i
