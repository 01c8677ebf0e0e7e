"""`neighboragg demo`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neighboragg._core.packages import import_extra
from neighboragg._core.types import Array, BoolArray, FloatArray
from neighboragg.metrics import auroc, bootstrap_difference, risk_coverage_curve
from neighboragg.trust import TrustedClassifier, split_rows

LARGEST_SHARE = 0.3
NAMED_SHARE = 0.05
OURS, THEIRS, GOOD, BAD = "#0b6e6e", "#9a6b00", "#0b6e6e", "#b3261e"


@dataclass(frozen=True)
class Scored:
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
        """The trust in percent, never rounded to zero."""
        return "< 0.1%" if self.trust < 0.0005 else f"{self.trust:.1%}"


def draw(scored: Scored, doubtful: list[Doubtful], output: Path) -> None:
    """Write the plot."""
    figure_module = import_extra("matplotlib.figure", extra="cli", purpose="The plot of the demo")
    figure = figure_module.Figure(figsize=(12, 5.6), layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15], wspace=0.03)
    _draw_errors_left(left.subplots(), scored)
    _draw_digits(right, doubtful)
    by_trust, by_confidence = (
        f"{scored.errors_left(scores, NAMED_SHARE):.0f}" for scores in (scored.trust, scored.confidence)
    )
    title = (
        f"Check the least trusted {NAMED_SHARE:.0%} of the predictions, and {by_trust} errors are left in the rest "
        f"instead of {by_confidence}"
    )
    figure.suptitle(title, fontsize=15, fontweight="bold")
    # The numbers go into the file as well: a test compares them with the committed plot.
    figure.savefig(output, dpi=110, format="png", metadata={"Description": title})


def _draw_errors_left(ax: Any, scored: Scored) -> None:
    shares = np.linspace(0, LARGEST_SHARE, 301)
    for scores, name, color in (
        (scored.confidence, "chosen by the classifier's\nown confidence", THEIRS),
        (scored.trust, "chosen by trust\n(neighbors and confidence)", OURS),
    ):
        errors = scored.errors_left(scores, shares)
        ax.plot(100 * shares, errors, color=color, linewidth=2.5, label=name)
        named = scored.errors_left(scores, NAMED_SHARE)
        ax.plot(100 * NAMED_SHARE, named, "o", color=color)
        ax.annotate(
            f"{named:.0f}", (100 * NAMED_SHARE, named), (7, 5), textcoords="offset points", color=color, fontsize=13,
            fontweight="bold",
        )  # fmt: skip
    ax.set_title(
        f"{len(scored.correct)} handwritten digits, of which logistic regression\n"
        f"reads {int((~scored.correct).sum())} wrong",
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
    # Columns: the digit, its scores, a gap, its neighbors of one class, a gap, its neighbors of the other.
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
    figure.suptitle("The least trusted predictions, next to the nearest training rows", fontsize=11.5)
    axes[0, 0].set_title("new digit", fontsize=10)
    for column, title in heads:
        axes[0, column].set_title(title, fontsize=10)


def _show(ax: Any, image: Array) -> None:
    ax.imshow(image.reshape(8, 8), cmap="gray_r", interpolation="nearest")


OUTPUT = typer.Option("--output", "-o", help="Where to write the plot.")
SEED = typer.Option(help="Seed of the splits and of the bootstrap.")
SET_ASIDE = (0.0, 0.02, 0.05, 0.1, 0.2)
N_RESAMPLES = 500
N_SHOWN, N_NEAREST = 6, 3


def demo(
    output: Annotated[Path, OUTPUT] = Path("neighboragg-demo.png"),
    seed: Annotated[int, SEED] = 0,
) -> None:
    """Find a classifier's errors on two data sets: one where neighbors help and one where they don't. Works offline."""
    console = Console(highlight=False)
    console.print(
        "Every classifier makes errors. If a person checks its least trusted predictions, how many errors are left in "
        "the rest?\nThere are two ways to choose these predictions: by the classifier's own probability (confidence), "
        "or by trust, which also uses the nearest training rows of every class.\n"
    )
    X, y = load_digits(return_X_y=True)
    digits, doubtful = _score("digits", X, y, seed, console, _doubtful)
    X, y = load_breast_cancer(return_X_y=True)
    cancer, _ = _score("breast cancer", X, y, seed, console)
    for scored in (digits, cancer):
        console.print(_errors_left(scored))
        console.print(_verdict(scored, seed) + "\n")
    console.print(_least_trusted(doubtful))
    draw(digits, doubtful, output)
    console.print(f"The plot of the digits: {output.resolve()}\n", soft_wrap=True)
    console.print(
        "Next, on your own table:\n"
        "  neighboragg compare table.csv --label y        which trust score is best on it\n"
        "  neighboragg audit table.csv --label y          which of its labels look wrong",
        soft_wrap=True,
    )


def _score(
    name: str, X: Any, y: Any, seed: int, console: Console, look: Callable[..., Any] = lambda *_: None
) -> tuple[Scored, Any]:
    """Train a classifier on 40% of the rows, learn trust on 10%, score the other half."""
    train, val, test = split_rows(len(y), seed)
    with console.status(f"{name}: training a classifier, learning when to trust it ..."):
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        classifier.fit(X[train], y[train])
        model = TrustedClassifier(FrozenEstimator(classifier))
        model.fit(X[train], y[train], X_val=X[val], y_val=y[val])
        assessed = model.assess(X[test])
        scored = Scored(name, assessed.predicted == y[test], assessed.probability, assessed.trust)
        return scored, look(model, X, y, np.concatenate([train, val]), test)


def _doubtful(model: TrustedClassifier, X: Any, y: Any, reference: Any, test: Any) -> list[Doubtful]:
    """The least trusted predictions, with their nearest rows of the predicted and of the likelier class."""
    assessed = model.assess(X[test])
    least = np.argsort(assessed.trust, kind="stable")[:N_SHOWN]
    nearest = reference[model.kneighbors(X[test][least], N_NEAREST)[1]]
    found = []
    for near, i in zip(nearest, least, strict=True):
        predicted = int(np.flatnonzero(assessed.classes == assessed.predicted[i])[0])
        likelier = int(np.argmax(np.delete(assessed.class_trust[i], predicted)))
        likelier += likelier >= predicted
        found.append(
            Doubtful(
                image=X[test[i]],
                truth=y[test[i]],
                predicted=assessed.classes[predicted],
                likelier=assessed.classes[likelier],
                confidence=float(assessed.probability[i]),
                trust=float(assessed.trust[i]),
                like_predicted=X[near[predicted]],
                like_likelier=X[near[likelier]],
            )
        )
    return found


def _errors_left(scored: Scored) -> Table:
    n, wrong = len(scored.correct), int((~scored.correct).sum())
    title = f"{scored.name}: logistic regression is wrong on {wrong} of {n} new rows"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("errors left if a person checks")
    for share in SET_ASIDE:
        table.add_column("nothing" if share == 0 else f"{share:.0%}", justify="right")
    for row, scores in (("chosen by confidence", scored.confidence), ("chosen by trust", scored.trust)):
        table.add_row(row, *(f"{scored.errors_left(scores, share):.0f}" for share in SET_ASIDE))
    return table


def _verdict(scored: Scored, seed: int) -> str:
    gain = bootstrap_difference(
        auroc, scored.correct, scored.trust, scored.confidence, n_resamples=N_RESAMPLES, random_state=seed
    )
    low, high = 100 * gain.low, 100 * gain.high
    figures = f"{100 * gain.estimate:+.1f} points of AUROC, 95% interval {low:+.1f} to {high:+.1f}"
    if gain.low > 0:
        return f"Neighbors help here ({figures}): they see errors that the classifier is sure of."
    if np.array_equal(np.argsort(scored.trust), np.argsort(scored.confidence)):
        return (
            "Neighbors do not help here, and the method noticed on its validation rows: it kept to the classifier's "
            "own order, so nothing is lost."
        )
    return f"Neighbors make no clear difference here ({figures})."


def _least_trusted(doubtful: list[Doubtful]) -> Table:
    table = Table(
        title=f"digits: the {len(doubtful)} least trusted predictions",
        title_justify="left",
        title_style="bold",
    )
    for column in ("predicted", "its confidence", "trust", "likelier class", "truth"):
        table.add_column(column, justify="right")
    for one in doubtful:
        wrong = one.truth != one.predicted
        truth = f"[red]{one.truth}, an error[/red]" if wrong else f"{one.truth}, correct after all"
        table.add_row(str(one.predicted), f"{one.confidence:.0%}", one.shown_trust, str(one.likelier), truth)
    return table
