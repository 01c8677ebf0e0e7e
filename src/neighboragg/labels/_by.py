"""The evidence to score labels by: columns, a text, images or embeddings, as rows for the detector."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np

from neighboragg._core.inputs import expand_vectors, is_missing
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg._data.folder import IMAGE, IMAGE_TYPES, FolderSource
from neighboragg._data.matrix import read_matrix
from neighboragg._data.source import Source
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import (
    ColumnRole,
    check_usable,
    column_roles,
    describe_roles,
    encode_images,
    encode_texts,
    prepared_frame,
)

WEAK = (
    "a small fixed descriptor of the images: outlines, colors and a coarse copy.\n"
    "It is weak because it does not recognize objects; a network's vectors (--encoder package:callable) usually find "
    "more."
)


@dataclass(frozen=True)
class Labeled:
    """A source, its labels as text, and the rows from which a by-object chooses its columns."""

    source: Source
    label: str
    labels: Array
    rows: IntArray
    #: Columns that mark rows; they are not evidence about labels.
    marks: tuple[str, ...]
    random_state: int

    @property
    def columns(self) -> list[str]:
        """All columns but the labels."""
        return [name for name in self.source.columns if name != self.label]

    def column(self, name: str, kind: str) -> str:
        """The name of a column that is not the label."""
        if name == self.label:
            raise InvalidParameterError(f"The column of {kind} is the label column {name!r} itself.")
        if name not in self.columns:
            raise InvalidInputError(
                f"There is no column {name!r} in {self.source.name}.\n"
                f"Hint: the columns other than the label are {', '.join(map(repr, self.columns))}."
            )
        return name


@dataclass(frozen=True)
class UsableRows:
    """Rows for the detector, which rows of the source these are, and why others cannot be used."""

    X: Any
    rows: IntArray
    problems: Mapping[int, str] = field(default_factory=dict)


class Basis(ABC):
    """Reads the evidence about labels; is sent to the workers of a cluster."""

    roles: tuple[ColumnRole, ...] = ()
    features: str = "passthrough"
    #: How the review shows a row ("text", "image"), and the column that holds it.
    shown: tuple[str, str] | None = None
    #: A column of vectors, which a report does not show.
    hidden: str = ""
    summary: str = "embeddings."

    @abstractmethod
    def read(self, rows: IntArray) -> UsableRows:
        """Read the evidence for some rows; row numbers ascend."""


class By(Protocol):
    """The type of the parameter `by`."""

    def bind(self, table: Labeled) -> Basis:
        """Find the columns, and prepare to read them."""


@dataclass(frozen=True)
class Columns:
    """Score labels by the columns of the table; the default of :func:`neighboragg.audit`.

    Parameters
    ----------
    only : sequence of str, default=None
        Use only these columns. None uses every suitable column.
    use : sequence of str, default=()
        Use these columns even if they look like an identifier or reveal the label.
    ignore : sequence of str, default=()
        Do not use these columns.

    Examples
    --------
    >>> from neighboragg.labels import Columns
    >>> Columns(ignore=["date"])
    Columns(only=None, use=(), ignore=['date'])
    """

    only: Sequence[str] | None = None
    _: KW_ONLY
    use: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def bind(self, table: Labeled) -> Basis:
        """Decide how to use each column."""
        names = table.columns
        frame = table.source.take(table.rows, names)
        ignore = self.ignore if isinstance(self.ignore, str) else [*self.ignore, *table.marks]
        roles = column_roles(
            frame,
            table.labels[table.rows],
            only=self.only,
            ignore=ignore,
            use=self.use,
            random_state=table.random_state,
            **table.source.written,
        )
        check_usable(roles)
        return ColumnsBasis(table.source, roles)


@dataclass(frozen=True)
class Text:
    """Score labels by one column of texts.

    Parameters
    ----------
    column : str
    encoder : callable or str, default=None
        Takes a list of texts and returns an array with one vector per text; or the name of such a callable, written
        ``package:callable``. None uses the words of the texts.

    Examples
    --------
    >>> from neighboragg.labels import Text
    >>> Text("message")
    Text(column='message', encoder=None)
    """

    column: str
    _: KW_ONLY
    encoder: Any = None

    def bind(self, table: Labeled) -> Basis:
        """Find the column."""
        column = table.column(self.column, "texts")
        if self.encoder is None:
            roles = [
                ColumnRole(n, "text") if n == column else ColumnRole(n, "ignored", "not chosen")
                for n in table.columns
            ]
            return ColumnsBasis(table.source, tuple(roles))
        return TextBasis(table.source, column, self.encoder)


@dataclass(frozen=True)
class Images:
    """Score labels by images; the default for a folder with one subfolder of images per class.

    Parameters
    ----------
    column : str, default=None
        Column of image paths, relative to the folder of the table. Must be None for a folder of images.
    encoder : callable or str, default=None
        Takes a list of images (PIL, RGB) and returns an array with one vector per image; or the name of such
        a callable, written ``package:callable``. None uses a small fixed descriptor, which is weak.

    Examples
    --------
    >>> from neighboragg.labels import Images
    >>> Images("photo", encoder="my_encoder:encode")
    Images(column='photo', encoder='my_encoder:encode')
    """

    column: str | None = None
    _: KW_ONLY
    encoder: Any = None

    def bind(self, table: Labeled) -> Basis:
        """Find the column."""
        is_folder = isinstance(table.source, FolderSource)
        if is_folder and self.column is not None:
            raise InvalidParameterError(
                f"{table.source.name} is a folder of images, so there is no column to choose.\n"
                "Hint: leave out the column."
            )
        if self.column is None and not is_folder:
            raise InvalidParameterError(
                "Images() needs the name of the column with the image paths.\n"
                "Hint: --image column, or Images(column) in Python."
            )
        column = IMAGE if self.column is None else table.column(self.column, "images")
        return ImageBasis(table.source, column, self.encoder)


@dataclass(frozen=True)
class Embeddings:
    """Score labels by your own embeddings.

    Parameters
    ----------
    source : str, path-like or array-like of shape (n_rows, n_features)
        Name of a column of vectors, a .npy file with one row per row of the table, or an array.

    Examples
    --------
    >>> from neighboragg.labels import Embeddings
    >>> Embeddings("vectors.npy")
    Embeddings(source='vectors.npy')
    """

    source: Any

    def bind(self, table: Labeled) -> Basis:
        """Find the column, or open the file."""
        if isinstance(self.source, str | Path) and str(self.source) in table.columns:
            basis: Basis = VectorBasis(table.source, str(self.source))
        else:
            basis = MatrixBasis(read_matrix(self.source, len(table.source), "embeddings"))
        if isinstance(table.source, FolderSource):
            basis.shown = "image", IMAGE
        elif column := _image_column(table):
            basis.shown = "image", column
        return basis


class ColumnsBasis(Basis):
    """Columns of numbers, categories, dates and texts."""

    features = "auto"

    def __init__(self, source: Source, roles: tuple[ColumnRole, ...]) -> None:
        self.source, self.roles = source, roles
        used = [role for role in roles if role.used]
        self.lone_text = used[0].name if len(used) == 1 and used[0].use == "text" else None
        self.shown = None if self.lone_text is None else ("text", self.lone_text)
        self.summary = "\n" + describe_roles(roles)

    def read(self, rows: IntArray) -> UsableRows:
        """The columns in use; a single column of texts as a list."""
        frame = self.source.take(rows, [role.name for role in self.roles if role.used])
        if self.lone_text is not None:
            return UsableRows(frame[self.lone_text].fillna("").astype(str).tolist(), rows)
        return UsableRows(prepared_frame(frame, self.roles), rows)


class VectorBasis(Basis):
    """A column of vectors."""

    def __init__(self, source: Source, column: str) -> None:
        self.source, self.hidden = source, column

    def read(self, rows: IntArray) -> UsableRows:
        """The vectors of the column."""
        vectors = expand_vectors(self.source.take(rows, [self.hidden]), self.source.name, "audit")
        if not all(np.asarray(vectors[name]).dtype.kind in "biuf" for name in vectors):
            raise InvalidInputError(
                f"Column {self.hidden!r} of {self.source.name} does not contain vectors of numbers.\n"
                "Hint: pass a column with a list of numbers in every row, a .npy file, or an array."
            )
        return UsableRows(vectors.to_numpy(dtype=np.float64), rows)


class MatrixBasis(Basis):
    """Vectors from a file or an array with one row per row of the source."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def read(self, rows: IntArray) -> UsableRows:
        """The vectors of the rows."""
        return UsableRows(self.matrix[rows], rows)


