"""Encoders: callables that a user names or passes, what they give, and when that may be kept."""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._inputs import as_plain
from neighboragg._typing import FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = ["Encoder", "find_encoder"]


@dataclass(frozen=True)
class Encoder:
    """A callable that turns a list of texts or pictures into vectors.

    Parameters
    ----------
    name : str
        What messages call it.
    function : callable
        Takes a list and returns an array of shape (n, d).
    identity : str or None
        What its vectors are kept under; None if nobody can tell whether it is the same in another run, so that
        nothing is kept.

    See Also
    --------
    find_encoder : Make one from what a user passes.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.encoders import Encoder
    >>> lengths = Encoder("lengths", lambda texts: np.array([[len(text)] for text in texts]), None)
    >>> lengths.vectors_of(["a", "bcd"], ["the first", "the second"]).tolist()
    [[1.0], [3.0]]
    """

    name: str
    function: Callable[[list[Any]], Any]
    identity: str | None

    def vectors_of(self, items: Sequence[Any], names: Sequence[str]) -> FloatArray:
        """Vectors of a batch, checked.

        Parameters
        ----------
        items : sequence of str or PIL.Image.Image
        names : sequence of str
            What messages call the items.

        Returns
        -------
        vectors : ndarray of float32 or float64 of shape (n, d)
        """
        n = len(items)
        try:
            given = as_plain(self.function(list(items)), "the output", self.name)
            vectors = np.asarray(given)
        except Exception as error:
            raise InvalidInputError(
                f"The encoder {self.name} failed on a batch of {n}, from {names[0]} to {names[-1]}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != n or not vectors.shape[1] or vectors.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"The encoder {self.name} must return an array of numbers of shape ({n}, d) for {n} inputs. Got shape "
                f"{vectors.shape} of type {vectors.dtype}.\n"
                "Hint: it is called with a list, and returns one vector for each of its elements."
            )
        vectors = vectors.astype(np.float32 if vectors.dtype in (np.float16, np.float32) else np.float64)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            first = int(np.argmin(finite))
            raise InvalidInputError(
                f"The encoder {self.name} returned NaN or infinity for {int((~finite).sum())} of {n} inputs, the first "
                f"being {names[first]}."
            )
        return vectors


def find_encoder(encoder: Any) -> Encoder:
    """The encoder that a name or a callable stands for.

    Parameters
    ----------
    encoder : str, callable or Encoder
        A name is written ``package.module:callable``.

    Returns
    -------
    encoder : Encoder
        Its identity is made of its name, the version of its package, a digest of the source file that defines it, and
        its attribute `version`, if it has one. What it reads besides, such as weights in a file, is not seen: give it
        an attribute `version` that changes with them. A callable that is no function of a module, such as a lambda or
        a bound method, has an identity only if it has a `version`.

    Examples
    --------
    >>> from neighboragg.encoders import find_encoder
    >>> find_encoder("numpy:asarray").name
    'numpy:asarray'
    """
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, str):
        module, function = _imported(encoder)
        return Encoder(encoder, function, _identity(encoder, module, function))
    if not callable(encoder) or isinstance(encoder, type):
        raise InvalidParameterError(
            "An encoder is a callable, or the name of one, written package:callable. "
            f"Got {encoder!r} instead."
        )
    home, path = getattr(encoder, "__module__", None) or "", getattr(encoder, "__qualname__", "")
    name = f"{home}:{path or type(encoder).__qualname__}"
    if not _is_found(encoder, home, path) and getattr(encoder, "version", None) is None:
        return Encoder(name, encoder, None)
    return Encoder(name, encoder, _identity(name, home, encoder))


def _imported(name: str) -> tuple[str, Any]:
    """Module and callable of a name."""
    module, colon, path = name.partition(":")
    if not colon or not module or not path or not all(part.isidentifier() for part in path.split(".")):
        raise InvalidParameterError(
            f"The encoder {name!r} must be written as package:callable.\n"
            "Hint: my_encoder:encode for the function encode in my_encoder.py."
        )
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise InvalidParameterError(
                f"There is no module {error.name!r} for the encoder {name!r}.\n"
                "Hint: it must be installed, or lie as a .py file in the folder where Python was started."
            ) from error
        raise _failed_import(name, module, error) from error
    except Exception as error:
        raise _failed_import(name, module, error) from error
    try:
        function = attrgetter(path)(found)
    except AttributeError as error:
        own = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
        known = f"\nHint: it has {', '.join(own[:10])}{', …' if len(own) > 10 else ''}." if own else ""
        raise InvalidParameterError(f"The module {module!r} has no {path!r}.{known}") from error
    if not callable(function) or isinstance(function, type):
        kind = "a class, not one of its objects" if isinstance(function, type) else "not callable"
        raise InvalidParameterError(
            f"The encoder {name!r} is {kind}.\n"
            "Hint: name a function that takes a list and returns an array with a row for each element."
        )
    return module, function


def _failed_import(name: str, module: str, error: Exception) -> InvalidParameterError:
    return InvalidParameterError(
        f"Importing {module!r} for the encoder {name!r} failed: {type(error).__name__}: {error}"
    )


def _is_found(function: Any, module: str, path: str) -> bool:
    """Whether a callable is what its module holds under its name, in a file."""
    try:
        found = sys.modules[module]
        return attrgetter(path)(found) is function and getattr(found, "__file__", None) is not None
    except (KeyError, AttributeError):
        return False


def _identity(name: str, module: str, function: Any) -> str:
    parts = [name, f"package {_package_version(module)}"]
    # What a name stands for may be defined elsewhere.
    for place in dict.fromkeys((module, str(getattr(function, "__module__", module)))):
        file = getattr(sys.modules.get(place), "__file__", None)
        if file is not None and Path(file).is_file():
            parts.append(f"source {hashlib.sha256(Path(file).read_bytes()).hexdigest()}")
    if (version := getattr(function, "version", None)) is not None:
        parts.append(f"version {version}")
    return "; ".join(parts)


def _package_version(module: str) -> str:
    package = module.partition(".")[0]
    if (version := getattr(sys.modules.get(package), "__version__", None)) is not None:
        return str(version)
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
