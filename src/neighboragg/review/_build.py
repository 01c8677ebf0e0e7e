"""From a table and what was found in it to a review set."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neighboragg._inputs import is_missing
from neighboragg._typing import ArrayLike, IntArray
from neighboragg.mislabel import MislabelResult
from neighboragg.review._items import Neighbor, ReviewItem, ReviewSet, Scalar

__all__ = ["build_review_set"]

N_NEIGHBORS = 5


def build_review_set(
    frame: Any,
    result: MislabelResult,
    *,
    n_random: int = 50,
    title: str = "Label review",
    random_state: int = 0,
    rows: ArrayLike | None = None,
    n_rows: int | None = None,
    text: str = "",
    image: str = "",
    row_name: Callable[[int], str] | None = None,
    row_digest: Callable[[int], str] | None = None,
    source: str = "",
) -> ReviewSet:
    """Put flagged rows, a random sample of the others, and their neighbors together for review.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows that were judged, without the label column, in the same order.
    result : MislabelResult
    n_random : int, default=50
        Rows drawn at random from those not flagged, from which the errors left are estimated.
    title : str, default="Label review"
    random_state : int, default=0
        Draws the random rows.
    rows : array-like of int of shape (n,), default=None
        Positions of the judged rows in the original data, if those are not all of its rows.
    n_rows : int, default=None
        Number of rows of the original data; needed with `rows`.
    text, image : str, default=""
        Column to judge by: a text, or the path of a picture. The other columns stay reachable below it. With
        neither, the whole row is shown as a table.
    row_name : callable, default=None
        Takes a position in the original data and returns what its file calls that row, for instance "line 14".
        If None, rows are called by their position, counting from 0.
    row_digest : callable, default=None
        Takes a position in the original data and returns the digest of that row.
    source : str, default=""
        Digest of the original data.

    Returns
    -------
    review_set : ReviewSet

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.mislabel import find_mislabeled
    >>> from neighboragg.review import build_review_set
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> result = find_mislabeled(X.to_numpy(), y.to_numpy(), flag=3)
    >>> review_set = build_review_set(X, result, n_random=10)
    >>> len(review_set.flagged), len(review_set.random)
    (3, 10)
    """
    flagged = result.ranking[result.mask[result.ranking]]
    others = np.flatnonzero(~result.mask)
    rng = np.random.default_rng(random_state)
    random = np.sort(rng.permutation(others)[:n_random])
    places = np.arange(len(result)) if rows is None else np.asarray(rows)
    if list(frame.columns) in (["text"], ["image"]) and not image:
        text = str(frame.columns[0])  # a lone column of this name is not a path
    shown = _Rows(frame, places, {"image": image} if image else {"text": text} if text else {}, row_name)
    items = [_item(shown, result, int(row), "flagged") for row in flagged]
    items += [_item(shown, result, int(row), "random") for row in random]
    if row_digest is not None:
        items = [replace(item, digest=row_digest(item.row)) for item in items]
    return ReviewSet(
        classes=tuple(str(label) for label in result.classes.tolist()),
        n_rows=len(result) if n_rows is None else n_rows,
        n_judged=len(result),
        n_flagged=result.n_flagged,
        items=tuple(items),
        columns=() if shown.shown else tuple(map(str, frame.columns)),
        title=title,
        source=source,
    )


class _Rows:
    """The rows of a table as the page shows them."""

    def __init__(
        self, frame: Any, places: IntArray, shown: dict[str, str], row_name: Callable[[int], str] | None
    ) -> None:
        self.frame = frame
        self.places = places
        self.shown = shown
        self.name = row_name or (lambda row: "")

    def fields(self, row: int) -> dict[str, Any]:
        """Position, content and name of a row."""
        place = int(self.places[row])
        values = self._values(row)
        for kind, column in self.shown.items():
            values = {kind: "" if values[column] is None else str(values[column])}
        return {"row": place, "content": values, "name": self.name(place)}

    def details(self, row: int) -> dict[str, Scalar]:
        """The columns that are not the content."""
        hidden = self.shown.values()
        return {name: value for name, value in self._values(row).items() if self.shown and name not in hidden}

    def _values(self, row: int) -> dict[str, Scalar]:
        # Cell by cell: a whole row as one array would turn whole numbers into fractions.
        return {str(name): _scalar(self.frame.iat[row, j]) for j, name in enumerate(self.frame.columns)}


def _item(source: _Rows, result: MislabelResult, row: int, queue: str) -> ReviewItem:
    near, distances = result.given_neighbors[row], result.given_distances[row]
    other, far = result.suggested_neighbors[row], result.suggested_distances[row]
    return ReviewItem(
        **source.fields(row),
        details=source.details(row),
        given=str(result.given[row]),
        suggested=str(result.suggested[row]),
        score=float(result.scores[row]),
        trust=tuple(float(value) for value in result.trust[row]),
        reasons=tuple(result.reasons[row]),
        facts={"estimated probability that the label is wrong": f"{result.p_wrong[row]:.0%}"},
        given_neighbors=_neighbors(source, near, distances),
        suggested_neighbors=_neighbors(source, other, far),
        queue=queue,
    )


def _neighbors(source: _Rows, rows: IntArray, distances: Any) -> tuple[Neighbor, ...]:
    pairs = zip(rows[:N_NEIGHBORS].tolist(), distances[:N_NEIGHBORS].tolist(), strict=True)
    return tuple(Neighbor(distance=distance, **source.fields(row)) for row, distance in pairs if row >= 0)


def _scalar(value: Any) -> Scalar:
    """A value that JSON knows; anything else as its text."""
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | bool | int | float) else str(value)
