"""`neighboragg audit`, `review` and `correct`: from a labelled table to a corrected one."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from neighboragg._typing import FloatArray
from neighboragg.bench import read_table
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import TabularFeatures
from neighboragg.mislabel import MislabelResult, find_mislabeled
from neighboragg.review import (
    build_review_set,
    corrected_labels,
    load_review_set,
    save_review_set,
    serve,
)

__all__ = ["audit", "correct", "review"]

LabelColumn = Annotated[str, typer.Option(help="Name of the label column.")]
SVD_COMPONENTS = 100


def audit(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file with a label column.")],
    label: LabelColumn,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Flagged rows as CSV; the review set goes beside.")
    ] = (Path("suspicious.csv")),
    text: Annotated[str, typer.Option(help="Column of texts to judge by, instead of all columns.")] = "",
    alpha: Annotated[
        float | None, typer.Option(help="Flag at most this share of the correctly labelled rows.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Flag this many rows.")] = None,
    n_audit: Annotated[int, typer.Option(help="Rows not flagged to review too, for the errors left.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Find suspicious labels: ranked, with the suggested label and the reasons."""
    frame, labels, kept = _labelled(file, label)
    console = Console()
    with console.status(f"Judging {len(labels):,} labels"):
        features, result = _judge(frame, labels, text or _only_text(frame), alpha, budget, seed)
    console.print(result.summary(), soft_wrap=True, markup=False)
    flagged = result.ranking[result.mask[result.ranking]]
    found = result.to_frame().iloc[flagged].drop(columns="flagged")
    found.insert(0, "row", kept[flagged])
    for name in frame.columns:
        found[str(name) if str(name) not in found.columns else f"{name} (data)"] = frame[name].to_numpy()[
            flagged
        ]
    found.to_csv(output, index=False)
    path = _review_path(output)
    save_review_set(
        path,
        build_review_set(
            features, result, n_audit=n_audit, title=f"Labels of {file.name}", random_state=seed
        ),
    )
    console.print(f"\nFlagged rows: {output}\nReview them:  neighboragg review {output}", soft_wrap=True)


def review(
    file: Annotated[Path, typer.Argument(help="CSV file that `neighboragg audit` wrote.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default is reachable from here only.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Review flagged labels in the browser; decisions are kept beside the file at once."""
    serve(_existing_review(file), host=host, port=port, open_browser=browser)


def correct(
    file: Annotated[Path, typer.Argument(help="The labelled table that was audited.")],
    label: LabelColumn,
    suspicious: Annotated[Path, typer.Option("--review", help="CSV file that `neighboragg audit` wrote.")] = (
        Path("suspicious.csv")
    ),
    output: Annotated[Path, typer.Option("--output", "-o", help="The table with corrected labels.")] = (
        Path("corrected.csv")
    ),
) -> None:
    """Write the table with the labels that were decided in the review."""
    path = _existing_review(suspicious)
    whole = read_table(file)
    _, labels, kept = _labelled(file, label)
    fixed = corrected_labels(labels, path.with_suffix(".decisions.sqlite"), load_review_set(path))
    column = whole[label].astype(object).to_numpy(copy=True)
    changed = np.flatnonzero(fixed.astype(str) != labels.astype(str))
    known = {str(value): value for value in column[kept]}
    column[kept[changed]] = [known.get(str(value), value) for value in fixed[changed]]
    whole[label] = column
    if output.suffix in (".parquet", ".pq"):
        whole.to_parquet(output, index=False)
    else:
        whole.to_csv(output, index=False)
    Console().print(f"{len(changed):,} labels changed: {output}", soft_wrap=True)


def _labelled(file: Path, label: str) -> tuple[Any, Any, Any]:
    """Columns beside the label, labels as text, and the positions of the rows that have one."""
    frame = read_table(file)
    if label not in frame.columns:
        raise InvalidInputError(
            f"There is no column {label!r} in {file}.\nHint: the columns are {', '.join(map(repr, frame.columns))}."
        )
    kept = np.flatnonzero(frame[label].notna())
    labels = frame[label].iloc[kept].astype(str).to_numpy(dtype=object).astype(str)
    return frame.drop(columns=label).iloc[kept], labels, kept


def _judge(
    frame: Any, labels: Any, text: str, alpha: float | None, budget: int | None, seed: int
) -> tuple[Any, MislabelResult]:
    """The columns to show, and what was found in them."""
    if text:
        if text not in frame.columns:
            raise InvalidInputError(
                f"There is no column {text!r}.\nHint: the columns are {', '.join(map(repr, frame.columns))}."
            )
        shown = frame[[text]].rename(columns={text: "text"}).astype(str)
        vectors, proba = _text_vectors(shown["text"].tolist(), labels, seed)
        found = find_mislabeled(vectors, labels, proba=proba, alpha=alpha, budget=budget, random_state=seed)
        return shown, found
    vectors = TabularFeatures().fit_transform(frame)
    return frame, find_mislabeled(vectors, labels, alpha=alpha, budget=budget, random_state=seed)


def _text_vectors(texts: list[str], labels: Any, seed: int) -> tuple[FloatArray, FloatArray]:
    """Latent semantic vectors of unit length, and out-of-fold probabilities of a linear classifier on words."""
    words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2).fit_transform(texts)
    n_components = min(SVD_COMPONENTS, words.shape[1] - 1)
    vectors = TruncatedSVD(n_components, random_state=seed).fit_transform(words)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    proba = cross_val_predict(
        LogisticRegression(C=10, max_iter=1000), words, labels, cv=folds, method="predict_proba"
    )
    return vectors, proba


def _only_text(frame: Any) -> str:
    """The single column of a table of texts."""
    if (
        frame.shape[1] == 1
        and frame.iloc[:, 0].dtype.kind not in "biufM"
        and frame.iloc[:, 0].nunique() > 100
    ):
        return str(frame.columns[0])
    return ""


def _review_path(csv: Path) -> Path:
    return csv.with_suffix(".review.json")


def _existing_review(csv: Path) -> Path:
    path = _review_path(csv)
    if not path.exists():
        raise InvalidInputError(
            f"There is no review set {path}.\nHint: neighboragg audit table.csv --label y -o {csv}"
        )
    return path
