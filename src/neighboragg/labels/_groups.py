"""Groups of rows, duplicates, in-sample probabilities and how well rows predict labels."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom, norm

from neighboragg._core.checks import check_labels, check_same_length
from neighboragg._core.inputs import as_plain, as_rows, refuse_labels_as_column
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg.exceptions import InvalidInputError, TrustWarning
from neighboragg.features import as_strings, is_texts

# Identical rows are worth a note from this share on.
MANY_DUPLICATES = 0.05


@dataclass(frozen=True)
class RowGroups:
    """Group of each row, and notes about the groups."""

    groups: IntArray
    notes: tuple[str, ...]


def group_rows(
    X: FloatArray, codes: IntArray, groups: ArrayLike | None, *, join_duplicates: bool, owner: str
) -> RowGroups:
    """Join given groups and, if asked, identical rows; warn if these tie most rows together."""
    n = len(X)
    given = np.arange(n) if groups is None else check_groups(groups, n, owner)
    copies = duplicate_groups(X)
    joined = merge_groups(given, copies) if join_duplicates else given
    largest = int(np.bincount(joined).max())
    if 2 * largest > n and largest > int(np.bincount(given).max()):
        warnings.warn(
            f"Identical rows passed to {owner} tie more than half of the {n} rows into one group, so "
            "few are left to vouch for them.\n"
            "Hint: pass duplicates='ignore' if they are independent rows, not copies.",
            TrustWarning,
            stacklevel=4,
        )
    return RowGroups(joined, _notes(copies, codes, joined if join_duplicates else None))


def duplicate_groups(X: FloatArray) -> IntArray:
    """Number the distinct rows of `X`; identical rows get the same number."""
    return np.unique(_as_bytes(X), return_inverse=True)[1].ravel()


def warn_if_known(X: FloatArray, fitted: FloatArray, owner: str) -> None:
    """Warn if most of the new rows took part in fit."""
    if mostly_known(X, fitted):
        warnings.warn(
            f"Most rows of X passed to {owner} are rows it was fitted on, so each confirms its own label.\n"
            "Hint: use result_.mask and result_.scores for these rows.",
            TrustWarning,
            stacklevel=4,
        )


def mostly_known(X: FloatArray, fitted: FloatArray) -> bool:
    """Whether most rows are identical to a fitted one, and more than fitted ones are to each other."""
    keys = _as_bytes(fitted)
    if not len(X) or 2 * (known := float(np.isin(_as_bytes(X.astype(fitted.dtype)), keys).mean())) <= 1:
        return False
    _, counts = np.unique(keys, return_counts=True)
    return bool(known > 2 * counts[counts > 1].sum() / len(keys))


def _as_bytes(X: FloatArray) -> Array:
    """Each row as one value to compare."""
    # Adding zero turns -0.0 into 0.0, so equal numbers are equal bytes.
    rows = np.ascontiguousarray(X + 0.0)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def merge_groups(first: IntArray, second: IntArray) -> IntArray:
    """Number the rows connected by either grouping, directly or through others."""
    n_first = int(first.max()) + 1
    n_nodes = n_first + int(second.max()) + 1
    links = coo_array((np.ones(len(first)), (first, n_first + second)), shape=(n_nodes, n_nodes))
    return connected_components(links, directed=False)[1][first].astype(np.intp)


def _notes(copies: IntArray, codes: IntArray, joined: IntArray | None) -> tuple[str, ...]:
    """Notes about identical rows; `joined` if they do not count as evidence for each other."""
    notes = []
    n, n_identical = len(copies), int((np.bincount(copies)[copies] > 1).sum())
    if n_identical >= MANY_DUPLICATES * n:
        how = (
            "they count as evidence for each other (duplicates='ignore')."
            if joined is None
            else "they do not count as evidence for each other. If they are independent rows, not copies, pass "
            "duplicates='ignore'."
        )
        notes.append(f"{n_identical:,} of {n:,} rows have the same features as another row; {how}")
    labels = np.unique(np.column_stack([copies, codes]), axis=0)[:, 0]
    disputed = int((np.bincount(labels)[copies] > 1).sum())
    if disputed:
        notes.append(f"{disputed:,} rows have the same features as a row with another label.")
    return tuple(notes)


# Of the labels that all own models and neighbors contradict, an honest classifier contradicts a third at least.
HONEST_SHARE = 1 / 3
# Opinions count where they agree by a majority, and only if such opinions are mostly those of the labels.
CLEAR_SHARE, WORTH_SHARE = 0.5, 2 / 3
SIGNIFICANCE = 1e-3


def contradicted_by_all(others: Sequence[FloatArray], codes: IntArray) -> BoolArray:
    """Rows for which all opinions prefer the same other class, on average by a majority."""
    shares = [opinion / np.maximum(opinion.sum(axis=1, keepdims=True), 1e-12) for opinion in others]
    mean = np.mean(shares, axis=0)
    best = mean.argmax(axis=1)
    alike = np.all([share.argmax(axis=1) == best for share in shares], axis=0)
    clear = alike & (mean.max(axis=1) >= CLEAR_SHARE)
    worth = (best == codes)[clear].sum() >= WORTH_SHARE * clear.sum()
    return np.asarray(clear & (best != codes) & worth)


def warn_if_in_sample(
    proba: FloatArray | None, others: Sequence[FloatArray], codes: IntArray, owner: str
) -> None:
    """Warn if probabilities agree with the labels too well for a model that has not seen them."""
    if proba is None:
        return
    agrees, contradicted = proba.argmax(axis=1) == codes, contradicted_by_all(others, codes)
    n, kept = int(contradicted.sum()), int((agrees & contradicted).sum())
    if binom.sf(kept - 1, n, 1 - HONEST_SHARE) < SIGNIFICANCE:
        warnings.warn(
            f"proba passed to {owner} agrees with {kept} of the {n} labels that all models and neighbors that have not "
            f"seen them contradict (and with {int(agrees.sum())} of all {len(codes)}). It looks like predictions for "
            "rows that the classifier was trained on, which repeat wrong labels.\n"
            "Hint: proba=cross_val_predict(classifier, X, y, cv=5, method='predict_proba').",
            TrustWarning,
            stacklevel=4,
        )


def check_proba_as_in_fit(proba: ArrayLike | None, owner: str, *, needed: bool) -> None:
    """Raise if new rows come with probabilities and those of fit did not, or the other way round."""
    if needed != (proba is not None):
        wanted, had = ("needs proba, as", "had proba") if needed else ("got proba, but", "had none")
        raise InvalidInputError(
            f"{owner} {wanted} fit {had}.\n"
            "Hint: pass probabilities of the same classifier to fit and for new rows, or to neither."
        )


WEAK_SIGNIFICANCE = 0.1


@dataclass(frozen=True)
class Predictiveness:
    """How well labels are predicted out of sample, compared with always predicting the most frequent class."""

    agreeing: int
    majority: int
    n: int
    p_value: float

    @property
    def is_shown(self) -> bool:
        """Whether labels are predicted better than by the frequencies of the classes alone."""
        return self.p_value <= WEAK_SIGNIFICANCE


def measure_predictiveness(
    trust: FloatArray, codes: IntArray, comparable: BoolArray, n_weights: int
) -> Predictiveness:
    """Test trust in labels against the frequencies of the classes."""
    given, labels = trust[comparable], codes[comparable]
    n = len(labels)
    if n < 2:
        return Predictiveness(0, n, n, 1.0)
    counts = np.bincount(labels, minlength=trust.shape[1])
    trusted = given[np.arange(n), labels]
    gain = np.log(np.maximum(trusted, 1e-12)) - np.log(counts[labels] / n)
    by_likelihood = norm.sf((gain.sum() - n_weights) / (np.sqrt(n) * gain.std(ddof=1) + 1e-9))
    others = given.copy()
    others[np.arange(n), labels] = -1.0
    right, frequent = trusted > others.max(axis=1), labels == counts.argmax()
    gained, lost = int((right & ~frequent).sum()), int((~right & frequent).sum())
    by_sign = binom.sf(gained - 1, gained + lost, 0.5)
    return Predictiveness(
        agreeing=int(right.sum()),
        majority=int(counts.max()),
        n=n,
        p_value=min(1.0, 2.0 * float(min(by_likelihood, by_sign))),
    )


def warn_if_not_predictive(found: Predictiveness, owner: str, *, needs_evidence: bool) -> str:
    """Warn if labels are not predicted better than by class frequencies; return the figures, or nothing."""
    if found.is_shown:
        return ""
    figures = (
        f"{found.agreeing:,} of {found.n:,} labels are predicted from the other rows, and {found.majority:,} by "
        f"always predicting the most frequent class (p = {found.p_value:.2g})"
    )
    outcome = "Nothing is flagged" if needs_evidence else "The order of labels is close to chance"
    warnings.warn(
        f"What was passed to {owner} predicts the labels no better than the class frequencies "
        f"alone: {figures}. {outcome}.\n"
        "Hint: pass columns, texts, embeddings or probabilities that say more about the labels; flag=100 flags "
        "the 100 most suspicious labels all the same.",
        TrustWarning,
        stacklevel=4,
    )
    return figures


# A mapping with these names contains different rows, not different views of the same rows.
PARTS_OF_A_SPLIT = {"test", "train", "unsupervised", "validation"}


def read_rows(X: Any, owner: str, *, keep_vectors: bool = False) -> Any:
    """Data frames and sparse matrices unchanged, texts as an array of strings, all else as a 2-D array."""
    if isinstance(X, Mapping) and X and not set(X) <= PARTS_OF_A_SPLIT:
        return _read_views(X, owner)
    X = as_plain(X, "X", owner)
    if is_texts(X):
        return as_strings(np.asarray(X, dtype=object))
    return as_rows(X, owner, keep_vectors=keep_vectors)


def width(rows: Any) -> int:
    """Number of features; texts count as one."""
    if isinstance(rows, dict):
        return sum(map(width, rows.values()))
    return int(rows.shape[1]) if len(rows.shape) == 2 else 1


def n_rows(rows: Any) -> int:
    """Number of rows, the same in all views."""
    return int(next(iter(rows.values())).shape[0] if isinstance(rows, dict) else rows.shape[0])


def refuse_labels_among(rows: Any, labels: Array, owner: str) -> None:
    """Raise if a column of the rows, in any view, is the labels themselves."""
    for view in rows.values() if isinstance(rows, dict) else [rows]:
        refuse_labels_as_column(view, labels, owner)


def check_vectors(vectors: FloatArray, owner: str) -> FloatArray:
    """Raise if there is nothing to compare rows by."""
    if not vectors.shape[1]:
        raise InvalidInputError(
            f"X passed to {owner} has nothing to compare rows by: no numbers, no repeated category, and no texts "
            "with a word in common.\nHint: pass embeddings of the rows, or further columns."
        )
    return vectors


def _read_views(views: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    for name in views:
        if not isinstance(name, str):
            raise InvalidInputError(
                f"The names of the views of X passed to {owner} must be str. Got {name!r}."
            )
    rows = {name: read_rows(view, owner) for name, view in views.items()}
    lengths = {name: view.shape[0] for name, view in rows.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
        raise InvalidInputError(
            f"The views of X passed to {owner} must have the same number of rows. Got {given}.\n"
            "Hint: pass one vector per row in each view, in the same order."
        )
    return rows


def check_classes(y: ArrayLike, rows: FloatArray, owner: str) -> tuple[Array, IntArray]:
    """Return the sorted classes, at least two, and the position of each label among them."""
    labels = check_labels(y, "y", owner)
    check_same_length(rows, "X", labels, "y", owner)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y passed to {owner} has only the class {classes.tolist()[0]!r}; finding wrong labels takes at "
            "least two.\nHint: pass the rows of all classes together."
        )
    return classes, codes.astype(np.intp)


def check_groups(groups: ArrayLike, n: int, owner: str) -> IntArray:
    """Return a number for each row, the same for rows of one group; a missing value is a group of its own."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InvalidInputError(
            f"groups passed to {owner} must contain one value for each of the {n} rows. Got shape {values.shape}."
        )
    # Row by row, and only NaN differs from itself.
    missing = np.asarray((values == None) | (values != values))  # noqa: E711
    known = values[~missing].astype(str) if values.dtype.kind == "O" else values[~missing]
    numbers = np.empty(n, dtype=np.intp)
    names, numbers[~missing] = np.unique(known, return_inverse=True)
    numbers[missing] = len(names) + np.arange(missing.sum())
    if numbers.max() == 0:
        raise InvalidInputError(
            f"groups passed to {owner} puts all {n} rows into one group, so no row is evidence about another.\n"
            "Hint: leave out groups if the rows are independent."
        )
    return numbers


def check_verified(verified: ArrayLike | None, n: int, owner: str) -> BoolArray:
    """Return a mask of the verified rows, from a mask, from row numbers or from nothing."""
    mask = np.zeros(n, dtype=bool)
    if verified is None:
        return mask
    values = np.asarray(verified)
    if values.dtype.kind == "b" and values.shape == (n,):
        mask |= values
    elif values.dtype.kind in "iu" and values.ndim == 1 and ((values >= 0) & (values < n)).all():
        if len(np.unique(values)) < len(values):
            raise InvalidInputError(
                f"verified passed to {owner} names the same row more than once.\n"
                "Hint: whole numbers are row numbers; pass booleans for a mask."
            )
        mask[values] = True
    else:
        raise InvalidInputError(
            f"verified passed to {owner} must be a mask of the {n} rows, or row numbers from 0 to {n - 1}. "
            f"Got shape {values.shape} of dtype {values.dtype}."
        )
    if mask.all() or not mask.any():
        raise InvalidInputError(
            f"verified passed to {owner} marks {'all' if mask.any() else 'none'} of the {n} rows.\n"
            "Hint: mark the rows whose labels have been verified, or leave out verified."
        )
    return mask
