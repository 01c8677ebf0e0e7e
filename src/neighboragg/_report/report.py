"""The trust report: a summary of how much trust helped, as text, HTML and plots."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from neighboragg._core.checks import check_outcomes, check_real
from neighboragg._core.display import html_table, text_table
from neighboragg._core.packages import import_extra, publish
from neighboragg._core.stats import lower_limit, upper_limit
from neighboragg._core.types import ArrayLike, BoolArray, FloatArray
from neighboragg.metrics import (
    Interval,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    auroc,
    bootstrap_difference,
    bootstrap_interval,
    coverage_at_risk,
    expected_calibration_error,
    reliability_curve,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RISKS = (0.01, 0.02, 0.05)


def summarize_trust(
    correct: ArrayLike,
    trust: ArrayLike,
    confidence: ArrayLike,
    *,
    risks: Sequence[float] = RISKS,
    confidence_level: float = 0.95,
    n_resamples: int = 500,
    random_state: Any = 0,
    groups: ArrayLike | None = None,
) -> dict[str, Any]:
    """Compare trust with the classifier's own confidence on labeled rows."""
    owner = "summarize_trust"
    level = check_real(confidence_level, "confidence_level", owner, low=0, high=1)
    hits, scores = check_outcomes(correct, trust, owner)
    _, plain = check_outcomes(correct, confidence, owner)
    both = {"trust": scores, "confidence": plain}
    n, n_hits, tail = len(hits), int(hits.sum()), (1 - level) / 2
    settings = {
        "confidence_level": level,
        "n_resamples": n_resamples,
        "random_state": random_state,
        "groups": groups,
    }
    return {
        "n_rows": n,
        "n_errors": n - n_hits,
        "confidence_level": level,
        "accuracy": {
            "estimate": n_hits / n,
            "low": float(lower_limit(n_hits, n, tail)),
            "high": float(upper_limit(n_hits, n, tail)),
        }
        if groups is None
        else _plain(bootstrap_interval(_accuracy, hits, scores, **settings)),
        "auroc": _auroc(hits, scores, plain, settings),
        "coverage_at_risk": [
            {"risk": float(risk), **{name: coverage_at_risk(hits, s, risk=risk) for name, s in both.items()}}
            for risk in risks
        ],
        "ece": {name: _if_probability(expected_calibration_error, hits, s) for name, s in both.items()},
        "reliability": {name: _if_probability(_reliability, hits, s) for name, s in both.items()},
    }


def _accuracy(hits: BoolArray, trust: FloatArray) -> float:
    return float(hits.mean())


def _auroc(
    hits: BoolArray, trust: FloatArray, confidence: FloatArray, settings: dict[str, Any]
) -> dict[str, Any] | None:
    if hits.all() or not hits.any():
        return None
    return {
        "trust": _plain(bootstrap_interval(auroc, hits, trust, **settings)),
        "confidence": _plain(bootstrap_interval(auroc, hits, confidence, **settings)),
        "difference": _plain(bootstrap_difference(auroc, hits, trust, confidence, **settings)),
    }


def _plain(interval: Interval) -> dict[str, float | None]:
    values = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _reliability(hits: BoolArray, scores: FloatArray) -> list[dict[str, float]]:
    curve = reliability_curve(hits, scores)
    return [
        {"trust": float(t), "correct": float(c), "n_rows": int(n)}
        for t, c, n in zip(curve.trust, curve.correct, curve.n_rows, strict=True)
    ]


def _if_probability(metric: Any, hits: BoolArray, scores: FloatArray) -> Any:
    return metric(hits, scores) if ((scores >= 0) & (scores <= 1)).all() else None


NAMES = ("trust", "confidence")
BINS_TITLE = "Trust and share of correct predictions, by bins of trust:"


