"""Type aliases used across the package."""

from typing import TYPE_CHECKING, Any

import numpy as np

__all__ = ["Array", "ArrayLike", "BoolArray", "FloatArray", "IntArray"]

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]
    BoolArray = NDArray[np.bool_]
    FloatArray = NDArray[np.floating[Any]]
    IntArray = NDArray[np.signedinteger[Any]]
else:
    # What help() and inspect.signature show: a name, where the expansions take several hundred characters.
    ArrayLike = type("ArrayLike", (), {"__module__": "numpy.typing"})
    Array = BoolArray = FloatArray = IntArray = np.ndarray
