"""Review sets as JSON files."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
    record = {
        "format": FORMAT,
        "format_number": FORMAT_NUMBER,
        "title": review_set.title,
        "classes": list(review_set.classes),
        "n_rows": review_set.n_rows,
        "n_judged": review_set.n_judged,
        "n_flagged": review_set.n_flagged,
        "sample_size": review_set.sample_size,
        "seed": review_set.seed,
        "columns": list(review_set.columns),
        "items": [_item_record(item) for item in review_set.items],
    }
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
    The file is one JSON object with the keys ``format`` ("neighboragg review set"), ``format_number`` (1),
    ``classes``, ``n_rows``, ``n_flagged``, ``items``, and if wanted ``n_judged``, ``columns``, ``sample_size``,
    ``seed`` and ``title``. An item has ``row``, ``content``, ``given``, ``suggested``, ``score``, ``trust``, and
    if wanted ``queue``, ``reasons`` and ``neighbors``: ``{"given": […], "suggested": […]}``, each a list of
    objects with ``row``, ``distance`` and ``content``.

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
        return _review_set(record)
    except (_FieldError, InvalidInputError, InvalidParameterError) as error:
        raise FileFormatError(f"{path} is not a usable review set. {error}") from error


class _FieldError(Exception):
    """A field is missing, or of another type than expected."""


def _review_set(record: dict[str, Any]) -> ReviewSet:
    field = _fields(record, "The file")
    return ReviewSet(
        classes=tuple(field("classes", list)),
        n_rows=field("n_rows", int),
        n_flagged=field("n_flagged", int),
        items=tuple(_item(entry, place) for place, entry in enumerate(field("items", list))),
        columns=tuple(field("columns", list, [])),
        sample_size=field("sample_size", int, 50),
        seed=field("seed", int, 0),
        title=field("title", str, "Label review"),
        n_judged=field("n_judged", int, field("n_rows", int)),
    )


def _item(record: Any, place: int) -> ReviewItem:
    where = f"Item {place}"
    field = _fields(record, where)
    neighbors = _fields(field("neighbors", dict, {}), f"{where}, neighbors")
    return ReviewItem(
        row=field("row", int),
        content=field("content", dict),
        given=field("given", str),
        suggested=field("suggested", str),
        score=field("score", float),
        trust=tuple(field("trust", list)),
        reasons=tuple(field("reasons", list, [])),
        given_neighbors=_neighbors(neighbors("given", list, []), f"{where}, given neighbor"),
        suggested_neighbors=_neighbors(neighbors("suggested", list, []), f"{where}, suggested neighbor"),
        queue=field("queue", str, "flagged"),
    )


def _neighbors(records: list[Any], where: str) -> tuple[Neighbor, ...]:
    fields = [_fields(record, f"{where} {place}") for place, record in enumerate(records)]
    return tuple(
        Neighbor(field("row", int), field("distance", float), field("content", dict)) for field in fields
    )


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", list: "a list", dict: "an object"}


def _fields(record: Any, where: str) -> Callable[..., Any]:
    """Return a getter of typed fields of one JSON object; without a default the field must be there."""
    if not isinstance(record, dict):
        raise _FieldError(f"{where} must be an object. Got {record!r}.")

    def field(name: str, kind: type, default: Any = None) -> Any:
        if name not in record and default is None:
            raise _FieldError(f"{where} has no {name!r}.")
        value = record.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise _FieldError(f"{where}: {name!r} must be {_TYPE_NAMES[kind]}. Got {value!r}.")
        return value

    return field


def _item_record(item: ReviewItem) -> dict[str, Any]:
    return {
        "row": item.row,
        "queue": item.queue,
        "content": _content_record(item.content),
        "given": item.given,
        "suggested": item.suggested,
        "score": item.score,
        "trust": list(item.trust),
        "reasons": list(item.reasons),
        "neighbors": {
            "given": [_neighbor_record(neighbor) for neighbor in item.given_neighbors],
            "suggested": [_neighbor_record(neighbor) for neighbor in item.suggested_neighbors],
        },
    }


def _neighbor_record(neighbor: Neighbor) -> dict[str, Any]:
    return {
        "row": neighbor.row,
        "distance": neighbor.distance,
        "content": _content_record(neighbor.content),
    }


def _content_record(content: Mapping[str, Any]) -> dict[str, Any]:
    # Only NaN differs from itself.
    return {name: None if value != value else value for name, value in content.items()}


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's."""
    return value.item()
