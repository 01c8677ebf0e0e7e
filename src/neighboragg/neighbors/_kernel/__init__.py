"""The compiled search: one C++ file, the libraries made of it, and which of them is in use."""

from neighboragg.neighbors._kernel._call import can_search, search_compiled
from neighboragg.neighbors._kernel._choice import Kernel, kernel_in_use, warn_if_slow

__all__ = ["Kernel", "can_search", "kernel_in_use", "search_compiled", "warn_if_slow"]
