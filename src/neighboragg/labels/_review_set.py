"""What a reviewer gets to see: items with their evidence, as a JSON file."""

import dataclasses
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from numbers import Integral, Real
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, get_args, get_origin

import numpy as np

from neighboragg._core.checks import check_integer
from neighboragg._core.inputs import is_missing
from neighboragg._core.types import IntArray
from neighboragg._data.folder import IMAGE_TYPES
from neighboragg.exceptions import FileFormatError, InvalidInputError, InvalidParameterError
from neighboragg.labels._result import MislabelResult

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
    """Raise unless the path stays below the folder it is relative to, and names an image."""
    pure = PurePosixPath(path) if isinstance(path, str) else PurePosixPath("/")
    if pure.is_absolute() or ".." in pure.parts or "\\" in str(path) or "\0" in str(path):
        raise InvalidInputError(
            f"{where}: image must be a path below the folder of images, with forward slashes. Got {path!r}."
        )
    if pure.suffix.lower() not in IMAGE_TYPES:
        raise InvalidInputError(
            f"{where}: image must end in one of {', '.join(IMAGE_TYPES)}. Got {path!r}.\n"
            "Hint: convert other images to PNG."
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


Scalar = str | int | float | bool | None
ALL_ROWS = -1


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A row of one class near a reviewed row."""

    row: int
    distance: float
    content: Mapping[str, Scalar]
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the row, or its number."""
        return self.name or f"row {self.row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """One row to decide about, with the evidence for and against its label."""

    row: int
    content: Mapping[str, Scalar]
    given: str
    suggested: str
    score: float
    trust: tuple[float, ...]
    reasons: tuple[str, ...] = ()
    given_neighbors: tuple[Neighbor, ...] = ()
    suggested_neighbors: tuple[Neighbor, ...] = ()
    queue: str = "flagged"
    details: Mapping[str, Scalar] = field(default_factory=dict)
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    name: str = ""
    digest: str = ""

    @property
    def title(self) -> str:
        """The name of the row, or its number."""
        return self.name or f"row {self.row}"

    @property
    def kind(self) -> str:
        """One of table, text and image."""
        keys = tuple(self.content)
        return keys[0] if keys in (("text",), ("image",)) else "table"

    @property
    def neighbors(self) -> tuple[Neighbor, ...]:
        """Neighbors of both classes."""
        return self.given_neighbors + self.suggested_neighbors


@dataclass(frozen=True, kw_only=True)
class ReviewSet:
    """Rows to review, and the data set they come from."""

    classes: tuple[str, ...]
    n_rows: int
    n_flagged: int
    items: tuple[ReviewItem, ...]
    columns: tuple[str, ...] = ()
    sample_size: int = 50
    seed: int = 0
    title: str = "Label review"
    n_judged: int = ALL_ROWS
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n_judged == ALL_ROWS:
            object.__setattr__(self, "n_judged", self.n_rows)
        for item in self.items:
            check_item(item, self)
        check_review_set(self)

    @cached_property
    def flagged(self) -> tuple[ReviewItem, ...]:
        """Flagged items, most suspicious first."""
        chosen = [item for item in self.items if item.queue == "flagged"]
        return tuple(sorted(chosen, key=lambda item: (item.score, item.row)))

    @cached_property
    def sample(self) -> tuple[ReviewItem, ...]:
        """The first `sample_size` of the flagged items in random order."""
        return self._shuffled("flagged")[: self.sample_size]

    @cached_property
    def random(self) -> tuple[ReviewItem, ...]:
        """Random unflagged items, in random order."""
        return self._shuffled("random")

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all that decisions rest on: data size, classes, rows, labels and the sampling plan."""
        plan = [
            list(self.classes),
            int(self.n_rows),
            int(self.n_flagged),
            int(self.n_judged),
            int(self.sample_size),
            int(self.seed),
        ]
        rows = [[int(item.row), item.queue, item.given, item.suggested, item.digest] for item in self.items]
        return hashlib.sha256(json.dumps([plan, sorted(rows)]).encode()).hexdigest()

    def _shuffled(self, queue: str) -> tuple[ReviewItem, ...]:
        chosen = [item for item in self.items if item.queue == queue]
        return tuple(
            sorted(chosen, key=lambda item: hashlib.sha256(f"{self.seed}:{item.row}".encode()).digest())
        )


FORMAT = "neighboragg review set"
FORMAT_NUMBER = 1


def save_review_set(path: str | os.PathLike[str], review_set: ReviewSet) -> None:
    """Write a review set to a JSON file."""
    record = {"format": FORMAT, "format_number": FORMAT_NUMBER} | _record(review_set)
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_text(
        json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain), encoding="utf-8"
    )
    partial.replace(target)


