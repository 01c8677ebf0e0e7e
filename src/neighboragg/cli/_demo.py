"""`neighboragg demo`: where neighbors help, and where they do not, on data that comes with scikit-learn."""

from collections.abc import Callable
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

from neighboragg.classifier import TrustedClassifier
from neighboragg.cli._demo_picture import Doubtful, Judged, draw
from neighboragg.datasets import paper_split
from neighboragg.metrics import auroc, bootstrap_difference

__all__ = ["demo"]

OUTPUT = typer.Option("--output", "-o", help="Where to write the picture.")
SEED = typer.Option(help="Seed of the splits and of the bootstrap.")
SET_ASIDE = (0.0, 0.02, 0.05, 0.1, 0.2)
N_RESAMPLES = 500
N_SHOWN, N_NEAREST = 6, 3


def demo(
    output: Annotated[Path, OUTPUT] = Path("neighboragg-demo.png"),
    seed: Annotated[int, SEED] = 0,
) -> None:
    """Find a classifier's errors on two data sets: where neighbors help and where not. Needs no network."""
    console = Console(highlight=False)
    console.print(
        "A classifier is wrong now and then. If a person checks its least trusted predictions, how many errors are "
        "left in the rest?\nTwo ways to choose them: by the classifier's own probability (confidence), or by trust, "
        "which also looks at the nearest training rows of every class.\n"
    )
    X, y = load_digits(return_X_y=True)
    digits, doubtful = _judge("digits", X, y, seed, console, _doubtful)
    X, y = load_breast_cancer(return_X_y=True)
    cancer, _ = _judge("breast cancer", X, y, seed, console)
    for judged in (digits, cancer):
        console.print(_errors_left(judged))
        console.print(_verdict(judged, seed) + "\n")
    console.print(_least_trusted(doubtful))
    draw(digits, doubtful, output)
    console.print(f"The picture of the digits: {output.resolve()}\n", soft_wrap=True)
    console.print(
        "Next, on your own table:\n"
        "  neighboragg bench data table.csv --label y     which trust score is best on it\n"
        "  neighboragg audit table.csv --label y          which of its labels look wrong",
        soft_wrap=True,
    )


def _judge(
    name: str, X: Any, y: Any, seed: int, console: Console, look: Callable[..., Any] = lambda *_: None
) -> tuple[Judged, Any]:
    """Train a classifier on 40% of the rows, learn trust on 10%, judge on the other half."""
    train, val, test = paper_split(len(y), seed=seed)
    with console.status(f"{name}: training a classifier, learning when to trust it ..."):
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        classifier.fit(X[train], y[train])
        model = TrustedClassifier(FrozenEstimator(classifier))
        model.fit(X[train], y[train], X_val=X[val], y_val=y[val])
        assessed = model.assess(X[test])
        judged = Judged(name, assessed.label == y[test], assessed.probability, assessed.trust)
        return judged, look(model, X, y, np.concatenate([train, val]), test)


def _doubtful(model: TrustedClassifier, X: Any, y: Any, reference: Any, test: Any) -> list[Doubtful]:
    """The least trusted predictions, with their nearest rows of the predicted and of the likelier class."""
    assessed = model.assess(X[test])
    least = np.argsort(assessed.trust, kind="stable")[:N_SHOWN]
    nearest = reference[model.kneighbors(X[test][least], N_NEAREST)[1]]
    found = []
    for near, i in zip(nearest, least, strict=True):
        predicted = int(np.flatnonzero(assessed.classes == assessed.label[i])[0])
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


def _errors_left(judged: Judged) -> Table:
    n, wrong = len(judged.correct), int((~judged.correct).sum())
    title = f"{judged.name}: logistic regression is wrong on {wrong} of {n} new rows"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("errors left if a person checks")
    for share in SET_ASIDE:
        table.add_column("nothing" if share == 0 else f"{share:.0%}", justify="right")
    for row, scores in (("chosen by confidence", judged.confidence), ("chosen by trust", judged.trust)):
        table.add_row(row, *(f"{judged.errors_left(scores, share):.0f}" for share in SET_ASIDE))
    return table


def _verdict(judged: Judged, seed: int) -> str:
    gain = bootstrap_difference(
        auroc, judged.correct, judged.trust, judged.confidence, n_resamples=N_RESAMPLES, random_state=seed
    )
    low, high = 100 * gain.low, 100 * gain.high
    figures = f"{100 * gain.estimate:+.1f} points of AUROC, 95% interval {low:+.1f} to {high:+.1f}"
    if gain.low > 0:
        return f"Neighbors help here ({figures}): they see errors that the classifier is sure of."
    if np.array_equal(np.argsort(judged.trust), np.argsort(judged.confidence)):
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
    for column in ("classifier says", "its confidence", "trust", "likelier class", "truth"):
        table.add_column(column, justify="right")
    for one in doubtful:
        wrong = one.truth != one.predicted
        truth = f"[red]{one.truth}, an error[/red]" if wrong else f"{one.truth}, correct after all"
        table.add_row(str(one.predicted), f"{one.confidence:.0%}", one.shown_trust, str(one.likelier), truth)
    return table
