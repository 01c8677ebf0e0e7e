"""The result of a search for wrong labels, with reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from neighboragg._core.packages import import_extra
from neighboragg._core.stats import best_other_class
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._core.views import LEARNED, view_of
from neighboragg._report.label_plots import LabelMatrixDisplay, LabelScoreDisplay
from neighboragg._store.objects import Savable
from neighboragg.labels._label_trust import WORDS, LabelTrust
from neighboragg.labels._rules import Flags, LabelScores
from neighboragg.promises import conformal_p_values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A row is isolated if its nearest neighbor is far, and farther than that of nearly all other rows.
ISOLATED_QUANTILE, ISOLATED_FACTOR = 0.99, 2.0


def reasons_for(
    flagged: IntArray,
    *,
    classes: Array,
    codes: IntArray,
    suggested: IntArray,
    trust: FloatArray,
    votes: Mapping[str, FloatArray],
    predictions: Mapping[str, FloatArray],
    distances: Mapping[str, FloatArray],
    lone: BoolArray | None = None,
) -> list[tuple[str, ...]]:
    """Reasons against the label of each flagged row."""
    names = [repr(label) for label in classes.tolist()]
    if lone is None:
        lone = (np.bincount(codes, minlength=len(classes)) == 1)[codes]
    several = len({view_of(name) for name in votes}) > 1
    within = {name: _within(name, several) for name in votes}
    # Distances in a learned metric separate classes; they do not reveal odd rows.
    isolated = {view: isolated_rows(nearest) for view, nearest in distances.items() if view == view_of(view)}
    favorites = {name: proba.argmax(axis=1) for name, proba in predictions.items()}

    def of_row(i: int) -> Sequence[str]:
        given, other = codes[i], suggested[i]
        found = []
        if lone[i]:
            found.append(f"only row of class {names[given]}")
        disagree = {name: counts[i] for name, counts in votes.items() if counts[i, other] > counts[i, given]}
        for name, counts in disagree.items():
            # Repeating it for the learned metric would not be another reason.
            if name == view_of(name) or view_of(name) not in disagree:
                share = f"{counts[other]:.0f} of {counts.sum():.0f}"
                found.append(f"neighbors{within[name]} disagree ({share} are {names[other]})")
        for name, favorite in favorites.items():
            if (best := favorite[i]) != given:
                found.append(f"{name} prefers {names[best]} ({predictions[name][i, best]:.2f})")
        found += [f"isolated row{within[view]}" for view, alone in isolated.items() if alone[i]]
        return found or [
            f"weak evidence ({names[given]} {trust[i, given]:.2f}, {names[other]} {trust[i, other]:.2f})"
        ]

    return [tuple(of_row(i)) for i in flagged]


def _within(name: str, several: bool) -> str:
    """The space that neighbors were searched in; views are named only if there are several."""
    if several:
        return f" in {name!r}"
    return "" if name == view_of(name) else f" in a {LEARNED}"


def isolated_rows(distances: FloatArray) -> BoolArray:
    """Rows much farther from their nearest neighbor than nearly all others."""
    finite = distances[np.isfinite(distances)]
    if not len(finite):
        return np.ones(len(distances), dtype=bool)
    limit = max(float(np.quantile(finite, ISOLATED_QUANTILE)), ISOLATED_FACTOR * float(np.median(finite)))
    return distances > limit


KIND = "MislabelResult"
N_SHOWN = 5
# Beyond these limits, the text names one kind of error only.
MOSTLY = 0.75


@dataclass(frozen=True, eq=False, repr=False)
class MislabelResult(Savable):
    """Scores, flags and reasons for every label; made by :func:`find_mislabeled` and :class:`MislabelDetector`.

    Parameters
    ----------
    mask : ndarray of bool of shape (n,)
        True where the label is flagged.
    scores : ndarray of shape (n,)
        Reliability of each given label; low is suspicious. By default the log odds that it is right, log(1 − p) − log p
        with p = `p_wrong`.
    p_wrong : ndarray of shape (n,)
        Estimated probability that the label is wrong. Its order is better than its level: errors that look right to
        a model, above all labels that a model made, get a low probability, and their number is underestimated.
    p_values : ndarray of shape (n,)
        Small is suspicious. With verified rows, the conformal p-value against them: (1 + number of verified scores at
        or below) / (m + 1). Otherwise the same against all other rows, the rank of the score divided by n. This is
        conservative for a right label because some of the others are wrong. A verified row is compared with the rest of
        the verified rows.
    given, suggested : ndarray of shape (n,)
        The given label, and the most trusted other label.
    label_trust, suggested_trust : ndarray of shape (n,)
        Trust in each of them.
    trust : ndarray of shape (n, n_classes)
        Trust in every class, columns as `classes`; rows sum to one.
    classes : ndarray of shape (n_classes,)
    reasons : tuple of tuple of str
        Reasons against each flagged label; empty for the others.
    threshold : float
        A row is flagged if its score is below this.
    rule : str
        How the threshold was chosen.
    noise_rate : float
        Estimated share of wrong labels, the mean of `p_wrong`; without an interval, as errors that look right to a
        model cannot be counted. :func:`~neighboragg.promises.errors_left_interval` gives an exact one from a random
        sample of the rows that a person has reviewed.
    randomness : float
        1 if errors look random, 0 if they look like ambiguity (or none were found), or a value in between.
    given_neighbors, suggested_neighbors : ndarray of shape (n, k)
        Row numbers of the nearest rows with the given and with the suggested label; padded with -1.
    given_distances, suggested_distances : ndarray of shape (n, k)
        Their distances; padded with inf.
    promise : str
        What the rule promises about false alarms.
    notes : tuple of str
        Notes about these rows.
    index : pandas.Index or None
        Index of the rows if they were a pandas data frame; otherwise they are numbered from 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import find_mislabeled
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> result = find_mislabeled(X, y, flag=1)
    >>> int(result.ranking[0]), int(result.suggested[7])
    (7, 0)
    >>> result.reasons[7][0]
    'neighbors disagree (20 of 20 are 0)'
    """

    mask: BoolArray
    scores: FloatArray
    p_wrong: FloatArray
    p_values: FloatArray
    given: Array
    suggested: Array
    label_trust: FloatArray
    suggested_trust: FloatArray
    trust: FloatArray
    classes: Array
    reasons: tuple[tuple[str, ...], ...]
    threshold: float
    rule: str
    noise_rate: float
    randomness: float
    given_neighbors: IntArray
    given_distances: FloatArray
    suggested_neighbors: IntArray
    suggested_distances: FloatArray
    promise: str
    notes: tuple[str, ...] = field(default=())
    index: Any = None

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        return f"MislabelResult(n_flagged={self.n_flagged}, n_rows={len(self)}, rule={self.rule!r})"

    @property
    def n_flagged(self) -> int:
        """Number of flagged labels."""
        return int(self.mask.sum())

    @property
    def ranking(self) -> IntArray:
        """All row numbers, the most suspicious first; equal scores in the order of rows."""
        return np.argsort(self.scores, kind="stable")

    def summary(self, rows: ArrayLike | None = None) -> str:
        """Summarize the result in a few lines of text.

        Parameters
        ----------
        rows : array-like of int of shape (n,), default=None
            Numbers to call the rows by; None counts from 0.

        Returns
        -------
        text : str
        """
        n = len(self)
        numbers = np.arange(n) if rows is None else np.asarray(rows)
        lines = [
            f"{self.n_flagged:,} of {n:,} labels flagged ({self.n_flagged / n:.1%}) by the rule {self.rule!r}.",
            self.promise,
            self.noise_summary(),
        ]
        if self.n_flagged:
            lines += [
                "Most frequent among the flags:",
                *self._pairs(),
                "Most suspicious:",
                *self._worst(numbers),
            ]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines)

    def noise_summary(self) -> str:
        """The estimated share of wrong labels, and when it is wrong, in a few sentences.

        Returns
        -------
        text : str
        """
        if self.randomness > MOSTLY:
            case = "The errors look random."
        elif self.randomness < 1 - MOSTLY:
            case = "Errors, if any, look like ambiguity, so it may also be too high."
        else:
            case = "Some errors look random, others like ambiguity."
        return (
            f"Estimated share of wrong labels: {self.noise_rate:.1%}. {case} It is too low where errors look right to "
            "a model, as in labels that a model made. A reviewed random sample gives an exact interval "
            "(errors_left_interval)."
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one line per row, in the order of rows.

        Returns
        -------
        frame : pandas.DataFrame
            Columns given, suggested, flagged, p_wrong, trust (in the given label), suggested_trust, reasons (joined
            by semicolons), with the index of the data frame that was searched.
        """
        pandas = import_extra("pandas", extra="cli", purpose="MislabelResult.to_frame")
        return pandas.DataFrame(
            {
                "given": self.given,
                "suggested": self.suggested,
                "flagged": self.mask,
                "p_wrong": self.p_wrong,
                "trust": self.label_trust,
                "suggested_trust": self.suggested_trust,
                "reasons": ["; ".join(reasons) for reasons in self.reasons],
            },
            index=self.index,
        )

    def plot_scores(self, ax: "Axes | None" = None, **kwargs: Any) -> LabelScoreDisplay:
        """Draw the histogram of all scores, with the threshold.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        **kwargs : dict
            Further arguments of :meth:`LabelScoreDisplay.plot`.

        Returns
        -------
        display : LabelScoreDisplay
        """
        return LabelScoreDisplay(self.scores, self.mask, self.threshold).plot(ax, **kwargs)

    def plot_matrix(
        self, ax: "Axes | None" = None, *, max_classes: int = 30, **kwargs: Any
    ) -> LabelMatrixDisplay:
        """Draw the matrix of given against suggested labels of the flagged rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. None makes a new figure.
        max_classes : int, default=30
            Largest number of classes to show.
        **kwargs : dict
            Further arguments of :meth:`LabelMatrixDisplay.plot`.

        Returns
        -------
        display : LabelMatrixDisplay
        """
        flagged = LabelMatrixDisplay(
            self.given[self.mask], self.suggested[self.mask], max_classes=max_classes
        )
        return flagged.plot(ax, **kwargs)

    def _saved_state(self) -> dict[str, Any]:
        # Most lines have no reasons; joining those would be slow.
        index = None if self.index is None else np.asarray(self.index)
        if index is not None and index.dtype.kind not in "iu":
            index = np.array([str(name) for name in index])
        flagged = [self.reasons[i] for i in np.flatnonzero(self.mask)]
        return {**vars(self), "reasons": flagged, "index": index}

    def after_load(self) -> None:
        reasons: list[tuple[str, ...]] = [()] * len(self.mask)
        for i, found in zip(np.flatnonzero(self.mask), self.reasons, strict=True):
            reasons[i] = tuple(found)
        vars(self)["reasons"] = tuple(reasons)

    def _pairs(self) -> list[str]:
        codes = np.searchsorted(self.classes, self.given[self.mask]) * len(self.classes)
        codes += np.searchsorted(self.classes, self.suggested[self.mask])
        pairs, counts = np.unique(codes, return_counts=True)
        names = self.classes.tolist()
        return [
            f"  given {names[pair // len(names)]!r}, suggested {names[pair % len(names)]!r}: {count:,}"
            for pair, count in sorted(zip(pairs, counts, strict=True), key=lambda item: -item[1])[:N_SHOWN]
        ]

    def _worst(self, numbers: IntArray) -> list[str]:
        ranked = self.ranking
        given, suggested = self.given.tolist(), self.suggested.tolist()
        return [
            f"  row {numbers[i]}: given {given[i]!r}, suggested {suggested[i]!r}; {'; '.join(self.reasons[i])}"
            for i in ranked[self.mask[ranked]][:N_SHOWN]
        ]


