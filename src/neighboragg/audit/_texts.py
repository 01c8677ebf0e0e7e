"""Texts as vectors to judge labels by, and what a classifier of words says of them."""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from sklearn.utils import check_random_state

from neighboragg._typing import Array, FloatArray
from neighboragg.crossfit import cross_fit, deal_folds, fold_splits
from neighboragg.exceptions import InvalidInputError

__all__ = ["text_vectors"]

SVD_COMPONENTS = 100
N_FOLDS = 5


def text_vectors(texts: list[str], labels: Array, seed: int) -> tuple[FloatArray, FloatArray]:
    """Latent semantic vectors of unit length, and out-of-fold probabilities of a linear classifier."""
    # Parts of words as written tell abbreviations and names, which whole words in lower case hide.
    terms = make_union(
        TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2),
        TfidfVectorizer(sublinear_tf=True, ngram_range=(2, 4), min_df=2, analyzer="char_wb", lowercase=False),
    )
    try:
        counts = terms.fit_transform(texts).tocsr()
    except ValueError as error:
        raise InvalidInputError(
            "No two texts have a word in common, so that none can vouch for another.\n"
            "Hint: name another column with --text, or judge by --embeddings."
        ) from error
    n_components = min(SVD_COMPONENTS, counts.shape[1] - 1)
    vectors = TruncatedSVD(n_components, random_state=seed).fit_transform(counts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
    classes, codes = np.unique(labels, return_inverse=True)
    # Copies of a text are in one fold: else a copy of a wrong label would vouch for it.
    copies = np.unique(texts, return_inverse=True)[1]
    folds = deal_folds(codes, copies, N_FOLDS, check_random_state(seed))
    said = cross_fit(
        lambda n: LogisticRegression(C=20, max_iter=1000),
        counts.__getitem__,
        labels,
        classes,
        fold_splits(folds),
    )
    return vectors, said.proba
