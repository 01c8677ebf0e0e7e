"""A small fixed descriptor of pictures: directions of edges, colors, and a coarse copy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from neighboragg._typing import FloatArray
from neighboragg.encoders._pictures import pillow

__all__ = ["DESCRIPTOR", "describe_pictures"]

#: What the descriptor is called in the cache; another number means other vectors.
DESCRIPTOR = "neighboragg.encoders:describe_pictures 1"

SIDE = 32
CELLS, DIRECTIONS = 4, 9
COARSE_SIDE = 8
LEVELS = 4
# Where there is no edge at all, directions are noise.
FAINT = 0.1


def describe_pictures(pictures: Sequence[Any]) -> FloatArray:
    """Describe pictures by directions of edges, colors and a coarse copy; no network, nothing learned.

    It tells garments, digits or scenes apart by outline and color, and knows nothing of what they show. An encoder
    that was trained on pictures usually sees more.

    Parameters
    ----------
    pictures : sequence of PIL.Image.Image
        In mode RGB, as :func:`open_picture` gives them.

    Returns
    -------
    vectors : ndarray of float32 of shape (n, 580)
        Each of the three parts has about unit length: 324 numbers of histograms of gradients in 32 × 32 pixels (4 × 4
        cells, 9 directions, normalized in blocks of 2 × 2), 64 of a joint histogram of colors, 192 of a copy of 8 × 8
        pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.encoders import describe_pictures, open_picture
    >>> white, black = (open_picture(np.full((9, 9), gray, dtype=np.uint8)) for gray in (255, 0))
    >>> describe_pictures([white, black]).shape
    (2, 580)
    """
    if not len(pictures):
        return np.empty((0, (CELLS - 1) ** 2 * 4 * DIRECTIONS + LEVELS**3 + 3 * COARSE_SIDE**2), np.float32)
    pixels = _pixels(pictures, SIDE)
    coarse = _pixels(pictures, COARSE_SIDE).reshape(len(pictures), -1)
    parts = [
        _edges(pixels.mean(axis=3)) / (CELLS - 1),
        _colors(pixels),
        (coarse - 0.5) * 2 / np.sqrt(coarse.shape[1]),
    ]
    return np.hstack(parts).astype(np.float32)


def _pixels(pictures: Sequence[Any], side: int) -> FloatArray:
    """Pictures brought to one size, as numbers between 0 and 1, shape (n, side, side, 3)."""
    bilinear = pillow().Resampling.BILINEAR
    return np.stack([np.asarray(picture.resize((side, side), bilinear)) for picture in pictures]) / 255.0


def _edges(gray: FloatArray) -> FloatArray:
    """Histograms of the directions of gradients, shape (n, 324)."""
    padded = np.pad(gray, ((0, 0), (1, 1), (1, 1)), mode="edge")
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    right = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    strength = np.hypot(down, right)
    # A direction counts for the two bins beside it; opposite ones are the same.
    place = np.mod(np.arctan2(down, right), np.pi) / np.pi * DIRECTIONS
    lower = np.floor(place).astype(int)
    share = place - lower
    bins = np.arange(DIRECTIONS)
    votes = ((lower % DIRECTIONS)[..., None] == bins) * ((1 - share) * strength)[..., None]
    votes += (((lower + 1) % DIRECTIONS)[..., None] == bins) * (share * strength)[..., None]
    # A pixel counts for the two cells beside it in each direction, too, so that small shifts change little.
    centers = (np.arange(SIDE) + 0.5) * CELLS / SIDE - 0.5
    near = np.maximum(0.0, 1.0 - np.abs(centers[:, None] - np.arange(CELLS)))
    cells = np.einsum("nijd,ia,jb->nabd", votes, near, near, optimize=["einsum_path", (0, 1), (0, 1)])
    blocks = np.concatenate(
        [cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]], axis=3
    )
    blocks /= np.sqrt((blocks**2).sum(axis=3, keepdims=True) + FAINT**2)
    return blocks.reshape(len(gray), -1)


def _colors(pixels: FloatArray) -> FloatArray:
    """Square roots of the shares of colors, shape (n, 64); their distance is Hellinger's."""
    levels = np.minimum((pixels * LEVELS).astype(int), LEVELS - 1)
    codes = (levels @ np.array([LEVELS**2, LEVELS, 1])).reshape(len(pixels), -1)
    counts = np.stack([np.bincount(row, minlength=LEVELS**3) for row in codes])
    return np.sqrt(counts / codes.shape[1])
