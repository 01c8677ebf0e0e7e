"""`neighboragg review`: decide about flagged labels in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from neighboragg.audit import AuditFiles
from neighboragg.review import serve

__all__ = ["review"]


def review(
    file: Annotated[Path, typer.Argument(help="CSV file that `neighboragg audit` wrote.")],
    images: Annotated[
        Path | None,
        typer.Option(help="Folder that image paths are relative to; that of the file if not given."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name under which browsers may call too, for instance behind a proxy. Repeatable."
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Review flagged labels in the browser; each decision is saved immediately, beside the file."""
    serve(
        AuditFiles(file).existing_review(),
        host=host,
        port=port,
        open_browser=browser,
        image_root=images,
        allow_hosts=allow_host or (),
    )
