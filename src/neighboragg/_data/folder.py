"""Folders of images, one for each class, and moving images between them."""

import csv
import hashlib
import io
import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.files import escape_formula
from neighboragg._core.packages import import_extra
from neighboragg._data.source import Table
from neighboragg.exceptions import InvalidInputError

IMAGE, LABEL = "image", "label"
N_NAMED = 5
# Pictures all the same, though browsers do not show them or they can carry scripts: an audit names them as such.
OTHER_PICTURES = (".heic", ".heif", ".jp2", ".jfif", ".jxl", ".pgm", ".ppm", ".svg", ".tga", ".tif", ".tiff")
PARTS = {"dev", "eval", "holdout", "test", "testing", "train", "training", "val", "valid", "validation"}


class FolderTable(Table):
    """Pictures below ``folder/class/``, the way most libraries for images expect them."""

    def __init__(self, folder: Path) -> None:
        self.name, self.label = str(folder if folder.name else folder.resolve()), LABEL
        self.folder = folder
        pictures, others, outside = [], [], []
        # In the order of the paths as text, which whoever made embeddings of them can repeat.
        for place in sorted(_files_below(folder)):
            if Path(place).suffix.lower() not in (*PICTURE_TYPES, *OTHER_PICTURES):
                others.append(place)
            elif "/" in place:
                pictures.append(place)
            else:
                outside.append(place)
        if not pictures:
            raise InvalidInputError(
                f"There are no pictures in the folders of {folder}.\n"
                f"Hint: pictures are in a folder for each class, {folder / 'class' / 'picture.png'}; the formats are "
                f"{', '.join(PICTURE_TYPES)}."
            )
        classes = [place.partition("/")[0] for place in pictures]
        if {name.casefold() for name in classes} <= PARTS and all(place.count("/") > 1 for place in pictures):
            raise InvalidInputError(
                f"The folders of {folder} are the parts of a split: {', '.join(sorted(set(classes)))}. The folders of "
                f"the classes are expected there.\nHint: pass one part, {folder / classes[0]}."
            )
        self.pictures = pictures
        self.labels = np.array(classes, dtype=str)
        self.notes = []
        empty = sorted(
            entry.name
            for entry in os.scandir(folder)
            if entry.is_dir() and not entry.name.startswith(".") and entry.name not in Counter(classes)
        )
        for what, places in (
            ("Left out, as no pictures", others),
            ("Left out, as pictures in no class folder", outside),
            ("Class folders without pictures", empty),
        ):
            if places:
                more = ", …" if len(places) > N_NAMED else ""
                self.notes.append(f"{what} ({len(places):,}): {', '.join(places[:N_NAMED])}{more}.")

    @cached_property
    def frame(self) -> Any:
        """Paths of the pictures, relative to the folder."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a folder of pictures")
        return pandas.DataFrame({IMAGE: self.pictures})

    def cells_of(self, row: int) -> list[tuple[str, Any]]:
        """The path of the picture, which begins with its label."""
        return [(IMAGE, self.pictures[row])]

    @cached_property
    def digest(self) -> str:
        """Digest of the paths of all pictures."""
        return hashlib.sha256("\0".join(self.pictures).encode(errors="surrogateescape")).hexdigest()

    def relabeled(self, texts: Mapping[int, str], dropped: Collection[int] = ()) -> bytes:
        """A CSV file with the label of every picture; no picture moves."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([IMAGE, LABEL, "folder"])
        left_out = set(dropped)
        for i, (picture, given) in enumerate(zip(self.pictures, self.labels.tolist(), strict=True)):
            if i not in left_out:
                writer.writerow([escape_formula(value) for value in (picture, texts.get(i, given), given)])
        return buffer.getvalue().encode()

    def place_of(self, row: int) -> str:
        """The path of the picture."""
        return self.pictures[row]


def _files_below(folder: Path) -> Iterator[str]:
    """Paths of files relative to a folder, with forward slashes."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield Path(here, name).relative_to(folder).as_posix()


Move = tuple[Path, Path]


def planned_moves(data: FolderTable, labels: Mapping[int, str]) -> list[Move]:
    """From where to where each picture moves; raises if one cannot."""
    moves = []
    for row, label in labels.items():
        unfit = label.startswith(".") or any(sign in label for sign in "/\\\0")
        if unfit or (data.folder / label).is_symlink():
            raise InvalidInputError(
                f"The label {label!r} of {data.pictures[row]} cannot be the name of a folder, so nothing was moved.\n"
                "Hint: relabel it in the review, or move the pictures by the list."
            )
        _, _, below = data.pictures[row].partition("/")
        moves.append((data.folder / data.pictures[row], data.folder / label / below))
    targets = [target for _, target in moves]
    for source, target in moves:
        if target.exists() or target.is_symlink() or targets.count(target) > 1:
            raise InvalidInputError(
                f"{source} cannot move to {target}, where there is or would be another picture; nothing was moved.\n"
                "Hint: rename one of them and audit the folder again, or move the pictures by the list."
            )
    return moves


def move_pictures(moves: Sequence[Move]) -> None:
    """Move pictures; if one cannot be moved, those that were are moved back."""
    done: list[Move] = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            done.append((source, target))
    except OSError as error:
        for source, target in reversed(done):
            target.rename(source)
        raise InvalidInputError(
            f"{source} cannot be moved to {target}: {error.strerror or error}. All pictures are where they were."
        ) from error


#: Formats that Pillow opens and browsers show, and that cannot carry scripts.
PICTURE_TYPES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
