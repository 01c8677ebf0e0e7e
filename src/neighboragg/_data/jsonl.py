"""JSON lines: one object a line, edited in place."""

import gzip
import json
from collections.abc import Collection, Mapping
from functools import cached_property
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from neighboragg._core.packages import import_extra
from neighboragg._data.source import Table, label_texts, position_of, replaced_values, unique_names
from neighboragg._data.text import is_compressed, read_text
from neighboragg.exceptions import InvalidInputError

_DECODER = json.JSONDecoder()
_SPACES = " \t\r\n"


class JsonLinesTable(Table):
    """One JSON object a line; compressed by gzip or not."""

    suffixes = (".jsonl", ".ndjson")

    def __init__(self, path: Path, label: str | None, sep: str | None, encoding: str | None) -> None:
        self.name, self.label, self.notes = str(path), label, []
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
        names = list(dict.fromkeys(name for record in self._records for name in record))
        self._values: list[Any] = [None] * len(self._records)
        if label is not None:
            position_of(label, names, self.name)
            self._values = [record.get(label) for record in self._records]
        self.labels = label_texts(self._values, self.name, label)

    @cached_property
    def frame(self) -> Any:
        """The keys beside the label as columns."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        frame = pandas.DataFrame(self._records).drop(columns=[] if self.label is None else self.label)
        return frame.set_axis(unique_names(frame.columns), axis=1)

    def place_of(self, row: int) -> str:
        """The line of the file, counted from 1."""
        return f"line {self._lines[row]}"

    def cells_of(self, row: int) -> list[tuple[str, Any]]:
        """The values of the keys."""
        return list(self._records[row].items())

    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """The file with new labels in some lines and without some others; every other byte is the same."""
        gone = {int(row) for row in dropped}
        edits = [(*self._spans[row], "") for row in gone]
        for row, value in replaced_values(self._values, self.labels, texts, self.name).items():
            if row not in gone:
                start, end = self._spans[row]
                left, right = value_span(self._source.text[start:end], str(self.label))
                edits.append((start + left, start + right, json.dumps(value, ensure_ascii=False)))
        contents = self._source.edited(sorted(edits))
        return gzip.compress(contents, mtime=0) if self._compressed else contents

    def _parsed(self, line: str, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line)
        except JSONDecodeError as error:
            raise InvalidInputError(
                f"Line {number} of {self.name} is not JSON: {error.msg} at character {error.pos + 1}."
            ) from error
        if not isinstance(record, dict):
            raise InvalidInputError(
                f"Line {number} of {self.name} holds no object.\nHint: write one object a line: "
                '{"text": "…", "label": "…"}'
            )
        return record


def value_span(line: str, key: str) -> tuple[int, int]:
    """Where the value of a key of the object on a line begins and ends; the last one counts, as in json."""
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
