"""Review sets as JSON files."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from neighboragg.exceptions import FileFormatError, InvalidInputError, InvalidParameterError
from neighboragg.review._items import Neighbor, ReviewItem, ReviewSet

__all__ = ["load_review_set", "save_review_set"]

FORMAT = "neighboragg review set"
FORMAT_NUMBER = 1


def save_review_set(path: str | os.PathLike[str], review_set: ReviewSet) -> None:
    """Write a review set to a JSON file.

    The file is replaced in one step: after a crash the old one is still there.

    Parameters
    ----------
    path : path-like
        File to write.
    review_set : ReviewSet
        What to write. A missing value (None or NaN) becomes null.

    See Also
    --------
    load_review_set : Read it again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neighboragg.review import ReviewItem, ReviewSet, load_review_set, save_review_set
    >>> item = ReviewItem(row=3, content={"text": "meow"}, given="dog", suggested="cat", score=-2.0, trust=(0.9, 0.1))
    >>> review_set = ReviewSet(classes=("cat", "dog"), n_rows=100, n_flagged=1, items=(item,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_review_set(Path(folder) / "pets.json", review_set)
    ...     load_review_set(Path(folder) / "pets.json").items[0].score
    -2.0
    """
    record = {"format": FORMAT, "format_number": FORMAT_NUMBER} | _record(review_set)
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_text(
        json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain), encoding="utf-8"
    )
    partial.replace(target)


def load_review_set(path: str | os.PathLike[str]) -> ReviewSet:
    """Read a review set from a JSON file.

    Parameters
    ----------
    path : path-like
        A file written by `save_review_set`, or by another program in the same format.

    Returns
    -------
    review_set : ReviewSet
        Checked: its labels are among its classes, its rows within the data set, its images below a folder.

    Raises
    ------
    FileFormatError
        If the file is not a review set, is damaged, or was written by a newer version.

    See Also
    --------
    save_review_set : Write one.

    Notes
    -----
    The file is one JSON object with the keys ``format`` ("neighboragg review set"), ``format_number`` (1) and the
    parameters of `ReviewSet`; items are objects with the parameters of `ReviewItem`, neighbors with those of
    `Neighbor`. What has a default may be left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neighboragg.review import load_review_set
    >>> text = '''{"format": "neighboragg review set", "format_number": 1, "classes": ["cat", "dog"],
    ...     "n_rows": 100, "n_flagged": 1, "items": [{"row": 3, "content": {"text": "meow"},
    ...     "given": "dog", "suggested": "cat", "score": -2, "trust": [0.9, 0.1]}]}'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "pets.json").write_text(text)
    ...     load_review_set(Path(folder) / "pets.json").n_rows
    100
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path} is not a review set: it is not JSON ({error}).") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} is not a review set: its 'format' is not {FORMAT!r}.\n"
            "Hint: write it with neighboragg.review.save_review_set."
        )
    number = record.get("format_number")
    if number != FORMAT_NUMBER:
        raise FileFormatError(
            f"{path} has format number {number!r}; this version of neighboragg reads {FORMAT_NUMBER}.\n"
            "Hint: update neighboragg."
        )
    try:
        known = {name: value for name, value in record.items() if name not in ("format", "format_number")}
        return _read(ReviewSet, known, "The file")
    except (_FieldError, InvalidInputError, InvalidParameterError) as error:
        raise FileFormatError(f"{path} is not a usable review set. {error}") from error


class _FieldError(Exception):
    """A field is missing, or of another type than expected."""


_Read = TypeVar("_Read", ReviewSet, ReviewItem, Neighbor)
_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", tuple: "a list", Mapping: "an object"}
_JSON_TYPES: dict[Any, Any] = {float: (int, float), tuple: list, Mapping: dict}


def _read(kind: type[_Read], record: Any, where: str) -> _Read:
    """Make an object from the fields of a JSON object, each of the type that the class declares."""
    if not isinstance(record, dict):
        raise _FieldError(f"{where} must be an object. Got {record!r}.")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := [name for name in record if name not in fields]:
        raise _FieldError(f"{where} has {unknown[0]!r}, which is not a field of {kind.__name__}.")
    values = {}
    for name, field in fields.items():
        if name in record:
            element = name.removesuffix("s").replace("_", " ")
            inner = element.capitalize() if kind is ReviewSet else f"{where}, {element}"
            values[name] = _value(record[name], field.type, inner, f"{where}: {name!r}")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise _FieldError(f"{where} has no {name!r}.")
    return kind(**values)


def _value(value: Any, declared: Any, inner: str, where: str) -> Any:
    plain = get_origin(declared) or declared
    if isinstance(value, bool) or not isinstance(value, _JSON_TYPES.get(plain, plain)):
        raise _FieldError(f"{where} must be {_TYPE_NAMES[plain]}. Got {value!r}.")
    if plain is not tuple:
        return value
    element = get_args(declared)[0]
    if element not in (ReviewItem, Neighbor):
        return tuple(value)
    return tuple(_read(element, entry, f"{inner} {place}") for place, entry in enumerate(value))


def _record(instance: ReviewSet | ReviewItem | Neighbor) -> dict[str, Any]:
    """The fields of an object as JSON knows them."""
    record = {}
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if isinstance(value, tuple):
            value = [_record(one) if isinstance(one, ReviewItem | Neighbor) else one for one in value]
        elif isinstance(value, Mapping):
            # Only NaN differs from itself.
            value = {name: None if entry != entry else entry for name, entry in value.items()}
        record[field.name] = value
    return record


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's."""
    return value.item()
