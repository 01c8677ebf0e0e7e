"""Why a label is flagged, in a few words."""

from collections.abc import Mapping, Sequence

import numpy as np

from neighboragg._typing import Array, BoolArray, FloatArray, IntArray

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
    votes: FloatArray,
    said: Mapping[str, FloatArray],
    distances: FloatArray,
) -> list[tuple[str, ...]]:
    """Say for each flagged row what speaks against its label.

    Parameters
    ----------
    flagged : ndarray of shape (m,)
        Row numbers.
    classes : ndarray of shape (C,)
    codes, suggested : ndarray of shape (n,)
        Given label, and the best other one, as positions in `classes`.
    trust, votes : ndarray of shape (n, C)
        Trust in each class; neighbors of each class.
    said : mapping of str to ndarray of shape (n, C)
        Probabilities by the name of who gave them.
    distances : ndarray of shape (n,)
        Distance to the nearest neighbor; inf if there is none.

    Returns
    -------
    reasons : list of tuple of str
        At least one for each flagged row.
    """
    names = [repr(label) for label in classes.tolist()]
    lone = (np.bincount(codes, minlength=len(classes)) == 1)[codes]
    against = votes[np.arange(len(codes)), suggested]
    outvoted = against > votes[np.arange(len(codes)), codes]
    total = votes.sum(axis=1)
    isolated = isolated_rows(distances)
    favorites = {name: proba.argmax(axis=1) for name, proba in said.items()}

    def of_row(i: int) -> Sequence[str]:
        given, other = codes[i], suggested[i]
        found = []
        if lone[i]:
            found.append(f"only row of class {names[given]}")
        if outvoted[i]:
            found.append(f"neighbors disagree ({against[i]:.0f} of {total[i]:.0f} are {names[other]})")
        for name, favorite in favorites.items():
            if (best := favorite[i]) != given:
                found.append(f"{name} prefers {names[best]} ({said[name][i, best]:.2f})")
        if isolated[i]:
            found.append("isolated row")
        return found or [
            f"weak evidence ({names[given]} {trust[i, given]:.2f}, {names[other]} {trust[i, other]:.2f})"
        ]

    return [tuple(of_row(i)) for i in flagged]


def isolated_rows(distances: FloatArray) -> BoolArray:
    """Rows much farther from their nearest neighbor than nearly all others are."""
    finite = distances[np.isfinite(distances)]
    if not len(finite):
        return np.ones(len(distances), dtype=bool)
    limit = max(float(np.quantile(finite, ISOLATED_QUANTILE)), ISOLATED_FACTOR * float(np.median(finite)))
    return distances > limit