@dataclass(frozen=True, eq=False, repr=False)
class TrustReport:
    """Comparison of trust with the classifier's own confidence on labeled rows.

    :meth:`neighboragg.TrustedClassifier.report` returns one. Print it for a short text, or call :meth:`plot`.

    Parameters
    ----------
    summary : dict
        All numbers of the report.
    correct : ndarray of bool of shape (n,)
        Whether each prediction was correct.
    trust, confidence : ndarray of shape (n,)
        The two scores of each prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from neighboragg import TrustedClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TrustedClassifier(GaussianNB(), random_state=0).fit(X[:900], y[:900])
    >>> report = model.report(X[900:], y[900:], n_resamples=50)
    >>> print(report.verdict.partition(":")[0])
    Trust separates correct from wrong predictions better than the classifier's confidence
    >>> report.to_dict()["n_rows"]
    897
    """

    summary: Mapping[str, Any]
    correct: BoolArray
    trust: FloatArray
    confidence: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """All numbers of the report as plain Python values, ready for JSON.

        Returns
        -------
        summary : dict
        """
        return dict(self.summary)

    @property
    def verdict(self) -> str:
        """Whether trust helped, in one sentence."""
        found = self.summary["auroc"]
        if found is None:
            kind = "right" if self.summary["n_errors"] == 0 else "wrong"
            return (
                f"All {self.summary['n_rows']} predictions are {kind}, so the two scores cannot be compared."
            )
        gain = found["difference"]
        if gain["low"] is None or gain["low"] <= 0 <= gain["high"]:
            how = "about as well as"
        else:
            how = "better than" if gain["estimate"] > 0 else "worse than"
        return (
            f"Trust separates correct from wrong predictions {how} the classifier's confidence: AUROC "
            f"{found['trust']['estimate']:.3f} compared with {found['confidence']['estimate']:.3f}, "
            f"difference {_interval(gain, '+.3f')}."
        )

    def __repr__(self) -> str:
        lines = [self._headline(), self.verdict, "", text_table(self._table())]
        if self._reliability():
            lines += ["", BINS_TITLE, text_table(self._reliability())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = [
            f"<p>{escape(self._headline())}</p><p><b>{escape(self.verdict)}</b></p>",
            html_table(self._table()),
        ]
        if self._reliability():
            parts.append(f"<p>{BINS_TITLE}</p>{html_table(self._reliability())}")
        return "".join(parts)

    def plot(self) -> "Figure":
        """Plot the risk-coverage curves and the reliability curves of trust and confidence.

        Returns
        -------
        figure : matplotlib Figure
            Risk against coverage on the left. Reliability on the right, for scores that are probabilities.
        """
        pyplot = import_extra("matplotlib.pyplot", extra="cli", purpose="TrustReport.plot")
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
        for name in NAMES:
            scores = getattr(self, name)
            RiskCoverageDisplay.from_predictions(self.correct, scores, name=name, ax=left)
            if self.summary["reliability"][name] is not None:
                ReliabilityDisplay.from_predictions(self.correct, scores, name=name, ax=right)
        left.set_title("Errors among accepted predictions")
        right.set_title("Share of correct predictions by score")
        return figure

    def _headline(self) -> str:
        summary = self.summary
        return (
            f"{summary['n_rows']} rows, {summary['n_errors']} errors, accuracy "
            f"{_interval(summary['accuracy'], '.3f')} ({summary['confidence_level']:.0%} intervals)."
        )

    def _table(self) -> dict[str, list[str]]:
        """The compared metrics, with one column for each score."""
        summary = self.summary
        rows: dict[str, list[str]] = {}
        if summary["auroc"] is not None:
            rows["AUROC"] = [_interval(summary["auroc"][name], ".3f") for name in NAMES]
        for point in summary["coverage_at_risk"]:
            rows[f"accepted at {point['risk']:.0%} errors"] = [f"{point[name]:.1%}" for name in NAMES]
        rows["calibration error (ECE)"] = [
            "–" if summary["ece"][name] is None else f"{summary['ece'][name]:.3f}" for name in NAMES
        ]
        return {
            "": list(rows),
            **{name: [cells[i] for cells in rows.values()] for i, name in enumerate(NAMES)},
        }

    def _reliability(self) -> dict[str, list[Any]]:
        points = self.summary["reliability"]["trust"] or []
        names = ("trust", "correct", "n_rows")
        return {name.replace("n_", ""): [point[name] for point in points] for name in names} if points else {}


def _interval(values: Mapping[str, float | None], spec: str) -> str:
    low, high = ("?" if values[end] is None else format(values[end], spec) for end in ("low", "high"))
    return f"{values['estimate']:{spec}} [{low}, {high}]"


publish(globals())
