"""From label trust and flags to the result that a person reads."""

import numpy as np

from neighboragg._typing import Array, BoolArray, FloatArray
from neighboragg.mislabel._conformal import conformal_p_values
from neighboragg.mislabel._label_trust import LabeledRows, LabelTrust
from neighboragg.mislabel._reasons import reasons_for
from neighboragg.mislabel._reliability import best_other_class
from neighboragg.mislabel._result import MislabelResult
from neighboragg.mislabel.rules import Flags, JudgedLabels

__all__ = ["build_result"]

# Neighbors of the given and of the suggested class that a result keeps.
N_KEPT_NEIGHBORS = 5


def build_result(
    data: LabeledRows,
    fitted: LabelTrust,
    classes: Array,
    judged: JudgedLabels,
    flags: Flags,
    *,
    rule: str,
    notes: tuple[str, ...],
) -> MislabelResult:
    """Collect flags, suggestions, reasons and neighbors of the rows fitted on."""
    codes, trust = data.codes, fitted.trust
    other = best_other_class(trust, codes)
    row = np.arange(len(codes))
    kept = slice(N_KEPT_NEIGHBORS)
    near = next(iter(fitted.near.values()))
    return MislabelResult(
        mask=flags.mask,
        scores=judged.scores,
        p_values=label_p_values(judged.scores, judged.verified),
        given=classes[codes],
        suggested=classes[other],
        label_trust=trust[row, codes],
        suggested_trust=trust[row, other],
        trust=trust,
        classes=classes,
        reasons=_reasons(data, fitted, classes, flags.mask),
        threshold=flags.threshold,
        rule=rule,
        p_wrong=judged.noise.p_wrong,
        noise_rate=judged.noise.rate,
        noise_rate_range=(judged.noise.low, judged.noise.high),
        randomness=judged.noise.noise.randomness,
        given_neighbors=near.rows[row, codes, kept],
        given_distances=near.distances[row, codes, kept],
        suggested_neighbors=near.rows[row, other, kept],
        suggested_distances=near.distances[row, other, kept],
        promise=flags.promise,
        notes=notes,
    )


def _reasons(
    data: LabeledRows, fitted: LabelTrust, classes: Array, mask: BoolArray
) -> tuple[tuple[str, ...], ...]:
    """Reasons for the flagged rows, and none for the others."""
    said = {} if data.proba is None else {"classifier": data.proba}
    said |= {name: model.proba for name, model in fitted.passes[-1].models.items()}
    flagged = np.flatnonzero(mask)
    found = reasons_for(
        flagged,
        classes=classes,
        codes=data.codes,
        suggested=best_other_class(fitted.trust, data.codes),
        trust=fitted.trust,
        votes=fitted.votes,
        said=said,
        distances={view: near.distances[:, :, 0].min(axis=1) for view, near in fitted.near.items()},
    )
    reasons: list[tuple[str, ...]] = [()] * len(mask)
    for i, reason in zip(flagged, found, strict=True):
        reasons[i] = reason
    return tuple(reasons)


def label_p_values(scores: FloatArray, verified: BoolArray) -> FloatArray:
    """P-value of each label against verified ones, or against all others if none is verified.

    A row that is itself in the sample is compared with the rest of it.
    """
    sample = verified if verified.any() else np.ones(len(scores), dtype=bool)
    p_values = conformal_p_values(scores, scores[sample])
    # (1 + #{c_j ≤ s}) / (m + 1), without the row itself among the m.
    m = int(sample.sum())
    return np.where(sample, (p_values * (m + 1) - 1) / m, p_values)
