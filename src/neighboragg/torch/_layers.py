"""Layers of a module: found by name or by tracing one batch, and listened to during a forward pass."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from neighboragg.exceptions import InvalidInputError, InvalidParameterError

__all__ = ["PENULTIMATE", "Listener", "Trace", "check_layers", "trace"]

# The name by which the input of the last linear layer is asked for and called.
PENULTIMATE = "penultimate"
N_LISTED = 40
CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


class Listener:
    """Takes down what goes through some layers while a module runs.

    Parameters
    ----------
    module : torch.nn.Module
    layers : sequence of str
        Names as of `named_modules`, whose output is taken; or :data:`PENULTIMATE`, the input of the last linear layer.
    head : str or None
        Name of the last linear layer.
    max_dimensions : int or None
        Largest number of values of a picture.
    """

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
    """What was seen while a module ran once.

    Parameters
    ----------
    head : str or None
        The linear layer that ran last and has an output for each class.
    convolutions : tuple of str
        All convolutions in the order in which they ran.
    """

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
