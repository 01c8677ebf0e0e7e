"""What users feed a network with, as a sequence of batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from neighboragg.exceptions import InvalidInputError

__all__ = ["Batch", "batches", "refuse_shuffled", "row_count"]

LABEL_KEYS = ("labels", "label")


@dataclass(frozen=True)
class Batch:
    """Inputs of one forward pass, and the labels that came with them, if any."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    labels: Any

    def __len__(self) -> int:
        for value in (*self.arguments, *self.keywords.values()):
            if hasattr(value, "shape") and len(value.shape):
                return int(value.shape[0])
        return 0

    def to(self, device: torch.device, dtype: torch.dtype | None) -> "Batch":
        """The inputs on a device; numbers with a fraction in a type, unless it is None."""
        return Batch(
            tuple(_moved(value, device, dtype) for value in self.arguments),
            {name: _moved(value, device, dtype) for name, value in self.keywords.items()},
            self.labels,
        )


def batches(data: Any, batch_size: int) -> Iterator[Batch]:
    """Go through a loader, data set, tensor, array or mapping of tensors, in order."""
    if isinstance(data, Mapping):
        yield from _slices_of_mapping(data, batch_size)
    elif isinstance(data, torch.Tensor | np.ndarray):
        _refuse_no_rows(data)
        rows = torch.as_tensor(data)
        for start in range(0, len(rows), batch_size):
            yield Batch((rows[start : start + batch_size],), {}, None)
    elif isinstance(data, Dataset):
        yield from map(_batch_of, DataLoader(data, batch_size=batch_size))
    elif hasattr(data, "__iter__"):
        yield from map(_batch_of, data)
    else:
        raise InvalidInputError(
            f"A network cannot be fed with a {type(data).__name__}.\n"
            "Hint: pass a DataLoader, a Dataset, a tensor, an array, or a dict of tensors."
        )


def row_count(data: Any) -> int | None:
    """Number of rows, where it is known beforehand."""
    if isinstance(data, Mapping):
        return len(next(iter(data.values()), ()))
    inner = getattr(data, "dataset", data)
    try:
        return len(inner)
    except TypeError:
        return None


def refuse_shuffled(loader: Any, owner: str) -> None:
    """Raise if rows come in another order each time, so that what is returned belongs to no row."""
    if isinstance(getattr(loader, "sampler", None), RandomSampler):
        raise InvalidInputError(
            f"{owner} got a DataLoader that shuffles, so results could not be told which row they belong to.\n"
            "Hint: DataLoader(dataset, shuffle=False), or pass the data set itself."
        )


def _batch_of(item: Any) -> Batch:
    """A batch as data sets give them: inputs; inputs and labels; or names with inputs and labels."""
    if isinstance(item, Mapping):
        labels = next((item[key] for key in LABEL_KEYS if key in item), None)
        return Batch((), {name: value for name, value in item.items() if name not in LABEL_KEYS}, labels)
    if isinstance(item, list | tuple):
        if len(item) == 1:
            return Batch((item[0],), {}, None)
        *inputs, labels = item
        return Batch(tuple(inputs), {}, labels)
    return Batch((item,), {}, None)


def _slices_of_mapping(data: Mapping[str, Any], batch_size: int) -> Iterator[Batch]:
    lengths = {name: len(value) for name, value in data.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(
            f"The tensors passed to a network have different numbers of rows: {lengths}.\n"
            "Hint: each needs a row for every sample."
        )
    for start in range(0, max(lengths.values(), default=0), batch_size):
        part = {name: torch.as_tensor(value[start : start + batch_size]) for name, value in data.items()}
        yield _batch_of(part)


def _refuse_no_rows(rows: Any) -> None:
    if rows.ndim < 2:
        raise InvalidInputError(
            f"A network needs rows with at least two dimensions. Got an array of shape {tuple(rows.shape)}.\n"
            "Hint: x[None] for a single sample."
        )


def _moved(value: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, dtype if dtype is not None and value.is_floating_point() else None)
