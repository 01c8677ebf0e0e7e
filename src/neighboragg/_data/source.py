"""What every format shares: features, the text of labels, and a copy of the file with other labels."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array
from neighboragg.exceptions import InvalidInputError


class Table(ABC):
    """A table with a label column."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    name: str
    label: str | None
    labels: Array
    notes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    @abstractmethod
    def frame(self) -> Any:
        """The columns beside the label, each of the type its values have."""

    @abstractmethod
    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """The file with new labels in some rows and without some others; nothing else changes."""

    @abstractmethod
    def cells_of(self, row: int) -> Sequence[tuple[str, Any]]:
        """Name and value of every cell of a row, the label included; none if no file holds the row."""

    def digest_of(self, row: int) -> str:
        """Digest of all cells of a row, by which it is known again wherever it stands; empty without a file."""
        cells = sorted((name, repr(value)) for name, value in self.cells_of(row))
        return hashlib.sha256(repr(cells).encode()).hexdigest() if cells else ""

    @cached_property
    def digest(self) -> str:
        """Digest of the whole file; empty if there is none."""
        with Path(self.name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def place_of(self, row: int) -> str:
        """Where a person finds a row, e.g. "line 17"."""
        return f"row {row}"


class FrameTable(Table):
    """A data frame that came from no file."""

    def __init__(self, frame: Any, label: str | None) -> None:
        self.name, self.label, self.notes = "the table", label, []
        names = [str(column) for column in frame.columns]
        place = None if label is None else position_of(label, names, self.name)
        values: Sequence[Any] = [None] * len(frame)
        if place is not None:
            values = frame.iloc[:, place].tolist() if hasattr(frame, "iloc") else frame[label].to_list()
        if not hasattr(frame, "iloc"):  # polars; whole numbers with gaps would become fractions in pandas
            frame = frame.to_pandas()
        self._features = frame.iloc[:, [j for j in range(len(names)) if j != place]]
        self.labels = label_texts(values, self.name, label)

    @cached_property
    def frame(self) -> Any:
        """The columns beside the label."""
        return self._features.set_axis(unique_names(self._features.columns), axis=1)

    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """Not for data frames."""
        raise InvalidInputError("A data frame has no file to write.\nHint: read the table from its file.")

    def cells_of(self, row: int) -> Sequence[tuple[str, Any]]:
        """None, as there is no file to find them in."""
        return ()

    @cached_property
    def digest(self) -> str:
        """Empty, as there is no file."""
        return ""


def position_of(label: str, names: Sequence[str], where: str) -> int:
    """Position of the column of that name, which must occur once."""
    count = list(names).count(label)
    if count == 0:
        raise InvalidInputError(
            f"There is no column {label!r} in {where}.\nHint: the columns are {', '.join(map(repr, names))}."
        )
    if count > 1:
        raise InvalidInputError(
            f"{count} columns of {where} are called {label!r}.\nHint: give the label column a name of its own."
        )
    return list(names).index(label)


def unique_names(names: Sequence[Any]) -> list[str]:
    """Names to tell columns apart: a repeated one is numbered, an empty one called by its place."""
    taken = {str(name) for name in names}
    unique: list[str] = []
    for j, raw in enumerate(names):
        name = str(raw) if str(raw).strip() else f"column {j + 1}"
        number = 2
        candidate = name
        while candidate in unique or (candidate != str(raw) and candidate in taken):
            candidate, number = f"{name} ({number})", number + 1
        unique.append(candidate)
    return unique


def label_texts(values: Sequence[Any], where: str, label: str | None) -> Array:
    """Text of labels of any type: ``str(value)``, and empty where the value is missing or blank."""
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    texts = []
    for i, value in enumerate(values):
        if isinstance(value, list | dict | tuple | set | np.ndarray):
            raise InvalidInputError(
                f"The label column {label!r} of {where} holds {value!r} in row {i}, which is no label.\n"
                "Hint: a label is a text or a number."
            )
        missing = value is None or bool(pandas.isna(value))
        texts.append("" if missing else str(value))
    return blank_to_empty(texts)


def blank_to_empty(texts: Sequence[str]) -> Array:
    """Texts as an array, those of spaces alone empty."""
    return np.array(["" if not text.strip() else text for text in texts], dtype=str)


def replaced_values(
    values: Sequence[Any], labels: Array, texts: Mapping[int, str], where: str
) -> dict[int, Any]:
    """New values of the type that the column has: as the column itself writes that label, or converted."""
    known = dict(zip(labels.tolist(), values, strict=True))
    kinds = {type(value) for text, value in known.items() if text}
    return {
        row: known[text] if text in known else _converted(text, kinds, where) for row, text in texts.items()
    }


def _converted(text: str, kinds: set[type], where: str) -> Any:
    if str in kinds or not kinds:
        return text
    for kind in (int, float):
        if kinds == {kind}:
            try:
                return kind(text)
            except ValueError:
                break
    raise InvalidInputError(
        f"The new label {text!r} does not fit the label column of {where}, which holds "
        f"{', '.join(sorted(kind.__name__ for kind in kinds))}.\nHint: save the labels as text first."
    )
