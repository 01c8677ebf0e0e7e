"""Why a prediction is trusted or not: what each expert says, and the neighbors it says it from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import Array, FloatArray, IntArray

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """What raised and lowered the trust in each class.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    predicted : ndarray of shape (n,)
        Position of the predicted class.
    trust : ndarray of shape (n, n_classes)
    experts : list of str
    contributions : ndarray of shape (n, n_classes, n_experts)
        What each expert adds to the log trust of each class, relative to the mean over classes.
    distances, indices : ndarray of shape (n, n_classes, n_neighbors)
        Nearest reference rows of each class; indices count the training rows, then the validation rows.

    Notes
    -----
    ``print(explanation)`` says it in words; :meth:`to_frame` gives one line per row, class and expert.
    """

    classes: Array
    predicted: IntArray
    trust: FloatArray
    experts: list[str]
    contributions: FloatArray
    distances: FloatArray
    indices: IntArray

    def __len__(self) -> int:
        return len(self.trust)

    def runner_up(self) -> IntArray:
        """Position of the most trusted class other than the predicted one."""
        others = self.trust.copy()
        others[np.arange(len(self)), self.predicted] = -1.0
        return others.argmax(axis=1)

    def renumbered(self, indices: IntArray) -> "Explanation":
        """The same with other row numbers for the neighbors."""
        return replace(self, indices=indices)

    def __str__(self) -> str:
        return "\n\n".join(self._in_words(row) for row in range(len(self)))

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns row, class, trust, expert, contribution."""
        pandas = import_extra("pandas", extra="cli", purpose="Explanation.to_frame")
        n, n_classes, n_experts = self.contributions.shape
        row, c, e = np.indices((n, n_classes, n_experts)).reshape(3, -1)
        return pandas.DataFrame(
            {
                "row": row,
                "class": self.classes[c],
                "trust": self.trust[row, c],
                "expert": np.array(self.experts, dtype=object)[e],
                "contribution": self.contributions.ravel(),
            }
        )

    def _in_words(self, row: int) -> str:
        predicted, other = int(self.predicted[row]), int(self.runner_up()[row])
        if len(self.classes) == 1:
            return f"Predicted {self.classes[0]!s}, the only class."
        lines = [
            f"Predicted {self.classes[predicted]!s} with trust {self.trust[row, predicted]:.3f}; "
            f"next is {self.classes[other]!s} with {self.trust[row, other]:.3f}."
        ]
        margins = self.contributions[row, predicted] - self.contributions[row, other]
        for e in np.argsort(-np.abs(margins), kind="stable"):
            side = self.classes[predicted if margins[e] >= 0 else other]
            lines.append(f"  {self.experts[e]:<27} {margins[e]:+7.2f}  for {side!s}")
        lines += [
            f"  nearest {self.classes[c]!s}: " + ", ".join(self._neighbors(row, c))
            for c in (predicted, other)
        ]
        return "\n".join(lines)

    def _neighbors(self, row: int, c: int) -> list[str]:
        pairs = zip(self.indices[row, c, :3], self.distances[row, c, :3], strict=True)
        return [f"row {i} at {r:.3g}" for i, r in pairs if i >= 0] or ["none"]
