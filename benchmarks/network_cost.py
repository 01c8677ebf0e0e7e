"""What trust costs beside the network it is about: 10,000 images of Fashion-MNIST, exact search.

The paper's cost table as ratios in one run: trust of ours with one layer and with more, Trust Score, the network's own
forward pass, and that of a ResNet-18, untrained, as its time does not depend on its weights (timed on some images and
scaled up). With several layers, the time to reduce them counts too. CPU seconds of one thread, medians over rounds that
go through all contenders in turn.

    python -m benchmarks network_cost FOLDER

FOLDER holds, or will hold, the trained network, as `python -m benchmarks table2 --output FOLDER` leaves it.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks._record import save
from benchmarks.images import ARCHITECTURES, TABLE2_SETS, Training, load_images, three_layers, train_network
from neighboragg import NeighborAgg
from neighboragg._core.views import split_views
from neighboragg._pool.network import NetworkAggregator
from neighboragg.features._vectorizer import EmbeddedFeatures
from neighboragg.methods import TrustMethod, TrustScore
from neighboragg.torch import TorchClassifier

SET = "fashion_mnist"
N_ROUNDS = 3
N_RESNET = 128
BATCH_ROWS = 128
N_ALL, N_FEWER = 48_000, 36_000


def bare_pool() -> TrustMethod:
    return NeighborAgg(effort="fast", learned_metric=False)


#: Contenders, how many training rows they have, and how many layers they see. The pool has the 12,000 validation
#: rows among its reference rows too: with 36,000 of training it searches 48,000, as the others do.
METHODS: dict[str, tuple[Callable[[], TrustMethod], int, int]] = {
    "Trust Score": (TrustScore, N_ALL, 1),
    "the paper's network": (lambda: NeighborAgg(NetworkAggregator(bandwidth=1.0)), N_ALL, 1),
    "pool, embedding as it is, no second opinion": (bare_pool, N_ALL, 1),
    "pool, effort fast": (lambda: NeighborAgg(effort="fast"), N_ALL, 1),
    "pool": (NeighborAgg, N_ALL, 1),
    "pool, fewer reference rows": (NeighborAgg, N_FEWER, 1),
    "pool, two layers (default)": (NeighborAgg, N_ALL, 2),
    "pool, three layers": (NeighborAgg, N_ALL, 3),
}  # fmt: skip


def cpu_seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def forward(network: torch.nn.Module, rows: torch.Tensor) -> None:
    with torch.inference_mode():
        for batch in rows.split(BATCH_ROWS):
            network(batch)


class Layers:
    """What methods see of the images: the first layers, reduced as in a TrustedClassifier."""

    def __init__(self, found: dict[str, Any], n_layers: int) -> None:
        self.found = {part: dict(list(one.views.items())[:n_layers]) for part, one in found.items()}
        self.features = EmbeddedFeatures().fit(self.found["train"])

    def rows(self, part: str, n: int | None = None) -> Any:
        """An array, or for several layers a mapping of their names to arrays."""
        reduced = self.features.transform(np.hstack([rows[:n] for rows in self.found[part].values()]))
        widths = self.features.views
        if len(widths) == 1:
            return reduced
        return split_views(reduced, widths)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    architecture, epochs = TABLE2_SETS[SET]
    images = load_images(SET)
    training = Training(SET, architecture, epochs, None, seed=0, changed=False)
    codes = {part: images.codes[getattr(images, part)] for part in ("train", "val")}
    network = train_network(training, images.X[images.train], codes["train"], 10, folder / "networks")
    classifier = TorchClassifier(network, layers=three_layers(network))
    found = {part: classifier.embed(images.X[getattr(images, part)]) for part in ("train", "val", "test")}
    layers = {n: Layers(found, n) for n in (1, 2, 3)}
    proba = {part: embedded.proba for part, embedded in found.items()}

    fitted = {}
    for name, (make, n_train, n_layers) in METHODS.items():
        seen = layers[n_layers]
        fitted[name] = make().fit(
            seen.rows("train", n_train),
            codes["train"][:n_train],
            X_val=seen.rows("val"),
            y_val=codes["val"],
            proba_val=proba["val"],
        )
        print(f"fitted: {name}", flush=True)

    test = torch.from_numpy(images.X[images.test])
    resnet = ARCHITECTURES["resnet18"](1, test.shape[2], 10).eval()
    some = test[:N_RESNET]
    seconds: dict[str, list[float]] = {}
    for _ in range(N_ROUNDS):
        calls: dict[str, Callable[[], Any]] = {"the network itself": lambda: forward(network, test)}
        calls["ResNet-18"] = lambda: forward(resnet, some)
        for name, (_, _, n_layers) in METHODS.items():
            calls[name] = lambda name=name, seen=layers[n_layers]: fitted[name].score_samples(
                seen.rows("test"), proba["test"]
            )
        for name, call in calls.items():
            scale = len(test) / len(some) if name == "ResNet-18" else 1.0
            seconds.setdefault(name, []).append(scale * cpu_seconds(call))
            print(f"{name}: {seconds[name][-1]:.2f} CPU s", flush=True)

    middle = {name: median(values) for name, values in seconds.items()}
    n_reference = {
        name: len(getattr(method, "reference_", codes["train"])) for name, method in fitted.items()
    }
    save(
        "network_cost",
        [
            {
                "set": SET,
                "contender": name,
                "queries": len(test),
                "reference_rows": n_reference.get(name),
                "cpu_seconds": round(value, 3),
                "over_network": round(value / middle["the network itself"], 3),
                "over_resnet18": round(value / middle["ResNet-18"], 4),
                "rounds": [round(each, 3) for each in seconds[name]],
            }
            for name, value in middle.items()
        ],
        0,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "bench-results"))
