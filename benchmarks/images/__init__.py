"""The paper's Table 2: networks trained on images, and every trust method on them."""

from benchmarks.images._datasets import load_images
from benchmarks.images._networks import ARCHITECTURES, three_layers
from benchmarks.images._study import IMAGE_METHODS, TABLE2_SETS, table2
from benchmarks.images._training import Training, train_network

__all__ = [
    "ARCHITECTURES",
    "IMAGE_METHODS",
    "TABLE2_SETS",
    "Training",
    "load_images",
    "table2",
    "three_layers",
    "train_network",
]
