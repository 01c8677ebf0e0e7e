"""Outputs: written whole or not at all, and safe to open in a spreadsheet."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from neighboragg.exceptions import InvalidInputError

# What a spreadsheet takes for a formula; a number with a sign is none.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_formula(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would run; anything else stays as it is."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unescape_formula(text: str) -> str:
    """Take back what :func:`escape_formula` did to a text."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def home() -> Path:
    """The folder for what is kept between runs."""
    return Path(os.environ.get("NEIGHBORAGG_HOME") or Path("~", ".cache", "neighboragg")).expanduser()


class Stage(Protocol):
    """Gives a temporary path to write to instead of the final one."""

    def __call__(self, path: Path) -> Path:
        """The path to write to, in the same folder and with the same suffix."""


def check_outputs(*paths: Path, overwrite: bool) -> None:
    """Raise if a file to write is there already, or is a folder."""
    for path in paths:
        if path.is_dir():
            raise InvalidInputError(f"The output {path} is a folder.\nHint: name a file.")
        if path.exists() and not overwrite:
            raise InvalidInputError(
                f"{path} exists already.\nHint: choose another name with -o, or replace it with --overwrite."
            )


@contextmanager
def staged_files() -> Iterator[Stage]:
    """Write several files beside where they belong, and move all into place at the end."""
    staged: list[tuple[Path, Path]] = []

    def stage(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
        staged.append((temporary, path))
        return temporary

    try:
        yield stage
        for temporary, path in staged:
            temporary.replace(path)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
