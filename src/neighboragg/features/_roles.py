"""The role of each column, or the reason why it is ignored."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features._columns import column_kind
from neighboragg.features._leaks import leaking_columns
from neighboragg.features._values import Reading, read_dates, read_numbers

USES = ("number", "category", "text", "date", "ignored", "suspicious")
# With fewer rows than this, values that never repeat do not indicate an identifier.
MIN_ROWS = 20
# A few rows of an identifier may be copies.
HARDLY_ANY_TWICE = 0.98
MAX_CATEGORIES = 100
ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|uid|uuid|guid|key|index|idx|rowid|row|nr|no|number|num)$|[a-z](Id|ID|UUID)$", re.I
)
HASH = re.compile(
    r"[0-9a-fA-F]{16,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[A-Za-z0-9+/_=-]{20,}"
)
DATE = r"\s*\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?\s*"
USE_HINT = "name columns to use anyway (--use), or pass embeddings (--embeddings)."


@dataclass(frozen=True)
class ColumnRole:
    """How a column of a table is used."""

    name: str
    use: str
    reason: str = ""
    #: How texts are read as numbers or dates, if they are.
    reading: Reading | None = None

    @property
    def doubt(self) -> str:
        """How the values of a used column could be read as well; empty if in no other way."""
        doubt = self.reading.doubt if self.used and self.reading else ""
        return f"{self.name}: {doubt}" if doubt else ""

    @property
    def used(self) -> bool:
        """Whether the column is evidence about labels."""
        return self.use not in ("ignored", "suspicious")


def column_roles(
    frame: Any,
    labels: Array,
    *,
    only: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    use: Sequence[str] = (),
    random_state: int = 0,
    dayfirst: bool | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> tuple[ColumnRole, ...]:
    """Decide what each column is used for, and how texts are read as numbers or dates."""
    names = list(frame.columns)
    chosen: dict[str, Any] = {"only": only or (), "ignore": ignore, "use": use}
    for option, given in chosen.items():
        if isinstance(given, str):
            raise InvalidParameterError(
                f"{option} must be a list of column names. Got the text {given!r} instead.\n"
                f"Hint: a list of one is [{given!r}]."
            )
        for name in given:
            if name not in names:
                raise InvalidParameterError(
                    f"{option} names {name!r}, which is not a column, or is the label column.\n"
                    f"Hint: the columns are {', '.join(map(repr, names))}."
                )
    written = {"dayfirst": dayfirst, "decimal": decimal, "thousands": thousands}
    roles = [_role(frame[name], name, written) for name in names]
    wanted = set(names if only is None else only) - set(ignore)
    insisted = set(use) | set(only or ())
    for j, role in enumerate(roles):
        if role.name not in wanted:
            roles[j] = replace(role, use="ignored", reason="not chosen")
        elif role.name in insisted and role.use == "ignored":
            plain = role.reading.use if role.reading else _plain_use(frame[role.name])
            roles[j] = replace(role, use=plain, reason="") if plain else role
    open_to_doubt = [role.name for role in roles if role.use in ("number", "category", "date")]
    leaks = leaking_columns(prepared_frame(frame, roles)[open_to_doubt], labels, random_state=random_state)
    return tuple(
        replace(role, use="suspicious", reason=leaks[role.name])
        if role.name in leaks and role.name not in insisted
        else role
        for role in roles
    )


def prepared_frame(frame: Any, roles: Sequence[ColumnRole]) -> Any:
    """The used columns, dates as dates and all that is not a number as text."""
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    prepared = {}
    for role in roles:
        if role.used:
            column = frame[role.name]
            if role.reading is not None:
                column = pandas.Series(role.reading.read(column), index=column.index)
            elif role.use == "date":
                # Without a time zone, because NumPy arrays do not support them.
                column = pandas.to_datetime(
                    column, utc=True, format="ISO8601", errors="coerce"
                ).dt.tz_localize(None)
            elif role.use in ("category", "text"):
                column = column.astype(object).where(column.notna(), None)
                column = column.map(lambda value: value if value is None else str(value))
            prepared[role.name] = column
    return pandas.DataFrame(prepared, index=frame.index)


def describe_roles(roles: Sequence[ColumnRole]) -> str:
    """Lines that list the used and the ignored columns, with reasons."""
    lines = []
    for use, plural in (
        ("number", "numbers"),
        ("category", "categories"),
        ("date", "dates"),
        ("text", "texts"),
    ):
        names = [
            f"{role.name} ({role.reading.description})" if role.reading else role.name
            for role in roles
            if role.use == use
        ]
        if names:
            lines.append(f"  {plural:<10}  {_listed(names)}")
    ignored = [f"{role.name} ({role.reason})" for role in roles if role.use == "ignored"]
    if ignored:
        lines.append(f"  {'ignored':<10}  {_listed(ignored)}")
    for role in roles:
        if role.use == "suspicious":
            lines.append(
                f"  SUSPICIOUS  {role.name} {role.reason}; left out because it would confirm wrong labels"
            )
            lines.append(f"              (to use it anyway: --use {role.name})")
    return "\n".join(lines)


def check_usable(roles: Sequence[ColumnRole], *, hint: str = USE_HINT) -> None:
    """Raise if no column is used, with the reason for each."""
    if not any(role.used for role in roles):
        why = "\n".join(f"  {role.name}: {role.reason}" for role in roles) or "  the label is the only column"
        raise InvalidInputError(f"There is no usable column other than the label:\n{why}\nHint: {hint}")


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _plain_use(column: Any) -> str | None:
    """The role of a column that the user wants to use, whatever it looks like."""
    known = column.dropna()
    if not len(known) or not _is_hashable(known):
        return None
    if column.dtype.kind in "biuf":
        return "number"
    if column.dtype.kind == "M":
        return "date"
    return column_kind(known.astype(str).to_numpy(dtype=object))


def _role(column: Any, name: str, written: Mapping[str, Any]) -> ColumnRole:
    """The role of a column by itself, independent of other columns."""
    known = column.dropna()
    if not len(known):
        return ColumnRole(name, "ignored", "empty")
    if not _is_hashable(known):
        return ColumnRole(
            name,
            "ignored",
            "lists or objects, not single values; for vectors: --embeddings",
        )
    n, distinct = len(known), known.nunique()
    if distinct == 1 and n == len(column):
        return ColumnRole(name, "ignored", "a single value")
    pandas = import_extra("pandas", extra="cli", purpose="Reading a table")
    if pandas.api.types.is_datetime64_any_dtype(column):
        return ColumnRole(name, "date")
    if pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_bool_dtype(column):
        return _number_role(known, name)
    known = known.astype(str)
    if known.str.fullmatch(DATE).all():
        return ColumnRole(name, "date")
    if reading := _reading_of(known, written):
        role = ColumnRole(name, "date")
        if reading.use == "number":
            role = _number_role(pandas.Series(reading.read(known)).dropna(), name)
        return replace(role, reading=reading)
    return _text_role(known, name, distinct)


def _number_role(known: Any, name: str) -> ColumnRole:
    """Whether numbers are used, or are an identifier."""
    n, distinct = len(known), known.nunique()
    many = distinct >= max(MIN_ROWS, HARDLY_ANY_TWICE * n)
    values = known.drop_duplicates().to_numpy(dtype=np.float64) if many else None
    reason = "" if values is None else _numeric_identifier(values, name)
    return ColumnRole(name, "ignored", reason) if reason else ColumnRole(name, "number")


def _reading_of(known: Any, written: Mapping[str, Any]) -> Reading | None:
    """How texts are read as numbers or dates; None if they are not, or are digits alone, as codes are."""
    texts = known.str.strip().unique()
    if all(text.isdigit() for text in texts if text):
        return None
    marks = {option: written[option] for option in ("decimal", "thousands")}
    # Whatever the options say of other columns: a column that does not fit them may still be clear by itself.
    found = (
        read_numbers(texts, **marks)
        or read_dates(texts, written["dayfirst"])
        or read_numbers(texts)
        or read_dates(texts)
    )
    return found[1] if found else None


def _text_role(known: Any, name: str, distinct: int) -> ColumnRole:
    n = len(known)
    if 2 * distinct > n and n >= MIN_ROWS:
        if column_kind(known.to_numpy(dtype=object)) == "text":
            return ColumnRole(name, "text")
        if distinct == n:
            return ColumnRole(name, "ignored", "every value occurs once")
        if known.str.fullmatch(HASH).mean() > 0.9:
            return ColumnRole(name, "ignored", "hashes")
        if distinct > MAX_CATEGORIES or distinct >= HARDLY_ANY_TWICE * n:
            return ColumnRole(name, "ignored", "values hardly ever repeat")
    return ColumnRole(name, "category")


def _numeric_identifier(values: Array, name: str) -> str:
    """The reason why numbers that hardly ever repeat are an identifier; empty if they are not."""
    steps = np.diff(values)
    if (steps == steps[0]).all():
        return "counted up"
    if (values != np.floor(values)).any():
        return ""
    span = float(values.max() - values.min())
    if ID_NAME.search(name):
        return "whole numbers that hardly repeat, and the name of an identifier"
    if span < 1.2 * len(values):
        return "whole numbers that hardly repeat and fill a range"
    if ((steps > 0).all() or (steps < 0).all()) and span < 20 * len(values):
        return "whole numbers in order that hardly repeat"
    return ""


def _is_hashable(known: Any) -> bool:
    """Whether values are single ones; lists, arrays and mappings are not."""
    return known.dtype.kind != "O" or not any(
        isinstance(value, list | dict | set | np.ndarray) for value in known
    )
