"""Training of a reference network: seeded, resumed after an interruption, kept by its configuration."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.images._networks import ARCHITECTURES
from neighboragg._core.progress import add_total, advance, begin_stage
from neighboragg._core.types import FloatArray, IntArray

__all__ = ["Training", "train_network"]

BATCH_SIZE = 128
LEARNING_RATE = 2e-3
# Pixels that an image is moved by, where images may be changed.
LARGEST_MOVE = 4


@dataclass(frozen=True)
class Training:
    """All that a trained network depends on, but the images themselves."""

    set: str
    architecture: str
    epochs: int
    limit: int | None
    seed: int
    changed: bool
    classes: tuple[int, ...] = ()

    def name(self) -> str:
        """A name for its file."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.set}-{self.architecture}-{digest}.pt"


def train_network(
    training: Training, images: FloatArray, codes: IntArray, n_classes: int, folder: Path
) -> torch.nn.Module:
    """Train a network, or take up where an earlier run stopped, or load it if that was at the end.

    Parameters
    ----------
    training : Training
    images : ndarray of shape (n, n_channels, size, size)
    codes : ndarray of shape (n,)
    n_classes : int
    folder : Path
        Of the checkpoints, one an epoch, each in place of the one before.

    Returns
    -------
    network : torch.nn.Module
    """
    torch.manual_seed(training.seed)
    network = ARCHITECTURES[training.architecture](images.shape[1], images.shape[2], n_classes)
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=5e-4)
    batches = -(-len(images) // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=max(2, training.epochs * batches)
    )
    parts: dict[str, Any] = {"network": network, "optimizer": optimizer, "schedule": schedule}
    path = folder / training.name()
    done = _load(path, parts)
    begin_stage(f"Training {training.architecture} on {training.set}")
    add_total((training.epochs - done) * batches)
    X, y = torch.from_numpy(images), torch.from_numpy(codes)
    for epoch in range(done, training.epochs):
        # Each epoch has a seed of its own, so that a resumed run goes on as if it had not stopped.
        generator = torch.Generator().manual_seed(1000 * training.seed + epoch)
        torch.manual_seed(1000 * training.seed + epoch)
        network.train()
        for rows in torch.randperm(len(X), generator=generator).split(BATCH_SIZE):
            batch = _changed(X[rows], generator) if training.changed else X[rows]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(batch), y[rows]).backward()
            optimizer.step()
            schedule.step()
            advance()
        _save(path, parts, epoch + 1)
    return network.eval()


def _load(path: Path, parts: dict[str, Any]) -> int:
    """Number of epochs that are done."""
    if not path.exists():
        return 0
    found = torch.load(path, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(found[name])
    return int(found["epochs"])


def _save(path: Path, parts: dict[str, Any], epochs: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save({name: part.state_dict() for name, part in parts.items()} | {"epochs": epochs}, partial)
    partial.replace(path)


def _changed(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Images moved by some pixels, and half of them mirrored."""
    size = images.shape[2]
    padded = torch.nn.functional.pad(images, (LARGEST_MOVE,) * 4)
    starts = torch.randint(0, 2 * LARGEST_MOVE + 1, (2, len(images)), generator=generator)
    rows = starts[0][:, None] + torch.arange(size)
    columns = starts[1][:, None] + torch.arange(size)
    mirrored = torch.rand(len(images), generator=generator) < 0.5
    columns = torch.where(mirrored[:, None], columns.flip(1), columns)
    which = torch.arange(len(images))[:, None, None]
    return padded.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
