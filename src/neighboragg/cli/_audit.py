"""`neighboragg audit`: suspicious labels of a table, ranked, with reasons."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from matplotlib.figure import Figure
from rich.console import Console

from neighboragg._typing import Array, IntArray
from neighboragg.bench import read_table
from neighboragg.cli._labeled import (
    LabelColumn,
    check_column,
    check_not_input,
    decisions_path,
    read_labels,
    review_path,
)
from neighboragg.cli._vectors import read_matrix, read_proba, text_columns, text_vectors
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, NeighborAggError
from neighboragg.features import TabularFeatures
from neighboragg.mislabel import Budget, Estimated, FalseAlarms, FlagRule, MislabelResult, find_mislabeled
from neighboragg.review import DecisionStore, ReviewSet, build_review_set, save_review_set

__all__ = ["audit"]


def audit(
    file: Annotated[Path, typer.Argument(help="CSV or Parquet file with a label column.")],
    label: LabelColumn,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Flagged rows as CSV; plots and the review set go beside.")
    ] = Path("suspicious.csv"),
    text: Annotated[str, typer.Option(help="Column of texts to judge by, instead of all columns.")] = "",
    embeddings: Annotated[
        Path | None, typer.Option(help="Matrix (.npy) to judge by, a row for each row of the table.")
    ] = None,
    proba: Annotated[
        Path | None,
        typer.Option(
            help="Out-of-fold probabilities (.npy), columns in the sorted order of the labels' text."
        ),
    ] = None,
    image: Annotated[
        str, typer.Option(help="Column of image paths to show in the review; judge by --embeddings.")
    ] = "",
    budget: Annotated[int | None, typer.Option(help="Flag this many rows.")] = None,
    false_alarms: Annotated[
        float | None, typer.Option(help="Flag at most this share of the correctly labeled rows.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Judge this many rows drawn at random, instead of all.")
    ] = None,
    n_random: Annotated[
        int, typer.Option(min=0, help="Rows not flagged to review too, for the errors left.")
    ] = 50,
    seed: Annotated[int, typer.Option(help="Seed.")] = 0,
) -> None:
    """Find suspicious labels: ranked, with the suggested label and the reasons."""
    table = read_table(file)
    _check_output(file, output)
    labels = read_labels(table, label, file)
    _check_columns(table, file, label, text, image, embeddings)
    if image and (missing := sum(not (file.parent / str(path)).is_file() for path in table[image])):
        raise InvalidInputError(
            f"{missing:,} of {len(table):,} pictures of column {image!r} are not below {file.parent}.\n"
            "Hint: paths are relative to the folder of the table."
        )
    judged = _judged_rows(labels, sample, seed)
    frame = table.drop(columns=label).iloc[judged]
    matrix = None if embeddings is None else read_matrix(embeddings, len(table))[judged]
    said = None if proba is None else read_proba(proba, labels, judged)
    console = Console()
    texts = text_columns(frame) if embeddings is None and not text else []
    if texts and frame.shape[1] == 1:
        text = texts[0]
    elif texts:
        console.print(
            f"Texts are not judged with other columns; to judge by them alone: --text {texts[0]}",
            markup=False,
        )
    if len(judged) < len(table) and sample is None:
        console.print(f"{len(table) - len(judged):,} of {len(table):,} rows have no label and are left out.")
    with console.status(f"Judging {len(judged):,} labels"):
        X, opinion = _vectors(frame, labels[judged], text, matrix, seed)
        said = opinion if said is None else said
        result = find_mislabeled(
            X, labels[judged], proba=said, flag=_rule(budget, false_alarms), random_state=seed
        )
    review_set = build_review_set(
        _shown(frame, text, image), result, n_random=n_random, title=f"Labels of {file.name}", random_state=seed,
        rows=judged, n_rows=len(table),
    )  # fmt: skip
    _keep_decisions(output, review_set)
    save_review_set(review_path(output), review_set)
    _flagged_rows(frame, result, judged).to_csv(output, index=False)
    figure = _draw(result, output.with_suffix(".png"))
    console.print(result.summary(judged), soft_wrap=True, markup=False)
    folder = f" --images {file.parent}" if image and output.parent.resolve() != file.parent.resolve() else ""
    console.print(
        f"\nFlagged rows: {output}\nPlots:        {figure}\nReview them:  neighboragg review {output}{folder}",
        soft_wrap=True,
        markup=False,
    )


def _rule(budget: int | None, false_alarms: float | None) -> FlagRule:
    """What to flag."""
    if budget is not None and false_alarms is not None:
        raise InvalidParameterError("--budget and --false-alarms exclude each other; pass one of them.")
    if budget is not None:
        return Budget(budget)
    return Estimated() if false_alarms is None else FalseAlarms(false_alarms)


def _check_output(file: Path, output: Path) -> None:
    """Raise if the output would be written over the input, or is no CSV file."""
    if output.suffix.lower() != ".csv":
        raise InvalidParameterError(
            f"The output {output} must end in .csv; plots and the review set go beside it."
        )
    check_not_input(file, output)
    output.parent.mkdir(parents=True, exist_ok=True)


def _check_columns(
    table: Any, file: Path, label: str, text: str, image: str, embeddings: Path | None
) -> None:
    for option, column in (("--text", text), ("--image", image)):
        if column:
            check_column(table, column, file)
            if column == label:
                raise InvalidParameterError(f"{option} names the label column {label!r} itself.")
    if image and embeddings is None:
        raise InvalidParameterError(
            "--image needs --embeddings: paths say nothing about what is in the pictures."
        )


def _judged_rows(labels: Array, sample: int | None, seed: int) -> IntArray:
    """Positions of the rows that have a label, or of a random sample of them."""
    labeled = np.flatnonzero(labels != "")
    if sample is None or sample >= len(labeled):
        return labeled
    return np.sort(np.random.default_rng(seed).permutation(labeled)[:sample])


def _keep_decisions(output: Path, review_set: ReviewSet) -> None:
    """Raise if there are decisions about other rows beside the output, which a new review set would orphan."""
    path = decisions_path(output)
    if path.exists():
        try:
            DecisionStore(path, review_set, create=False).close()
        except NeighborAggError as error:
            raise InvalidInputError(
                f"{path} holds decisions about an earlier audit, which these flags do not fit.\n"
                "Hint: choose another name with -o, or move that file away."
            ) from error


def _vectors(frame: Any, labels: Array, text: str, matrix: Array | None, seed: int) -> tuple[Any, Any]:
    """What to judge by: embeddings, texts or all columns; and for texts what a classifier of words says."""
    if matrix is not None:
        return matrix, None
    if text:
        return text_vectors(frame[text].fillna("").astype(str).tolist(), labels, seed)
    return TabularFeatures().fit_transform(frame), None


def _shown(frame: Any, text: str, image: str) -> Any:
    """The columns that a reviewer sees: the picture, the text, or the whole row."""
    for name, kind in ((image, "image"), (text, "text")):
        if name:
            return frame[[name]].rename(columns={name: kind}).fillna("").astype(str)
    # A lone column of that name is no picture.
    return frame.rename(columns={"image": "image (column)"}) if list(frame.columns) == ["image"] else frame


def _flagged_rows(frame: Any, result: MislabelResult, judged: IntArray) -> Any:
    """The flagged rows, most suspicious first, with what was found and their own columns."""
    flagged = result.ranking[result.mask[result.ranking]]
    found = result.to_frame().iloc[flagged].drop(columns="flagged")
    found.insert(0, "row", judged[flagged])
    for name in frame.columns:
        shown = str(name) if str(name) not in found.columns else f"{name} (data)"
        found[shown] = frame[name].to_numpy()[flagged]
    return found


def _draw(result: MislabelResult, path: Path) -> Path:
    """Scores and given against suggested labels, side by side."""
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    result.plot_scores(left)
    result.plot_matrix(right)
    figure.savefig(path, dpi=110)
    return path
