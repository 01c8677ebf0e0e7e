"""Wrong labels of images: what the built-in descriptor finds, and what several views add.

5,000 training images of each set, drawn with the seed, 9% of the labels exchanged at random. Views: 50 main
directions of the pixels, and 50 of the edges of the descriptor; alone, side by side as one vector, and as two views.
CIFAR-10 is read from cifar10_jpeg.tar.xz, mildly compressed. Data: NEIGHBORAGG_DATA.
"""

import argparse
import io
import os
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks._record import save
from benchmarks.datasets import add_label_noise, load_dataset
from neighboragg import find_mislabeled
from neighboragg.features._encode import encode_images

SETS = ("mnist", "fashion_mnist", "cifar10")
N_ROWS, RATE, N_DIRECTIONS = 5000, 0.09, 50
LEARNED = " with learned metrics"
# Where the descriptor has its directions of edges.
EDGES = slice(0, 324)


def cifar() -> tuple[Any, Any]:
    images, labels = [], []
    with tarfile.open(Path(os.environ["NEIGHBORAGG_DATA"]) / "cifar10_jpeg.tar.xz") as archive:
        for member in archive:
            if "train/" in member.name and (file := archive.extractfile(member)) is not None:
                images.append(np.asarray(Image.open(io.BytesIO(file.read())).convert("RGB")))
                labels.append(member.name.split("/")[-2])
    return np.stack(images), np.array(labels)


def images_of(name: str, seed: int) -> tuple[Any, Any]:
    if name == "cifar10":
        images, labels = cifar()
    else:
        dataset = load_dataset(name)
        side = int(dataset.images.shape[1] ** 0.5)
        images = dataset.images[: dataset.n_train].reshape(-1, side, side).astype(np.uint8)
        labels = np.asarray(dataset.y)[: dataset.n_train]
    chosen = np.random.default_rng(seed).permutation(len(labels))[:N_ROWS]
    return images[chosen], labels[chosen]


def directions(X: Any) -> Any:
    return PCA(N_DIRECTIONS, random_state=0).fit_transform(X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    lines = []
    for name in args.sets:
        images, labels = images_of(name, args.seed)
        noisy = add_label_noise(labels, rate=RATE, random_state=args.seed)
        described = encode_images(images).vectors
        pixels = directions(images.reshape(len(images), -1) / 255.0)
        edges = directions(described[:, EDGES])
        views = {"pixels": pixels, "edges": edges}
        for what, X in {
            "pixels": pixels,
            "edges": edges,
            "pixels and edges, side by side": np.hstack([pixels / pixels.std(), edges / edges.std()]),
            "pixels and edges, two views": views,
            f"pixels and edges, two views{LEARNED}": views,
            "built-in descriptor": described,
        }.items():
            start = time.process_time()
            result = find_mislabeled(
                X, noisy.y, features="passthrough", learned_metric=what.endswith(LEARNED)
            )
            line = {
                "set": name, "by": what, "seed": args.seed,
                "auroc": round(float(roc_auc_score(noisy.mask, -result.scores)), 5),
                "ap": round(float(average_precision_score(noisy.mask, -result.scores)), 5),
                "precision": round(float(noisy.mask[result.mask].mean()), 5),
                "recall": round(float(result.mask[noisy.mask].mean()), 5),
                "noise_rate": round(result.noise_rate, 5),
                "cpu_seconds": round(time.process_time() - start, 1),
            }  # fmt: skip
            lines.append(line)
            print(*line.values(), flush=True)
    save("image_labels", lines, args.seed)


if __name__ == "__main__":
    main()
