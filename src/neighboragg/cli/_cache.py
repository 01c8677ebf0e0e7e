"""`neighboragg cache`: where vectors of texts and pictures are kept, and how to drop them."""

from typing import Annotated

import typer

from neighboragg.cli._options import CacheFolder
from neighboragg.encoders import VectorCache

__all__ = ["cache"]


def cache(
    folder: CacheFolder = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all vectors that are kept.")] = False,
) -> None:
    """Show where vectors of texts and pictures are kept between runs, or remove them."""
    kept = VectorCache(folder)
    count = len(kept)
    if clear:
        kept.clear()
        typer.echo(f"{count:,} vectors removed: {kept.path}")
    else:
        size = kept.path.stat().st_size / 1e6 if kept.path.exists() else 0.0
        typer.echo(f"{count:,} vectors, {size:,.1f} MB: {kept.path}")
