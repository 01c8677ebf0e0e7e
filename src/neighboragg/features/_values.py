"""Numbers and dates written as text, such as 1.562,93 and 15.10.2024: the one reading that fits a whole column."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from neighboragg._core.inputs import is_missing
from neighboragg._core.types import Array, FloatArray

# Longer texts are neither. The patterns below see nothing longer, which bounds the work for each value.
MAX_CHARACTERS = 48
DECIMALS, THOUSANDS = (".", ","), (",", ".", " ", "'")
# Spaces of all widths, apostrophes and minus signs, as a keyboard has them.
PLAIN = str.maketrans("\u00a0\u2007\u2009\u202f\u2019\u2212", "    '-")
UNIT = (
    r"(%|US\$|R\$|[$€£¥₹₩₽₺₫₪]|zł|Kč|kr\.?|Fr\.?|Rs\.?|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN"
    r"|RUB|UAH|TRY|BRL|MXN|CAD|AUD|NZD|ZAR|KRW|SGD|HKD|ILS)?"
)
AMOUNT = re.compile(
    rf"(\(?)([+-]?) ?{UNIT} ?([+-]?)([.,]?[0-9][0-9., ']*)([eE][+-][0-9]{{1,3}})? ?{UNIT}(-?)(\)?)",
    re.IGNORECASE,
)
CLOCK = r"(?:,?[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]{1,6})?)? ?([AP]M)?)?"
NUMERIC_DATE = re.compile(rf"([0-9]{{1,4}})([./-])([0-9]{{1,2}})\2([0-9]{{1,4}}){CLOCK}", re.IGNORECASE)
# Where two digits can be a year: 1.2.10 is a version, and 24-10-15 may begin with the year.
SHORT_DATE = re.compile(r"([0-9]{2}\.[0-9]{2}\.|[0-9]{1,2}/[0-9]{1,2}/)[0-9]{2}(?![0-9])")
WORD = r"([A-Za-z]{3,9}|[0-9]{1,2})"
NAMED_DATE = re.compile(rf"{WORD}(?:[ -]|\. ?){WORD}(?:,|\.)?[ -]([0-9]{{4}}){CLOCK}", re.IGNORECASE)
# Two digits are a year of the last century from here on, as in the C library.
FIRST_SHORT_YEAR = 69
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """How the numbers or dates of a column are written."""

    #: Of numbers; empty for dates.
    decimal: str = ""
    thousands: str = ""
    #: Of dates: whether the day comes before the month, and whether both are numbers so that it matters.
    dayfirst: bool = False
    is_ordered: bool = True
    example: str = ""
    #: Another reading that fits every value as well.
    other: "Reading | None" = None

    @property
    def use(self) -> str:
        """What the column is used as."""
        return "number" if self.decimal else "date"

    def value(self, text: str) -> Any:
        """The number or date that a text stands for; None if it is not written so."""
        if not self.decimal:
            return _date(text, self.dayfirst)
        match = _amount(text)
        return None if match is None else _number(match, self.decimal, self.thousands)

    def read(self, texts: Iterable[Any]) -> Array:
        """The values; NaN or NaT where one is missing or written otherwise."""
        stripped = ["" if is_missing(text) else str(text).strip() for text in texts]
        known = {text: self.value(text) for text in dict.fromkeys(stripped)}
        found = [known[text] for text in stripped]
        return np.array(found, dtype=np.float64 if self.decimal else "datetime64[us]")

    def shown(self, text: str) -> str:
        """What a text is read as."""
        return f"{self.value(text):.15g}" if self.decimal else str(self.value(text))[:10]

    @property
    def description(self) -> str:
        """What is read as what, and the option that decides it."""
        if not self.decimal and self.is_ordered:
            return f"{'day' if self.dayfirst else 'month'} first; --dayfirst"
        match = _amount(self.example)
        marks = _marks(match) if match else set()
        option = "; --decimal" if self.decimal in marks or self.other else "; --thousands" if marks else ""
        return f"{self.example} read as {self.shown(self.example)}{option}"

    @property
    def doubt(self) -> str:
        """How the values could be read as well; empty if in no other way."""
        if self.other is None:
            return ""
        option = "--no-dayfirst" if self.dayfirst else "--dayfirst"
        option = f"--decimal '{self.other.decimal}'" if self.decimal else option
        return (
            f"{self.example} is read as {self.shown(self.example)}, but every value also fits the other reading, "
            f"{self.other.shown(self.example)} ({option})."
        )


def read_numbers(
    texts: Iterable[Any], decimal: str | None = None, thousands: str | None = None
) -> tuple[FloatArray, Reading] | None:
    """Numbers in one reading that fits every value, and the reading; None if there is none.

    Currencies (one of them), percent signs (5% is 5), parentheses and a trailing minus are accepted; leading zeros are
    not, as identifiers have them. If a mark can be both, it separates thousands in money, and else a point is decimal.
    """
    given = list(texts)
    values = _distinct(given)
    matches = _all(values, _amount)
    fitting = [
        (Reading(point, mark), found)
        for point in DECIMALS
        for mark in THOUSANDS
        if point != mark and decimal in (None, point) and thousands in (None, mark)
        if (found := _all(matches, partial(_number, decimal=point, thousands=mark)))
    ]
    units = {(match[3] or match[7] or "").upper().rstrip(".") for match in matches}
    if not fitting or len(units - {""}) > 1 or {"%", ""} <= units:
        return None  # not numbers, or amounts that cannot be compared
    if units - {"", "%"}:
        fitting.sort(key=lambda pair: -sum(map(abs, pair[1])))
    most_marks = max(range(len(values)), key=lambda i: len(_marks(matches[i])))
    reading = _first(fitting, values, values[most_marks])
    return reading.read(given), reading


def read_dates(texts: Iterable[Any], dayfirst: bool | None = None) -> tuple[Array, Reading] | None:
    """Dates in one reading that fits every value, and the reading; None if there is none.

    Day, month and year are numbers between points, slashes or hyphens, or the month is an English name; a time may
    follow. If no day is above 12, the day comes first between points, and the month between other signs.
    """
    given = list(texts)
    values = _distinct(given)
    preferred = any("." in text[:3] for text in values) if dayfirst is None else dayfirst
    orders = [preferred, not preferred] if dayfirst is None else [preferred]
    readings = [Reading(dayfirst=order) for order in orders]
    fitting = [(one, found) for one in readings if (found := _all(values, one.value))]
    if not fitting:
        return None
    reading = _first(fitting, values, values[0])
    is_ordered = any((match := NUMERIC_DATE.match(text)) and len(match[1]) < 3 for text in values)
    reading = replace(reading, is_ordered=is_ordered)
    return reading.read(given), reading


def _first(fitting: list[tuple[Reading, list[Any]]], values: list[str], example: str) -> Reading:
    """The first reading that fits, with an example, and another one that takes a value differently, if there is one."""
    chosen, found = fitting[0]
    for other, also in fitting[1:]:
        for text, one, two in zip(values, found, also, strict=True):
            if one != two:
                return replace(chosen, example=text, other=other)
    return replace(chosen, example=example)


def _distinct(texts: Iterable[Any]) -> list[str]:
    """The different values, without missing and blank ones."""
    stripped = (str(value).strip() for value in texts if not is_missing(value))
    return [text for text in dict.fromkeys(stripped) if text]


def _all(values: list[Any], read: Callable[[Any], Any]) -> list[Any]:
    """What the values are read as; empty if one of them cannot be read."""
    found = list(takewhile(lambda value: value is not None, map(read, values)))
    return found if len(found) == len(values) else []


def _amount(text: str) -> re.Match[str] | None:
    """The signs, units and digits of a text that may be a number."""
    return AMOUNT.fullmatch(text.translate(PLAIN)) if len(text) <= MAX_CHARACTERS else None


def _marks(amount: re.Match[str]) -> set[str]:
    """The marks between the digits."""
    return set(amount[5].strip()) & set(THOUSANDS)


def _number(amount: re.Match[str], decimal: str, thousands: str) -> float | None:
    """The number that an amount stands for in a reading; None if it does not fit."""
    left, sign, unit, inner_sign, body, exponent, second_unit, last_sign, right = amount.groups("")
    if (unit and second_unit) or len(left) != len(right):
        return None
    signs = left.replace("(", "-") + sign + inner_sign + last_sign
    whole, point, fraction = body.strip().partition(decimal)
    groups = whole.split(thousands)
    digits = "".join(groups)
    if len(groups) > 1 and (len(groups[0]) not in (1, 2, 3) or any(len(group) != 3 for group in groups[1:])):
        return None
    if len(signs) > 1 or not (digits or "0").isdigit() or (point and not fraction.isdigit()):
        return None
    if len(digits) > 1 and digits[0] == "0":  # as identifiers have it
        return None
    value = float(f"{digits or 0}.{fraction or 0}{exponent}")
    return (-value if signs == "-" else value) if math.isfinite(value) else None


def _date(text: str, dayfirst: bool) -> datetime | None:
    """The date that a text stands for with the day first or not; None if it does not fit."""
    if len(text) > MAX_CHARACTERS:
        return None
    if match := NUMERIC_DATE.fullmatch(text):
        first, _, second, last = match.groups()[:4]
        if len(first) == 4 and len(last) < 3:
            year, month, day = int(first), int(second), int(last)
        elif len(first) < 3 and (len(last) == 4 or SHORT_DATE.match(text)):
            century = 0 if len(last) == 4 else 1900 if int(last) >= FIRST_SHORT_YEAR else 2000
            year = century + int(last)
            day, month = (int(first), int(second)) if dayfirst else (int(second), int(first))
        else:
            return None
    elif match := NAMED_DATE.fullmatch(text):
        named, number = (match[1], match[2]) if match[1].isalpha() else (match[2], match[1])
        months = [i for i, name in enumerate(MONTHS, 1) if name.startswith(named.lower())]
        if len(months) != 1 or not number.isdigit():
            return None
        year, month, day = int(match[3]), months[0], int(number)
    else:
        return None
    hour, minute, second_, fraction, half = match.groups()[-5:]
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + 12 * (half.upper() == "PM")
    try:
        seconds = round(float(fraction or 0) * 1e6)
        return datetime(year, month, day, hours, int(minute or 0), int(second_ or 0), seconds)
    except ValueError:  # there is no such day or time
        return None