class TextBasis(Basis):
    """Texts turned into vectors by an encoder."""

    def __init__(self, source: Source, column: str, encoder: Any) -> None:
        self.source, self.column, self.encoder = source, column, encoder
        self.shown = "text", column
        self.summary = f"vectors of the texts in {column!r} from the encoder {_name(encoder)}."

    def read(self, rows: IntArray) -> UsableRows:
        """The vectors of the texts; a missing text counts as empty."""
        values = self.source.take(rows, [self.column])[self.column]
        texts = ["" if is_missing(value) else str(value) for value in values]
        return UsableRows(encode_texts(texts, self.encoder, cache=True), rows)


class ImageBasis(Basis):
    """Images turned into vectors by an encoder or the built-in descriptor."""

    def __init__(self, source: Source, column: str, encoder: Any) -> None:
        self.source, self.column, self.encoder = source, column, encoder
        self.shown = "image", column
        self.summary = (
            WEAK if encoder is None else f"vectors of the images from the encoder {_name(encoder)}."
        )

    def read(self, rows: IntArray) -> UsableRows:
        """The vectors of the images that can be read and shown, and the problems of the others."""
        paths = self.source.take(rows, [self.column])[self.column].tolist()
        unfit = {i: why for i, path in enumerate(paths) if (why := _unfit(path))}
        fit = np.array([i for i in range(len(paths)) if i not in unfit], dtype=np.intp)
        vectors: FloatArray = np.empty((0, 0))
        if len(fit):
            found = encode_images(
                [paths[i] for i in fit], self.encoder, root=self.source.root, cache=True, skip_unreadable=True
            )
            unfit |= {int(fit[i]): why for i, why in found.problems.items()}
            fit, vectors = fit[found.rows], found.vectors
        return UsableRows(
            vectors, rows[fit], {int(rows[i]): f"{why} ({paths[i]})" for i, why in unfit.items()}
        )


def _unfit(path: Any) -> str:
    """Why a path cannot be shown as an image; empty if it can."""
    if is_missing(path) or not str(path).strip():
        return "the path is missing"
    pure = PurePosixPath(str(path))
    if pure.is_absolute() or ".." in pure.parts or "\\" in str(path) or "\0" in str(path):
        return "the path must lead below the folder of the table, with forward slashes"
    if pure.suffix.lower() not in IMAGE_TYPES:
        return f"its name does not end in one of {', '.join(IMAGE_TYPES)}"
    return ""


def _image_column(table: Labeled) -> str:
    """The only column of image paths, shown next to vectors; empty without one."""
    some = table.rows[:20]
    frame = table.source.take(some, table.columns)
    names = [
        name
        for name in table.columns
        if all(not _unfit(path) and (table.source.root / str(path)).is_file() for path in frame[name])
    ]
    return names[0] if len(some) and len(names) == 1 else ""


def _name(encoder: Any) -> str:
    if isinstance(encoder, str):
        return encoder
    return str(getattr(encoder, "__qualname__", type(encoder).__qualname__))
