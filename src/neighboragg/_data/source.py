"""One source of rows for every format: columns, labels as text, rows in parts, and a copy with other labels."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, IntArray
from neighboragg.exceptions import InvalidInputError

PART_ROWS = 65_536


class Source(ABC):
    """Rows with named columns, wherever they are."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    #: The column of labels that every source of this kind has; None where the user names it.
    own_label: ClassVar[str | None] = None
    name: str
    #: Column names as written in the file; they may repeat or be empty.
    header: list[str]
    notes: list[str]
    #: How numbers and dates are written in texts (dayfirst, decimal, thousands), if that was given.
    written: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any:
        """Some columns of the rows of a range as a data frame."""

    @abstractmethod
    def texts(self, column: str) -> Array:
        """Every cell of a column as text; empty if it is missing or blank."""

    @abstractmethod
    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """Name and contents of every file, with new labels in some rows and without some others.

        Nothing else changes. The name is empty where the source is a single file.
        """

    @cached_property
    def columns(self) -> list[str]:
        """Unique column names."""
        return unique_names(self.header)

    @property
    def files(self) -> list[str]:
        """Paths or addresses of the files that the rows come from."""
        return [self.name]

    @property
    def is_many(self) -> bool:
        """Whether a copy is a folder with a file for each of the files."""
        return False

    @property
    def row_names(self) -> Any:
        """User-facing names of the rows: numbers from 0, or the index of a data frame."""
        return np.arange(len(self))

    @property
    def root(self) -> Path:
        """Folder that paths of images are relative to."""
        return Path(self.name).parent

    @cached_property
    def digest(self) -> str:
        """Digest of all files; empty if there are none."""
        digest = hashlib.sha256()
        for path in self.files:
            with Path(path).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest() if self.files else ""

    def named(self, column: str) -> str:
        """The name in `columns` of a column that a user named."""
        return self.columns[position_of(column, self.header, self.name)]

    def parts(self, most: int = PART_ROWS) -> list[tuple[int, int]]:
        """Ranges of at most that many rows."""
        return [(start, min(start + most, len(self))) for start in range(0, len(self), most)]

    def take(self, rows: IntArray, columns: Sequence[str]) -> Any:
        """Some columns of the rows with these numbers, which ascend, as a data frame."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
        found = []
        for start, stop in self.parts():
            first, last = np.searchsorted(rows, (start, stop))
            if first < last or not start:
                found.append(self.read(start, stop, columns).iloc[rows[first:last] - start])
        return pandas.concat(found, ignore_index=True) if len(found) > 1 else found[0].reset_index(drop=True)

    def place_of(self, row: int) -> str:
        """Where a person finds a row, e.g. "line 17"."""
        return f"row {row}"

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """Name and value of every cell of the rows with these numbers, which ascend; none without a file."""
        return [[] for _ in rows]

    def digests_of(self, rows: IntArray) -> list[str]:
        """Digest of all cells of each row, to find the row again wherever it moves; empty without a file."""
        return [
            hashlib.sha256(repr(sorted((name, repr(value)) for name, value in cells)).encode()).hexdigest()
            if cells
            else ""
            for cells in self.cells_of(rows)
        ]


class HeldSource(Source):
    """A source whose rows are all in memory."""

    @property
    @abstractmethod
    def frame(self) -> Any:
        """All columns, each of the type that its values have."""

    @abstractmethod
    def values(self, column: str) -> Sequence[Any]:
        """The cells of a column as they are stored."""

    def read(self, start: int, stop: int, columns: Sequence[str]) -> Any:
        """Some columns of the rows of a range as a data frame."""
        return self.frame.iloc[start:stop][list(columns)]

    def texts(self, column: str) -> Array:
        """Every cell of a column as text; empty if it is missing or blank."""
        return label_texts(self.values(column), self.name, column)

    def new_values(self, column: str, texts: Mapping[int, str]) -> dict[int, Any]:
        """New labels as values of the type that the column has."""
        return replaced_values(self.values(column), self.texts(column), texts, self.name)


class FrameSource(HeldSource):
    """A data frame (pandas, polars), an Arrow table or a Hugging Face data set, without a file."""

    def __init__(self, given: Any) -> None:
        self.name, self.notes = "the table", []
        # Data sets that return tensors or NumPy arrays hold the same rows.
        self._given = given.with_format(None) if hasattr(given, "with_format") else given
        self._frame = self._given if hasattr(self._given, "iloc") else self._given.to_pandas()
        self.header = [str(column) for column in self._frame.columns]

    def __len__(self) -> int:
        return len(self._frame)

    @cached_property
    def frame(self) -> Any:
        """All columns."""
        return self._frame.set_axis(self.columns, axis=1)

    @property
    def files(self) -> list[str]:
        """None."""
        return []

    @property
    def row_names(self) -> Any:
        """The index."""
        return self._frame.index

    @property
    def root(self) -> Path:
        """The folder where Python was started."""
        return Path()

    def place_of(self, row: int) -> str:
        """The label of the row in the index."""
        return f"row {self.row_names[row]}"

    def values(self, column: str) -> Sequence[Any]:
        """The cells of a column; numbers that name a class of a data set are that name."""
        place = position_of(column, self.header, self.name)
        if not hasattr(self._given, "iloc") and not hasattr(self._given, "features"):
            # Not from pandas, which turns whole numbers with gaps into fractions.
            cells = self._given[column]
            return list(cells.to_pylist() if hasattr(cells, "to_pylist") else cells.to_list())
        values = self._frame.iloc[:, place].tolist()
        features = getattr(self._given, "features", None)
        names = getattr(features[column], "names", None) if isinstance(features, Mapping) else None
        if not names:
            return list(values)
        known = {float(code): name for code, name in enumerate(names)}
        return [known.get(value) for value in values]  # -1 and missing values are not labels

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """Not for data frames."""
        raise InvalidInputError(
            "A data frame cannot be written back to a file.\nHint: read the table from its file."
        )


def position_of(column: str, names: Sequence[str], where: str) -> int:
    """Position of the column of that name, which must occur once."""
    count = list(names).count(column)
    if count > 1:
        raise InvalidInputError(
            f"{count} columns of {where} are called {column!r}.\nHint: give the label column a unique name."
        )
    if count == 1:
        return list(names).index(column)
    if column in (unique := unique_names(names)):
        return unique.index(column)
    shown = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
    raise InvalidInputError(f"There is no column {column!r} in {where}.\nHint: the columns are {shown}.")


def unique_names(names: Sequence[Any]) -> list[str]:
    """Unique column names: number repeated names, and name empty ones by position."""
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


def label_texts(values: Sequence[Any], where: str, column: str) -> Array:
    """Text of labels of any type: ``str(value)``, and empty where the value is missing or blank."""
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    texts = []
    for i, value in enumerate(values):
        if isinstance(value, list | dict | tuple | set | np.ndarray):
            raise InvalidInputError(
                f"The label column {column!r} of {where} holds {value!r} in row {i}, which is not a label.\n"
                "Hint: a label is a text or a number."
            )
        missing = value is None or bool(pandas.isna(value))
        texts.append("" if missing else str(value))
    return blank_to_empty(texts)


def blank_to_empty(texts: Sequence[str]) -> Array:
    """Texts as an array; blank texts become empty."""
    return np.array(["" if not text.strip() else text for text in texts], dtype=str)


def replaced_values(
    values: Sequence[Any], labels: Array, texts: Mapping[int, str], where: str
) -> dict[int, Any]:
    """New labels in the type of the column: as already written there, or converted."""
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
        f"The new label {text!r} does not fit the label column of {where}, which contains "
        f"{', '.join(sorted(kind.__name__ for kind in kinds))}.\nHint: save the labels as text first."
    )
