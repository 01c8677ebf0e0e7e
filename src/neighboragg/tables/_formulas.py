"""Text in CSV files that a spreadsheet would run as a formula."""

import re
from typing import Any

__all__ = ["escape_formula", "unescape_formula"]

# What a spreadsheet takes for a formula; a number with a sign is none.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; anything else stays as it is.

    Parameters
    ----------
    value : object

    Returns
    -------
    value : object

    Examples
    --------
    >>> from neighboragg.tables import escape_formula
    >>> escape_formula("=1+1"), escape_formula("-1"), escape_formula(2)
    ("'=1+1", '-1', 2)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unescape_formula(text: str) -> str:
    """Take back what :func:`escape_formula` did to a text.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str

    Examples
    --------
    >>> from neighboragg.tables import unescape_formula
    >>> unescape_formula("'=1+1")
    '=1+1'
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
