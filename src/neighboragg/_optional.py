"""Imports of optional dependencies, with an error that names the extra to install."""

from importlib import import_module
from typing import Any

from neighboragg.exceptions import MissingExtraError

__all__ = ["import_extra"]


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import `module`, or say which extra of neighboragg brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        Extra of neighboragg that installs it.
    purpose : str
        What needs it, as the subject of the error message.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "neighboragg[{extra}]"'
        ) from error
