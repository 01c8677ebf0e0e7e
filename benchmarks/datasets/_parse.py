"""Files to data sets: the local tables, and the public formats of the sources, to the same content."""

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from benchmarks.datasets._dataset import Dataset
from benchmarks.datasets._registry import Spec, TableFormat
from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import FileFormatError

__all__ = ["read_local", "read_public"]

# What the readers below raise on a file that is damaged or of another format.
DAMAGE = (ValueError, EOFError, csv.Error, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error)
IDX_UNSIGNED_BYTE = 0x0800


def read_local(spec: Spec, paths: Sequence[Path]) -> Dataset:
    """Read a data set from the files of a local folder."""
    try:
        if spec.kind == "images":
            return _images(spec, paths)
        header, *rows = csv.reader(io.StringIO(_gunzip(paths[0]).decode(), newline=""))
        if spec.table is not None:
            return _from_table(spec.name, spec.table, header, rows, label="label")
        columns = _columns(header, rows, needed=("text", "label"))
        return _texts(spec.name, columns["text"], columns["label"])
    except DAMAGE as error:
        raise _format_error(spec, paths, error) from error


def read_public(spec: Spec, paths: Sequence[Path]) -> Dataset:
    """Read a data set from the files of its public source."""
    try:
        if spec.kind == "images":
            return _images(spec, paths)
        data = paths[0].read_bytes()
        if spec.table is None:
            return _questions(spec.name, data.decode("latin-1"))
        files = [_member(data, name) for name in spec.table.members] or [data]
        rows = [row for file in files for row in _lines(file.decode(), spec.table)]
        header, *rows = [list(spec.table.columns), *rows] if spec.table.columns else rows
        return _from_table(spec.name, spec.table, header, rows, label=spec.table.label)
    except DAMAGE as error:
        raise _format_error(spec, paths, error) from error


def _format_error(spec: Spec, paths: Sequence[Path], error: Exception) -> FileFormatError:
    files = ", ".join(str(path) for path in paths)
    return FileFormatError(
        f"The data set {spec.name!r} cannot be read from {files}: {error}\n"
        "Hint: the file may be cut short or of another format; delete it and load again."
    )


def _gunzip(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def _member(data: bytes, name: str) -> bytes:
    """Return one file of a zip, wherever in the zip's folders it is; "a.zip/b" goes through a zip inside."""
    outer, _, inner = name.partition("/")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = [entry for entry in archive.namelist() if PurePosixPath(entry).name == outer]
        if not found:
            raise ValueError(f"the archive has no file {outer!r}.")
        content = archive.read(found[0])
    return _member(content, inner) if inner else content


def _lines(text: str, table: TableFormat) -> Iterable[list[str]]:
    lines = (line for line in io.StringIO(text) if line.strip() and not line.startswith(table.comments))
    if table.delimiter is None:
        return map(str.split, lines)
    return csv.reader(lines, delimiter=table.delimiter, skipinitialspace=True)


def _columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, needed: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the values of each column by its name."""
    missing = [name for name in needed if name not in header]
    if missing:
        raise ValueError(f"the columns {', '.join(map(repr, missing))} are missing.")
    if not rows:
        raise ValueError("there are no rows.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} values instead of {len(header)}.")
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _from_table(
    name: str, table: TableFormat, header: Sequence[str], rows: Sequence[Sequence[str]], *, label: str
) -> Dataset:
    columns = _columns(header, rows, needed=(*table.features, label))
    numbers = [columns[feature] for feature in table.features if feature not in table.categorical]
    categories = [columns[feature] for feature in table.categorical]
    if table.integer_labels:
        y = np.array(columns[label], dtype=np.int64)
    else:
        y = np.array([value.removesuffix(table.label_suffix) for value in columns[label]])
    return Dataset(
        name,
        y,
        np.ascontiguousarray(np.array(numbers, dtype=np.float64).T),
        np.array(categories, dtype=object).reshape(len(categories), len(rows)).T,
        table.features,
        table.categorical,
    )


def _texts(name: str, texts: Sequence[str], labels: Sequence[str]) -> Dataset:
    n_rows = len(labels)
    nothing = np.empty((n_rows, 0))
    return Dataset(
        name,
        np.array(labels),
        nothing,
        nothing.astype(object),
        ("text",),
        text=np.array(texts, dtype=object),
    )


def _questions(name: str, text: str) -> Dataset:
    """Read lines of "COARSE:fine words of the question ?", as published for the TREC questions."""
    # The one byte that is not ASCII stands for a blank; quotation marks are in the Penn Treebank's spelling.
    for old, new in (("\xf0", " "), ("`` ", '"'), (" ''", '"'), (" '", "'")):
        text = text.replace(old, new)
    lines = [line.strip().split(" ", maxsplit=1) for line in text.split("\n") if line.strip()]
    columns = _columns(("kind", "text"), lines, needed=())
    if not all(":" in kind for kind in columns["kind"]):
        raise ValueError("a line does not begin with a label such as 'DESC:manner'.")
    return _texts(name, columns["text"], [kind.partition(":")[0] for kind in columns["kind"]])


def _images(spec: Spec, paths: Sequence[Path]) -> Dataset:
    train_images, train_labels, test_images, test_labels = (
        _idx(path, n_axes) for path, n_axes in zip(paths, (3, 1, 3, 1), strict=True)
    )
    for part, labels in ((train_images, train_labels), (test_images, test_labels)):
        if len(part) != len(labels):
            raise ValueError(f"there are {len(part)} images, but {len(labels)} labels.")
    images: FloatArray = np.concatenate([train_images, test_images], dtype=np.float32)
    y = np.concatenate([train_labels, test_labels], dtype=np.int64)
    images = images.reshape(len(y), -1)
    nothing = np.empty((len(y), 0))
    return Dataset(
        spec.name,
        y,
        nothing,
        nothing.astype(object),
        tuple(f"pixel_{i}" for i in range(images.shape[1])),
        images=images,
        n_train=len(train_labels),
    )


def _idx(path: Path, n_axes: int) -> Array:
    """Read unsigned bytes in the idx format: magic number, one big-endian length per axis, values."""
    data = _gunzip(path)
    if int.from_bytes(data[:4], "big") != IDX_UNSIGNED_BYTE + n_axes:
        raise ValueError(f"{path.name} is not an idx file of unsigned bytes with {n_axes} axes.")
    shape = np.frombuffer(data, ">u4", count=n_axes, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * n_axes).reshape(shape.tolist())
