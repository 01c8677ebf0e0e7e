"""How far a long run is: reported to a listener, and logged as "neighboragg"."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

LOGGER = logging.getLogger("neighboragg")

Listener = Callable[[str, int, int], None]


@dataclass
class _Run:
    listener: Listener
    stage: str = ""
    done: int = 0
    total: int = 0

    def report(self) -> None:
        token = _run.set(None)  # work of the listener itself is not part of the run
        try:
            self.listener(self.stage, min(self.done, self.total), self.total)
        finally:
            _run.reset(token)


_run: ContextVar[_Run | None] = ContextVar("run", default=None)


@contextmanager
def report_to(listener: Listener | None) -> Iterator[None]:
    """Report the progress within the block to `listener`; with None, the current listener stays."""
    if listener is None:
        yield
        return
    token = _run.set(_Run(listener))
    try:
        yield
    finally:
        _run.reset(token)


def begin_stage(stage: str) -> None:
    """Log and report the stage that begins."""
    LOGGER.info(stage)
    if (run := _run.get()) is not None:
        run.stage = stage
        run.report()


def add_total(steps: int) -> None:
    """Add steps to the total of the run."""
    if (run := _run.get()) is not None:
        run.total += steps


def advance(steps: int = 1) -> None:
    """Report that one or more steps are done."""
    if (run := _run.get()) is not None:
        run.done += steps
        run.report()
