"""The paper's data sets as users have them, and noise in their labels."""

from benchmarks.datasets._dataset import Dataset
from benchmarks.datasets._fetch import list_datasets, load_dataset
from benchmarks.datasets._noise import NoisyLabels, add_label_noise, plausible_proba
from benchmarks.datasets._registry import SPECS, RemoteFile
from benchmarks.datasets._split import paper_split
from benchmarks.datasets._synthetic import make_moons_trust

__all__ = [
    "SPECS",
    "Dataset",
    "NoisyLabels",
    "RemoteFile",
    "add_label_noise",
    "list_datasets",
    "load_dataset",
    "make_moons_trust",
    "paper_split",
    "plausible_proba",
]
