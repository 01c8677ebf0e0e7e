"""Why a label is flagged, in a few words."""

from collections.abc import Mapping, Sequence

import numpy as np

from neighboragg._typing import Array, BoolArray, FloatArray, IntArray
from neighboragg._views import LEARNED, view_of

__all__ = ["reasons_for"]

# A row is isolated if hardly any other is so far from its nearest neighbor, and it is far.
ISOLATED_QUANTILE, ISOLATED_FACTOR = 0.99, 2.0


def reasons_for(
    flagged: IntArray,
    *,
    classes: Array,
    codes: IntArray,
    suggested: IntArray,
    trust: FloatArray,
    votes: Mapping[str, FloatArray],
    said: Mapping[str, FloatArray],
    distances: Mapping[str, FloatArray],
) -> list[tuple[str, ...]]:
    """Say for each flagged row what speaks against its label.

    Parameters
    ----------
    flagged : ndarray of shape (m,)
        Row numbers.
    classes : ndarray of shape (C,)
    codes, suggested : ndarray of shape (n,)
        Given label, and the best other one, as positions in `classes`.
    trust : ndarray of shape (n, C)
        Trust in each class.
    votes : mapping of str to ndarray of shape (n, C)
        Neighbors of each class in each view.
    said : mapping of str to ndarray of shape (n, C)
        Probabilities by the name of who gave them.
    distances : mapping of str to ndarray of shape (n,)
        Distance to the nearest neighbor in each view; inf if there is none.

    Returns
    -------
    reasons : list of tuple of str
        At least one for each flagged row.
    """
    names = [repr(label) for label in classes.tolist()]
    lone = (np.bincount(codes, minlength=len(classes)) == 1)[codes]
    several = len({view_of(name) for name in votes}) > 1
    within = {name: _within(name, several) for name in votes}
    # A learned metric makes near and far what helps to tell classes apart; it says nothing about odd rows.
    isolated = {view: isolated_rows(nearest) for view, nearest in distances.items() if view == view_of(view)}
    favorites = {name: proba.argmax(axis=1) for name, proba in said.items()}

    def of_row(i: int) -> Sequence[str]:
        given, other = codes[i], suggested[i]
        found = []
        if lone[i]:
            found.append(f"only row of class {names[given]}")
        disagree = {name: counts[i] for name, counts in votes.items() if counts[i, other] > counts[i, given]}
        for name, counts in disagree.items():
            # In a learned metric the same is no further reason.
            if name == view_of(name) or view_of(name) not in disagree:
                share = f"{counts[other]:.0f} of {counts.sum():.0f}"
                found.append(f"neighbors{within[name]} disagree ({share} are {names[other]})")
        for name, favorite in favorites.items():
            if (best := favorite[i]) != given:
                found.append(f"{name} prefers {names[best]} ({said[name][i, best]:.2f})")
        found += [f"isolated row{within[view]}" for view, alone in isolated.items() if alone[i]]
        return found or [
            f"weak evidence ({names[given]} {trust[i, given]:.2f}, {names[other]} {trust[i, other]:.2f})"
        ]

    return [tuple(of_row(i)) for i in flagged]


def _within(name: str, several: bool) -> str:
    """Where neighbors were looked for; views are named only where there are several."""
    if several:
        return f" in {name!r}"
    return "" if name == view_of(name) else f" in a {LEARNED}"


def isolated_rows(distances: FloatArray) -> BoolArray:
    """Rows much farther from their nearest neighbor than nearly all others are."""
    finite = distances[np.isfinite(distances)]
    if not len(finite):
        return np.ones(len(distances), dtype=bool)
    limit = max(float(np.quantile(finite, ISOLATED_QUANTILE)), ISOLATED_FACTOR * float(np.median(finite)))
    return distances > limit
