"""Files that appear whole or not at all."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from neighboragg.exceptions import InvalidInputError

__all__ = ["check_outputs", "staged_files"]


class Stage(Protocol):
    """Gives a temporary path to write to instead of the final one."""

    def __call__(self, path: Path) -> Path:
        """The path to write to, in the same folder and with the same suffix."""


def check_outputs(*paths: Path, overwrite: bool) -> None:
    """Raise if a file to write is there already, or is a folder.

    Parameters
    ----------
    *paths : Path
    overwrite : bool
        Whether existing files may be replaced.
    """
    for path in paths:
        if path.is_dir():
            raise InvalidInputError(f"The output {path} is a folder.\nHint: name a file.")
        if path.exists() and not overwrite:
            raise InvalidInputError(
                f"{path} exists already.\nHint: choose another name with -o, or replace it with --overwrite."
            )


@contextmanager
def staged_files() -> Iterator[Stage]:
    """Write several files beside where they belong, and move all into place at the end.

    Yields
    ------
    stage : callable
        ``stage(path)`` is where to write what shall be at `path`. If the block fails or is interrupted, the
        temporary files are removed and nothing has changed.
    """
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
