"""The `neighboragg` command."""

import sys

from neighboragg import __version__


def main() -> None:
    """Run the command line."""
    # Answered here, because other imports load scikit-learn, which takes a second.
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"{__version__}\n")
    else:
        _run()


def _run() -> None:
    from neighboragg._core.packages import import_extra
    from neighboragg.exceptions import MissingExtraError, NeighborAggError

    try:
        for package in ("typer", "rich", "matplotlib"):
            import_extra(package, extra="cli", purpose="The neighboragg command")
    except MissingExtraError as error:
        sys.exit(str(error))
    try:
        from neighboragg._cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    except NeighborAggError as error:
        sys.exit(f"Error: {error}")
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.exit(f"Error: {error.strerror or error}{where}.")