# Neighbors of the given and of the suggested class that a result keeps.
N_KEPT_NEIGHBORS = 5


def build_result(
    fitted: LabelTrust,
    classes: Array,
    labels: LabelScores,
    flags: Flags,
    *,
    proba: FloatArray | None,
    rule: str,
    notes: tuple[str, ...],
    index: Any = None,
) -> MislabelResult:
    """Collect flags, suggestions, reasons and neighbors of the rows fitted on."""
    codes, trust = labels.codes, fitted.trust
    other = best_other_class(trust, codes)
    row = np.arange(len(codes))
    kept = slice(N_KEPT_NEIGHBORS)
    near = next(iter(fitted.neighbors.values()))
    return MislabelResult(
        mask=flags.mask,
        scores=labels.scores,
        p_values=label_p_values(labels.scores, labels.verified),
        given=classes[codes],
        suggested=classes[other],
        label_trust=trust[row, codes],
        suggested_trust=trust[row, other],
        trust=trust,
        classes=classes,
        reasons=_reasons(proba, codes, fitted, classes, flags.mask),
        threshold=flags.threshold,
        rule=rule,
        p_wrong=labels.noise.p_wrong,
        noise_rate=labels.noise.rate,
        randomness=labels.noise.noise.randomness,
        given_neighbors=near.ids[row, codes, kept],
        given_distances=near.distances[row, codes, kept],
        suggested_neighbors=near.ids[row, other, kept],
        suggested_distances=near.distances[row, other, kept],
        promise=flags.promise,
        notes=notes,
        index=index,
    )


