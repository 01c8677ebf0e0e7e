"""Embeddings and probabilities of a network for rows in any form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch

from neighboragg._core.checks import check_integer
from neighboragg._core.progress import Listener as Progress
from neighboragg._core.progress import add_total, advance, begin_stage, report_to
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError
from neighboragg.torch._batches import batches, label_array, order_problem, row_count
from neighboragg.torch._network import (
    PENULTIMATE,
    Recorder,
    Runner,
    Trace,
    check_layers,
    check_targets,
    refuse_random,
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
        """All rows as one array, after which the parts are released."""
        rows = np.concatenate(self._parts) if self._parts else np.empty((0, 0))
        self._parts = []
        return rows


class GrowingFile:
    """Rows in a .npy file, with only one batch in memory at a time."""

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
        """Remove a file that is not complete."""
        if self._file is not None:
            self._file.close()
        self._partial.unlink(missing_ok=True)

    def _write_header(self) -> None:
        # NumPy leaves room in the header for more rows, so its length does not change.
        header: dict[str, Any] = {
            "descr": "<f4",
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Embedded:
    """The output of a network and of its layers for some rows."""

    views: dict[str, FloatArray]
    output: FloatArray
    proba: FloatArray
    labels: IntArray | None

    def __len__(self) -> int:
        return len(self.output)

    @property
    def embeddings(self) -> FloatArray:
        """Vectors of the first requested layer."""
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
    """Run a network once over data, and return its output and the vectors of its layers.

    Parameters
    ----------
    module : torch.nn.Module
        A trained classifier. It runs in evaluation mode; its mode, gradients and hooks are restored afterward.
    data : DataLoader, Dataset, tensor, array or mapping of tensors
        A batch may be an input, a tuple of inputs, or a mapping (as in Hugging Face loaders) whose entries are passed
        by name, except the labels in ``labels`` or ``label``. The last part of a tuple is taken for the labels if it
        is one whole number or string per row, and for an input if it has two or more dimensions and the shape of
        another input, such as a mask; anything else is refused. Rows without labels must come in a certain order, as
        for :class:`TorchClassifier`; a shuffling loader is accepted only if its labels come with it.
    layer : str or sequence of str, default=None
        Layers whose output to return, by the names of ``module.named_modules()``. None or "penultimate" is the input
        of the last linear layer, found by tracing one batch. Sequences of tokens are averaged (by ``attention_mask``
        if there is one), and images are flattened.
    output : {"logits", "probabilities", "log_probabilities"}, default="logits"
        Meaning of the network's output, which is a tensor (n, n_classes), a tuple that begins with it, or an object
        or mapping with ``logits``. Outputs that contradict it are refused.
    batch_size : int, default=256
        Rows in a forward pass, unless `data` is a loader.
    device : str or torch.device, default=None
        Where to run; defaults to where the module's parameters are. The module itself is not moved.
    autocast : torch.dtype, default=None
        Run in this precision by ``torch.autocast``, such as ``torch.bfloat16``.
    max_dimensions : int, default=None
        Average the images of a layer over squares until they have at most this many values.
    folder : path-like, default=None
        Write vectors to ``<layer>.npy`` files there, batch by batch, and map them, for vectors that do not fit
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
    # What can be read only once comes in the order in which the caller made it.
    problem = None if isinstance(data, Iterator) else order_problem(data)
    layers = (PENULTIMATE,) if layer is None else (layer,) if isinstance(layer, str) else tuple(layer)
    with report_to(progress):
        found = run_network(
            module,
            data,
            layers,
            batch_size=batch_size,
            device=device,
            autocast=autocast,
            max_dimensions=max_dimensions,
            owner="embed",
            folder=folder,
            problem=problem,
        )
    return Embedded(
        views=found.views,
        output=found.output,
        proba=to_proba(found.output, output),
        labels=None if found.labels is None else check_targets(found.labels, found.output.shape[1]),
    )


class Run(NamedTuple):
    """The results of one pass over the data, as the network gave them."""

    views: dict[str, FloatArray]
    output: FloatArray
    labels: Array | None
    trace: Trace


def run_network(
    module: torch.nn.Module,
    data: Any,
    layers: Sequence[str] | None,
    *,
    batch_size: int,
    device: Any,
    autocast: torch.dtype | None,
    max_dimensions: int | None,
    owner: str,
    folder: str | PathLike[str] | None = None,
    known: Trace | None = None,
    problem: str | None = None,
) -> Run:
    """Go through the data once.

    `layers` None stands for the usual layers; `known` is the trace of an earlier run. Rows whose order has a `problem`
    are refused unless their labels come with them.
    """
    runner = Runner(module, device, autocast, owner)
    check_layers(module, layers or ())
    size = check_integer(batch_size, "batch_size", owner, minimum=1)
    seen = known if known is not None and known.is_of(module) else None
    columns: dict[str, GrowingRows | GrowingFile] = {}
    outputs, labels = GrowingRows(), GrowingRows()
    n_rows = n_labels = 0
    try:
        with runner.evaluating():
            begin_stage("Running the network")
            add_total(row_count(data) or 0)
            recorder: Recorder | None = None
            traced: torch.Tensor | None = None
            for batch in batches(data, size):
                if problem is not None and batch.labels is None:
                    raise InvalidInputError(f"{owner} {problem}")
                if recorder is None:
                    if seen is None:
                        seen, traced = trace(module, runner, batch)
                    wanted = tuple(layers) if layers else seen.usual_layers()
                    columns = {name: _column(name, folder) for name in wanted}
                    recorder = Recorder(module, wanted, seen.head, max_dimensions)
                with recorder.recording():
                    given = runner.run(batch)
                if traced is not None:
                    refuse_random(traced, given)
                    traced = None
                mask = batch.keywords.get("attention_mask")
                vectors = recorder.vectors(
                    len(batch), mask.to(given.device) if isinstance(mask, torch.Tensor) else None
                )
                for name, rows in vectors.items():
                    columns[name].append(rows.cpu().numpy())
                outputs.append(given.cpu().numpy())
                n_rows += len(batch)
                if batch.labels is not None:
                    found = label_array(batch.labels)
                    labels.append(found)
                    n_labels += len(found) if found.ndim else 1
                advance(len(batch))
        if seen is None or not n_rows:
            raise InvalidInputError(
                f"The data passed to {owner} has no rows.\nHint: pass at least one batch."
            )
        if n_labels not in (0, n_rows):
            raise InvalidInputError(
                f"The data passed to {owner} has {n_rows} rows, but labels for {n_labels} of them.\n"
                "Hint: every batch needs labels for all of its rows, or none does."
            )
        views = {name: column.finish() for name, column in columns.items()}
        return Run(views, outputs.finish(), labels.finish() if n_labels else None, seen)
    except BaseException:
        for column in columns.values():
            if isinstance(column, GrowingFile):
                column.discard()
        raise


def _column(name: str, folder: str | PathLike[str] | None) -> GrowingRows | GrowingFile:
    return GrowingRows() if folder is None else GrowingFile(Path(folder) / f"{name}.npy")
