"""The method `save` of everything that is fitted."""

from os import PathLike

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from neighboragg.persistence._stored import Stored
from neighboragg.persistence._walk import write_object

__all__ = ["Savable"]


class Savable(Stored):
    """A fitted object that can be saved by itself."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything fitted to one file, without pickle; :func:`neighboragg.load` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write. An existing file is replaced, in one step, when the new one is complete.
        """
        if isinstance(self, BaseEstimator):
            check_is_fitted(self)
        write_object(path, self)
