"""Predictions for a batch of rows with probabilities and trust, from one pass through the model."""

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
    predicted : ndarray of shape (n,)
        The labels that the classifier predicts.
    probability : ndarray of shape (n,)
        The classifier's probability of each predicted label.
    trust : ndarray of shape (n,)
        Trust in each predicted label; higher is more trusted.
    proba, class_trust : ndarray of shape (n, n_classes)
        The classifier's probability of, and the trust in, every class.
    index : ndarray or pandas Index of shape (n,)
        Names of the rows: the index of a pandas frame, else positions.
    classes : ndarray of shape (n_classes,)
        Order of the class columns.
    familiarity : ndarray of shape (n,), default=None
        P-value of each row; small means unlike anything seen in training. None for methods without neighbors.
    accepted : ndarray of bool of shape (n,), default=None
        Whether a selective classifier accepts the prediction; None for other models.
    seen_in_fit : ndarray of bool of shape (n,), default=None
        Whether the row is an exact copy of a row that the model was fitted on.
    copies_by_chance : bool, default=True
        Whether chance explains how many rows of the batch were seen in fit. If not, their trust looks better than that
        of new rows.
    notes : tuple of str, default=()
        What makes this batch unlike the rows that the model was fitted on: columns that have changed, and more
        unfamiliar rows than by chance.

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
    >>> len(assessed), assessed.predicted[:3].tolist()
    (75, [0, 0, 0])
    >>> doubtful = assessed[assessed.trust < 0.5]
    >>> len(doubtful) < len(assessed)
    True
    """

    predicted: Array
    probability: FloatArray
    trust: FloatArray
    proba: FloatArray
    class_trust: FloatArray
    index: Any
    classes: Array
    familiarity: FloatArray | None = None
    accepted: BoolArray | None = None
    seen_in_fit: BoolArray | None = None
    copies_by_chance: bool = True
    notes: tuple[str, ...] = ()

    #: Fields with one value per row, as columns from left to right; those that are None are left out.
    COLUMNS: ClassVar[tuple[str, ...]] = (
        "predicted",
        "probability",
        "trust",
        "familiarity",
        "accepted",
        "seen_in_fit",
    )
    #: Fields that belong to the batch.
    OF_ALL: ClassVar[tuple[str, ...]] = ("classes", "copies_by_chance", "notes")

    def __len__(self) -> int:
        return len(self.predicted)

    def __getitem__(self, rows: Any) -> "Assessment":
        """Some of the rows, by number, slice, mask or array of numbers."""
        if isinstance(rows, int | np.integer):
            rows = [range(len(self))[rows]]
        values: dict[str, Any] = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in self.OF_ALL
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
            Columns predicted, probability, trust, familiarity (for methods with neighbors), accepted (for a selective
            classifier) and seen_in_fit.
        """
        pandas = import_extra("pandas", extra="cli", purpose="Assessment.to_frame")
        return pandas.DataFrame(self._columns(), index=self.index)

    def _columns(self) -> dict[str, Array]:
        values = {name: getattr(self, name) for name in self.COLUMNS}
        return {name: value for name, value in values.items() if value is not None}

    def _table(self) -> dict[str, Array]:
        return {"": self.index, **self._columns()}
