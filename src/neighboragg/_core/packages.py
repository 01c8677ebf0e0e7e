"""Imports of optional packages, and the public module of exported names."""

from importlib import import_module
from types import FunctionType
from typing import Any

from neighboragg.exceptions import MissingExtraError


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Import `module`, or raise an error that names the extra of neighboragg to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "neighboragg[{extra}]"'
        ) from error


def publish(namespace: dict[str, Any]) -> None:
    """Set `__module__` of all exported names to this module, or to neighboragg for its top-level names."""
    # Must run at the end of the module: changing the module of a class later would change its hash.
    package = namespace["__name__"]
    rooms = import_module("neighboragg").ROOMS
    if "__all__" in namespace:
        # Tab completion shows only public names.
        namespace.setdefault("__dir__", lambda: sorted(namespace["__all__"]))
    for name in namespace.get("__all__", ()):
        _settle(namespace[name], package)
    for name in (name for name, room in rooms.items() if room == package):
        _settle(namespace[name], "neighboragg")


def _settle(value: Any, package: str) -> None:
    written_in = getattr(value, "__module__", None) or ""
    if not (isinstance(value, type | FunctionType) and written_in.startswith("neighboragg.")):
        return
    value.__module__ = package
    if isinstance(value, type):
        for member in vars(value).values():
            if isinstance(member, FunctionType) and member.__module__ == written_in:
                member.__module__ = package