def load_review_set(path: str | os.PathLike[str]) -> ReviewSet:
    """Read a review set from a JSON file."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path} is not a review set: it is not JSON ({error}).") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} is not a review set: its 'format' is not {FORMAT!r}.\n"
            "Hint: write it with neighboragg.labels._review_set.save_review_set."
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
    for name, one in fields.items():
        if name in record:
            element = name.removesuffix("s").replace("_", " ")
            inner = element.capitalize() if kind is ReviewSet else f"{where}, {element}"
            values[name] = _value(record[name], one.type, inner, f"{where}: {name!r}")
        elif one.default is one.default_factory is dataclasses.MISSING:
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
    for one in dataclasses.fields(instance):
        value = getattr(instance, one.name)
        if isinstance(value, tuple):
            value = [_record(entry) if isinstance(entry, ReviewItem | Neighbor) else entry for entry in value]
        elif isinstance(value, Mapping):
            # Only NaN differs from itself.
            value = {name: None if entry != entry else entry for name, entry in value.items()}
        record[one.name] = value
    return record


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's."""
    return value.item()


def rows_to_review(result: MislabelResult, n_random: int, seed: int, most: int) -> IntArray:
    """Positions of the flagged rows, most suspicious first, then of a random sample of the others."""
    check_integer(n_random, "n_random", "audit", minimum=0)
    flagged = result.ranking[result.mask[result.ranking]][:most]
    others = np.flatnonzero(~result.mask)
    return np.concatenate([flagged, np.sort(np.random.default_rng(seed).permutation(others)[:n_random])])


def build_review_set(
    frame: Any,
    result: MislabelResult,
    listed: IntArray,
    rows: IntArray,
    *,
    title: str,
    n_rows: int,
    shown: tuple[str, str] | None,
    name_of: Callable[[int], str],
    digests_of: Callable[[IntArray], list[str]],
    source: Mapping[str, Any],
) -> ReviewSet:
    """Put listed rows and their neighbors together for review; `frame` holds these rows, by row number."""
    page = _Rows(frame, rows, shown, name_of)
    places = np.sort(rows[listed])
    digests = dict(zip(places.tolist(), digests_of(places), strict=True))
    items = [_item(page, result, int(i), digests[int(rows[i])]) for i in listed]
    return ReviewSet(
        classes=tuple(str(label) for label in result.classes.tolist()),
        n_rows=n_rows,
        n_judged=len(result),
        n_flagged=result.n_flagged,
        items=tuple(items),
        columns=() if shown else tuple(map(str, frame.columns)),
        title=title,
        source=source,
    )


class _Rows:
    """The rows of a table as the page shows them."""

    def __init__(
        self, frame: Any, rows: IntArray, shown: tuple[str, str] | None, name_of: Callable[[int], str]
    ) -> None:
        self.rows, self.shown, self.name_of = rows, shown, name_of
        # Cell by cell: a whole row as one array would turn whole numbers into fractions.
        cells = [[_scalar(value) for value in frame.iloc[:, j].tolist()] for j in range(len(frame.columns))]
        names = [str(name) for name in frame.columns]
        self.values: dict[int, dict[str, Scalar]] = {
            int(row): dict(zip(names, values, strict=True))
            for row, values in zip(frame.index, zip(*cells, strict=True), strict=True)
        }

    def fields(self, position: int) -> dict[str, Any]:
        """Number, content and name of a row."""
        row = int(self.rows[position])
        content = self.values[row]
        if self.shown:
            kind, column = self.shown
            content = {kind: "" if content[column] is None else str(content[column])}
        return {"row": row, "content": content, "name": self.name_of(row)}

    def details(self, position: int) -> dict[str, Scalar]:
        """The columns that are not the content."""
        if not self.shown:
            return {}
        values = self.values[int(self.rows[position])]
        return {name: value for name, value in values.items() if name != self.shown[1]}


def _item(page: _Rows, result: MislabelResult, i: int, digest: str) -> ReviewItem:
    return ReviewItem(
        **page.fields(i),
        details=page.details(i),
        given=str(result.given[i]),
        suggested=str(result.suggested[i]),
        score=float(result.scores[i]),
        trust=tuple(float(value) for value in result.trust[i]),
        reasons=tuple(result.reasons[i]),
        facts={"estimated probability that the label is wrong": f"{result.p_wrong[i]:.0%}"},
        given_neighbors=_neighbors(page, result.given_neighbors[i], result.given_distances[i]),
        suggested_neighbors=_neighbors(page, result.suggested_neighbors[i], result.suggested_distances[i]),
        queue="flagged" if result.mask[i] else "random",
        digest=digest,
    )


def _neighbors(page: _Rows, positions: IntArray, distances: Any) -> tuple[Neighbor, ...]:
    pairs = zip(positions.tolist(), distances.tolist(), strict=True)
    return tuple(Neighbor(distance=distance, **page.fields(i)) for i, distance in pairs if i >= 0)


def _scalar(value: Any) -> Scalar:
    """A value that JSON knows; anything else as its text."""
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | bool | int | float) else str(value)
