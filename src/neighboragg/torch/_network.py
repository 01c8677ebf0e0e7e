"""Batches, layers and outputs of a network."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

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


# The name by which the input of the last linear layer is asked for and called.
PENULTIMATE = "penultimate"
N_LISTED = 40
CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


class Listener:
    """Takes down what goes through some layers while a module runs."""

    def __init__(
        self, module: torch.nn.Module, layers: Sequence[str], head: str | None, max_dimensions: int | None
    ) -> None:
        self._module, self._layers, self._head = module, tuple(layers), head
        self._max_dimensions = max_dimensions
        self.heard: dict[str, torch.Tensor] = {}

    @contextmanager
    def listening(self) -> Iterator["Listener"]:
        """Listen within the block, and leave no hook behind."""
        named = dict(self._module.named_modules())
        handles = []
        if PENULTIMATE in self._layers and PENULTIMATE not in named and self._head is None:
            raise InvalidParameterError(
                f"No linear layer of {type(self._module).__name__} has an output for each class, so the layer before "
                f"it is not known.\nHint: name a layer, one of {_listed(self._module)}."
            )
        for layer in self._layers:
            if layer == PENULTIMATE and layer not in named:
                handles.append(
                    named[str(self._head)].register_forward_pre_hook(
                        lambda _, inputs, layer=layer: self._note(layer, inputs)
                    )
                )
            else:
                handles.append(
                    named[layer].register_forward_hook(
                        lambda _, __, output, layer=layer: self._note(layer, output)
                    )
                )
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def vectors(self, n_rows: int, mask: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """A vector for each row from each layer; tokens are averaged, pictures laid out flat."""
        found = {}
        for layer in self._layers:
            if layer not in self.heard:
                raise InvalidInputError(f"Layer {layer!r} did not run in the forward pass of the module.")
            found[layer] = _one_vector_a_row(self.heard.pop(layer), layer, n_rows, mask, self._max_dimensions)
        return found

    def _note(self, layer: str, value: Any) -> None:
        while isinstance(value, tuple | list) and len(value):
            value = value[0]
        if isinstance(value, torch.Tensor):
            self.heard[layer] = value


@dataclass(frozen=True)
class Trace:
    """What was seen while a module ran once."""

    head: str | None
    convolutions: tuple[str, ...]

    def usual_layers(self) -> tuple[str, ...]:
        """The layers that are worth looking at: what the head gets, the last convolution, and the one halfway to it."""
        halfway = self.convolutions[(len(self.convolutions) - 1) // 2 :][:1]
        return tuple(dict.fromkeys([PENULTIMATE, *self.convolutions[-1:], *halfway]))


def trace(module: torch.nn.Module, run: Any) -> Trace:
    """Look on while `run()` runs the module and returns its output."""
    order: list[tuple[str, torch.nn.Module, Any]] = []
    handles = [
        part.register_forward_hook(lambda part, _, output, name=name: order.append((name, part, output)))
        for name, part in module.named_modules()
        if name and isinstance(part, (torch.nn.Linear, *CONVOLUTIONS))
    ]
    try:
        logits = run()
    finally:
        for handle in handles:
            handle.remove()
    heads = [
        name
        for name, part, output in order
        if isinstance(part, torch.nn.Linear) and output.shape == logits.shape
    ]
    convolutions = tuple(name for name, part, _ in order if isinstance(part, CONVOLUTIONS))
    return Trace(heads[-1] if heads else None, convolutions)


def check_layers(module: torch.nn.Module, layers: Sequence[str]) -> None:
    """Raise for a layer that the module does not have."""
    known = dict(module.named_modules())
    for layer in layers:
        if layer not in known and layer != PENULTIMATE:
            raise InvalidParameterError(
                f"{type(module).__name__} has no layer {layer!r}.\nHint: its layers are {_listed(module)}."
            )


def _listed(module: torch.nn.Module) -> str:
    names = [name for name, _ in module.named_modules() if name]
    more = f" and {len(names) - N_LISTED} more" if len(names) > N_LISTED else ""
    return ", ".join(map(repr, names[:N_LISTED])) + more


def _one_vector_a_row(
    value: torch.Tensor, layer: str, n_rows: int, mask: torch.Tensor | None, most: int | None
) -> torch.Tensor:
    if value.ndim < 2 or len(value) != n_rows:
        raise InvalidInputError(
            f"Layer {layer!r} gives a tensor of shape {tuple(value.shape)} for a batch of {n_rows} rows, "
            "not a vector for each row.\nHint: pass another layer."
        )
    value = value.float()
    if value.ndim == 3 and mask is not None and mask.shape == value.shape[:2]:
        weight = mask.to(value.dtype)[:, :, None]
        return (value * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
    if value.ndim == 4 and most is not None and value[0].numel() > most:
        side = max(1, int((most / value.shape[1]) ** 0.5))
        value = torch.nn.functional.adaptive_avg_pool2d(value, side)
    return value.flatten(1)


OUTPUTS = ("logits", "probabilities", "log_probabilities")
# Probabilities in half precision sum to one no better than this.
SUM_TOLERANCE = 1e-2


def logits_of(output: Any, n_rows: int) -> torch.Tensor:
    """The tensor with a row for each row and a column for each class, in whatever it came."""
    found = output
    if hasattr(found, "logits"):
        found = found.logits
    elif isinstance(found, Mapping) and "logits" in found:
        found = found["logits"]
    elif isinstance(found, tuple | list) and len(found):
        found = found[0]
    if not isinstance(found, torch.Tensor):
        raise InvalidInputError(
            f"The network gives a {type(output).__name__}, in which no tensor of logits was found.\n"
            "Hint: wrap it in a module that returns a tensor of shape (n, n_classes), a tuple that begins with it, or "
            "an object with .logits."
        )
    if found.ndim != 2 or len(found) != n_rows or found.shape[1] < 2:
        raise InvalidInputError(
            f"The network gives a tensor of shape {tuple(found.shape)} for a batch of {n_rows} rows; (n, n_classes) "
            "with at least two classes is needed.\n"
            "Hint: wrap it in a module that gives a row for each row, e.g. torch.cat([-z, z], 1) / 2 for one logit z."
        )
    return found.float()


def to_proba(output: FloatArray, kind: str) -> FloatArray:
    """Probabilities from what the network gives."""
    if kind not in OUTPUTS:
        raise InvalidParameterError(
            f"The 'output' parameter must be one of {', '.join(map(repr, OUTPUTS))}. Got {kind!r} instead."
        )
    if not np.isfinite(output).all() and (kind != "log_probabilities" or np.isnan(output).any()):
        row = int(np.flatnonzero(~np.isfinite(output).all(axis=1))[0])
        raise InvalidInputError(
            f"The network's output for row {row} is not finite: {output[row].tolist()[:5]}.\n"
            "Hint: look for missing values or overflow in its inputs."
        )
    values = output.astype(np.float64)
    if kind == "logits":
        if len(values) and _sums_to_one(values):
            raise InvalidInputError(
                "The network's outputs look like probabilities: none is negative, and each row sums to one.\n"
                "Hint: pass output='probabilities', or leave out the softmax at its end."
            )
        values -= values.max(axis=1, keepdims=True)
        values = np.exp(values)
        return values / values.sum(axis=1, keepdims=True)
    proba = np.exp(values) if kind == "log_probabilities" else values
    if len(proba) and not _sums_to_one(proba):
        row = int(np.argmax(np.abs(proba.sum(axis=1) - 1)))
        raise InvalidInputError(
            f"With output={kind!r} each row must sum to one, but row {row} sums to {proba[row].sum():.4g}.\n"
            "Hint: output='logits', if the network ends without a softmax."
        )
    return proba / proba.sum(axis=1, keepdims=True)


def check_targets(labels: Array, n_classes: int) -> Array:
    """Labels as the network's column numbers."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InvalidInputError(
            f"Labels must be one whole number per row. Got an array of {labels.dtype} with shape {labels.shape}.\n"
            "Hint: labels that come with a batch are the numbers of the network's outputs, from 0."
        )
    outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if len(outside):
        raise InvalidInputError(
            f"Label {int(labels[outside[0]])} of row {int(outside[0])} is outside 0 to {n_classes - 1}: the network "
            f"has {n_classes} outputs.\nHint: number the classes from 0, or drop rows without a class."
        )
    return labels.astype(np.int64)


def _sums_to_one(values: FloatArray) -> bool:
    return bool((values >= 0).all() and (np.abs(values.sum(axis=1) - 1) < SUM_TOLERANCE).all())
