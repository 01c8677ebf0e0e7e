"""What can be saved: classes that say so by deriving from `Stored`."""

import os
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from sklearn.frozen import FrozenEstimator

from neighboragg.persistence._file import MalformedError

__all__ = ["KINDS", "Deferred", "Stored", "require"]

#: Every class that a file may name, by the name it has there.
KINDS: dict[str, type] = {"FrozenEstimator": FrozenEstimator}


class Stored:
    """Part of a saved model.

    Every class of neighboragg that derives from it can be written to a file and is made again by
    :func:`neighboragg.load`, attribute by attribute, without a call of its constructor. Classes of other packages
    are unknown there, and so cannot be saved.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
            if cls.__name__ in KINDS:
                raise TypeError(f"Two classes named {cls.__name__} cannot both be saved.")
            KINDS[cls.__name__] = cls

    def _saved_state(self) -> dict[str, Any]:
        """Attributes to save; override it to leave out what cannot be stored, or need not be."""
        return Stored.__getstate__(self) or {}

    def __getstate__(self) -> dict[str, Any] | None:
        """Attributes without cached properties, which are made again when they are asked for.

        So copies, and the hash that a model is known by, are the same before and after it is used.
        """
        state: Any = super().__getstate__()
        return state and {
            name: value
            for name, value in state.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _after_load(self) -> None:
        """Check attributes that came from a file with :func:`require`, and make those that were left out."""


class Deferred(Stored):
    """A large part of a saved model: from a file that is mapped it is made, and checked, when it is first used.

    Until then it has no attribute but the function that makes it.
    """

    @classmethod
    def _made_by(cls, make: Callable[[], Self]) -> Self:
        """An object that becomes what `make` returns."""
        item = object.__new__(cls)
        vars(item)[_MAKE] = make
        return item

    def _become_made(self) -> None:
        with _MAKING:  # other threads wait for it to be complete
            if _MAKE in vars(self):
                made = vars(vars(self)[_MAKE]())
                vars(self).update(made | vars(self))  # what was set in the meantime stays
                del vars(self)[_MAKE]

    if not TYPE_CHECKING:  # it would hide mistakes in names

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there, perhaps because nothing is yet."""
            if not name.startswith("__"):
                self._become_made()
            return object.__getattribute__(self, name)

    def _saved_state(self) -> dict[str, Any]:
        self._become_made()
        return super()._saved_state()

    def __getstate__(self) -> dict[str, Any] | None:
        self._become_made()
        return super().__getstate__()


_MAKE = "__make__"  # no file can hold an attribute of such a name
_MAKING = RLock()


def _renew_lock() -> None:
    """In a process forked while a thread held the lock: that thread, which would release it, is not there."""
    global _MAKING
    _MAKING = RLock()


if hasattr(os, "register_at_fork"):  # Windows has none
    os.register_at_fork(after_in_child=_renew_lock)


def require(condition: Any, what: str) -> None:
    """Raise unless what a file says can be; `what` says what is wrong."""
    if not condition:
        raise MalformedError(what)
