"""Batches of inputs for a network, and whether their rows come in a known order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from neighboragg._core.types import Array
from neighboragg.exceptions import InvalidInputError

LABEL_KEYS = ("labels", "label")
# Batches at the beginning of a stream that two passes must agree on.
N_COMPARED = 4


@dataclass(frozen=True)
class Batch:
    """Inputs of one forward pass, and the labels that came with them, if any."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    labels: Any

    def __len__(self) -> int:
        for value in self.inputs():
            if hasattr(value, "shape") and len(value.shape):
                return int(value.shape[0])
        return 0

    def inputs(self) -> tuple[Any, ...]:
        """All inputs, by position and by name."""
        return (*self.arguments, *self.keywords.values())

    def to(self, device: torch.device, dtype: torch.dtype | None) -> "Batch":
        """The inputs on a device; floating-point inputs are converted to `dtype`, unless it is None."""
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
    elif isinstance(data, IterableDataset) or _has_positions(data):
        yield from map(_batch_of, DataLoader(data, batch_size=batch_size))
    elif isinstance(data, tuple) and any(isinstance(part, torch.Tensor | np.ndarray) for part in data):
        raise InvalidInputError(
            f"A network got a tuple of {len(data)} arrays, which could be several inputs of the same rows, inputs with "
            "labels, or batches.\n"
            "Hint: pass several inputs as a dict, {'input_ids': ids, 'attention_mask': mask}; batches as a list."
        )
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
    if isinstance(data, DataLoader):
        # Without a batch sampler each item of the data set is a batch of its own.
        data = None if data.batch_sampler is None else data.dataset
    if isinstance(data, torch.Tensor | np.ndarray) or _has_positions(data):
        return len(data)
    return None


def _has_positions(data: Any) -> bool:
    """Whether rows are taken from it by their positions."""
    return not isinstance(data, IterableDataset | DataLoader | list | tuple) and all(
        hasattr(data, name) for name in ("__getitem__", "__len__")
    )


def order_problem(data: Any) -> str | None:
    """Why the rows of `data` may come in an unknown order, or not all of them, with a hint; None if neither is so."""
    if isinstance(data, DataLoader) and not isinstance(data.dataset, IterableDataset):
        problem = _loader_problem(data)
        if problem is not None or type(data).__iter__ is DataLoader.__iter__:
            return problem
    elif isinstance(data, Mapping | list | tuple) or _has_positions(data) or not hasattr(data, "__iter__"):
        return None
    if isinstance(data, Iterator):
        return (
            f"got a {type(data).__name__}, which can be read only once, so the order of its rows cannot be "
            "verified.\nHint: pass the data set or DataLoader that it reads, or a list of batches."
        )
    first, second = (list(islice(iter(data), N_COMPARED)) for _ in range(2))
    if not _equal(first, second):
        kind = type(getattr(data, "dataset", data)).__name__
        return (
            f"got a {kind} whose rows differ from one pass to the next, so results cannot be matched to rows.\n"
            "Hint: turn off shuffling and random augmentation in the data set, or pass its rows as a tensor."
        )
    return None


def _loader_problem(loader: DataLoader[Any]) -> str | None:
    """Accept only a sampler that is certain to go through all rows in their order."""
    sampler: Any = loader.sampler
    if loader.batch_sampler is not None:
        sampler = loader.batch_sampler
        if type(sampler) is BatchSampler:
            sampler = sampler.sampler
    if type(sampler) is not SequentialSampler:
        return (
            f"got a DataLoader with a {type(sampler).__name__}, so results cannot be matched to rows.\n"
            "Hint: DataLoader(dataset, shuffle=False) without a sampler; for some of the rows, "
            "DataLoader(Subset(dataset, indices))."
        )
    n_rows, size = row_count(loader), getattr(loader.batch_sampler, "batch_size", None) or 1
    if getattr(loader.batch_sampler, "drop_last", False) and n_rows and n_rows % size:
        return (
            f"got a DataLoader that drops the last {n_rows % size} of {n_rows} rows, so they would have no "
            "results.\nHint: DataLoader(dataset, drop_last=False)."
        )
    return None


def _equal(one: Any, other: Any) -> bool:
    """Whether two batches hold the same values."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
    return bool(np.array_equal(one, other))


def _batch_of(item: Any) -> Batch:
    """A batch in the form data sets give it: inputs; inputs and labels; or names with inputs and labels."""
    if isinstance(item, Mapping):
        labels = next((item[key] for key in LABEL_KEYS if key in item), None)
        return Batch((), {name: value for name, value in item.items() if name not in LABEL_KEYS}, labels)
    if isinstance(item, list | tuple):
        *inputs, last = item
        if not inputs or _is_input(last, inputs):
            return Batch(tuple(item), {}, None)
        _refuse_doubtful_labels(last, inputs)
        return Batch(tuple(inputs), {}, last)
    return Batch((item,), {}, None)


def _is_input(last: Any, inputs: list[Any]) -> bool:
    """Whether the last part of a batch has the shape of an input with several columns, as a mask has."""
    shape = getattr(last, "shape", ())
    return len(shape) >= 2 and any(getattr(part, "shape", None) == shape for part in inputs)


def _refuse_doubtful_labels(last: Any, inputs: list[Any]) -> None:
    """Raise unless the last part of a batch is one whole number or string for each row."""
    n_rows = len(Batch(tuple(inputs), {}, None))
    if isinstance(last, list | tuple) and all(isinstance(label, str | int) for label in last):
        plausible, form = len(last) == n_rows, f"a list of {len(last)} values"
    else:
        values = last if isinstance(last, torch.Tensor) else np.asarray(last)
        whole = (
            not (values.is_floating_point() or values.is_complex())
            if isinstance(values, torch.Tensor)
            else values.dtype.kind in "biuUS"
        )
        plausible = whole and tuple(values.shape) == (n_rows,)
        form = f"an array of {str(values.dtype).removeprefix('torch.')} with shape {tuple(values.shape)}"
    if not plausible:
        raise InvalidInputError(
            f"The last part of a batch of {n_rows} rows is {form}, which could be an input or labels.\n"
            "Hint: labels are one whole number per row. Pass inputs by name, as a dict or a data set of dicts: "
            "{'input_ids': ids, 'attention_mask': mask}."
        )


def label_array(labels: Any) -> Array:
    """Labels of one batch as an array."""
    return labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)


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
