"""Turn texts and images into vectors by an encoder, in batches and cached by content."""

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from neighboragg._core.checks import check_integer
from neighboragg._core.inputs import as_plain
from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._store.objects import Savable
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NeighborAggError, TrustWarning
from neighboragg.features._images import (
    DESCRIPTOR,
    content_of,
    decode_image,
    describe_images,
    is_image,
    pillow_version,
)
from neighboragg.features._vector_cache import VectorCache


@dataclass(frozen=True)
class Encoder:
    """A callable that turns a list of texts or images into vectors."""

    name: str
    function: Callable[[list[Any]], Any]
    identity: str | None

    def vectors_of(self, items: Sequence[Any], names: Sequence[str]) -> FloatArray:
        """Vectors of a batch, checked."""
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
                "Hint: it is called with a list and must return one vector per element."
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
    """Resolve an encoder from a name or a callable."""
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, str):
        module, function = _imported(encoder)
        return Encoder(encoder, function, _identity(encoder, module, function))
    if not callable(encoder) or isinstance(encoder, type):
        raise InvalidParameterError(
            "An encoder must be a callable or the name of one, written package:callable. "
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
                f"The module {error.name!r} of the encoder {name!r} was not found.\n"
                "Hint: install it, or put it as a .py file into the folder where Python was started."
            ) from error
        raise _failed_import(name, module, error) from error
    except Exception as error:
        raise _failed_import(name, module, error) from error
    try:
        function = attrgetter(path)(found)
    except AttributeError as error:
        own = [key for key, value in vars(found).items() if callable(value) and not key.startswith("_")]
        known = f"\nHint: it has {', '.join(own[:10])}{', …' if len(own) > 10 else ''}." if own else ""
        raise InvalidParameterError(f"The module {module!r} does not define {path!r}.{known}") from error
    if not callable(function) or isinstance(function, type):
        kind = "a class, not one of its objects" if isinstance(function, type) else "not callable"
        raise InvalidParameterError(
            f"The encoder {name!r} is {kind}.\n"
            "Hint: name a function that takes a list and returns an array with one row per element."
        )
    return module, function


def _failed_import(name: str, module: str, error: Exception) -> InvalidParameterError:
    return InvalidParameterError(
        f"Importing {module!r} for the encoder {name!r} failed: {type(error).__name__}: {error}"
    )


def _is_found(function: Any, module: str, path: str) -> bool:
    """Whether a callable can be imported from a file by its module and name."""
    try:
        found = sys.modules[module]
        return attrgetter(path)(found) is function and getattr(found, "__file__", None) is not None
    except (KeyError, AttributeError):
        return False


def _identity(name: str, module: str, function: Any) -> str:
    parts = [name, f"package {_package_version(module)}"]
    # A name may refer to an object defined in another module.
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


BATCH_SIZE = 64
# Problems that a message names.
N_NAMED = 10

Cache = str | os.PathLike[str] | VectorCache | bool


@dataclass(frozen=True)
class Encoded:
    """Vectors of those images that could be read."""

    vectors: FloatArray
    rows: IntArray
    problems: Mapping[int, str]
    n_opened: int


def encode_images(
    images: Sequence[Any],
    encoder: Any = None,
    *,
    root: str | os.PathLike[str] | None = None,
    cache: Cache = False,
    batch_size: int = BATCH_SIZE,
    skip_unreadable: bool = False,
) -> Encoded:
    """Turn images into vectors."""
    if isinstance(images, str | os.PathLike):
        raise InvalidInputError("encode_images needs a list of images. Got a single path.\nHint: [path].")
    version = pillow_version()
    used = Encoder("built in", describe_images, DESCRIPTOR) if encoder is None else find_encoder(encoder)
    items = list(images)
    names = [f"image {i}" if is_image(item) else str(item) for i, item in enumerate(items)]
    begin_stage("Encoding the images")
    found = _encode(
        items,
        names,
        used,
        _Reading(lambda image: content_of(image, root), decode_image),
        _kept_as(cache, used, f"images, Pillow {version}"),
        check_integer(batch_size, "batch_size", "encode_images", minimum=1),
    )
    if found.problems and not skip_unreadable:
        raise InvalidInputError(
            f"{len(found.problems):,} of {len(items):,} images cannot be read:\n"
            f"{list_problems({names[i]: why for i, why in found.problems.items()})}\n"
            "Hint: repair or remove them, or go on without them (skip_unreadable=True)."
        )
    return found


