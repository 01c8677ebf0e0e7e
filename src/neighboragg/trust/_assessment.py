"""What a model says of a batch of rows: labels, probabilities and trust, from one pass."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from neighboragg._core.display import html_table, text_table
from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, BoolArray, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Predictions of a batch of rows, with how far each can be trusted.

    Parameters
    ----------
    label : ndarray of shape (n,)
        The classifier's own labels.
    probability : ndarray of shape (n,)
        The classifier's probability of each label.
    trust : ndarray of shape (n,)
        Trust in each label; higher is more trusted.
    proba, class_trust : ndarray of shape (n, n_classes)
        The classifier's probability of, and the trust in, every class.
    index : ndarray or pandas Index of shape (n,)
        Names of the rows: the index of a pandas frame, else positions.
    classes : ndarray of shape (n_classes,)
        Order of the class columns.
    familiarity : ndarray of shape (n,), default=None
        P-value for "rows like this have been seen", small for a row unlike all others; None for methods without
        neighbors.
    kept : ndarray of bool of shape (n,), default=None
        Whether a selective classifier keeps the prediction; None for other models.

    Notes
    -----
    It prints as a table. ``assessment[rows]`` takes some of the rows, by number, slice or mask, and is an
    assessment again.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from neighboragg import TrustedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TrustedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X[::2], y[::2])
    >>> assessed = model.assess(X[1::2])
    >>> len(assessed), assessed.label[:3].tolist()
    (75, [0, 0, 0])
    >>> doubtful = assessed[assessed.trust < 0.5]
    >>> len(doubtful) < len(assessed)
    True
    """

    label: Array
    probability: FloatArray
    trust: FloatArray
    proba: FloatArray
    class_trust: FloatArray
    index: Any
    classes: Array
    familiarity: FloatArray | None = None
    kept: BoolArray | None = None

    #: Fields with one value per row, as columns from left to right; those that are None are left out.
    COLUMNS: ClassVar[tuple[str, ...]] = ("label", "probability", "trust", "familiarity", "kept")

    def __len__(self) -> int:
        return len(self.label)

    def __getitem__(self, rows: Any) -> "Assessment":
        """Some of the rows, by number, slice, mask or array of numbers."""
        if isinstance(rows, int | np.integer):
            rows = [range(len(self))[rows]]
        values: dict[str, Any] = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "classes"
        }
        taken: dict[str, Any] = {name: v if v is None else v[rows] for name, v in values.items()}
        return replace(self, **taken)

    def __repr__(self) -> str:
        return text_table(self._table())

    def _repr_html_(self) -> str:
        return html_table(self._table())

    def to_frame(self) -> Any:
        """One row per prediction, with the index of the frame that was assessed.

        Returns
        -------
        frame : pandas.DataFrame
            Columns label, probability, trust, familiarity for methods with neighbors, and kept for a selective
            classifier.
        """
        pandas = import_extra("pandas", extra="cli", purpose="Assessment.to_frame")
        return pandas.DataFrame(self._columns(), index=self.index)

    def _columns(self) -> dict[str, Array]:
        values = {name: getattr(self, name) for name in self.COLUMNS}
        return {name: value for name, value in values.items() if value is not None}

    def _table(self) -> dict[str, Array]:
        return {"": self.index, **self._columns()}
