"""Images of the public data sets as arrays for a network, split as in the paper."""

import io
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.datasets import load_dataset
from benchmarks.datasets._errors import DatasetNotFoundError
from neighboragg._core.packages import import_extra
from neighboragg._core.types import FloatArray, IntArray

__all__ = ["Images", "load_images"]

VALIDATION_SEED, SHARE_VALIDATION = 777, 0.2
CIFAR = "cifar10_jpeg.tar.xz"


@dataclass(frozen=True)
class Images:
    """Images with values around zero, and their classes; the published test part comes last.

    Parameters
    ----------
    X : ndarray of shape (n, n_channels, size, size), float32
    codes : ndarray of int of shape (n,)
    train, val, test : ndarray of int
        Rows. A fifth of the published training part is for validation.
    """

    X: FloatArray
    codes: IntArray
    train: IntArray
    val: IntArray
    test: IntArray


def load_images(name: str, *, limit: int | None = None) -> Images:
    """Load a data set.

    Parameters
    ----------
    name : {"mnist", "fashion_mnist", "cifar10"}
    limit : int, default=None
        Use only that many of the training images and of the test images.

    Returns
    -------
    images : Images
    """
    X, codes, n_train = _cifar() if name == "cifar10" else _gray(name)
    order = np.random.default_rng(VALIDATION_SEED).permutation(n_train)[:limit]
    n_val = int(SHARE_VALIDATION * len(order))
    test = np.arange(n_train, len(X))[:limit]
    X = X / np.float32(255.0)
    train = order[n_val:]
    mean = X[train].mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    spread = X[train].std(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    return Images(((X - mean) / spread).astype(np.float32), codes, train, order[:n_val], test)


def _gray(name: str) -> tuple[FloatArray, IntArray, int]:
    data = load_dataset(name)
    assert data.images is not None
    assert data.n_train is not None
    side = int(data.images.shape[1] ** 0.5)
    codes = np.unique(data.y, return_inverse=True)[1].astype(np.int64)
    return data.images.reshape(-1, 1, side, side).astype(np.float32), codes, data.n_train


def _cifar() -> tuple[FloatArray, IntArray, int]:
    """CIFAR-10 from an archive of JPEG files, ``train/<class>/0000.jpg``; mildly compressed, unlike the original."""
    path = Path(os.environ.get("NEIGHBORAGG_DATA", ".")) / CIFAR
    if not path.exists():
        raise DatasetNotFoundError(
            f"CIFAR-10 is read from the file {CIFAR} of JPEG files train/<class>/0000.jpg, which was not found.\n"
            "Hint: set NEIGHBORAGG_DATA to the folder that has it, or leave this set out with --sets."
        )
    pil = import_extra("PIL.Image", extra="torch", purpose="Reading CIFAR-10")
    found: dict[str, list[tuple[str, FloatArray]]] = {"train": [], "test": []}
    with tarfile.open(path) as archive:
        for member in archive:
            parts = member.name.split("/")
            file = archive.extractfile(member) if member.name.endswith(".jpg") else None
            if file is not None:
                image = np.asarray(pil.open(io.BytesIO(file.read())).convert("RGB"), dtype=np.float32)
                found[parts[-3]].append((parts[-2], image.transpose(2, 0, 1)))
    rows = [*found["train"], *found["test"]]
    codes = np.unique([name for name, _ in rows], return_inverse=True)[1].astype(np.int64)
    return np.stack([image for _, image in rows]), codes, len(found["train"])
