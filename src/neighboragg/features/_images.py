"""ImageFeatures: pictures to vectors, as a step of a scikit-learn pipeline."""

from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from neighboragg._typing import FloatArray
from neighboragg.encoders import encode_images
from neighboragg.exceptions import InvalidParameterError
from neighboragg.persistence import Savable

__all__ = ["ImageFeatures"]


class ImageFeatures(Savable, TransformerMixin, BaseEstimator):
    """Pictures to vectors for neighbor search, by an encoder of your own or a small fixed descriptor.

    Parameters
    ----------
    encoder : callable, default=None
        Takes a list of PIL images in RGB and returns an array of shape (n, d). None takes
        :func:`~neighboragg.encoders.describe_pictures`, which needs no download and is weak: it sees outlines and
        colors, not what they show.
    root : path-like, default=None
        Folder that relative paths belong to.
    cache : bool or path-like, default=False
        Where to keep vectors between runs, by the bytes of the files and the identity of the encoder; True takes the
        usual folder of :class:`~neighboragg.encoders.VectorCache`.
    batch_size : int, default=64
        Pictures that the encoder gets at once, at most.

    See Also
    --------
    neighboragg.encoders.encode_images : The same as a function, which can go on without unreadable pictures.

    Notes
    -----
    Nothing is learned in :meth:`fit`. A picture that cannot be read is an error that names it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from neighboragg import find_mislabeled
    >>> from neighboragg.features import ImageFeatures
    >>> digits = load_digits()
    >>> pictures, y = (digits.images[:300] * 15).astype(np.uint8), digits.target[:300].copy()
    >>> y[7] = 1
    >>> result = find_mislabeled(pictures, y, features=ImageFeatures(), flag=1)
    >>> np.flatnonzero(result.mask).tolist(), result.suggested[result.mask].tolist()
    ([7], [7])
    """

    def __init__(
        self, *, encoder: Any = None, root: Any = None, cache: Any = False, batch_size: int = 64
    ) -> None:
        self.encoder = encoder
        self.root = root
        self.cache = cache
        self.batch_size = batch_size

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing; there is nothing to learn.

        Parameters
        ----------
        X : sequence of path-like, PIL.Image.Image or ndarray
        y : ignored

        Returns
        -------
        self : ImageFeatures
        """
        return self

    def transform(self, X: Any) -> FloatArray:
        """Vectors of pictures.

        Parameters
        ----------
        X : sequence of path-like, PIL.Image.Image or ndarray
            Paths, PIL images, or arrays of shape (height, width) or (height, width, 3 or 4); also an array of shape
            (n, height, width) or (n, height, width, 3 or 4).

        Returns
        -------
        vectors : ndarray of shape (n, d)
        """
        if isinstance(self.encoder, str):
            # A saved model must not be able to name code to run.
            raise InvalidParameterError(
                "The 'encoder' parameter of ImageFeatures must be a callable or None. "
                f"Got {self.encoder!r} instead.\nHint: import it, and pass the callable itself."
            )
        return encode_images(
            X, self.encoder, root=self.root, cache=self.cache, batch_size=self.batch_size
        ).vectors

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that it needs no fit."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Always: there is nothing to learn."""
        return True
