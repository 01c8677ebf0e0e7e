"""Texts as terms, and as vectors of unit length."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from neighboragg._typing import Array, FloatArray
from neighboragg.persistence import Savable

__all__ = ["TextVectors"]

N_COMPONENTS = 100
# Whole words in lower case; and parts of words as written, which tell abbreviations and names.
TERMS: tuple[dict[str, Any], ...] = (
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 4), "analyzer": "char_wb", "lowercase": False},
)


class TextVectors(Savable, TransformerMixin, BaseEstimator):
    """Latent semantic vectors of texts, of unit length.

    Parameters
    ----------
    n_components : int, default=100
        Length of the vectors, if there are as many terms and texts.

    Attributes
    ----------
    terms_ : list of TfidfVectorizer
        Words and pairs of words; two to four characters within words. Terms of a single text do not count.
    svd_ : TruncatedSVD or None
        From terms to vectors; None if no two texts have a term in common, and there are no vectors.

    Notes
    -----
    Results are a function of the texts alone. A text without known terms becomes the zero vector.

    Examples
    --------
    >>> from neighboragg.features import TextVectors
    >>> texts = ["How far is the moon?", "How far is Mars?", "Who wrote Faust?", "Who wrote Emma?"]
    >>> vectors = TextVectors().fit_transform(texts)
    >>> bool(vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2])
    True
    """

    def __init__(self, *, n_components: int = N_COMPONENTS) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms and how they go together.

        Parameters
        ----------
        X : sequence of str
        y : ignored

        Returns
        -------
        self : TextVectors
        """
        texts = list(X)
        self.terms_ = [
            vectorizer for settings in TERMS if (vectorizer := _fitted(settings, texts)) is not None
        ]
        counts = self.terms(texts)
        self.svd_: TruncatedSVD | None = None
        n_components = min(self.n_components, counts.shape[1] - 1, counts.shape[0] - 1)
        if n_components > 0:
            self.svd_ = TruncatedSVD(n_components, random_state=0).fit(counts)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Vectors of texts.

        Parameters
        ----------
        X : sequence of str

        Returns
        -------
        vectors : ndarray of shape (n, n_components)
        """
        return self.vectors_of(self.terms(X))

    def terms(self, X: Any) -> Any:
        """Weights (TF-IDF) of all terms.

        Parameters
        ----------
        X : sequence of str

        Returns
        -------
        terms : sparse array of shape (n, n_terms)
        """
        check_is_fitted(self, "terms_")
        texts = list(X)
        if not self.terms_:
            return sparse.csr_array((len(texts), 0))
        return sparse.csr_array(sparse.hstack([vectorizer.transform(texts) for vectorizer in self.terms_]))

    def vectors_of(self, terms: Any) -> FloatArray:
        """Vectors of texts given by their terms.

        Parameters
        ----------
        terms : sparse array of shape (n, n_terms)

        Returns
        -------
        vectors : ndarray of shape (n, n_components)
        """
        if self.svd_ is None:
            return np.empty((terms.shape[0], 0))
        vectors: Array = self.svd_.transform(terms)
        return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12)


def _fitted(settings: dict[str, Any], texts: list[str]) -> TfidfVectorizer | None:
    """Terms of at least two texts, or None if there are none."""
    try:
        return TfidfVectorizer(sublinear_tf=True, min_df=2, **settings).fit(texts)
    except ValueError:  # no terms remain
        return None