def encode_texts(
    texts: Sequence[str], encoder: Any, *, cache: Cache = False, batch_size: int = BATCH_SIZE
) -> FloatArray:
    """Turn texts into vectors."""
    if isinstance(texts, str):
        raise InvalidInputError("encode_texts needs a list of texts. Got a single one.\nHint: [text].")
    items = list(texts)
    for i, text in enumerate(items):
        if not isinstance(text, str):
            raise InvalidInputError(f"Text {i} passed to encode_texts is not a str. Got {text!r}.")
    used = find_encoder(encoder)
    begin_stage("Encoding the texts")
    found = _encode(
        items,
        [f"text {i}" for i in range(len(items))],
        used,
        _Reading(lambda text: (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), text), str),
        _kept_as(cache, used, "texts"),
        check_integer(batch_size, "batch_size", "encode_texts", minimum=1),
    )
    return found.vectors


def list_problems(problems: Mapping[str, str]) -> str:
    """Lines with the names and problems of the first images."""
    lines = [f"  {name}: {why}" for name, why in list(problems.items())[:N_NAMED]]
    rest = len(problems) - len(lines)
    return "\n".join([*lines, *([f"  and {rest:,} more"] if rest else [])])


class _Reading(NamedTuple):
    """Functions from an item to its digest and content, and from a content to the input of the encoder."""

    read: Callable[[Any], tuple[bytes, Any]]
    decode: Callable[[Any], Any]


class _Kept:
    """Cache of vectors under a name; an unusable folder causes a warning and disables the cache."""

    def __init__(self, cache: VectorCache, identity: str) -> None:
        self.cache: VectorCache | None = cache
        self.identity = identity

    def get(self, wanted: Sequence[bytes]) -> dict[bytes, FloatArray]:
        """The cached vectors."""
        found: dict[bytes, FloatArray] | None = self._try(lambda cache: cache.get(self.identity, wanted))
        return found or {}

    def put(self, made: Mapping[bytes, FloatArray]) -> None:
        """Keep vectors."""
        self._try(lambda cache: cache.put(self.identity, made))

    def forget(self) -> None:
        """Drop all vectors of that name."""
        self._try(lambda cache: cache.forget(self.identity))

    def _try(self, action: Callable[[VectorCache], Any]) -> Any:
        if self.cache is None:
            return None
        try:
            return action(self.cache)
        except InvalidInputError as error:
            self.cache = None
            warnings.warn(f"Vectors are not cached for the next run. {error}", TrustWarning, stacklevel=2)
            return None


class _OtherLengthError(Exception):
    """Vectors of one encoder differ in length."""


def _kept_as(cache: Cache, encoder: Encoder, kind: str) -> _Kept | None:
    if cache is False or encoder.identity is None:
        return None
    if not isinstance(cache, VectorCache):
        cache = VectorCache(None if cache is True else cache)
    return _Kept(cache, f"{kind}; {encoder.identity}")


def _encode(
    items: list[Any],
    names: list[str],
    encoder: Encoder,
    reading: _Reading,
    kept: _Kept | None,
    batch_size: int,
) -> Encoded:
    if not items:
        raise InvalidInputError(
            f"The input of the encoder {encoder.name} is empty: pass at least one text or image."
        )
    add_total(len(items))
    run = partial(_run, items, names, encoder, reading, kept, batch_size)
    try:
        return run()
    except _OtherLengthError as error:
        if kept is None:
            raise InvalidInputError(str(error)) from error
        # The cached vectors came from another encoder with the same name.
        kept.forget()
    try:
        return run()
    except _OtherLengthError as error:
        kept.forget()
        raise InvalidInputError(str(error)) from error


