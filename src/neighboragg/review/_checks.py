"""Checks of a review set, with messages that name the row, the field and the value."""

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from numbers import Integral, Real
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._validation import check_integer
from neighboragg.encoders import PICTURE_TYPES
from neighboragg.exceptions import InvalidInputError

if TYPE_CHECKING:
    from neighboragg.review._items import ReviewItem, ReviewSet

__all__ = ["QUEUES", "check_item", "check_review_set", "checked_line"]

QUEUES = ("flagged", "random")


def check_review_set(review_set: "ReviewSet") -> None:
    """Raise unless the counts, the classes and the rows fit together."""
    owner = "ReviewSet"
    n_rows = check_integer(review_set.n_rows, "n_rows", owner, minimum=1)
    n_judged = check_integer(review_set.n_judged, "n_judged", owner, minimum=1)
    n_flagged = check_integer(review_set.n_flagged, "n_flagged", owner, minimum=0)
    check_integer(review_set.sample_size, "sample_size", owner, minimum=1)
    check_integer(review_set.seed, "seed", owner, minimum=0)
    _check_names(review_set.classes, "classes")
    _check_names(review_set.columns, "columns")
    if len(review_set.classes) < 2 or "" in review_set.classes:
        raise InvalidInputError(
            f"A review set needs two or more classes, none of them empty. Got {list(review_set.classes)!r}.\n"
            "Hint: list every label a row may get, as text."
        )
    if twice := [row for row, count in Counter(item.row for item in review_set.items).items() if count > 1]:
        raise InvalidInputError(
            f"Row {twice[0]} occurs more than once in the review set.\n"
            "Hint: a row is either flagged or one of the random unflagged rows."
        )
    if not len(review_set.flagged) <= n_flagged <= n_judged <= n_rows:
        raise InvalidInputError(
            f"The review set lists {len(review_set.flagged)} flagged items, of n_flagged={n_flagged} flagged rows "
            f"among n_judged={n_judged} rows judged of n_rows={n_rows}; each number must be at most the next."
        )
    if len(review_set.random) > n_judged - n_flagged:
        raise InvalidInputError(
            f"The review set has {len(review_set.random)} random items, but only {n_judged - n_flagged} rows "
            "are not flagged.\nHint: random items are drawn from the unflagged rows."
        )


def check_item(item: "ReviewItem", review_set: "ReviewSet") -> None:
    """Raise unless one item has labels, trust and content of the right form."""
    _check_row(item.row, review_set.n_rows, f"Item of row {item.row!r}")
    where = f"Item of row {item.row}"
    if item.queue not in QUEUES:
        raise InvalidInputError(f"{where}: queue must be 'flagged' or 'random'. Got {item.queue!r}.")
    for name, label in (("given", item.given), ("suggested", item.suggested)):
        if label not in review_set.classes:
            raise InvalidInputError(
                f"{where}: {name}={label!r} is not among the {len(review_set.classes)} classes.\n"
                "Hint: labels are text; convert numbers with str()."
            )
    if item.given == item.suggested and item.queue == "flagged":
        raise InvalidInputError(
            f"{where}: is flagged, but the suggested label {item.suggested!r} is the given one."
        )
    if not _is_real(item.score):
        raise InvalidInputError(f"{where}: score must be a finite number. Got {item.score!r}.")
    if len(item.trust) != len(review_set.classes) or not all(_is_real(t) and 0 <= t <= 1 for t in item.trust):
        raise InvalidInputError(
            f"{where}: trust must hold {len(review_set.classes)} numbers in [0, 1], one for each class. "
            f"Got {list(item.trust)!r}."
        )
    _check_texts(item.reasons, "reasons", f"{where}: ")
    _check_content(item.content, review_set.columns, where)
    for values in (item.details, item.facts):
        _check_values(values, where)
    for neighbor in item.neighbors:
        near = f"{where}, neighbor {neighbor.row!r}"
        _check_row(neighbor.row, review_set.n_rows, near)
        if not _is_real(neighbor.distance) or neighbor.distance < 0:
            raise InvalidInputError(
                f"{near}: distance must be a finite number >= 0. Got {neighbor.distance!r}."
            )
        _check_content(neighbor.content, review_set.columns, near)
        if item.kind != "table" and tuple(neighbor.content) != (item.kind,):
            raise InvalidInputError(
                f"{near}: content must be {{'{item.kind}': …}}, as that of its item. Got {dict(neighbor.content)!r}."
            )


def checked_line(text: str, name: str, longest: int) -> str:
    """Return a line that a person typed, without blanks around it."""
    text = " ".join(text.split())
    if len(text) > longest or not text.isprintable():
        raise InvalidInputError(f"The {name} must be one line of up to {longest:,} printable characters.")
    return text


def _check_row(row: Any, n_rows: Any, where: str) -> None:
    if not isinstance(row, Integral) or isinstance(row, bool) or not 0 <= int(row) < n_rows:
        raise InvalidInputError(f"{where}: row must be an int from 0 to n_rows - 1, with n_rows={n_rows}.")


def _check_values(values: Any, where: str) -> None:
    for name, value in values.items():
        if not (value is None or isinstance(value, str | Real | np.bool_)) or _is_infinite(value):
            raise InvalidInputError(
                f"{where}: the value of {name!r} must be text, a finite number, true, false or missing. "
                f"Got {value!r}."
            )


def _check_content(content: Any, columns: Sequence[str], where: str) -> None:
    _check_values(content, where)
    keys = tuple(content)
    if keys == ("image",):
        _check_image(content["image"], where)
    elif keys != ("text",) and (unknown := [key for key in keys if key not in columns]):
        raise InvalidInputError(
            f"{where}: {unknown[0]!r} is not among the {len(columns)} columns of the review set.\n"
            "Hint: content is {column: value}, {'text': …} or {'image': path}."
        )


def _check_image(path: Any, where: str) -> None:
    """Raise unless the path stays below the folder it is relative to, and names a picture."""
    pure = PurePosixPath(path) if isinstance(path, str) else PurePosixPath("/")
    if pure.is_absolute() or ".." in pure.parts or "\\" in str(path) or "\0" in str(path):
        raise InvalidInputError(
            f"{where}: image must be a path below the folder of images, with forward slashes. Got {path!r}."
        )
    if pure.suffix.lower() not in PICTURE_TYPES:
        raise InvalidInputError(
            f"{where}: image must end in one of {', '.join(PICTURE_TYPES)}. Got {path!r}.\n"
            "Hint: convert other pictures to PNG."
        )


def _check_texts(values: Sequence[str], name: str, where: str = "") -> None:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InvalidInputError(f"{where}{name} must be a list of texts. Got {values!r}.")


def _check_names(names: Sequence[str], name: str) -> None:
    """Raise unless the names are texts and all different."""
    _check_texts(names, name)
    if len(set(names)) < len(names):
        raise InvalidInputError(f"{name} must differ from one another. Got {list(names)!r}.")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def _is_infinite(value: Any) -> bool:
    # NaN is how tables say "missing"; infinity has no such meaning, and no place in JSON.
    return isinstance(value, Real) and abs(value) == float("inf")
