"""Small copies of large pictures, so that a page with many of them comes quickly."""

import io
from functools import lru_cache
from pathlib import Path

from neighboragg.encoders import open_picture

__all__ = ["thumbnail"]

SIDE = 320
# Smaller files are sent as they are.
LARGE_BYTES = 100_000
N_KEPT = 500


def thumbnail(file: Path) -> bytes | None:
    """A small copy of a large picture as JPEG.

    Parameters
    ----------
    file : Path

    Returns
    -------
    copy : bytes or None
        None if the file is small, or Pillow is not installed or cannot read it: then it is sent as it is.
    """
    facts = file.stat()
    if facts.st_size < LARGE_BYTES:
        return None
    return _small_copy(file, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=N_KEPT)
def _small_copy(file: Path, changed: int, size: int) -> bytes | None:
    try:
        picture = open_picture(file)
        picture.thumbnail((SIDE, SIDE))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=85)
    except Exception:  # the browser may still show what Pillow cannot read
        return None
    return buffer.getvalue()