def _reasons(
    proba: FloatArray | None, codes: IntArray, fitted: LabelTrust, classes: Array, mask: BoolArray
) -> tuple[tuple[str, ...], ...]:
    """Reasons for the flagged rows, and none for the others."""
    predictions = {} if proba is None else {"classifier": proba}
    predictions |= {name: model.proba for name, model in fitted.passes[-1].models.items()}
    flagged = np.flatnonzero(mask)
    found = reasons_for(
        flagged,
        classes=classes,
        codes=codes,
        suggested=best_other_class(fitted.trust, codes),
        trust=fitted.trust,
        votes=fitted.votes,
        predictions=predictions,
        distances={view: near.distances[:, :, 0].min(axis=1) for view, near in fitted.neighbors.items()},
    )
    reasons: list[tuple[str, ...]] = [()] * len(mask)
    for i, reason in zip(flagged, found, strict=True):
        reasons[i] = reason
    return tuple(reasons)


@dataclass(frozen=True, eq=False)
class NewLabels:
    """Scores, flags and suggestions for the labels of new rows."""

    mask: BoolArray
    scores: FloatArray
    given: Array
    suggested: Array
    label_trust: FloatArray
    trust: FloatArray

    @classmethod
    def of(
        cls, classes: Array, codes: IntArray, trust: FloatArray, scores: FloatArray, mask: BoolArray
    ) -> "NewLabels":
        """From the trust in every class, and the labels as positions in the classes."""
        suggested = classes[best_other_class(trust, codes)]
        return cls(mask, scores, classes[codes], suggested, trust[np.arange(len(codes)), codes], trust)


