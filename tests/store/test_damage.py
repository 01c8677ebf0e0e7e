"""Flipped bits and truncations of every kind of saved object: each one is found when the file is opened."""

import numpy as np
import pytest

import neighboragg
import sizes
from neighboragg.exceptions import FileFormatError
from store.models import MODELS


@pytest.fixture
def saved(name, tmp_path):
    path = tmp_path / "model.nagg"
    MODELS[name]().save(path)
    neighboragg.load(path)
    return path


pytestmark = [
    pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores"),
    pytest.mark.filterwarnings("ignore::neighboragg.exceptions.TrustWarning"),
]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", ["result", "selective", *MODELS])
def test_flipped_bits(saved, name):
    whole = saved.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng, n = np.random.default_rng(0), 500 if sizes.FULL else 30
    # Half of them in the header, which is read before its digest can be checked.
    for position in [*rng.integers(0, header, n), *rng.integers(min(header, len(whole) - 1), len(whole), n)]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            neighboragg.load(saved, mmap=bool(position % 2))


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("name", ["result", "forest", *MODELS])
def test_truncations(saved, name):
    whole = saved.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 200 if sizes.FULL else 20).astype(int):
        saved.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            neighboragg.load(saved)
