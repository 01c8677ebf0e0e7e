"""Whether the values of a label column are classes."""

from collections import defaultdict

import numpy as np

from neighboragg._core.types import Array
from neighboragg.exceptions import InvalidInputError

# Fewer values than this count as classes, however rare each is.
FEW_CLASSES = 20


def check_class_labels(labels: Array, label: str, *, least_rows: int = 2) -> None:
    """Raise unless the labels look like classes."""
    known = labels[labels != ""]
    if len(known) < least_rows:
        raise InvalidInputError(
            f"Only {len(known)} rows have a label in {label!r}; at least {least_rows} are needed."
        )
    classes, counts = np.unique(known, return_counts=True)
    n, n_classes, once = len(known), len(classes), int((counts == 1).sum())
    if n_classes < 2:
        raise InvalidInputError(f"The label column {label!r} has a single value, {str(classes[0])!r}.")
    numbers = _as_numbers(classes)
    if numbers is not None and n_classes > FEW_CLASSES:
        fractions = bool((numbers != np.floor(numbers)).any())
        if fractions or 2 * once > n_classes:
            raise InvalidInputError(
                f"The label column {label!r} contains numbers with {n_classes:,} different values in {n:,} rows; they "
                "look like measurements, not classes.\n"
                "Hint: choose another column, or cut the numbers into a few classes first."
            )
    if 2 * n_classes > n and 2 * once > n_classes and n_classes > 3:
        raise InvalidInputError(
            f"The label column {label!r} has {n_classes:,} different values in {n:,} rows; it does not look like a "
            "class.\nHint: choose another column."
        )


def class_order(classes: Array) -> Array:
    """Class names in the order in which probabilities are expected: numbers by value, all else as text."""
    ordered = np.unique(classes)
    numbers = _as_numbers(ordered)
    return ordered if numbers is None else ordered[np.argsort(numbers, kind="stable")]


def label_notes(labels: Array) -> list[str]:
    """A note about labels that look like one label in several spellings."""
    spellings = defaultdict(list)
    for text in np.unique(labels[labels != ""]).tolist():
        spellings[" ".join(text.split()).casefold()].append(text)
    alike = [" and ".join(map(repr, texts)) for texts in spellings.values() if len(texts) > 1]
    if not alike:
        return []
    return [
        f"Labels that differ only in spaces or capitalization count as different: {', '.join(alike[:5])}."
    ]


def _as_numbers(classes: Array) -> Array | None:
    """The texts as finite numbers, if all of them are."""
    try:
        numbers = classes.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None