@dataclass(frozen=True)
class Evidence:
    """Evidence about labels: reasons, and the nearest rows with the given and the suggested label."""

    reasons: list[tuple[str, ...]]
    given_neighbors: IntArray
    given_distances: FloatArray
    suggested_neighbors: IntArray
    suggested_distances: FloatArray


def evidence_of_new_rows(
    fitted: LabelTrust, classes: Array, X: FloatArray, codes: IntArray, proba: FloatArray | None, terms: Any
) -> Evidence:
    """Evidence about the labels of new rows."""
    trust, _ = fitted.trust_of(X, proba, terms)
    other, row, kept = best_other_class(trust, codes), np.arange(len(codes)), slice(N_KEPT_NEIGHBORS)
    found = fitted.passes[0].neighbors.of_new_rows(X)
    vectors = fitted.scaling.of(X)
    predictions = {} if proba is None else {"classifier": proba}
    for name, model in fitted.passes[-1].models.items():
        predictions[name] = model.predict_proba(terms if name == WORDS else vectors)
    reasons = reasons_for(
        row,
        classes=classes,
        codes=codes,
        suggested=other,
        trust=trust,
        votes={view: near.nearest(near.ids.shape[2]).sum(axis=2) for view, near in found.items()},
        predictions=predictions,
        distances={},  # isolated rows are known only among the fitted rows
        lone=np.zeros(len(codes), dtype=bool),
    )
    near = next(iter(found.values()))
    return Evidence(
        reasons,
        near.ids[row, codes, kept],
        near.distances[row, codes, kept],
        near.ids[row, other, kept],
        near.distances[row, other, kept],
    )


def label_p_values(scores: FloatArray, verified: BoolArray) -> FloatArray:
    """P-value of each label against verified ones, or against all others if none is verified."""
    sample = verified if verified.any() else np.ones(len(scores), dtype=bool)
    p_values = conformal_p_values(scores, scores[sample])
    # (1 + #{c_j ≤ s}) / (m + 1), without the row itself among the m.
    m = int(sample.sum())
    return np.where(sample, (p_values * (m + 1) - 1) / m, p_values)
