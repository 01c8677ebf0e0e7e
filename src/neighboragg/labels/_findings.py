"""Other findings of an audit: contradicting or leaking copies, odd rows, unreadable images."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, FloatArray, IntArray
from neighboragg.features import ColumnRole, prepared_frame
from neighboragg.labels._result import MislabelResult

WRONG = "wrong label"
# Rows nearer to each other than this share of the usual distance to the nearest row are nearly copies.
NEARLY = 0.1
# With fewer columns, rows are that near by chance.
MIN_COLUMNS = 3
# If more rows than this have copies, the columns are too few to tell copies from coincidence.
MAX_COPIES = 0.5
SIGNIFICANT_DIGITS = 6
# A row is unlike all others if it is this many times as far from its nearest row as the median row is, and
# its log distance this many robust standard deviations out.
TIMES_AS_FAR, DEVIATIONS = 3.0, 5.0
# Or if one of its numbers is far from the numbers of at least this many rows.
MIN_VALUES = 20


@dataclass(frozen=True)
class Finding:
    """A problem to look at, in one row or a group of rows."""

    kind: str
    rows: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Look:
    """The rows that a detector was fitted on, in the form that each kind of finding needs."""

    result: MislabelResult
    rows: IntArray
    roles: Sequence[ColumnRole]
    frame: Any
    matrix: Array | None
    split: Array | None
    problems: Mapping[int, str]

    @cached_property
    def groups(self) -> IntArray | None:
        """A number for each row, the same for copies and near copies; None if most rows have a copy."""
        n_columns = sum(role.used for role in self.roles) if self.matrix is None else self.matrix.shape[1]
        return copy_groups(row_keys(self.frame, self.roles, self.matrix), self.result, n_columns)

    def copies_that_differ(self, values: Array) -> Iterator[tuple[tuple[int, ...], str]]:
        """Row numbers of each group of copies with several values, and the count of each value."""
        for chosen in [] if self.groups is None else _members(self.groups, values):
            yield tuple(self.rows[chosen].tolist()), _counted(values[chosen])


class Kind(ABC):
    """A kind of finding."""

    name: ClassVar[str]
    title: ClassVar[str]

    def applies(self, look: Look) -> bool:
        """Whether to count this kind even if nothing is found."""
        return True

    @abstractmethod
    def find(self, look: Look) -> Iterator[Finding]:
        """All findings of this kind."""


class ConflictingCopies(Kind):
    """Groups of copies whose labels differ."""

    name, title = "conflicting copies", "exact or near copies with different labels"

    def find(self, look: Look) -> Iterator[Finding]:
        """All groups."""
        for rows, counts in look.copies_that_differ(look.result.given):
            yield Finding(self.name, rows, f"same or nearly the same row, labeled {counts}")


class CopiesAcrossSplit(Kind):
    """Groups of copies that are in several parts of a split."""

    name, title = "copies across the split", "rows with an exact or near copy in another part of the split"

    def applies(self, look: Look) -> bool:
        """Only with a split."""
        return look.split is not None

    def find(self, look: Look) -> Iterator[Finding]:
        """All groups."""
        for rows, counts in [] if look.split is None else look.copies_that_differ(look.split):
            yield Finding(self.name, rows, f"same or nearly the same row in {counts}")


class UnlikeAllOthers(Kind):
    """Rows far from all others, or with a number far from all others."""

    name, title = "unlike all others", "rows unlike all others"

    def find(self, look: Look) -> Iterator[Finding]:
        """All rows, the farthest first."""
        for row, reason in [*_outliers(look.result), *_lone_values(look.frame, look.roles)]:
            yield Finding(self.name, (int(look.rows[row]),), reason)


class UnreadableImages(Kind):
    """Images that cannot be read or shown; their labels are not scored."""

    name, title = "unreadable image", "images that cannot be read or shown, so they are not scored"

    def applies(self, look: Look) -> bool:
        """Only if there are any."""
        return bool(look.problems)

    def find(self, look: Look) -> Iterator[Finding]:
        """All images, in the order of the rows."""
        return (Finding(self.name, (row,), why) for row, why in sorted(look.problems.items()))


KINDS: tuple[Kind, ...] = (ConflictingCopies(), CopiesAcrossSplit(), UnlikeAllOthers(), UnreadableImages())


def row_keys(frame: Any, roles: Sequence[ColumnRole], matrix: Array | None) -> IntArray:
    """A number for each row, the same for equal rows."""
    if matrix is not None:
        raw = np.ascontiguousarray(_rounded(np.asarray(matrix, dtype=np.float64)))
        rows = raw.view(np.dtype((np.void, raw.dtype.itemsize * raw.shape[1]))).ravel()
        return np.unique(rows, return_inverse=True)[1].ravel()
    prepared = prepared_frame(frame, roles)
    for role in roles:
        if role.used:
            column = prepared[role.name]
            if role.use == "text":
                plain = column.fillna("").str.casefold().str.replace(r"[\W_]+", " ", regex=True)
                prepared[role.name] = plain.str.strip()
            elif role.use == "number":
                prepared[role.name] = _rounded(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return prepared.groupby(list(prepared.columns), dropna=False, sort=False).ngroup().to_numpy()


def copy_groups(keys: IntArray, result: MislabelResult, n_columns: int) -> IntArray | None:
    """A number for each row, the same for copies and near copies; None if most rows have a copy."""
    n = len(keys)
    nearest = np.minimum(_first(result.given_distances), _first(result.suggested_distances))
    known = nearest[np.isfinite(nearest)]
    limit = NEARLY * float(np.median(known)) if len(known) and n_columns >= MIN_COLUMNS else 0.0
    members = np.lexsort((np.arange(n), keys))
    same = np.flatnonzero(keys[members[1:]] == keys[members[:-1]])
    left, right = [members[same]], [members[same + 1]]
    for rows, distances in (
        (result.given_neighbors, result.given_distances),
        (result.suggested_neighbors, result.suggested_distances),
    ):
        near = np.flatnonzero((_first(distances) <= limit) & (rows[:, 0] >= 0))
        left.append(near)
        right.append(rows[near, 0])
    pairs = np.concatenate(left), np.concatenate(right)
    edges = coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n))
    groups = connected_components(edges, directed=False)[1].astype(np.intp)
    copied = np.bincount(groups)[groups] > 1
    return None if copied.mean() > MAX_COPIES else groups


def _outliers(result: MislabelResult) -> list[tuple[int, str]]:
    """Rows much farther from their nearest row than others, farthest first, and why."""
    nearest = np.minimum(_first(result.given_distances), _first(result.suggested_distances))
    known = np.isfinite(nearest) & (nearest > 0)
    if known.sum() < 2:
        return []
    logs = np.log(nearest[known])
    center = np.median(logs)
    spread = 1.4826 * np.median(np.abs(logs - center))
    limit = max(center + np.log(TIMES_AS_FAR), center + DEVIATIONS * spread)
    far = np.flatnonzero(known)[logs > limit]
    far = far[np.argsort(-nearest[far], kind="stable")]
    times = nearest[far] / np.exp(center)
    return [
        (i, f"{more:.1f} times as far from its nearest row as usual")
        for i, more in zip(far.tolist(), times.tolist(), strict=True)
    ]


def _lone_values(frame: Any, roles: Sequence[ColumnRole]) -> list[tuple[int, str]]:
    """Rows with a number farther from all others than these spread, and why."""
    found = []
    prepared = prepared_frame(frame, roles)
    for role in roles:
        if role.use == "number":
            values = prepared[role.name].to_numpy(dtype=np.float64, na_value=np.nan)
            known = np.flatnonzero(np.isfinite(values))
            known = known[np.argsort(values[known], kind="stable")]
            if len(known) < MIN_VALUES:
                continue
            ordered = values[known]
            for lone, rest in ((0, ordered[1:]), (-1, ordered[:-1])):
                reach = rest[-1] - rest[0]
                gap = min(abs(ordered[lone] - rest[0]), abs(ordered[lone] - rest[-1]))
                if reach > 0 and gap > reach:
                    others = f"between {rest[0]:g} and {rest[-1]:g} in all other rows"
                    found.append((int(known[lone]), f"{role.name} is {ordered[lone]:g}, and {others}"))
    return found


def findings_frame(findings: Sequence[Finding], labels: Array, names: Any, place_of: Any) -> Any:
    """One line for each row of each finding; rows of one group have one number."""
    pandas = import_extra("pandas", extra="cli", purpose="Findings as a table")
    lines = [
        {"kind": found.kind, "group": number, "row": names[row], "where": place_of(row), "label": str(labels[row]),
         "reason": found.reason}
        for number, found in enumerate(findings)
        for row in found.rows
    ]  # fmt: skip
    return pandas.DataFrame(lines, columns=["kind", "group", "row", "where", "label", "reason"])


def _members(groups: IntArray, values: Array) -> list[IntArray]:
    """Rows of each group in which the values differ, in the order of first rows."""
    codes = np.unique(values, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([groups, codes]), axis=0)[:, 0]
    several = np.flatnonzero(np.bincount(pairs, minlength=groups.max() + 1) > 1)
    members = [np.flatnonzero(groups == group) for group in several]
    return sorted(members, key=lambda chosen: int(chosen[0]))


def _counted(values: Array) -> str:
    counts = Counter(values.tolist()).most_common()
    return ", ".join(f"{str(value)!r} ({count})" for value, count in counts)


def _first(distances: FloatArray) -> FloatArray:
    return distances[:, 0]


def _rounded(values: FloatArray) -> FloatArray:
    """Numbers to six significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = SIGNIFICANT_DIGITS - 1 - np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(digits), digits, 0.0)
        rounded = np.round(values * scale) / scale
    return np.where(np.isfinite(rounded), rounded, values) + 0.0
