"""Warnings as lines of what a command says."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from neighboragg.exceptions import TrustWarning

__all__ = ["warnings_printed"]


@contextmanager
def warnings_printed(console: Console) -> Iterator[None]:
    """Print the warnings of the block when it has ended well, each once; enter it before a progress bar."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrustWarning)
        yield
    for said in dict.fromkeys(str(warning.message) for warning in caught):
        console.print(f"Warning: {said}", style="bold yellow", soft_wrap=True, markup=False)
