"""A network's forward pass: where it runs, what its layers give, and its outputs as probabilities."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np
import torch

from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.torch._batches import Batch


class Runner:
    """Forward passes of a module in evaluation mode, without gradients."""

    def __init__(self, module: Any, device: Any, autocast: torch.dtype | None, owner: str) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InvalidParameterError(
                f"The network of {owner} must be a torch.nn.Module. Got a {type(module).__name__} instead.\n"
                "Hint: pass the network itself; other classifiers need no wrapping."
            )
        self._module, self._autocast = module, autocast
        first = next((p for p in module.parameters() if p.is_floating_point()), None)
        at_home = torch.device("cpu") if first is None else first.device
        self._device = at_home if device is None else usable_device(device, owner)
        if first is not None and self._device.type != at_home.type:
            raise InvalidParameterError(
                f"The 'device' parameter of {owner} is {device!r}, but the network is on {str(at_home)!r}.\n"
                f"Hint: move it first, network.to({device!r}), or leave out 'device'."
            )
        self._dtype = None if first is None or autocast is not None else first.dtype
        self._signature = _signature(module)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode within the block; each part of the module has its own mode again afterward."""
        modes = {part: part.training for part in self._module.modules()}
        self._module.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            for part, mode in modes.items():
                part.training = mode

    def run(self, batch: Batch) -> torch.Tensor:
        """The output of the module for a batch, a row for each row."""
        moved = batch.to(self._device, self._dtype)
        self._check_arguments(moved)
        cast = (
            nullcontext()
            if self._autocast is None
            else torch.autocast(self._device.type, dtype=self._autocast)
        )
        with cast:
            try:
                given = self._module(*moved.arguments, **moved.keywords)
            except RuntimeError as error:
                _explain_whole_numbers(error, moved)
                raise
        return logits_of(given, len(batch))

    def _check_arguments(self, batch: Batch) -> None:
        """Raise if the module does not take as many inputs as there are, or not by these names."""
        try:
            if self._signature is not None:
                self._signature.bind(*batch.arguments, **batch.keywords)
        except TypeError as error:
            names = ", ".join(map(repr, batch.keywords))
            given = f"the names {names}" if names else f"{len(batch.arguments)} by position"
            raise InvalidInputError(
                f"The network takes the inputs {self._signature}, but a batch has {given}: {error}.\n"
                "Hint: pass inputs by name, as a dict or a data set of dicts. The last part of a tuple is taken for "
                "labels if it is one whole number per row."
            ) from error


