"""Who takes part on images: every trust method of the tables, and those made for networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from benchmarks.methods import (
    Energy,
    GeneralizedEntropy,
    KNNDistance,
    MaxLogit,
    NNGuide,
    RelativeMahalanobis,
    Tuned,
)
from benchmarks.runs import COMPARED, ENTRANTS
from neighboragg import NeighborAgg
from neighboragg.methods import NeighborGCN, TrustMethod
from neighboragg.torch import ConfidNet, DeepEnsemble, MCDropout

__all__ = [
    "EMBEDDING",
    "IMAGES",
    "IMAGE_ENTRANTS",
    "LAYERS",
    "LOGITS",
    "TWO_LAYERS",
    "ImageEntrant",
    "entrants_for",
]

#: What a method sees of an image: the embedding before the last layer, that and the last convolution, all layers that
#: are usual, the logits followed by the embedding, or the image itself.
EMBEDDING, TWO_LAYERS, LAYERS, LOGITS, IMAGES = "embedding", "two layers", "layers", "logits", "images"
SMALL = "cnn"
N_MEMBERS = 3
N_PASSES = 20
N_EPOCHS = 10


@dataclass(frozen=True)
class ImageEntrant:
    """A trust method, made for the trained networks it may ask, and the rows it sees.

    Parameters
    ----------
    make : callable
        Takes the networks; the first is the one whose predictions are judged.
    rows : str, default="embedding"
        One of "embedding", "two layers", "layers", "logits" and "images".
    n_networks : int, default=1
        How many networks it needs.
    only_small : bool, default=False
        Whether it is left out for larger networks: those have no dropout, and one of them takes long enough to train.
    """

    make: Callable[[Sequence[nn.Module]], TrustMethod]
    rows: str = EMBEDDING
    n_networks: int = 1
    only_small: bool = False


def _alone(make: Callable[[], TrustMethod], rows: str = EMBEDDING) -> ImageEntrant:
    """A method that asks no network."""
    return ImageEntrant(lambda networks: make(), rows)


_P_NORMS: dict[str, Sequence[Any]] = {"p": [1, 2, 3, 4, 5, 6, 8]}

#: All by name.
IMAGE_ENTRANTS: dict[str, ImageEntrant] = {
    **{name: _alone(ENTRANTS[name].make) for name in COMPARED},
    "GCN-2hop": _alone(lambda: NeighborGCN(2)),
    "GCN-3hop": _alone(lambda: NeighborGCN(3)),
    "kNN distance": _alone(KNNDistance),
    "Relative Mahalanobis": _alone(RelativeMahalanobis),
    "GEN": _alone(GeneralizedEntropy),
    "MaxLogit": _alone(MaxLogit, LOGITS),
    "MaxLogit, p-norm": _alone(lambda: Tuned(MaxLogit(), _P_NORMS), LOGITS),
    "Energy": _alone(Energy, LOGITS),
    "NNGuide": _alone(NNGuide, LOGITS),
    "ConfidNet": _alone(lambda: ConfidNet(max_epochs=N_EPOCHS), LOGITS),
    "MC-dropout": ImageEntrant(lambda networks: MCDropout(networks[0], n_passes=N_PASSES), IMAGES, only_small=True),
    "Deep ensemble": ImageEntrant(DeepEnsemble, IMAGES, N_MEMBERS, only_small=True),
    "Pool, no learned metric": _alone(lambda: NeighborAgg(learned_metric=False)),
    "Pool, two layers": _alone(NeighborAgg, TWO_LAYERS),
    "Pool, three layers": _alone(NeighborAgg, LAYERS),
}  # fmt: skip


def entrants_for(architecture: str, methods: Sequence[str]) -> list[str]:
    """Those of some methods that a network can be judged by."""
    return [name for name in methods if architecture == SMALL or not IMAGE_ENTRANTS[name].only_small]
