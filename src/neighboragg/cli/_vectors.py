"""Rows of a table as vectors to judge labels by, and what a classifier says of them."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union
from sklearn.utils import check_random_state

from neighboragg._typing import Array, FloatArray, IntArray
from neighboragg.crossfit import cross_fit, deal_folds, fold_splits
from neighboragg.exceptions import InvalidInputError

__all__ = ["read_matrix", "read_proba", "text_columns", "text_vectors"]

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


def text_columns(frame: Any) -> list[str]:
    """Columns of texts: they hardly ever repeat, and have several words; categories are few and short."""
    found = []
    for name in frame.columns:
        if frame[name].dtype.kind not in "biufM":
            column = frame[name].dropna().astype(str)
            several_words = int(column.str.contains(r"\S\s+\S").sum())
            if 2 * column.nunique() > len(column) and 2 * several_words > len(column):
                found.append(str(name))
    return found


def read_matrix(path: Path, n_rows: int) -> Array:
    """A matrix from a .npy file with a row for each row of the table."""
    if not path.exists():
        raise InvalidInputError(f"There is no file {path}.")
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInputError(
            f"{path} is no array of numbers in NumPy's format.\nHint: numpy.save(path, array)."
        ) from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or len(matrix) != n_rows:
        shape = getattr(matrix, "shape", "several arrays")
        raise InvalidInputError(
            f"{path} must hold a matrix with a row for each of the {n_rows} rows of the table. Got {shape}."
        )
    return matrix


def read_proba(path: Path, labels: Array, judged: IntArray) -> FloatArray:
    """Probabilities of the judged rows, columns in the sorted order of the text of the labels that occur in them.

    In the file, numbers are in numeric order: 2 comes before 10.
    """
    proba = read_matrix(path, len(labels))[judged].astype(np.float64)
    classes = _in_own_order(np.unique(labels[labels != ""]))
    if proba.shape[1] != len(classes):
        shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
        raise InvalidInputError(
            f"{path} has {proba.shape[1]} columns, but there are {len(classes)} labels: {shown}."
        )
    order = np.argsort(classes)
    occurs = np.isin(classes[order], labels[judged])
    kept = proba[:, order[occurs]]
    if not occurs.all():
        kept /= np.maximum(kept.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return kept


def _in_own_order(classes: Array) -> Array:
    """Numbers by value, all else as text."""
    try:
        return classes[np.argsort(classes.astype(np.float64), kind="stable")]
    except ValueError:
        return classes