def usable_device(device: Any, owner: str) -> torch.device:
    """The device, or an error in words if PyTorch does not know it or cannot use it here."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        # PyTorch has no error of its own for a device that is unknown or not there.
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InvalidParameterError(
            f"The 'device' parameter of {owner} cannot be used: {reason}. Got {device!r}.\n"
            "Hint: 'cpu', 'cuda' or 'mps', where PyTorch finds it; None runs where the network is."
        ) from error
    return found


def _signature(module: torch.nn.Module) -> inspect.Signature | None:
    """Of its forward pass, where Python knows it."""
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError):
        return None


def _explain_whole_numbers(error: RuntimeError, batch: Batch) -> None:
    """Raise an error in words if a network that computes in fractions got whole numbers, such as bytes of images."""
    whole = [
        value
        for value in batch.inputs()
        if isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
    ]
    if whole and re.search(r"type|not implemented for", str(error)):
        kind = str(whole[0].dtype).removeprefix("torch.")
        raise InvalidInputError(
            f"The network cannot compute with inputs of {kind} and shape {tuple(whole[0].shape)}: "
            f"{str(error).partition(chr(10))[0]}\n"
            "Hint: convert them as in training, e.g. images.float() / 255."
        ) from error


# The name of the input of the last linear layer.
PENULTIMATE = "penultimate"
N_LISTED = 40
# Two outputs for the same rows may differ by this share of the largest; dropout changes them by far more.
UNSTABLE = 1e-2
CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


class Recorder:
    """Records the outputs of some layers while a module runs."""

    def __init__(
        self, module: torch.nn.Module, layers: Sequence[str], head: str | None, max_dimensions: int | None
    ) -> None:
        self._module, self._layers, self._head = module, tuple(layers), head
        self._max_dimensions = max_dimensions
        self._recorded: dict[str, torch.Tensor] = {}

    @contextmanager
    def recording(self) -> Iterator["Recorder"]:
        """Record within the block, and leave no hook behind."""
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
                        lambda _, inputs, layer=layer: self._record(layer, inputs)
                    )
                )
            else:
                handles.append(
                    named[layer].register_forward_hook(
                        lambda _, __, output, layer=layer: self._record(layer, output)
                    )
                )
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()

    def vectors(self, n_rows: int, mask: torch.Tensor | None) -> dict[str, torch.Tensor]:
        """A vector for each row from each layer; tokens are averaged, images laid out flat."""
        found = {}
        for layer in self._layers:
            if layer not in self._recorded:
                raise InvalidInputError(f"Layer {layer!r} did not run in the forward pass of the module.")
            found[layer] = _one_vector_a_row(
                self._recorded.pop(layer), layer, n_rows, mask, self._max_dimensions
            )
        return found

    def _record(self, layer: str, value: Any) -> None:
        while isinstance(value, tuple | list) and len(value):
            value = value[0]
        if isinstance(value, torch.Tensor):
            self._recorded[layer] = value


@dataclass(frozen=True)
class Trace:
    """The last linear layer and the convolutions of a module, in the order of one forward pass."""

    parts: tuple[torch.nn.Module, ...]
    head: str | None
    convolutions: tuple[str, ...]

    def usual_layers(self) -> tuple[str, ...]:
        """The layers that pay for their cost: the input of the head, and the last convolution."""
        return (PENULTIMATE, *self.convolutions[-1:])

    def is_of(self, module: torch.nn.Module) -> bool:
        """Whether the module still has the same parts."""
        parts = tuple(module.modules())
        return len(parts) == len(self.parts) and all(map(is_, parts, self.parts))


def trace(module: torch.nn.Module, runner: Runner, batch: Batch) -> tuple[Trace, torch.Tensor]:
    """Run the module once, and return the layers found and its output."""
    order: list[tuple[str, torch.nn.Module, Any]] = []
    handles = [
        part.register_forward_hook(
            lambda part, _, output, name=name: order.append((name, part, getattr(output, "shape", None)))
        )
        for name, part in module.named_modules()
        if name and isinstance(part, (torch.nn.Linear, *CONVOLUTIONS))
    ]
    try:
        logits = runner.run(batch)
    finally:
        for handle in handles:
            handle.remove()
    heads = [
        name for name, part, shape in order if isinstance(part, torch.nn.Linear) and shape == logits.shape
    ]
    convolutions = dict.fromkeys(name for name, part, _ in order if isinstance(part, CONVOLUTIONS))
    head = heads[-1] if heads else None
    return Trace(tuple(module.modules()), head, tuple(convolutions)), logits


def refuse_random(one: torch.Tensor, other: torch.Tensor) -> None:
    """Raise if two passes over the same rows differ by more than rounding."""
    tolerance = UNSTABLE * float(torch.nan_to_num(one, posinf=0.0, neginf=0.0).abs().max())
    if not torch.allclose(one, other, rtol=0.0, atol=tolerance, equal_nan=True):
        raise InvalidInputError(
            "The network gives two different outputs for the same rows, although it is in evaluation mode.\n"
            "Hint: torch.nn.functional.dropout(x, training=self.training) in its forward; without 'training' dropout "
            "is always on."
        )


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
# Logits of a few rows may all happen to be between 0 and 1; those of this many are not.
MIN_VALUES = 50


def logits_of(output: Any, n_rows: int) -> torch.Tensor:
    """The tensor with a row for each input row and a column for each class, taken out of the output."""
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
    if found.shape in ((n_rows,), (n_rows, 1)):
        sigmoid = n_rows > 0 and bool(((found >= 0) & (found <= 1)).all())
        raise InvalidInputError(
            f"The network gives a tensor of shape {tuple(found.shape)} for a batch of {n_rows} rows, one number for "
            "each; (n, n_classes) with at least two classes is needed.\nHint: wrap it in a module that gives "
            + (
                "torch.stack([1 - p, p], dim=1) for its output p, and pass output='probabilities'."
                if sigmoid
                else "torch.stack([-z, z], dim=1) / 2 for its output z, where z is the logit of the second class."
            )
        )
    if found.ndim != 2 or len(found) != n_rows or found.shape[1] < 2:
        raise InvalidInputError(
            f"The network gives a tensor of shape {tuple(found.shape)} for a batch of {n_rows} rows; (n, n_classes) "
            "with at least two classes is needed.\n"
            "Hint: wrap it in a module that gives a row for each row."
        )
    return found.float()


def to_proba(output: FloatArray, kind: str) -> FloatArray:
    """Probabilities from the output of a network."""
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
        _refuse_probabilities(values)
        values -= values.max(axis=1, keepdims=True)
        values = np.exp(values)
        return values / values.sum(axis=1, keepdims=True)
    proba = np.exp(values) if kind == "log_probabilities" else values
    outside = (proba < 0) | (proba > 1 + SUM_TOLERANCE)
    if outside.any():
        row, column = map(int, np.argwhere(outside)[0])
        needed = "below 0" if kind == "log_probabilities" else "between 0 and 1"
        raise InvalidInputError(
            f"With output={kind!r} each value must be {needed}, but row {row} has {values[row, column]:.4g} for "
            f"output {column}.\nHint: output='logits', if the network ends without a softmax."
        )
    if len(proba) and not _sums_to_one(proba):
        row = int(np.argmax(np.abs(proba.sum(axis=1) - 1)))
        raise InvalidInputError(
            f"With output={kind!r} each row must sum to one, but row {row} sums to {proba[row].sum():.4g}.\n"
            "Hint: a sigmoid for each class is not a softmax; leave it out and pass output='logits'."
        )
    return proba / proba.sum(axis=1, keepdims=True)


def _refuse_probabilities(values: FloatArray) -> None:
    """Raise if what should be logits looks like the output of a softmax or of a sigmoid."""
    if len(values) and _sums_to_one(values):
        raise InvalidInputError(
            "The network's outputs look like probabilities: none is negative, and each row sums to one.\n"
            "Hint: pass output='probabilities', or leave out the softmax at its end."
        )
    if values.size >= MIN_VALUES and values.min() >= 0 and values.max() <= 1:
        raise InvalidInputError(
            f"The network's outputs look like probabilities of a sigmoid for each class: all {values.size:,} are "
            "between 0 and 1, but rows do not sum to one.\n"
            "Hint: leave out the sigmoid at its end, or divide each row by its sum and pass output='probabilities'."
        )


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