def _run(
    items: list[Any],
    names: list[str],
    encoder: Encoder,
    reading: _Reading,
    kept: _Kept | None,
    batch_size: int,
) -> Encoded:
    known: dict[bytes, FloatArray] = {}
    digests: dict[int, bytes] = {}
    problems: dict[int, str] = {}
    n_opened, length = 0, 0
    for start in range(0, len(items), batch_size):
        batch = range(start, min(start + batch_size, len(items)))
        contents = {}
        for i in batch:
            if (found := _attempt(reading.read, items[i], i, problems)) is not None:
                digests[i], contents[i] = found
        wanted = list(dict.fromkeys(digests[i] for i in contents if digests[i] not in known))
        if kept is not None:
            known |= kept.get(wanted)
        fresh: dict[bytes, tuple[str, Any]] = {}
        for i, content in contents.items():
            if digests[i] not in known and digests[i] not in fresh:
                decoded = _attempt(reading.decode, content, i, problems)
                if decoded is not None:
                    fresh[digests[i]] = names[i], decoded
        if fresh:
            called, decoded_items = zip(*fresh.values(), strict=True)
            made = dict(zip(fresh, encoder.vectors_of(decoded_items, called), strict=True))
            n_opened += len(made)
            known |= made
            if kept is not None:
                kept.put(made)
        for i in contents:
            if i not in problems:
                length = length or len(known[digests[i]])
                if len(known[digests[i]]) != length:
                    raise _OtherLengthError(
                        f"The encoder {encoder.name} returned a vector of {len(known[digests[i]])} numbers for "
                        f"{names[i]}, but of {length} before.\nHint: every vector must have the same length."
                    )
        advance(len(batch))
    rows = [i for i in range(len(items)) if i not in problems]
    vectors = np.stack([known[digests[i]] for i in rows]) if rows else np.empty((0, 0))
    return Encoded(vectors, np.array(rows, dtype=np.intp), dict(sorted(problems.items())), n_opened)


def _attempt(action: Callable[[Any], Any], value: Any, i: int, problems: dict[int, str]) -> Any:
    """The result, or None with a note of the problem."""
    try:
        return action(value)
    except (NeighborAggError, MemoryError):
        raise
    except FileNotFoundError:
        problems[i] = "file not found"
    except Exception as error:  # Pillow's decoders raise errors of many kinds
        kind = type(error).__name__
        text = getattr(error, "strerror", None) or str(error) or kind
        problems[i] = "not an image that Pillow can read" if kind == "UnidentifiedImageError" else text
    return None


class ImageFeatures(Savable, TransformerMixin, BaseEstimator):
    """Turn images into vectors for neighbor search, by your own encoder or a small fixed descriptor.

    Parameters
    ----------
    encoder : callable, default=None
        Takes a list of PIL images in RGB and returns an array of shape (n, d). None means
        a built-in descriptor, which needs no download and is weak: it captures outlines and
        colors, not objects.
    root : path-like, default=None
        Folder that relative paths belong to.
    cache : bool or path-like, default=False
        Where to cache vectors between runs, by the bytes of the files and the identity of the encoder; True means the
        default folder of :class:`~neighboragg.features._vector_cache.VectorCache`.
    batch_size : int, default=64
        Largest number of images per call of the encoder.

    See Also
    --------
    neighboragg.features._encode.encode_images : The same as a function, which can skip unreadable images.

    Notes
    -----
    :meth:`fit` does not learn anything. An unreadable image raises an error with its name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg import find_mislabeled
    >>> from neighboragg.features import ImageFeatures
    >>> digits = load_digits()
    >>> images, y = (digits.images[:300] * 15).astype(np.uint8), digits.target[:300].copy()
    >>> y[7] = 1
    >>> result = find_mislabeled(images, y, features=ImageFeatures(), flag=1)
    >>> np.flatnonzero(result.mask).tolist(), result.suggested[result.mask].tolist()
    ([7], [7])
    """

    def __init__(
        self, *, encoder: Any = None, root: Any = None, cache: Any = False, batch_size: int = 64
    ) -> None:
        self.encoder = encoder
        self.root = root
        self.cache = cache
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing; this transformer does not learn.

        Parameters
        ----------
        X : sequence of path-like, PIL.Image.Image or ndarray
        y : ignored

        Returns
        -------
        self : ImageFeatures
        """
        return self

    def transform(self, X: Any) -> FloatArray:
        """Vectors of images.

        Parameters
        ----------
        X : sequence of path-like, PIL.Image.Image or ndarray
            Paths, PIL images, or arrays of shape (height, width) or (height, width, 3 or 4); also an array of shape
            (n, height, width) or (n, height, width, 3 or 4).

        Returns
        -------
        vectors : ndarray of shape (n, d)
        """
        if isinstance(self.encoder, str):
            # A saved model must not be able to name code to run.
            raise InvalidParameterError(
                "The 'encoder' parameter of ImageFeatures must be a callable or None. "
                f"Got {self.encoder!r} instead.\nHint: import it, and pass the callable itself."
            )
        return encode_images(
            X, self.encoder, root=self.root, cache=self.cache, batch_size=self.batch_size
        ).vectors

    def __sklearn_tags__(self) -> Tags:
        """Declare to scikit-learn that fit is not required."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Always True: this transformer does not learn."""
        return True
