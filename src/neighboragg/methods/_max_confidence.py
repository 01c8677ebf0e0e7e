"""The classifier's own probability, the rival everyone starts with."""

from collections.abc import Mapping
from typing import Any

from neighboragg._typing import FloatArray
from neighboragg.methods._base import FitData, TrustMethod

__all__ = ["MaxConfidence"]


class MaxConfidence(TrustMethod):
    """Maximum class probability (max-softmax): trust is the classifier's own probability.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Needs nothing but probabilities; learns nothing.

    References
    ----------
    Hendrycks and Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in Neural
    Networks", ICLR 2017.

    Examples
    --------
    >>> from neighboragg.methods import MaxConfidence
    >>> method = MaxConfidence().fit([[0.0], [1.0]], [0, 1], proba_val=[[0.9, 0.1], [0.2, 0.8]])
    >>> method.score_samples([[0.5]], [[0.3, 0.7]])
    array([0.7])
    """

    def _fit(self, data: FitData) -> None:
        pass

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        return proba

    def _state_to_record(self) -> dict[str, Any]:
        return {}

    def _state_from_record(self, state: Mapping[str, Any], trusted: tuple[str, ...]) -> None:
        pass
