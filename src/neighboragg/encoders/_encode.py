"""Texts and pictures to vectors in batches, each read and encoded once."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from neighboragg._progress import announce, expect, step
from neighboragg._typing import FloatArray, IntArray
from neighboragg._validation import check_integer
from neighboragg.encoders._encoder import Encoder, find_encoder
from neighboragg.encoders._picture_descriptor import DESCRIPTOR, describe_pictures
from neighboragg.encoders._pictures import content_of, decode_picture, is_picture, pillow_version
from neighboragg.encoders._vector_cache import VectorCache
from neighboragg.exceptions import InvalidInputError, NeighborAggError

__all__ = ["Encoded", "encode_images", "encode_texts", "list_problems"]

BATCH_SIZE = 64
# Problems that a message names.
N_NAMED = 10

Cache = str | os.PathLike[str] | VectorCache | bool


@dataclass(frozen=True)
class Encoded:
    """Vectors of those pictures that could be read.

    Parameters
    ----------
    vectors : ndarray of shape (n_read, d)
    rows : ndarray of int of shape (n_read,)
        Position of each among all pictures.
    problems : mapping of int to str
        Why each of the others could not be read, by position.
    n_opened : int
        Pictures that were opened; the vectors of the others came from the cache, or from a copy.
    """

    vectors: FloatArray
    rows: IntArray
    problems: Mapping[int, str]
    n_opened: int


def encode_images(
    pictures: Sequence[Any],
    encoder: Any = None,
    *,
    root: str | os.PathLike[str] | None = None,
    cache: Cache = False,
    batch_size: int = BATCH_SIZE,
    skip_unreadable: bool = False,
) -> Encoded:
    """Turn pictures into vectors.

    Parameters
    ----------
    pictures : sequence of path-like, PIL.Image.Image or ndarray
        As for :func:`open_picture`.
    encoder : callable or str, default=None
        Takes a list of PIL images in RGB and returns an array of shape (n, d); a str names one, as for
        :func:`find_encoder`. None takes the built-in :func:`describe_pictures`, which is weak.
    root : path-like, default=None
        Folder that relative paths belong to.
    cache : bool, path-like or VectorCache, default=False
        Where to keep vectors, by the bytes of the files and the identity of the encoder; True takes the usual folder
        of :class:`VectorCache`.
    batch_size : int, default=64
        Pictures that the encoder gets at once, at most.
    skip_unreadable : bool, default=False
        Go on without pictures that cannot be read, and name them in the result; otherwise they raise.

    Returns
    -------
    encoded : Encoded

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.encoders import encode_images
    >>> pictures = np.random.default_rng(0).uniform(size=(3, 8, 8))
    >>> encode_images(pictures, lambda images: [[image.width, image.height] for image in images]).vectors.tolist()
    [[8.0, 8.0], [8.0, 8.0], [8.0, 8.0]]
    """
    if isinstance(pictures, str | os.PathLike):
        raise InvalidInputError("encode_images needs a list of pictures. Got a single path.\nHint: [path].")
    version = pillow_version()
    used = Encoder("built in", describe_pictures, DESCRIPTOR) if encoder is None else find_encoder(encoder)
    items = list(pictures)
    names = [f"picture {i}" if is_picture(item) else str(item) for i, item in enumerate(items)]
    announce("Looking at the pictures")
    found = _encode(
        items,
        names,
        used,
        _Reading(lambda picture: content_of(picture, root), decode_picture),
        _kept_as(cache, used, f"pictures, Pillow {version}"),
        check_integer(batch_size, "batch_size", "encode_images", minimum=1),
    )
    if found.problems and not skip_unreadable:
        raise InvalidInputError(
            f"{len(found.problems):,} of {len(items):,} pictures cannot be read:\n"
            f"{list_problems({names[i]: why for i, why in found.problems.items()})}\n"
            "Hint: repair or remove them, or go on without them (--skip-unreadable, or skip_unreadable=True)."
        )
    return found


def encode_texts(
    texts: Sequence[str], encoder: Any, *, cache: Cache = False, batch_size: int = BATCH_SIZE
) -> FloatArray:
    """Turn texts into vectors.

    Parameters
    ----------
    texts : sequence of str
    encoder : callable or str
        Takes a list of str and returns an array of shape (n, d); a str names one, as for :func:`find_encoder`.
    cache : bool, path-like or VectorCache, default=False
        As for :func:`encode_images`, by the texts.
    batch_size : int, default=64
        Texts that the encoder gets at once, at most.

    Returns
    -------
    vectors : ndarray of shape (n, d)

    Examples
    --------
    >>> from neighboragg.encoders import encode_texts
    >>> encode_texts(["one", "three"], lambda texts: [[len(text)] for text in texts]).tolist()
    [[3.0], [5.0]]
    """
    if isinstance(texts, str):
        raise InvalidInputError("encode_texts needs a list of texts. Got a single one.\nHint: [text].")
    items = list(texts)
    for i, text in enumerate(items):
        if not isinstance(text, str):
            raise InvalidInputError(f"Text {i} passed to encode_texts is no str. Got {text!r}.")
    used = find_encoder(encoder)
    announce("Encoding the texts")
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
    """Names of pictures and what is wrong with each, a line for each of the first ones."""
    lines = [f"  {name}: {why}" for name, why in list(problems.items())[:N_NAMED]]
    rest = len(problems) - len(lines)
    return "\n".join([*lines, *([f"  and {rest:,} more"] if rest else [])])


class _Reading(NamedTuple):
    """How an item becomes a digest and a content, and a content what the encoder gets."""

    read: Callable[[Any], tuple[bytes, Any]]
    decode: Callable[[Any], Any]


class _Kept(NamedTuple):
    """Where vectors are kept, and under which name."""

    cache: VectorCache
    identity: str


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
        raise InvalidInputError(f"There is nothing to encode for {encoder.name}: no texts, no pictures.")
    expect(len(items))
    run = partial(_run, items, names, encoder, reading, kept, batch_size)
    try:
        return run()
    except _OtherLengthError as error:
        if kept is None:
            raise InvalidInputError(str(error)) from error
        # What is kept came from something else under the same name.
        kept.cache.forget(kept.identity)
    try:
        return run()
    except _OtherLengthError as error:
        kept.cache.forget(kept.identity)
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
            known |= kept.cache.get(kept.identity, wanted)
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
                kept.cache.put(kept.identity, made)
        for i in contents:
            if i not in problems:
                length = length or len(known[digests[i]])
                if len(known[digests[i]]) != length:
                    raise _OtherLengthError(
                        f"The encoder {encoder.name} returned a vector of {len(known[digests[i]])} numbers for "
                        f"{names[i]}, but of {length} before.\nHint: every vector must have the same length."
                    )
        step(len(batch))
    rows = [i for i in range(len(items)) if i not in problems]
    if not rows:
        raise InvalidInputError(
            f"None of the {len(items):,} pictures can be read:\n"
            f"{list_problems({names[i]: why for i, why in sorted(problems.items())})}"
        )
    vectors = np.stack([known[digests[i]] for i in rows])
    return Encoded(vectors, np.array(rows), dict(sorted(problems.items())), n_opened)


def _attempt(action: Callable[[Any], Any], value: Any, i: int, problems: dict[int, str]) -> Any:
    """The result, or None and a note of what is wrong."""
    try:
        return action(value)
    except (NeighborAggError, MemoryError):
        raise
    except FileNotFoundError:
        problems[i] = "there is no such file"
    except Exception as error:  # Pillow's decoders raise errors of many kinds
        kind = type(error).__name__
        text = getattr(error, "strerror", None) or str(error) or kind
        problems[i] = "not a picture that Pillow can read" if kind == "UnidentifiedImageError" else text
    return None
