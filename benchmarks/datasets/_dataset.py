"""One data set in memory: numbers, categories, text or images, and labels."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray
from neighboragg.exceptions import InvalidInputError

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows and labels as published: nothing scaled, encoded or imputed.

    Parameters
    ----------
    name : str
        Name by which :func:`load_dataset` knows it.
    y : ndarray of shape (n_samples,)
        Labels as published, integers or strings.
    numeric : ndarray of shape (n_samples, n_numeric), float64
        Numeric columns, in the order of `feature_names`; no columns for text and images.
    categorical : ndarray of shape (n_samples, n_categorical), object
        Categorical columns as strings, in the order of `categorical_names`. A missing value is a category
        of its own, spelled as published (``"?"`` in ``adult``).
    feature_names : tuple of str
        Names of all columns of `X`, numeric and categorical, in their order.
    categorical_names : tuple of str, default=()
        Those of `feature_names` that are categorical.
    text : ndarray of shape (n_samples,) or None, default=None
        Texts, for a set of texts.
    images : ndarray of shape (n_samples, n_pixels) or None, default=None
        Flattened images as float32 with gray values 0 to 255, for a set of images.
    n_train : int or None, default=None
        The first `n_train` rows are the published training part, the others its test part; None where the
        source has no such parts.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.datasets import Dataset
    >>> pets = Dataset(
    ...     "pets",
    ...     y=np.array(["yes", "no", "yes"]),
    ...     numeric=np.array([[3.0], [9.0], [4.0]]),
    ...     categorical=np.array([["cat"], ["dog"], ["?"]], dtype=object),
    ...     feature_names=("age", "kind"),
    ...     categorical_names=("kind",),
    ... )
    >>> pets
    Dataset('pets', n_samples=3, n_features=2, n_classes=2)
    >>> pets.to_matrix().sum(axis=0)
    array([16.,  1.,  1.,  1.])
    """

    name: str
    y: Array
    numeric: FloatArray
    categorical: Array
    feature_names: tuple[str, ...]
    categorical_names: tuple[str, ...] = ()
    text: Array | None = None
    images: FloatArray | None = None
    n_train: int | None = None

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, n_samples={len(self.y)}, n_features={len(self.feature_names)}, "
            f"n_classes={len(np.unique(self.y))})"
        )

    @property
    def X(self) -> Array:  # noqa: N802
        """Rows: floats, or texts, or for mixed columns an object array of numbers and strings."""
        if self.images is not None:
            return self.images
        if self.text is not None:
            return self.text
        if not self.categorical_names:
            return self.numeric
        rows = np.empty((len(self.y), len(self.feature_names)), dtype=object)
        rows[:, ~np.isin(self.feature_names, self.categorical_names)] = self.numeric
        rows[:, [self.feature_names.index(name) for name in self.categorical_names]] = self.categorical
        return rows

    def to_matrix(self) -> FloatArray:
        """Return one plain float matrix: numbers as they are, then one 0/1 column per category.

        Returns
        -------
        matrix : ndarray of shape (n_samples, n_numeric + n_categories)
            Not scaled. Categories of a column are in sorted order. Images stay float32.

        Raises
        ------
        InvalidInputError
            If the rows are texts, which have no columns.
        """
        if self.images is not None:
            return self.images
        if self.text is not None:
            raise InvalidInputError(
                f"The data set {self.name!r} holds texts, which have no plain matrix.\n"
                "Hint: turn them into vectors first, e.g. TfidfVectorizer().fit_transform(dataset.text)."
            )
        return np.hstack([self.numeric, *(_one_hot(column) for column in self.categorical.T)])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame: `feature_names`, categories as dtype category, and the column ``label``.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_samples, n_features + 1)

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        pd = import_extra("pandas", extra="cli", purpose="Dataset.to_frame")
        if self.images is not None:
            frame = pd.DataFrame(self.images, columns=list(self.feature_names))
        elif self.text is not None:
            frame = pd.DataFrame({"text": self.text})
        else:
            numeric_names = [name for name in self.feature_names if name not in self.categorical_names]
            frame = pd.DataFrame(self.numeric, columns=numeric_names)
            for name, column in zip(self.categorical_names, self.categorical.T, strict=True):
                frame[name] = pd.Categorical(column)
            frame = frame[list(self.feature_names)]
        return frame.assign(label=self.y)

    def checksum(self) -> str:
        """Return the SHA-256 of values and labels, the same for every file format they came from.

        Of a text only letters and digits count: copies of one corpus differ in the blanks around its
        punctuation.

        Returns
        -------
        digest : str
            64 hexadecimal digits.
        """
        digest = hashlib.sha256()
        digest.update(np.ascontiguousarray(self.numeric, dtype="<f8").data)
        digest.update(_joined(self.categorical))
        if self.text is not None:
            digest.update(re.sub(r"[^\w\n]|_", "", _joined(self.text).decode()).encode())
        if self.images is not None:
            digest.update(np.ascontiguousarray(self.images, dtype="<f4").data)
        digest.update(_joined(self.y))
        return digest.hexdigest()


def _one_hot(column: Array) -> FloatArray:
    categories, codes = np.unique(column, return_inverse=True)
    return np.eye(len(categories))[codes]


def _joined(values: Array) -> bytes:
    return "\n".join(map(str, values.ravel().tolist())).encode()
