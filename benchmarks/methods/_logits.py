"""Scores of a network's logits: the largest, the same over a norm, and the energy."""

import numpy as np
from scipy.special import logsumexp

from neighboragg._core.checks import check_real
from neighboragg._core.types import FloatArray
from neighboragg._pool.evidence import FitData
from neighboragg.methods import LogitMethod, logits_of

__all__ = ["Energy", "MaxLogit"]


def energies(logits: FloatArray, temperature: float = 1.0) -> FloatArray:
    """T log Σ_c exp(z_c / T) of every row, the negative of the energy."""
    return temperature * logsumexp(logits / temperature, axis=1)


class MaxLogit(LogitMethod):
    """The logit of the class, as it is or divided by a norm of all logits.

    Parameters
    ----------
    p : float, default=None
        Divide logits, less their mean, by their p-norm. None leaves them as they are.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    See Also
    --------
    Tuned : Chooses `p` on validation rows, as the paper of the p-norm does.

    Notes
    -----
    Vectors begin with the logits z (see :class:`LogitMethod`); learns nothing. Without `p` trust_c = z_c. With it
    trust_c = (z_c − z̄) / (Σ_k |z_k − z̄|^p)^(1/p), in [−1, 1], and 0 where all logits are equal: how long the
    vector of logits is no longer counts.

    References
    ----------
    Hendrycks, Basart, Mazeika, Zou, Kwon, Mostajabi, Steinhardt and Song, "Scaling Out-of-Distribution Detection for
    Real-World Settings", ICML 2022.

    Cattelan and Silva, "How to Fix a Broken Confidence Estimator: Evaluating Post-hoc Methods for Selective
    Classification with Deep Neural Networks", UAI 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from neighboragg.methods import MaxLogit
    >>> logits = np.array([[3.0, 1.0, -1.0], [0.5, 1.0, 0.0]])
    >>> proba = softmax(logits, axis=1)
    >>> MaxLogit().fit(logits, [0, 1], proba_val=proba, classes=[0, 1, 2]).score_samples(logits, proba)
    array([3., 1.])
    >>> MaxLogit(p=1).fit(logits, [0, 1], proba_val=proba, classes=[0, 1, 2]).score_samples(logits, proba)
    array([0.5, 0.5])
    """

    def __init__(self, *, p: float | None = None) -> None:
        self.p = p

    def _fit(self, data: FitData) -> None:
        if self.p is not None:
            check_real(self.p, "p", type(self).__name__, low=0, high=np.inf)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        logits = logits_of(X, proba.shape[1])
        if self.p is None:
            return logits
        centered = logits - logits.mean(axis=1, keepdims=True)
        largest = np.abs(centered).max(axis=1, keepdims=True)
        # Relative to the largest, so that high powers do not overflow.
        relative = np.divide(centered, largest, out=np.zeros_like(centered), where=largest > 0)
        norm = (np.abs(relative) ** self.p).sum(axis=1, keepdims=True) ** (1.0 / self.p)
        return np.divide(relative, norm, out=np.zeros_like(relative), where=largest > 0)


class Energy(LogitMethod):
    """The logarithm of the sum of the exponentials of all logits.

    Parameters
    ----------
    temperature : float, default=1.0
        T in T log Σ_c exp(z_c / T).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Vectors begin with the logits z (see :class:`LogitMethod`); learns nothing. The published energy is the negative
    of this trust. It is the same for every class, so that it ranks predictions, but cannot compare labels of a row.
    It was made to tell unfamiliar rows from familiar ones, not errors from right predictions.

    References
    ----------
    Liu, Wang, Owens and Li, "Energy-based Out-of-distribution Detection", NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from neighboragg.methods import Energy
    >>> logits = np.log([[6.0, 2.0], [0.5, 0.5]])
    >>> proba = [[0.75, 0.25], [0.5, 0.5]]
    >>> np.exp(Energy().fit(logits, [0, 1], proba_val=proba).score_samples(logits, proba))
    array([8., 1.])
    """

    def __init__(self, *, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def _fit(self, data: FitData) -> None:
        check_real(self.temperature, "temperature", type(self).__name__, low=0, high=np.inf)

    def _trust(self, X: FloatArray, proba: FloatArray) -> FloatArray:
        values = energies(logits_of(X, proba.shape[1]), self.temperature)
        return np.repeat(values[:, None], proba.shape[1], axis=1)
