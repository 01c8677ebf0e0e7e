"""Type aliases used across the package."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import NDArray

    Array = NDArray[Any]
    BoolArray = NDArray[np.bool_]
    FloatArray = NDArray[np.floating[Any]]
    IntArray = NDArray[np.signedinteger[Any]]
else:
    # help() and inspect.signature show these short names instead of several hundred characters.
    ArrayLike = type("ArrayLike", (), {"__module__": "numpy.typing"})
    Array = BoolArray = FloatArray = IntArray = np.ndarray
