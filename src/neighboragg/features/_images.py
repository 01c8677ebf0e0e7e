"""Decoding of images, and a small built-in image descriptor."""

import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import FloatArray
from neighboragg.exceptions import InvalidInputError


def pillow(module: str = "Image") -> Any:
    """Import a module of Pillow, or raise an error that tells how to install it."""
    return import_extra(f"PIL.{module}", extra="images", purpose="Opening images")


def pillow_version() -> str:
    """The version of Pillow; decoders may differ between versions."""
    return str(import_extra("PIL", extra="images", purpose="Opening images").__version__)


def is_image(value: Any) -> bool:
    """Whether a value is an image in memory: a PIL image, or an array with rows, columns and optionally colors."""
    return hasattr(value, "tobytes") and (hasattr(value, "convert") or getattr(value, "ndim", 0) in (2, 3))


def open_image(source: Any, root: str | os.PathLike[str] | None = None) -> Any:
    """Open and decode an image."""
    return decode_image(content_of(source, root)[1])


def content_of(source: Any, root: str | os.PathLike[str] | None) -> tuple[bytes, Any]:
    """Digest of the content of an image, and the image as file content or as a PIL image."""
    if is_image(source):
        image = source if hasattr(source, "convert") else _from_array(source)
        head = f"{image.mode} {image.size} {sorted(image.getexif().items())!r} {image.info.get('transparency')!r}"
        palette = image.palette.tobytes() if image.mode == "P" and image.palette is not None else b""
        return hashlib.sha256(b"\0".join([head.encode(), palette, image.tobytes()])).digest(), image
    if not isinstance(source, str | os.PathLike):
        raise InvalidInputError(
            f"An image must be the path of a file, a PIL image or an array. Got {type(source).__name__} instead."
        )
    raw = (Path(source) if root is None else Path(root) / source).read_bytes()
    return hashlib.sha256(raw).digest(), raw


def decode_image(content: Any) -> Any:
    """Decode file content or a PIL image to RGB."""
    image = pillow().open(io.BytesIO(content)) if isinstance(content, bytes) else content
    image = pillow("ImageOps").exif_transpose(image)
    if image.mode.startswith(("I", "F")):
        return _eight_bits(image).convert("RGB")
    if image.has_transparency_data:
        colors = image.convert("RGBA")
        white = pillow().new("RGBA", colors.size, "white")
        return pillow().alpha_composite(white, colors).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Any) -> Any:
    """Scale deep gray values to bytes; Pillow would clip all values above 255 to white."""
    values = np.asarray(image).astype(np.float64)
    if image.mode.startswith("F"):
        low, reach = values.min(), np.ptp(values)
        values = (values - low) / (reach or 1.0) * 255.0
    elif values.max(initial=0) > 255:
        values = values / 256.0
    return pillow().fromarray(np.clip(values, 0, 255).astype(np.uint8))


def _from_array(array: Any) -> Any:
    values = np.asarray(array)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    good_shape = values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (3, 4))
    if values.dtype.kind == "f" and values.size and values.min() >= 0 and values.max() <= 1:
        values = np.round(255 * values).astype(np.uint8)
    if not good_shape or not values.size or values.dtype != np.uint8:
        found = f"shape {values.shape} of type {values.dtype}"
        if values.dtype.kind == "f" and values.size:
            found += f" with values from {values.min():g} to {values.max():g}"
        raise InvalidInputError(
            "An image array must have shape (height, width) or (height, width, 3 or 4) and contain bytes (uint8) or "
            f"fractions between 0 and 1. Got {found}.\n"
            "Hint: put the colors last, scale the values to 0 … 255, and call .astype(numpy.uint8)."
        )
    return pillow().fromarray(np.ascontiguousarray(values))


#: Name of the descriptor in the cache; raise the number if its vectors change.
DESCRIPTOR = "neighboragg.features:describe_images 1"

SIDE = 32
CELLS, DIRECTIONS = 4, 9
COARSE_SIDE = 8
LEVELS = 4
# Gradients much weaker than this are noise.
FAINT = 0.1


def describe_images(images: Sequence[Any]) -> FloatArray:
    """Describe images by edge directions, colors and a coarse copy, without any learned parameters."""
    if not len(images):
        return np.empty((0, (CELLS - 1) ** 2 * 4 * DIRECTIONS + LEVELS**3 + 3 * COARSE_SIDE**2), np.float32)
    pixels = _pixels(images, SIDE)
    coarse = _pixels(images, COARSE_SIDE).reshape(len(images), -1)
    parts = [
        _edges(pixels.mean(axis=3)) / (CELLS - 1),
        _colors(pixels),
        (coarse - 0.5) * 2 / np.sqrt(coarse.shape[1]),
    ]
    return np.hstack(parts).astype(np.float32)


def _pixels(images: Sequence[Any], side: int) -> FloatArray:
    """Resize images to one size; values between 0 and 1, shape (n, side, side, 3)."""
    bilinear = pillow().Resampling.BILINEAR
    return np.stack([np.asarray(image.resize((side, side), bilinear)) for image in images]) / 255.0


def _edges(gray: FloatArray) -> FloatArray:
    """Histograms of the directions of gradients, shape (n, 324)."""
    padded = np.pad(gray, ((0, 0), (1, 1), (1, 1)), mode="edge")
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    right = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    strength = np.hypot(down, right)
    # A direction counts for its two nearest bins; opposite directions are the same.
    place = np.mod(np.arctan2(down, right), np.pi) / np.pi * DIRECTIONS
    lower = np.floor(place).astype(int)
    share = place - lower
    bins = np.arange(DIRECTIONS)
    votes = ((lower % DIRECTIONS)[..., None] == bins) * ((1 - share) * strength)[..., None]
    votes += (((lower + 1) % DIRECTIONS)[..., None] == bins) * (share * strength)[..., None]
    # A pixel also counts for its two nearest cells along each axis, so that small shifts change little.
    centers = (np.arange(SIDE) + 0.5) * CELLS / SIDE - 0.5
    near = np.maximum(0.0, 1.0 - np.abs(centers[:, None] - np.arange(CELLS)))
    cells = np.einsum("nijd,ia,jb->nabd", votes, near, near, optimize=["einsum_path", (0, 1), (0, 1)])
    blocks = np.concatenate(
        [cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]], axis=3
    )
    blocks /= np.sqrt((blocks**2).sum(axis=3, keepdims=True) + FAINT**2)
    return blocks.reshape(len(gray), -1)


def _colors(pixels: FloatArray) -> FloatArray:
    """Square roots of color shares, shape (n, 64); their distance is the Hellinger distance."""
    levels = np.minimum((pixels * LEVELS).astype(int), LEVELS - 1)
    codes = (levels @ np.array([LEVELS**2, LEVELS, 1])).reshape(len(pixels), -1)
    counts = np.stack([np.bincount(row, minlength=LEVELS**3) for row in codes])
    return np.sqrt(counts / codes.shape[1])
