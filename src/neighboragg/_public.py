"""Public names say the module they are public in, not the file they are written in."""

from types import FunctionType
from typing import Any

__all__ = ["publish"]


def publish(namespace: dict[str, Any]) -> None:
    """Make a package the home of the classes and functions that it exports; call it last, with `globals()`."""
    package = namespace["__name__"]
    for name in namespace["__all__"]:
        value = namespace[name]
        written_in = getattr(value, "__module__", None) or ""
        if not (isinstance(value, type | FunctionType) and written_in.startswith(f"{package}.")):
            continue
        value.__module__ = package
        if isinstance(value, type):
            for member in vars(value).values():
                if isinstance(member, FunctionType) and member.__module__ == written_in:
                    member.__module__ = package
