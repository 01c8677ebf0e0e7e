"""Exact search that computes matrix products on a PyTorch device.

The device proposes candidates. The processor recomputes and certifies their distances as in every exact search, so
the results have the same bits. Only candidates leave the device.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.exceptions import InvalidParameterError
from neighboragg.search._exact_search import UNIT_ROUNDOFF
from neighboragg.search._reference import Reference

CHECKED_ROWS = 64
# Copies live as long as their rows, and are never saved.
_TABLES: "WeakKeyDictionary[Reference, dict[str, DeviceTable]]" = WeakKeyDictionary()


def table_on(reference: Reference, device: Any, owner: str) -> "DeviceTable":
    """The copy of reference rows on a device, created on first use."""
    tables = _TABLES.setdefault(reference, {})
    if str(device) not in tables:
        tables[str(device)] = DeviceTable(reference, device, owner)
    return tables[str(device)]


class DeviceTable:
    """The single-precision copy of the reference rows on a device, and products with it."""

    def __init__(self, reference: Reference, device: Any, owner: str) -> None:
        self._torch = import_extra("torch", extra="torch", purpose=f"The 'device' parameter of {owner}")
        try:
            self._device = self._torch.device(device)
            rows = np.ascontiguousarray(reference.table_of(0, len(reference.rows)))
            self._rows = self._torch.from_numpy(rows).to(self._device)
        except (RuntimeError, AssertionError, TypeError) as error:
            # PyTorch raises different errors for unknown and for unavailable devices.
            reason = str(error).partition("\n")[0]
            raise InvalidParameterError(
                f"The 'device' parameter of {owner} cannot be used: {reason}. Got {device!r}.\n"
                "Hint: pass a device that PyTorch finds, e.g. 'cpu' or 'cuda', or None to search without PyTorch."
            ) from error
        self._check(rows, owner)

    def product(self, single: FloatArray, low: int, high: int) -> "DeviceValues":
        """Product of query rows with the rows `low` to `high` of the table; the result stays on the device."""
        with self._accurately():
            queries = self._torch.from_numpy(np.ascontiguousarray(single)).to(self._device)
            return DeviceValues(queries @ self._rows[low:high].T, self._torch)

    @contextmanager
    def _accurately(self) -> Iterator[None]:
        """Compute products in full single precision, and restore the user's setting afterward."""
        before = self._torch.get_float32_matmul_precision()
        self._torch.set_float32_matmul_precision("highest")
        try:
            with (
                self._torch.inference_mode(),
                self._torch.autocast(self._device.type, dtype=self._torch.bfloat16, enabled=False),
            ):
                yield
        finally:
            self._torch.set_float32_matmul_precision(before)

    def _check(self, rows: FloatArray, owner: str) -> None:
        """Refuse a device whose products are less accurate than the certificate assumes."""
        some = rows[:: max(1, len(rows) // CHECKED_ROWS)]
        found = self.product(some, 0, len(rows)).numpy()[:, :: max(1, len(rows) // CHECKED_ROWS)]
        exact = some.astype(np.float64) @ some.T.astype(np.float64)
        lengths = np.linalg.norm(some.astype(np.float64), axis=1)
        allowed = 1.1 * some.shape[1] * UNIT_ROUNDOFF * np.outer(lengths, lengths) + np.finfo(np.float32).tiny
        if not (np.abs(found - exact) <= allowed).all():
            raise InvalidParameterError(
                f"The 'device' parameter of {owner} is a device whose single-precision products are not accurate "
                f"enough for an exact search. Got {str(self._device)!r}.\nHint: pass None to search without a device."
            )


class DeviceValues:
    """A product on a device; only the smallest values of each row are copied from the device."""

    def __init__(self, values: Any, torch: Any) -> None:
        self._values, self._torch = values, torch

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and reference rows."""
        n, size = self._values.shape
        return int(n), int(size)

    def __getitem__(self, chosen: Any) -> "DeviceValues":
        where = self._torch.as_tensor(chosen) if isinstance(chosen, np.ndarray) else chosen
        return DeviceValues(self._values[where], self._torch)

    def smallest(self, width: int) -> tuple[IntArray, FloatArray]:
        """Ascending positions of the `width` smallest values of each row, and the largest of those values."""
        with self._torch.inference_mode():
            values, positions = self._torch.topk(self._values, width, dim=1, largest=False, sorted=False)
            last = values.max(dim=1).values
            positions = positions.sort(dim=1).values
            return positions.cpu().numpy(), last.cpu().numpy().astype(np.float64)

    def numpy(self) -> Array:
        """All values."""
        return np.asarray(self._values.cpu().numpy())
