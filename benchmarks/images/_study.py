"""Table 2 of the paper: images × all methods, on networks trained here."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.images._datasets import Images, load_images
from benchmarks.images._figure import images_figure
from benchmarks.images._lineup import (
    EMBEDDING,
    IMAGE_ENTRANTS,
    IMAGES,
    LAYERS,
    LOGITS,
    TWO_LAYERS,
    entrants_for,
)
from benchmarks.images._networks import ARCHITECTURES, three_layers
from benchmarks.images._training import Training, train_network
from benchmarks.paper import TABLE2_PRINTED
from benchmarks.runs import Comparison, ResultStore, machine
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, begin_stage, report_to
from neighboragg._core.types import FloatArray, IntArray
from neighboragg._core.views import split_views
from neighboragg.exceptions import InvalidParameterError
from neighboragg.features._vectorizer import EmbeddedFeatures
from neighboragg.methods import TrustMethod
from neighboragg.metrics import trust_metrics
from neighboragg.torch import TorchClassifier

__all__ = ["IMAGE_METHODS", "TABLE2_SETS", "table2"]

#: The network of each data set, and how long it is trained.
TABLE2_SETS: dict[str, tuple[str, int]] = {
    "mnist": ("cnn", 5),
    "fashion_mnist": ("cnn", 8),
    "cifar10": ("resnet20", 12),
}
#: All methods; "Pool, two layers" is our default for a network.
IMAGE_METHODS = tuple(IMAGE_ENTRANTS)


def table2(
    folder: Path,
    *,
    sets: Sequence[str] = tuple(TABLE2_SETS),
    methods: Sequence[str] = IMAGE_METHODS,
    architecture: str | None = None,
    epochs: int | None = None,
    limit: int | None = None,
    n_seeds: int = 5,
    progress: Listener | None = None,
) -> Comparison:
    """MNIST, Fashion-MNIST and CIFAR-10 × all methods, beside the paper's Table 2.

    Parameters
    ----------
    folder : Path
        Results are kept in `images.jsonl` there, networks in `networks` and an image in `table2.png`; what is
        finished is not done again.
    sets : sequence of str, default=("mnist", "fashion_mnist", "cifar10")
    methods : sequence of str
        Some of :data:`IMAGE_METHODS`.
    architecture : str, default=None
        One of :data:`ARCHITECTURES` for all sets, instead of that of :data:`TABLE2_SETS`.
    epochs, limit : int, default=None
        Length of the training, and number of training and of test images, where the machine is small. Both are
        written into the results.
    n_seeds : int, default=5
        Seeds of the methods; the network and the split are the same for all, as in the paper. A method without
        chance is computed once.
    progress : callable, default=None
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    comparison : Comparison
    """
    if architecture is not None and architecture not in ARCHITECTURES:
        raise InvalidParameterError(
            f"The 'architecture' parameter of table2 must be one of {', '.join(map(repr, ARCHITECTURES))}. "
            f"Got {architecture!r} instead."
        )
    # Hours before it is needed, so that a missing package is not found out at the end.
    import_extra("matplotlib.figure", extra="cli", purpose="The figure of Table 2")
    store = ResultStore(folder / "images.jsonl")
    bases = []
    with report_to(progress):
        for name in sets:
            usual, length = TABLE2_SETS[name]
            training = Training(
                name, architecture or usual, epochs or length, limit, seed=0, changed=name == "cifar10"
            )
            bases.append(training.architecture)
            _compute(training, methods, n_seeds, folder, store)
    rows = [
        row
        for row in store.rows
        if row["limit"] == limit and row["epochs"] == (epochs or TABLE2_SETS[row["set"]][1])
    ]
    images_figure(rows, sets, methods, folder / "table2.png")
    return Comparison(
        rows,
        sets,
        list(dict.fromkeys(bases)),
        methods,
        title="Table 2: trust methods on images",
        printed=TABLE2_PRINTED,
    )


def _compute(
    training: Training, methods: Sequence[str], n_seeds: int, folder: Path, store: ResultStore
) -> None:
    """Whatever the store lacks for one network."""
    cells: list[dict[str, Any]] = [
        {
            "set": training.set,
            "base": training.architecture,
            "seed": seed,
            "epochs": training.epochs,
            "limit": training.limit,
        }
        for seed in range(n_seeds)
    ]
    wanted = entrants_for(training.architecture, methods)
    missing = {name: [cell for cell in cells if store.missing(cell, [name])] for name in wanted}
    missing = {name: lacking for name, lacking in missing.items() if lacking}
    if not missing:
        return
    images = load_images(training.set, limit=training.limit)
    n_networks = max(IMAGE_ENTRANTS[name].n_networks for name in missing)
    networks = _networks(training, images, n_networks, folder / "networks")
    embedded = _Embedded.of(networks, images)
    for name, lacking in missing.items():
        begin_stage(f"{name} on {training.set}")
        rows: dict[int, dict[str, Any]] = {}
        for cell in lacking:
            seed = cell["seed"] if embedded.is_seeded(name) else 0
            if seed not in rows:
                rows[seed] = embedded.row(name, seed)
            store.add([{**cell, **rows[seed]}])


def _networks(training: Training, images: Images, n_networks: int, folder: Path) -> list[torch.nn.Module]:
    """The network that is judged, and others from other seeds, which are trained half as long."""
    n_classes = int(images.codes.max()) + 1
    others = [
        replace(training, seed=seed, epochs=max(1, training.epochs // 2)) for seed in range(1, n_networks)
    ]
    rows = images.X[images.train], images.codes[images.train]
    return [train_network(one, *rows, n_classes, folder) for one in (training, *others)]


@dataclass(frozen=True)
class _Embedded:
    """Networks, and what the first makes of the images; seconds of its own pass over the test images."""

    networks: Sequence[torch.nn.Module]
    images: Images
    vectors: FloatArray
    widths: dict[str, int]
    logits: FloatArray
    proba: FloatArray
    codes: IntArray
    parts: dict[str, IntArray]
    seconds: float

    @classmethod
    def of(cls, networks: Sequence[torch.nn.Module], images: Images) -> "_Embedded":
        rows = {"train": images.train, "val": images.val, "test": images.test}
        classifier = TorchClassifier(networks[0], layers=three_layers(networks[0]))
        found, seconds = {}, 0.0
        for part, chosen in rows.items():
            start = time.process_time()
            found[part] = classifier.embed(images.X[chosen])
            seconds = time.process_time() - start  # of the last part, the test images
        ends = np.cumsum([len(chosen) for chosen in rows.values()])
        places = np.split(np.arange(ends[-1]), ends[:-1])
        # The same reduction of earlier layers as in a TrustedClassifier.
        features = EmbeddedFeatures().fit(found["train"].views)
        return cls(
            networks,
            images,
            np.concatenate([features.transform(part.stacked) for part in found.values()]),
            features.views,
            np.concatenate([part.output for part in found.values()]),
            np.concatenate([part.proba for part in found.values()]),
            np.concatenate([images.codes[chosen] for chosen in rows.values()]),
            dict(zip(rows, places, strict=True)),
            seconds,
        )

    def is_seeded(self, name: str) -> bool:
        """Whether chance plays a part in a method."""
        return "random_state" in self._method(name).get_params()

    def row(self, name: str, seed: int) -> dict[str, Any]:
        """The result of one method."""
        method = self._method(name)
        if "random_state" in method.get_params():
            method.set_params(random_state=seed)
        train, val, test = (self._rows(part, IMAGE_ENTRANTS[name].rows) for part in ("train", "val", "test"))
        codes = {part: self.codes[rows] for part, rows in self.parts.items()}
        proba = {part: self.proba[rows] for part, rows in self.parts.items()}
        start = time.process_time()
        method.fit(
            train,
            codes["train"],
            X_val=val,
            y_val=codes["val"],
            proba_val=proba["val"],
            classes=np.arange(self.proba.shape[1]),
        )
        fitted = time.process_time()
        trust = method.score_samples(test, proba["test"])
        scored = time.process_time()
        correct = proba["test"].argmax(axis=1) == codes["test"]
        return {
            "method": name,
            "cpu_seconds": round(scored - start, 3),
            "scoring_over_network": round((scored - fitted) / max(self.seconds, 1e-9), 3),
            **trust_metrics(correct, trust),
            "n_train": len(codes["train"]),
            "n_val": len(codes["val"]),
            "n_test": len(codes["test"]),
            "machine": machine("torch"),
        }

    def _method(self, name: str) -> TrustMethod:
        return IMAGE_ENTRANTS[name].make(self.networks)

    def _rows(self, part: str, kind: str) -> Any:
        if kind == IMAGES:
            return self.images.X[getattr(self.images, part)]
        rows = self.parts[part]
        views = split_views(self.vectors[rows], self.widths)
        n_layers = {TWO_LAYERS: 2, LAYERS: len(views)}.get(kind, 1)
        if n_layers > 1 and len(views) > 1:
            return dict(islice(views.items(), n_layers))
        assert kind in (EMBEDDING, TWO_LAYERS, LAYERS, LOGITS), kind
        embedding = next(iter(views.values()))
        return (
            np.hstack([self.logits[rows], embedding]) if kind == LOGITS else np.ascontiguousarray(embedding)
        )
