"""What is reviewed: rows with their labels, their evidence and their neighbors."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from neighboragg.review._checks import check_item, check_review_set

__all__ = ["Neighbor", "ReviewItem", "ReviewSet", "Scalar"]

Scalar = str | int | float | bool | None
ALL_ROWS = -1


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A row of one class near a reviewed row.

    Parameters
    ----------
    row : int
        Position in the original data.
    distance : float
        Distance to the reviewed row.
    content : dict
        As in `ReviewItem`.
    name : str, default=""
        As in `ReviewItem`.

    Examples
    --------
    >>> from neighboragg.review import Neighbor
    >>> Neighbor(row=7, distance=0.25, content={"length": 4.9}).distance
    0.25
    """

    row: int
    distance: float
    content: Mapping[str, Scalar]
    name: str = ""

    @property
    def title(self) -> str:
        """The name of the row, or its number."""
        return self.name or f"row {self.row}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """One row to decide about, with the evidence for and against its label.

    Parameters
    ----------
    row : int
        Position in the original data; each row occurs once in a review set.
    content : dict
        Column to value for a table, ``{"text": …}`` or ``{"image": path}``, the path relative to the folder of
        images. None and NaN stand for a missing value.
    given, suggested : str
        The label in the data and the label the evidence speaks for. Equal only where nothing speaks against
        the given one.
    score : float
        How far the label is to be trusted: low is suspicious.
    trust : tuple of float, shape (n_classes,)
        Trust in each class, in the order of the classes of the review set.
    reasons : tuple of str, default=()
        Sentences that say why the row is here.
    given_neighbors, suggested_neighbors : tuple of Neighbor, default=()
        The nearest rows of the given and of the suggested class, nearest first.
    queue : {"flagged", "random"}, default="flagged"
        Flagged rows are suspicious. The random rows are a simple random sample of the rows *not* flagged.
    details : dict, default={}
        Other columns of a row whose content is a text or a picture; shown below it.
    facts : dict, default={}
        Further evidence, name to value, shown as it is beside the trust.
    name : str, default=""
        What the user's file calls the row, for instance "line 14". If empty, the row is called by its number,
        counting from 0.
    digest : str, default=""
        Digest of all cells of the row, by which it is found again if the table is sorted in another way.

    Examples
    --------
    >>> from neighboragg.review import ReviewItem
    >>> item = ReviewItem(row=3, content={"text": "meow"}, given="dog", suggested="cat", score=-2.0, trust=(0.9, 0.1))
    >>> item.kind
    'text'
    """

    row: int
    content: Mapping[str, Scalar]
    given: str
    suggested: str
    score: float
    trust: tuple[float, ...]
    reasons: tuple[str, ...] = ()
    given_neighbors: tuple[Neighbor, ...] = ()
    suggested_neighbors: tuple[Neighbor, ...] = ()
    queue: str = "flagged"
    details: Mapping[str, Scalar] = field(default_factory=dict)
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    name: str = ""
    digest: str = ""

    @property
    def title(self) -> str:
        """The name of the row, or its number."""
        return self.name or f"row {self.row}"

    @property
    def kind(self) -> str:
        """One of table, text and image."""
        keys = tuple(self.content)
        return keys[0] if keys in (("text",), ("image",)) else "table"

    @property
    def neighbors(self) -> tuple[Neighbor, ...]:
        """Neighbors of both classes."""
        return self.given_neighbors + self.suggested_neighbors


@dataclass(frozen=True, kw_only=True)
class ReviewSet:
    """Rows to review, and the data set they come from.

    Parameters
    ----------
    classes : tuple of str
        Every label a row may get.
    n_rows : int
        Number of rows of the data set.
    n_flagged : int
        Number of flagged rows of the data set; the items may hold fewer.
    n_judged : int, default=n_rows
        Number of rows whose labels were judged, if not all were: those without a label are not.
    items : tuple of ReviewItem
        The rows to review.
    columns : tuple of str, default=()
        Columns of a table, in the order to show them.
    sample_size : int, default=50
        Size of the random sample of the flagged items from which their precision is estimated, cut to their
        number. It is part of the set because it must be fixed before the review begins.
    seed : int, default=0
        Seed of the random order of the items, hence of that sample.
    title : str, default="Label review"
        Heading of the page.
    source : str, default=""
        Digest of the file that the rows come from; empty if it is not known.

    See Also
    --------
    load_review_set : Read one from a file.
    review_statistics : What the decisions show.

    Notes
    -----
    *Random order:* items are sorted by the SHA-256 digest of ``"seed:row"``. The order depends on neither
    labels nor scores, and is the same after a restart and for all reviewers.

    Examples
    --------
    >>> from neighboragg.review import ReviewItem, ReviewSet
    >>> item = ReviewItem(row=3, content={"text": "meow"}, given="dog", suggested="cat", score=-2.0, trust=(0.9, 0.1))
    >>> review_set = ReviewSet(classes=("cat", "dog"), n_rows=100, n_flagged=1, items=(item,))
    >>> len(review_set.flagged), len(review_set.random)
    (1, 0)
    """

    classes: tuple[str, ...]
    n_rows: int
    n_flagged: int
    items: tuple[ReviewItem, ...]
    columns: tuple[str, ...] = ()
    sample_size: int = 50
    seed: int = 0
    title: str = "Label review"
    n_judged: int = ALL_ROWS
    source: str = ""

    def __post_init__(self) -> None:
        if self.n_judged == ALL_ROWS:
            object.__setattr__(self, "n_judged", self.n_rows)
        for item in self.items:
            check_item(item, self)
        check_review_set(self)

    @cached_property
    def flagged(self) -> tuple[ReviewItem, ...]:
        """Flagged items, most suspicious first."""
        chosen = [item for item in self.items if item.queue == "flagged"]
        return tuple(sorted(chosen, key=lambda item: (item.score, item.row)))

    @cached_property
    def sample(self) -> tuple[ReviewItem, ...]:
        """The first `sample_size` of the flagged items in random order."""
        return self._shuffled("flagged")[: self.sample_size]

    @cached_property
    def random(self) -> tuple[ReviewItem, ...]:
        """Random unflagged items, in random order."""
        return self._shuffled("random")

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all that decisions rest on: data size, classes, rows, labels and the sampling plan."""
        plan = [
            list(self.classes),
            int(self.n_rows),
            int(self.n_flagged),
            int(self.n_judged),
            int(self.sample_size),
            int(self.seed),
        ]
        rows = [[int(item.row), item.queue, item.given, item.suggested, item.digest] for item in self.items]
        return hashlib.sha256(json.dumps([plan, sorted(rows)]).encode()).hexdigest()

    def _shuffled(self, queue: str) -> tuple[ReviewItem, ...]:
        chosen = [item for item in self.items if item.queue == queue]
        return tuple(
            sorted(chosen, key=lambda item: hashlib.sha256(f"{self.seed}:{item.row}".encode()).digest())
        )
