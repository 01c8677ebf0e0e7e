"""What an audit judges texts or pictures by: vectors of an encoder, or of the built-in descriptor."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from neighboragg._core.inputs import is_missing
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._data.folder import PICTURE_TYPES, FolderTable
from neighboragg._data.source import Table
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import Encoded, encode_images, encode_texts, list_problems


@dataclass(frozen=True)
class EncodedRows:
    """Vectors of the rows that could be read, which rows these are, by what they were made, and what to know."""

    vectors: FloatArray
    rows: IntArray
    judged_by: str
    notes: tuple[str, ...] = ()


def image_root(data: Table) -> Path:
    """Folder that paths of pictures are relative to."""
    return data.folder if isinstance(data, FolderTable) else Path(data.name).parent


def encode_texts_of(data: Table, text: str, rows: IntArray, encoder: Any, cache: Any) -> EncodedRows:
    """Vectors of a column of texts; a missing one is empty."""
    values = data.frame[text].iloc[rows]
    texts = ["" if is_missing(value) else str(value) for value in values]
    vectors = encode_texts(texts, encoder, cache=cache)
    return EncodedRows(vectors, rows, f"vectors of the texts in {text!r} from the encoder {_name(encoder)}.")


def encode_pictures_of(
    data: Table, image: str, rows: IntArray, encoder: Any, cache: Any, *, skip_unreadable: bool
) -> EncodedRows:
    """Vectors of a column of paths of pictures."""
    paths = data.frame[image].iloc[rows].tolist()
    unfit = {i: why for i, path in enumerate(paths) if (why := _unfit(path))}
    fit = [i for i in range(len(paths)) if i not in unfit]
    found = Encoded(np.empty((0, 0)), np.empty(0, dtype=np.intp), {}, 0)
    if fit:
        found = encode_images(
            [paths[i] for i in fit], encoder, root=image_root(data), cache=cache, skip_unreadable=True
        )
    problems = unfit | {fit[i]: why for i, why in found.problems.items()}
    named = {f"{data.place_of(int(rows[i]))} ({paths[i]})" if not isinstance(data, FolderTable) else paths[i]: why
             for i, why in sorted(problems.items())}  # fmt: skip
    if problems and (not skip_unreadable or not fit):
        raise InvalidInputError(
            f"{len(problems):,} of {len(rows):,} pictures cannot be read or shown:\n{list_problems(named)}\n"
            "Hint: repair or remove them, or go on without them: --skip-unreadable."
        )
    notes = []
    if problems:
        notes.append(
            f"{len(problems):,} of {len(rows):,} pictures cannot be read or shown and are left out:\n"
            f"{list_problems(named)}"
        )
    if encoder is None:
        judged_by = (
            "a small fixed descriptor of the pictures: outlines, colors and a coarse copy.\n"
            "It is weak, as it knows nothing of what they show; a network's vectors (--encoder package:callable) "
            "usually find more."
        )
    else:
        judged_by = f"vectors of the pictures from the encoder {_name(encoder)}."
    kept = np.array(fit, dtype=np.intp)[found.rows]
    return EncodedRows(found.vectors, rows[kept], judged_by, tuple(notes))


def _unfit(path: Any) -> str:
    """Why a path of a table cannot be that of a picture to show; empty if it can."""
    if is_missing(path) or not str(path).strip():
        return "there is no path"
    pure = PurePosixPath(str(path))
    if pure.is_absolute() or ".." in pure.parts or "\\" in str(path) or "\0" in str(path):
        return "the path must lead below the folder of the table, with forward slashes"
    if pure.suffix.lower() not in PICTURE_TYPES:
        return f"its name does not end in one of {', '.join(PICTURE_TYPES)}"
    return ""


def _name(encoder: Any) -> str:
    if isinstance(encoder, str):
        return encoder
    return getattr(encoder, "__qualname__", type(encoder).__qualname__)
