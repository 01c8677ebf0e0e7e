"""Embeddings and probabilities of a network for rows of any kind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch

from neighboragg._core.checks import check_integer
from neighboragg._core.progress import Listener as Progress
from neighboragg._core.progress import announce, expect, step, telling
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.torch._network import (
    PENULTIMATE,
    Batch,
    Listener,
    batches,
    check_layers,
    check_targets,
    logits_of,
    row_count,
    to_proba,
    trace,
)


class GrowingRows:
    """Rows in memory."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def append(self, rows: Array) -> None:
        """Add the rows of one batch."""
        self._parts.append(rows)

    def finish(self) -> Array:
        """All rows as one array; the parts are let go."""
        rows = np.concatenate(self._parts) if self._parts else np.empty((0, 0))
        self._parts = []
        return rows


class GrowingFile:
    """Rows in a .npy file, of which only one batch is in memory at a time."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(f".{path.name}.partial")
        self._file: BinaryIO | None = None
        self._shape: tuple[int, ...] = ()
        self._count = 0

    def append(self, rows: Array) -> None:
        """Add the rows of one batch."""
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        if self._file is None:
            self._file = self._partial.open("wb")
            self._shape = rows.shape[1:]
            self._write_header()
        if rows.shape[1:] != self._shape:
            raise InvalidInputError(
                f"A batch has vectors of shape {rows.shape[1:]}, but those before have {self._shape}.\n"
                "Hint: bring all inputs to one size."
            )
        rows.tofile(self._file)
        self._count += len(rows)

    def finish(self) -> Array:
        """The complete file, mapped into memory."""
        if self._file is None:
            raise InvalidInputError("There are no rows to write.")
        self._file.seek(0)
        self._write_header()
        self._file.close()
        self._partial.replace(self._path)
        return np.load(self._path, mmap_mode="r")

    def discard(self) -> None:
        """Leave nothing half-written."""
        if self._file is not None:
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def _write_header(self) -> None:
        # NumPy leaves room in the header for more rows, so that it keeps its length.
        header: dict[str, Any] = {
            "descr": "<f4",
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Embedded:
    """What a network makes of rows."""

    views: dict[str, FloatArray]
    output: FloatArray
    proba: FloatArray
    labels: IntArray | None

    def __len__(self) -> int:
        return len(self.output)

    @property
    def embeddings(self) -> FloatArray:
        """Vectors of the first layer that was asked for."""
        return next(iter(self.views.values()))

    @property
    def stacked(self) -> FloatArray:
        """Vectors of all layers side by side."""
        views = list(self.views.values())
        return views[0] if len(views) == 1 else np.hstack(views)

    def __repr__(self) -> str:
        views = ", ".join(f"{name}: {rows.shape[1]} dimensions" for name, rows in self.views.items())
        labels = "with" if self.labels is not None else "without"
        return f"<Embedded {len(self):,} rows, {self.output.shape[1]} classes, {labels} labels; {views}>"


def embed(
    module: torch.nn.Module,
    data: Any,
    *,
    layer: str | Sequence[str] | None = None,
    output: str = "logits",
    batch_size: int = 256,
    device: Any = None,
    autocast: torch.dtype | None = None,
    max_dimensions: int | None = None,
    folder: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Embedded:
    """Run a network once over data, and return what its layers and its output say.

    Parameters
    ----------
    module : torch.nn.Module
        A trained classifier. It is put into evaluation mode meanwhile; its mode, gradients and hooks are as before
        afterward.
    data : DataLoader, Dataset, tensor, array or mapping of tensors
        Batches may be inputs; tuples of inputs that end with the labels; or mappings (as Hugging Face loaders give)
        in which ``labels`` or ``label`` are the labels and the rest is passed by name.
    layer : str or sequence of str, default=None
        Whose output to take, by the names of ``module.named_modules()``. None or "penultimate" is the input of the
        last linear layer, found by tracing one batch. Sequences of tokens are averaged (by ``attention_mask`` if
        there is one), pictures are laid out flat.
    output : {"logits", "probabilities", "log_probabilities"}, default="logits"
        What the network gives: a tensor (n, n_classes), a tuple that begins with it, or an object or mapping with
        ``logits``.
    batch_size : int, default=256
        Rows in a forward pass, unless `data` is a loader.
    device : str or torch.device, default=None
        Where to run; defaults to where the module's parameters are. The module itself is not moved.
    autocast : torch.dtype, default=None
        Run in this precision by ``torch.autocast``, such as ``torch.bfloat16``.
    max_dimensions : int, default=None
        Average the pictures of a layer over squares until they have no more numbers than this.
    folder : path-like, default=None
        Write vectors to ``<layer>.npy`` files there, batch by batch, and map them; needed when they do not fit
        into memory.
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` after each batch.

    Returns
    -------
    embedded : Embedded

    Examples
    --------
    >>> import torch
    >>> from neighboragg.torch import embed
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> embed(net, torch.randn(10, 4))
    <Embedded 10 rows, 3 classes, without labels; penultimate: 8 dimensions>
    """
    layers = (PENULTIMATE,) if layer is None else (layer,) if isinstance(layer, str) else tuple(layer)
    with telling(progress):
        found = run_network(
            module,
            data,
            layers,
            batch_size=batch_size,
            device=device,
            autocast=autocast,
            max_dimensions=max_dimensions,
            folder=folder,
        )
    return Embedded(
        views=found.views,
        output=found.output,
        proba=to_proba(found.output, output),
        labels=None if found.labels is None else check_targets(found.labels, found.output.shape[1]),
    )


class Run(NamedTuple):
    """What one pass gave, as it came."""

    views: dict[str, FloatArray]
    output: FloatArray
    labels: Array | None


def run_network(
    module: torch.nn.Module,
    data: Any,
    layers: Sequence[str] | None,
    *,
    batch_size: int,
    device: Any,
    autocast: torch.dtype | None,
    max_dimensions: int | None,
    folder: str | PathLike[str] | None = None,
) -> Run:
    """Go through the data once; None stands for the usual layers."""
    check_layers(module, layers or ())
    runner = Runner(module, device, autocast)
    size = check_integer(batch_size, "batch_size", "embed", minimum=1)
    columns: dict[str, GrowingRows | GrowingFile] = {}
    outputs, labels = GrowingRows(), GrowingRows()
    n_labels = 0
    try:
        with runner.evaluating():
            announce("Running the network")
            expect(row_count(data) or 0)
            listener: Listener | None = None
            for batch in batches(data, size):
                if listener is None:
                    seen = trace(module, lambda batch=batch: runner.run(batch))
                    wanted = tuple(layers) if layers else seen.usual_layers()
                    columns = {name: _column(name, folder) for name in wanted}
                    listener = Listener(module, wanted, seen.head, max_dimensions)
                with listener.listening():
                    given = runner.run(batch)
                mask = batch.keywords.get("attention_mask")
                vectors = listener.vectors(
                    len(batch), mask.to(given.device) if isinstance(mask, torch.Tensor) else None
                )
                for name, rows in vectors.items():
                    columns[name].append(rows.cpu().numpy())
                outputs.append(given.cpu().numpy())
                if batch.labels is not None:
                    labels.append(np.asarray(torch.as_tensor(batch.labels).cpu()))
                    n_labels += 1
                step(len(batch))
        if listener is None:
            raise InvalidInputError("The data passed to embed has no rows.\nHint: pass at least one batch.")
        views = {name: column.finish() for name, column in columns.items()}
        return Run(views, outputs.finish(), labels.finish() if n_labels else None)
    except BaseException:
        for column in columns.values():
            if isinstance(column, GrowingFile):
                column.discard()
        raise


class Runner:
    """Forward passes of a module in evaluation mode, without gradients."""

    def __init__(self, module: torch.nn.Module, device: Any, autocast: torch.dtype | None) -> None:
        self._module, self._autocast = module, autocast
        first = next((p for p in module.parameters() if p.is_floating_point()), None)
        self._device = torch.device(device) if device is not None else _device_of(first)
        self._dtype = None if first is None or autocast is not None else first.dtype

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
        """What the module gives for a batch."""
        moved = batch.to(self._device, self._dtype)
        cast = (
            nullcontext()
            if self._autocast is None
            else torch.autocast(self._device.type, dtype=self._autocast)
        )
        with cast:
            return logits_of(self._module(*moved.arguments, **moved.keywords), len(batch))


def _device_of(parameter: Any) -> torch.device:
    return torch.device("cpu") if parameter is None else parameter.device


def _column(name: str, folder: str | PathLike[str] | None) -> GrowingRows | GrowingFile:
    return GrowingRows() if folder is None else GrowingFile(Path(folder) / f"{name}.npy")
