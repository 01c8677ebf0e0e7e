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
from neighboragg._core.types import Array, IntArray
from neighboragg._data.source import HeldSource
from neighboragg.exceptions import InvalidInputError

IMAGE, LABEL = "image", "label"
N_NAMED = 5
# Images that browsers do not show or that can carry scripts; an audit reports them.
OTHER_IMAGES = (".heic", ".heif", ".jp2", ".jfif", ".jxl", ".pgm", ".ppm", ".svg", ".tga", ".tif", ".tiff")
PARTS = {"dev", "eval", "holdout", "test", "testing", "train", "training", "val", "valid", "validation"}


class FolderSource(HeldSource):
    """Images in ``folder/class/``, the layout that most image libraries expect."""

    own_label = LABEL

    def __init__(self, folder: Path) -> None:
        self.name = str(folder if folder.name else folder.resolve())
        self.folder = folder
        images, others, outside = [], [], []
        # Sorted by path as text, an order that users can reproduce for their embeddings.
        for place in sorted(_files_below(folder)):
            if Path(place).suffix.lower() not in (*IMAGE_TYPES, *OTHER_IMAGES):
                others.append(place)
            elif "/" in place:
                images.append(place)
            else:
                outside.append(place)
        if not images:
            raise InvalidInputError(
                f"The subfolders of {folder} do not contain images.\n"
                f"Hint: use one folder per class, such as {folder / 'class' / 'image.png'}; the formats are "
                f"{', '.join(IMAGE_TYPES)}."
            )
        classes = [place.partition("/")[0] for place in images]
        if {name.casefold() for name in classes} <= PARTS and all(place.count("/") > 1 for place in images):
            raise InvalidInputError(
                f"The folders of {folder} are the parts of a split: {', '.join(sorted(set(classes)))}. The folders of "
                f"the classes are expected there.\nHint: pass one part, {folder / classes[0]}."
            )
        self.images = images
        self.labels = np.array(classes, dtype=str)
        self.header, self.notes = [IMAGE, LABEL], []
        empty = sorted(
            entry.name
            for entry in os.scandir(folder)
            if entry.is_dir() and not entry.name.startswith(".") and entry.name not in Counter(classes)
        )
        for what, places in (
            ("Left out, not an image", others),
            ("Left out, not in the folder of a class", outside),
            ("Class folders without images", empty),
        ):
            if places:
                more = ", …" if len(places) > N_NAMED else ""
                self.notes.append(f"{what} ({len(places):,}): {', '.join(places[:N_NAMED])}{more}.")

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def frame(self) -> Any:
        """Paths of the images, relative to the folder, and their labels."""
        pandas = import_extra("pandas", extra="cli", purpose="Reading a folder of images")
        return pandas.DataFrame({IMAGE: self.images, LABEL: self.labels.astype(object)})

    def values(self, column: str) -> list[Any]:
        """The paths or the labels."""
        return list(self.frame[self.named(column)])

    def texts(self, column: str) -> Array:
        """The paths or the labels."""
        return self.labels if column == LABEL else np.array(self.values(column), dtype=str)

    @property
    def root(self) -> Path:
        """The folder."""
        return self.folder

    def cells_of(self, rows: IntArray) -> list[list[tuple[str, Any]]]:
        """The path of the image, which begins with its label."""
        return [[(IMAGE, self.images[row])] for row in rows]

    @cached_property
    def digest(self) -> str:
        """Digest of the paths of all images."""
        return hashlib.sha256("\0".join(self.images).encode(errors="surrogateescape")).hexdigest()

    def relabeled(
        self, column: str, texts: Mapping[int, str], dropped: Collection[int] = ()
    ) -> Iterator[tuple[str, bytes]]:
        """A CSV file with the label of every image; no image moves."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([IMAGE, LABEL, "folder"])
        left_out = set(dropped)
        for i, (image, given) in enumerate(zip(self.images, self.labels.tolist(), strict=True)):
            if i not in left_out:
                writer.writerow([escape_formula(value) for value in (image, texts.get(i, given), given)])
        yield "", buffer.getvalue().encode()

    def place_of(self, row: int) -> str:
        """The path of the image."""
        return self.images[row]


def _files_below(folder: Path) -> Iterator[str]:
    """Paths of files relative to a folder, with forward slashes."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield Path(here, name).relative_to(folder).as_posix()


Move = tuple[Path, Path]


def planned_moves(data: FolderSource, labels: Mapping[int, str]) -> list[Move]:
    """Source and target of each image to move; raises if one cannot be moved."""
    moves = []
    for row, label in labels.items():
        unfit = label.startswith(".") or any(sign in label for sign in "/\\\0")
        if unfit or (data.folder / label).is_symlink():
            raise InvalidInputError(
                f"The label {label!r} of {data.images[row]} cannot be the name of a folder, so nothing was moved.\n"
                "Hint: relabel it in the review, or move the images by the list."
            )
        _, _, below = data.images[row].partition("/")
        moves.append((data.folder / data.images[row], data.folder / label / below))
    targets = [target for _, target in moves]
    for source, target in moves:
        if target.exists() or target.is_symlink() or targets.count(target) > 1:
            raise InvalidInputError(
                f"{source} cannot move to {target}, because another image is or would be there; nothing was moved.\n"
                "Hint: rename one of them and audit the folder again, or move the images by the list."
            )
    return moves


def move_images(moves: Sequence[Move]) -> None:
    """Move images; if one cannot be moved, move the others back."""
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
            f"{source} cannot be moved to {target}: {error.strerror or error}. "
            "All images are back in their original folders."
        ) from error


#: Formats that Pillow opens and browsers show, and that cannot carry scripts.
IMAGE_TYPES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
