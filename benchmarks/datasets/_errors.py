"""What the loaders raise."""

from neighboragg.exceptions import NeighborAggError


class DatasetNotFoundError(NeighborAggError, FileNotFoundError):
    """A data set is neither in a local folder nor in the cache, and cannot be downloaded."""
