"""The picture of the demo: errors left, and the least trusted digits beside their neighbors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._optional import import_extra
from neighboragg._typing import Array, BoolArray, FloatArray
from neighboragg.metrics import risk_coverage_curve

__all__ = ["Doubtful", "Judged", "draw"]

LARGEST_SHARE = 0.3
NAMED_SHARE = 0.05
OURS, THEIRS, GOOD, BAD = "#0b6e6e", "#9a6b00", "#0b6e6e", "#b3261e"


@dataclass(frozen=True)
class Judged:
    """Which predictions for a data set were correct, and two opinions about them."""

    name: str
    correct: BoolArray
    confidence: FloatArray
    trust: FloatArray

    def errors_left(self, scores: FloatArray, share: Any) -> Any:
        """Errors among the predictions that remain when this share, with the lowest scores, is set aside."""
        kept = 1.0 - np.asarray(share)
        return risk_coverage_curve(self.correct, scores).expected_risk(kept) * kept * len(self.correct)


@dataclass(frozen=True)
class Doubtful:
    """A prediction that is hardly trusted, and the rows behind that."""

    image: Array
    truth: Any
    predicted: Any
    likelier: Any
    confidence: float
    trust: float
    like_predicted: Array
    like_likelier: Array

    @property
    def shown_trust(self) -> str:
        """The trust in percent, never as if it were nothing."""
        return "< 0.1%" if self.trust < 0.0005 else f"{self.trust:.1%}"


def draw(judged: Judged, doubtful: list[Doubtful], output: Path) -> None:
    """Write the picture."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The picture of the demo")
    figure = figure_module.Figure(figsize=(12, 5.6), layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15], wspace=0.03)
    _draw_errors_left(left.subplots(), judged)
    _draw_digits(right, doubtful)
    by_trust, by_confidence = (
        f"{judged.errors_left(scores, NAMED_SHARE):.0f}" for scores in (judged.trust, judged.confidence)
    )
    figure.suptitle(
        f"Check the least trusted {NAMED_SHARE:.0%} of the predictions, and {by_trust} errors are left in the rest "
        f"instead of {by_confidence}",
        fontsize=15,
        fontweight="bold",
    )
    figure.savefig(output, dpi=110, format="png")


def _draw_errors_left(ax: Any, judged: Judged) -> None:
    shares = np.linspace(0, LARGEST_SHARE, 301)
    for scores, name, color in (
        (judged.confidence, "chosen by the classifier's\nown confidence", THEIRS),
        (judged.trust, "chosen by trust\n(neighbors and confidence)", OURS),
    ):
        errors = judged.errors_left(scores, shares)
        ax.plot(100 * shares, errors, color=color, linewidth=2.5, label=name)
        named = judged.errors_left(scores, NAMED_SHARE)
        ax.plot(100 * NAMED_SHARE, named, "o", color=color)
        ax.annotate(
            f"{named:.0f}", (100 * NAMED_SHARE, named), (7, 5), textcoords="offset points", color=color, fontsize=13,
            fontweight="bold",
        )  # fmt: skip
    ax.set_title(
        f"{len(judged.correct)} handwritten digits, of which logistic regression\n"
        f"reads {int((~judged.correct).sum())} wrong",
        fontsize=11.5,
    )
    ax.set(
        xlabel="predictions that a person checks, %",
        ylabel="errors left among the others",
        xlim=(0, 100 * LARGEST_SHARE),
        ylim=(0, None),
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False, fontsize=11.5, loc="upper right")


def _draw_digits(figure: Any, doubtful: list[Doubtful]) -> None:
    n_near = len(doubtful[0].like_predicted)
    # Columns: the digit, what is said of it, a gap, its neighbors of one class, a gap, those of the other.
    widths = [1, 2.6, *[1] * n_near, 0.35, *[1] * n_near]
    axes = figure.subplots(
        len(doubtful), len(widths), gridspec_kw={"width_ratios": widths, "wspace": 0.05, "hspace": 0.12}
    )
    for ax in axes.ravel():
        ax.set_axis_off()
    for row, one in zip(axes, doubtful, strict=True):
        _show(row[0], one.image)
        wrong = one.truth != one.predicted
        row[1].text(
            0.06, 0.82, f"read as {one.predicted}, {one.confidence:.0%} sure", fontsize=9.5, va="center"
        )
        row[1].text(0.06, 0.50, f"trust {one.shown_trust}", fontsize=9.5, va="center")
        verdict, color = (f"it is a {one.truth}", BAD) if wrong else (f"it is a {one.truth} indeed", GOOD)
        row[1].text(0.06, 0.18, verdict, fontsize=9.5, va="center", color=color, fontweight="bold")
        for ax, image in zip(row[2 : 2 + n_near], one.like_predicted, strict=True):
            _show(ax, image)
        for ax, image in zip(row[3 + n_near :], one.like_likelier, strict=True):
            _show(ax, image)
    heads = ((2 + (n_near - 1) // 2, "nearest digits of\nthe predicted class"),
             (3 + n_near + (n_near - 1) // 2, "nearest digits of\nthe likelier class"))  # fmt: skip
    figure.suptitle("The least trusted predictions, beside the nearest training rows", fontsize=11.5)
    axes[0, 0].set_title("new digit", fontsize=10)
    for column, title in heads:
        axes[0, column].set_title(title, fontsize=10)


def _show(ax: Any, image: Array) -> None:
    ax.imshow(image.reshape(8, 8), cmap="gray_r", interpolation="nearest")
