"""How the pages say things: names, numbers, addresses, and the templates that use them."""

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2

from neighboragg.exceptions import InvalidInputError
from neighboragg.review._contrast import show_value
from neighboragg.review._items import Neighbor

__all__ = ["PAST", "check_name", "environment", "link"]

PAST = {
    "keep": "kept",
    "relabel": "relabeled",
    "exclude": "excluded",
    "skip": "skipped",
    "unsure": "marked unsure",
    "undo": "undone",
}


def check_name(name: str) -> str:
    """Return a reviewer's name, trimmed; it must not look like a formula in a spreadsheet."""
    name = " ".join(name.split())
    if not re.fullmatch(r"\w[\w .'-]{0,39}", name):
        raise InvalidInputError("A name has up to 40 letters, digits, spaces, points or hyphens.")
    return name


def link(path: str, *queries: dict[str, str], **fields: Any) -> str:
    """Return an address with the fields that have a value."""
    merged = {name: value for query in queries for name, value in query.items()} | fields
    text = urlencode({name: value for name, value in merged.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


@cache
def environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "show": show_value,
        # The path of a picture stays as it is.
        "sentence": lambda text: text if "/" in text else text[:1].upper() + text[1:],
        "count": lambda number: f"{number:,}",
        "percent": _percent,
        "image_url": lambda path: "/images/" + quote(str(path)),
        "signed": lambda number: f"{number:.2f}".replace("-", "−"),
        "moment": lambda time: f"{time[:10]} {time[11:16]} UTC",
        "values": _neighbor_values,
    }
    return environment


def _percent(share: float) -> str:
    """Whole per cents, but never a rounded 0 or 100."""
    value = 100 * share
    return f"{value:.0f} %" if value in (0, 100) or 0.5 <= value <= 99.5 else f"{value:.1f} %"


def _neighbor_values(neighbors: tuple[Neighbor, ...], name: str) -> list[str | None]:
    return [show_value(neighbor.content.get(name)) for neighbor in neighbors]
