"""Real data with a cache, the paper's splits, a toy set, and label noise for honest tests."""

from neighboragg._public import publish as _publish
from neighboragg.datasets._dataset import Dataset
from neighboragg.datasets._fetch import list_datasets, load_dataset
from neighboragg.datasets._noise import NoisyLabels, add_label_noise, plausible_proba
from neighboragg.datasets._split import paper_split
from neighboragg.datasets._synthetic import make_moons_trust

__all__ = [
    "Dataset",
    "NoisyLabels",
    "add_label_noise",
    "list_datasets",
    "load_dataset",
    "make_moons_trust",
    "paper_split",
    "plausible_proba",
]

_publish(globals())
