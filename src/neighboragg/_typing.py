"""Type aliases used across the package."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "ArrayLike", "BoolArray", "FloatArray", "IntArray"]

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.signedinteger[Any]]
