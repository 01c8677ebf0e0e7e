"""Mahalanobis distance to the class means, relative to that from all rows together."""

import numpy as np

from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods import Mahalanobis

__all__ = ["RelativeMahalanobis"]


class RelativeMahalanobis(Mahalanobis):
    """How much nearer the mean of the class is than that of all rows, each by a covariance of its own.

    Parameters
    ----------
    shrinkage : "auto" or float, default="auto"
        Share of the spherical covariance, as in :class:`Mahalanobis`, for both covariances.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    background_ : Mahalanobis
        The Gaussian of all rows together, as of one class.
    class_count_, location_, scale_, whitening_, means_, shrinkage_
        As in :class:`Mahalanobis`.

    Notes
    -----
    Needs training rows; uses neither validation rows nor probabilities except for the predicted class. With d_c² as
    in :class:`Mahalanobis` and d_0² the same for a single Gaussian of all rows, s = (d_0² − d_c²) / n_features
    and trust_c = s / (1 + |s|): the order of the published score d_0² − d_c², but in [−1, 1]. Directions in which
    all classes vary alike no longer count. A class without training rows is infinitely far: trust −1.

    References
    ----------
    Ren, Fort, Liu, Roy, Padhy and Lakshminarayanan, "A Simple Fix to Mahalanobis Distance for Improving Near-OOD
    Detection", ICML workshop on Uncertainty and Robustness in Deep Learning, 2021.

    Examples
    --------
    >>> from neighboragg.methods import RelativeMahalanobis
    >>> method = RelativeMahalanobis().fit([[0.0], [2.0], [8.0], [10.0]], [0, 0, 1, 1], proba_val=[[0.5, 0.5]] * 4)
    >>> method.predict_trust([[2.0]], [[0.5, 0.5]]).round(2)
    array([[-0.32, -0.98]])
    """

    def _fit(self, data: FitData) -> None:
        super()._fit(data)
        n = len(data.X)
        self.background_ = Mahalanobis(shrinkage=self.shrinkage).fit(
            data.X, np.zeros(n, dtype=np.intp), proba_val=np.ones((n, 1))
        )

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        gain = (self.background_._squared_distances(X) - self._squared_distances(X)) / X.shape[1]
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(gain), gain / (1.0 + np.abs(gain)), -1.0)
