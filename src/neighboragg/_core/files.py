"""Output files that are written completely or not at all, and that are safe to open in a spreadsheet."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from neighboragg.exceptions import InvalidInputError

# A spreadsheet treats such a text as a formula, unless it is a signed number.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def escape_formula(value: Any) -> Any:
    """Prefix an apostrophe to a text that a spreadsheet would run as a formula; return other values as is."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def unescape_formula(text: str) -> str:
    """Undo :func:`escape_formula`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def home() -> Path:
    """The folder for what is kept between runs."""
    return Path(os.environ.get("NEIGHBORAGG_HOME") or Path("~", ".cache", "neighboragg")).expanduser()


class Stage(Protocol):
    """A function that returns a temporary path to write to instead of the final path."""

    def __call__(self, path: Path) -> Path:
        """Return a temporary path in the same folder and with the same suffix."""


def check_outputs(*paths: Path, overwrite: bool) -> None:
    """Raise if an output file already exists or is a folder."""
    for path in paths:
        if path.is_dir():
            raise InvalidInputError(f"The output {path} is a folder.\nHint: pass the path of a file.")
        if path.exists() and not overwrite:
            raise InvalidInputError(
                f"The output {path} already exists.\n"
                "Hint: choose another name with -o, or replace the file with --overwrite."
            )


@contextmanager
def staged_files() -> Iterator[Stage]:
    """Write several files to temporary paths, and move all of them into place at the end."""
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
