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

    def tell(self) -> None:
        token = _run.set(None)  # what a listener does itself, such as to fit a model, is not part of the run
        try:
            self.listener(self.stage, min(self.done, self.total), self.total)
        finally:
            _run.reset(token)


_run: ContextVar[_Run | None] = ContextVar("run", default=None)


@contextmanager
def telling(listener: Listener | None) -> Iterator[None]:
    """Tell `listener` of the progress within the block; None leaves it to whoever listens already."""
    if listener is None:
        yield
        return
    token = _run.set(_Run(listener))
    try:
        yield
    finally:
        _run.reset(token)


def announce(stage: str) -> None:
    """Say what begins now."""
    LOGGER.info(stage)
    if (run := _run.get()) is not None:
        run.stage = stage
        run.tell()


def expect(steps: int) -> None:
    """Say that this many steps will follow."""
    if (run := _run.get()) is not None:
        run.total += steps


def step(steps: int = 1) -> None:
    """Say that one or more steps are done."""
    if (run := _run.get()) is not None:
        run.done += steps
        run.tell()
