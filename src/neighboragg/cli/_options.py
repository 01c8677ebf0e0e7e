"""Options that several commands about tables share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["CacheFolder", "Encoding", "LabelColumn", "Overwrite", "Separator", "names_of"]

LabelColumn = Annotated[
    str | None, typer.Option(help="Name of the label column; a folder of pictures has none.")
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        help="Folder to keep vectors of texts and pictures in; ~/.cache/neighboragg/vectors if not given.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option("--sep", help="Delimiter of a CSV file, e.g. ';' or tab; found out if not given."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, e.g. cp1252 or latin-1; UTF-8 if not given.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output files.")]


def names_of(listed: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]
