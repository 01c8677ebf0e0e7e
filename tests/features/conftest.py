"""Images made on the spot."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def paint(tmp_path):
    """Write an image of random pixels and return its path."""

    def write(name, seed=0, size=(12, 10)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return path

    return write
