"""From a labelled CSV to a corrected CSV, as a new user does it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from typer.testing import CliRunner

from neighboragg.cli._app import app
from neighboragg.datasets import add_label_noise
from neighboragg.exceptions import InvalidInputError
from neighboragg.review import DecisionStore, load_review_set


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    noisy = add_label_noise(names, rate=0.06, random_state=0)
    frame = X.assign(bottle=np.where(X["alcohol"] > 13, "large", "small"), cultivar=noisy.y)
    frame.loc[5, "cultivar"] = None
    return frame, names, noisy.mask


def decide_everything(path, review_set):
    """Take every suggestion for flagged rows, as a reviewer would by pressing r."""
    with DecisionStore(path, review_set) as store:
        for item in review_set.flagged:
            store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)


def test_three_commands(wine, tmp_path):
    frame, truth, wrong = wine
    table, flagged, fixed = tmp_path / "wine.csv", tmp_path / "suspicious.csv", tmp_path / "corrected.csv"
    frame.to_csv(table, index=False)
    output = run("audit", table, "--label", "cultivar", "-o", flagged)
    assert "labels flagged" in output
    found = pd.read_csv(flagged)
    assert wrong[found["row"]].mean() > 0.8
    assert {"given", "suggested", "reasons", "alcohol", "bottle"} <= set(found.columns)

    review_path = flagged.with_suffix(".review.json")
    review_set = load_review_set(review_path)
    assert len(review_set.flagged) == len(found)
    assert len(review_set.audit) == 50
    decide_everything(review_path.with_suffix(".decisions.sqlite"), review_set)

    assert "labels changed" in run("correct", table, "--label", "cultivar", "--review", flagged, "-o", fixed)
    after = pd.read_csv(fixed)
    assert (after.drop(columns="cultivar") == pd.read_csv(table).drop(columns="cultivar")).all(axis=None)
    labelled = after["cultivar"].notna()
    assert not labelled[5]
    assert (after["cultivar"] != truth)[labelled].sum() < wrong.sum() / 2


def test_integer_labels_stay_integers_and_parquet_works(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    noisy = add_label_noise(y.to_numpy(), rate=0.05, random_state=1)
    table, flagged, fixed = tmp_path / "w.parquet", tmp_path / "s.csv", tmp_path / "c.parquet"
    X.assign(y=noisy.y).to_parquet(table)
    run("audit", table, "--label", "y", "-o", flagged, "--budget", 5)
    review_path = flagged.with_suffix(".review.json")
    decide_everything(review_path.with_suffix(".decisions.sqlite"), load_review_set(review_path))
    run("correct", table, "--label", "y", "--review", flagged, "-o", fixed)
    after = pd.read_parquet(fixed)["y"]
    assert (after.to_numpy() != noisy.y).sum() == 5
    assert set(after) == {0, 1, 2}


def test_dates_and_missing_values_are_shown(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    frame = X.iloc[:, :3].assign(
        when=pd.date_range("2024-01-01", periods=len(X)), count=pd.array([1, None] * 89, dtype="Int64"), y=y
    )
    table, flagged = tmp_path / "w.parquet", tmp_path / "s.csv"
    frame.to_parquet(table)
    run("audit", table, "--label", "y", "-o", flagged, "--budget", 4)
    contents = [item.content for item in load_review_set(flagged.with_suffix(".review.json")).items]
    assert all(content["when"].startswith("2024-") for content in contents)
    assert {content["count"] for content in contents} == {1, None}


def test_texts(tmp_path):
    rng = np.random.default_rng(0)
    words = {"animal": ["cat", "dog", "cow", "fur", "paw"], "plant": ["leaf", "root", "seed", "moss", "bark"]}
    labels = rng.choice(list(words), 240)
    texts = [" ".join(rng.choice(words[label], 6)) + f" number {i}" for i, label in enumerate(labels)]
    noisy = add_label_noise(labels, rate=0.05, random_state=0)
    table, flagged = tmp_path / "texts.csv", tmp_path / "suspicious.csv"
    pd.DataFrame({"sentence": texts, "kind": noisy.y}).to_csv(table, index=False)
    run("audit", table, "--label", "kind", "-o", flagged, "--budget", 12)
    found = pd.read_csv(flagged)
    assert noisy.mask[found["row"]].all()
    item = load_review_set(flagged.with_suffix(".review.json")).flagged[0]
    assert item.kind == "text"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["audit", "{table}", "--label", "z"],
            "There is no column 'z' in {table}.\nHint: the columns are 'a', 'y'.",
        ),
        (
            ["audit", "{table}", "--label", "y", "--text", "z"],
            "There is no column 'z'.\nHint: the columns are 'a'.",
        ),
        (
            ["review", "{folder}/s.csv"],
            "There is no review set {folder}/s.review.json.\n"
            "Hint: neighboragg audit table.csv --label y -o {folder}/s.csv",
        ),
    ],
    ids=["label", "text", "review"],
)
def test_refusals(tmp_path, arguments, message):
    table = tmp_path / "t.csv"
    pd.DataFrame({"a": range(30), "y": ["u", "v", "w"] * 10}).to_csv(table, index=False)
    places = {"table": table, "folder": tmp_path}
    with pytest.raises(InvalidInputError) as error:
        run(*(argument.format(**places) for argument in arguments))
    assert str(error.value) == message.format(**places)
