"""`neighboragg demo`: trust scores compared on data that comes with scikit-learn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neighboragg.classifier import TrustedClassifier
from neighboragg.datasets import paper_split
from neighboragg.methods import Explanation, MaxConfidence, NeighborAgg, TrustMethod, TrustScore
from neighboragg.metrics import (
    Interval,
    aurc,
    auroc,
    average_precision_error,
    bootstrap_interval,
    coverage_at_risk,
)
from neighboragg.plots import RiskCoverageDisplay

__all__ = ["demo"]

OUTPUT = typer.Option("--output", "-o", help="Where to write the plot.")
SEED = typer.Option(help="Seed of the splits and of the bootstrap.")
METHODS: dict[str, Callable[[], TrustMethod]] = {
    "max-softmax": MaxConfidence,
    "Trust Score": TrustScore,
    "NeighborAgg (network)": lambda: NeighborAgg("network"),
    "NeighborAgg (pool)": NeighborAgg,
}
METRICS: dict[str, Callable[..., float]] = {
    "AUROC": auroc,
    "AP-error": average_precision_error,
    "AURC": aurc,
    "cov. @ 1% risk": lambda correct, trust: coverage_at_risk(correct, trust, risk=0.01),
}
N_RESAMPLES = 300
N_SHOWN = 5


@dataclass(frozen=True)
class Outcome:
    """What the methods said of one data set."""

    name: str
    classifier: str
    correct: Any
    trust: dict[str, Any]
    labels: Any
    explanation: Explanation
    intervals: dict[str, dict[str, Interval]]


def demo(
    output: Annotated[Path, OUTPUT] = Path("neighboragg-demo.png"),
    seed: Annotated[int, SEED] = 0,
) -> None:
    """Compare trust scores on digits and breast-cancer data; needs no network."""
    console = Console()
    data_sets: dict[str, Callable[..., Any]] = {"digits": load_digits, "breast cancer": load_breast_cancer}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Fitting and scoring", total=len(data_sets) * len(METHODS))
        outcomes = [
            _judge(name, *load(return_X_y=True), seed=seed, advance=lambda: progress.advance(task))
            for name, load in data_sets.items()
        ]
    for outcome in outcomes:
        console.print(_comparison(outcome))
        console.print(_least_trusted(outcome))
    _plot(outcomes, output)
    console.print(f"Risk–coverage curves: {output.resolve()}", soft_wrap=True)


def _judge(name: str, X: Any, y: Any, *, seed: int, advance: Callable[[], None]) -> Outcome:
    """Train a classifier on 40% of the rows, learn trust on 10%, judge on the other half."""
    train, val, test = paper_split(len(y), seed=seed)
    classifier: ClassifierMixin = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(X[train], y[train])
    predicted = classifier.predict(X[test])
    correct = predicted == y[test]
    trust, intervals = {}, {}
    for method_name, make in METHODS.items():
        model = TrustedClassifier(FrozenEstimator(classifier), make())
        model.fit(X[train], y[train], X_val=X[val], y_val=y[val])
        trust[method_name] = model.score_samples(X[test])
        intervals[method_name] = {
            metric: bootstrap_interval(
                function, correct, trust[method_name], n_resamples=N_RESAMPLES, random_state=seed
            )
            for metric, function in METRICS.items()
        }
        advance()
    least = np.argsort(trust[method_name], kind="stable")[:N_SHOWN]
    explanation = model.explain(X[test][least])
    title = "logistic regression"
    return Outcome(name, title, correct, trust, y[test][least], explanation, intervals)


def _comparison(outcome: Outcome) -> Table:
    n, wrong = len(outcome.correct), int((~outcome.correct).sum())
    title = f"{outcome.name}: {outcome.classifier}, {wrong} errors in {n} test rows (95% bootstrap intervals)"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("trust score")
    for metric in METRICS:
        table.add_column(metric, justify="right", no_wrap=True)
    for method, intervals in outcome.intervals.items():
        cells = [f"{100 * i.estimate:.1f} [{100 * i.low:.0f}–{100 * i.high:.0f}]" for i in intervals.values()]
        table.add_row(method, *cells)
    table.caption = (
        "In percent. AURC (area under risk–coverage): lower is better; all others: higher is better."
    )
    return table


def _least_trusted(outcome: Outcome) -> Table:
    explanation = outcome.explanation
    table = Table(
        title=f"{outcome.name}: the {len(explanation)} least trusted predictions", title_justify="left"
    )
    for column in ("predicted", "trust", "true label", "nearest training rows (class at distance)"):
        table.add_column(column)
    for row in range(len(explanation)):
        predicted = int(explanation.predicted[row])
        label = explanation.classes[predicted]
        truth = outcome.labels[row]
        table.add_row(
            str(label),
            f"{explanation.trust[row, predicted]:.3f}",
            f"{truth} ✓" if truth == label else f"[red]{truth} ✗[/red]",
            ", ".join(_nearest(explanation, row)),
        )
    return table


def _nearest(explanation: Explanation, row: int, count: int = 5) -> list[str]:
    """Classes and distances of the nearest rows of any class."""
    distances = explanation.distances[row]
    order = np.argsort(distances, axis=None, kind="stable")[:count]
    classes = np.unravel_index(order, distances.shape)[0]
    return [
        f"{explanation.classes[c]} at {r:.2f}" for c, r in zip(classes, distances.ravel()[order], strict=True)
    ]


def _plot(outcomes: list[Outcome], output: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for ax, outcome in zip(figure.subplots(1, len(outcomes)), outcomes, strict=True):
        for method, trust in outcome.trust.items():
            RiskCoverageDisplay.from_predictions(outcome.correct, trust, name=method, ax=ax)
        ax.set_title(f"{outcome.name}, {outcome.classifier}")
    figure.savefig(output, dpi=120)
