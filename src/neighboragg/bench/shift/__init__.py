"""Rows unlike those seen: what trust and familiarity say of unknown classes, noise, and other groups of people."""

from neighboragg._public import publish as _publish
from neighboragg.bench.shift._results import ShiftResults
from neighboragg.bench.shift._shifted_cell import SHIFTS, ShiftedCell, shifted_cell
from neighboragg.bench.shift._study import shift
from neighboragg.bench.shift._task import ShiftTask, shift_plan

__all__ = ["SHIFTS", "ShiftResults", "ShiftTask", "ShiftedCell", "shift", "shift_plan", "shifted_cell"]

_publish(globals())
