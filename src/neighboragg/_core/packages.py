"""Optional packages, and the public home of exported names."""

from collections.abc import Iterable
from importlib import import_module
from types import FunctionType
from typing import Any

from neighboragg.exceptions import MissingExtraError


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import `module`, or say which extra of neighboragg brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "neighboragg[{extra}]"'
        ) from error


def publish(namespace: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Make a package the home of the classes and functions that it exports; call it last, with `globals()`."""
    package = namespace["__name__"]
    # What other rooms of the package import from here is no business of a user's tab key.
    namespace.setdefault("__dir__", lambda: sorted(namespace["__all__"]))
    for name in namespace["__all__"] if names is None else names:
        value = namespace[name]
        written_in = getattr(value, "__module__", None) or ""
        if not (isinstance(value, type | FunctionType) and written_in.startswith(f"{package}.")):
            continue
        value.__module__ = package
        if isinstance(value, type):
            for member in vars(value).values():
                if isinstance(member, FunctionType) and member.__module__ == written_in:
                    member.__module__ = package
