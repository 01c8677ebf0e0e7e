"""Rows unlike those seen: trust and familiarity for unknown classes, noise, and other groups of people."""

from benchmarks.shift._results import ShiftResults
from benchmarks.shift._shifted_cell import SHIFTS, shifted_cell
from benchmarks.shift._study import shift
from benchmarks.shift._task import METHODS, ShiftTask, shift_plan

__all__ = ["METHODS", "SHIFTS", "ShiftResults", "ShiftTask", "shift", "shift_plan", "shifted_cell"]
