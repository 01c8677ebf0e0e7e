"""Pictures as they are shown: opened from files, arrays or PIL images, upright, in three colors of eight bits."""

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg.exceptions import InvalidInputError

__all__ = [
    "PICTURE_TYPES",
    "content_of",
    "decode_picture",
    "is_picture",
    "open_picture",
    "pillow",
    "pillow_version",
]

#: Formats that Pillow opens and browsers show, and that cannot carry scripts.
PICTURE_TYPES = {
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}


def pillow(module: str = "Image") -> Any:
    """A module of Pillow, or an error that says how to install it."""
    return import_extra(f"PIL.{module}", extra="images", purpose="Opening pictures")


def pillow_version() -> str:
    """The version of Pillow, whose decoders may differ between versions."""
    return str(import_extra("PIL", extra="images", purpose="Opening pictures").__version__)


def is_picture(value: Any) -> bool:
    """Whether a value is a picture in memory: a PIL image, or an array with rows, columns and perhaps colors."""
    return hasattr(value, "tobytes") and (hasattr(value, "convert") or getattr(value, "ndim", 0) in (2, 3))


def open_picture(source: Any, root: str | os.PathLike[str] | None = None) -> Any:
    """Open a picture.

    Parameters
    ----------
    source : path-like, PIL.Image.Image or ndarray of shape (height, width) or (height, width, 3 or 4)
        Arrays hold bytes (uint8), or fractions between 0 and 1.
    root : path-like, default=None
        Folder that a relative path belongs to.

    Returns
    -------
    picture : PIL.Image.Image
        In mode RGB, upright (as its EXIF data says), on white where it is transparent. Of an animation, the first
        picture; of 16 bits, the upper eight.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.encoders import open_picture
    >>> open_picture(np.full((4, 6), 128, dtype=np.uint8)).getpixel((0, 0))
    (128, 128, 128)
    """
    return decode_picture(content_of(source, root)[1])


def content_of(source: Any, root: str | os.PathLike[str] | None) -> tuple[bytes, Any]:
    """Digest of what a picture holds, and the picture as bytes of a file or as a PIL image."""
    if is_picture(source):
        image = source if hasattr(source, "convert") else _from_array(source)
        head = f"{image.mode} {image.size} {sorted(image.getexif().items())!r} {image.info.get('transparency')!r}"
        palette = image.palette.tobytes() if image.mode == "P" and image.palette is not None else b""
        return hashlib.sha256(b"\0".join([head.encode(), palette, image.tobytes()])).digest(), image
    if not isinstance(source, str | os.PathLike):
        raise InvalidInputError(
            f"A picture is the path of a file, a PIL image or an array. Got {type(source).__name__} instead."
        )
    raw = (Path(source) if root is None else Path(root) / source).read_bytes()
    return hashlib.sha256(raw).digest(), raw


def decode_picture(content: Any) -> Any:
    """The picture in RGB that bytes of a file or a PIL image hold."""
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
    """Deep grays as bytes: Pillow's own conversion would cut all above 255 to white."""
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
        seen = f"shape {values.shape} of type {values.dtype}"
        if values.dtype.kind == "f" and values.size:
            seen += f" with values from {values.min():g} to {values.max():g}"
        raise InvalidInputError(
            "A picture given as an array has the shape (height, width) or (height, width, 3 or 4) and holds bytes "
            f"(uint8) or fractions between 0 and 1. Got {seen}.\n"
            "Hint: colors come last; bring the values to 0 … 255 and call .astype(numpy.uint8)."
        )
    return pillow().fromarray(np.ascontiguousarray(values))
