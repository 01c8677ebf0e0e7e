"""A toy set to look at."""

import numpy as np
from sklearn.datasets import make_moons

from neighboragg._core.checks import check_integer, check_real
from neighboragg._core.types import FloatArray, IntArray

__all__ = ["make_moons_trust"]


def make_moons_trust(
    n_samples: int = 400, *, noise: float = 0.25, random_state: int | np.random.RandomState | None = None
) -> tuple[FloatArray, IntArray]:
    """Draw two interleaved half moons that overlap: the plane on which trust can be seen.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows, at least 2; half of them (rounded down) in class 0.
    noise : float, default=0.25
        Standard deviation of the Gaussian noise added to both coordinates. At 0 the moons are clean curves;
        at the default some rows lie inside the other moon, where a smooth classifier is wrong and sure.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    X : ndarray of shape (n_samples, 2), float64
    y : ndarray of shape (n_samples,), int64
        Class 0, the upper moon, or 1, the lower.

    References
    ----------
    M. Xiong, S. Li, W. Feng, A. Deng, J. Zhang, B. Hooi, "Birds of a Feather Trust Together: Knowing When to
    Trust a Classifier via Adaptive Neighborhood Aggregation", TMLR 2022, Figure 1.

    Examples
    --------
    >>> from benchmarks.datasets import make_moons_trust
    >>> X, y = make_moons_trust(200, random_state=0)
    >>> X.shape, int(y.sum())
    ((200, 2), 100)
    """
    n_samples = check_integer(n_samples, "n_samples", "make_moons_trust", minimum=2)
    noise = check_real(noise, "noise", "make_moons_trust", low=0.0, high=np.inf, closed="left")
    X, y = make_moons(n_samples, noise=noise, random_state=random_state)
    return X, y
